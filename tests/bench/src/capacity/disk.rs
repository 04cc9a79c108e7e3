//! The time of a flush on this disk: a durable store flushes before it answers.

use std::{
    fs::File,
    io::{Seek, Write},
    process::Command,
    time::Instant,
};

use anyhow::{Context, ensure};
use end_to_end::folder::Folder;
use serde::Serialize;

use crate::rounds::median;

/// Number of timed flushes.
const FLUSHES: usize = 200;

/// The speed of the disk.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Disk {
    /// Median time to overwrite 4 KiB and call `fdatasync` where the stores are, in microseconds.
    pub flush_us: f64,
}

/// Flushes all written data to the disk, so that the flush does not slow a measurement down.
///
/// # Errors
///
/// When the program `sync` is missing or fails.
pub fn sync() -> anyhow::Result<()> {
    let status = Command::new("sync").status().context("cannot run sync")?;
    ensure!(status.success(), "sync: {status}");
    Ok(())
}

impl Disk {
    /// Measures the disk.
    ///
    /// # Errors
    ///
    /// When the folder for temporary files cannot be written.
    pub fn measure() -> anyhow::Result<Self> {
        let folder = Folder::create();
        let mut file = File::create(folder.path().join("flushed"))?;
        let mut times = Vec::with_capacity(FLUSHES);
        for _ in 0..=FLUSHES {
            let started = Instant::now();
            file.rewind()?;
            file.write_all(&[b'x'; 4096])?;
            file.sync_data()?;
            times.push(started.elapsed().as_secs_f64() * 1e6);
        }
        // The first flush also extended the file.
        times.remove(0);
        Ok(Self {
            flush_us: median(times),
        })
    }
}
