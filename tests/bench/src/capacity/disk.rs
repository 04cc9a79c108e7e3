//! What durability costs on this disk: a store that answers has flushed before.

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

/// Flushes that are timed.
const FLUSHES: usize = 200;

/// What one flush takes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Disk {
    /// Of 4 KiB written over what was there, and `fdatasync`, where the stores are. The median.
    pub flush_us: f64,
}

/// Waits until all that was written is on the disk, so that nobody waits for it later.
///
/// # Errors
///
/// `sync` is not there.
pub fn settle() -> anyhow::Result<()> {
    let status = Command::new("sync").status().context("no sync")?;
    ensure!(status.success(), "sync: {status}");
    Ok(())
}

impl Disk {
    /// Tries it.
    ///
    /// # Errors
    ///
    /// The folder for temporary files cannot be written.
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
        // The first one made the file longer.
        times.remove(0);
        Ok(Self {
            flush_us: median(times),
        })
    }
}
