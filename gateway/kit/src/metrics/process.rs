//! Metrics of the process and its build, with the names that Prometheus' own libraries give them.

use std::fmt;

use procfs::{
    WithCurrentSystemInfo,
    process::{LimitValue, Process},
};

use super::Scrape;

crate::families! {
    BUILD = "signpost_build_info", Info, ["program", "version"],
        "The program. version has its release, commit and profile, as --version prints them.";
    CPU_SECONDS = "process_cpu_seconds_total", Counter, [], "Processor time of the process, user and system, in seconds.";
    OPEN_FDS = "process_open_fds", Gauge, [], "Open file descriptors.";
    MAX_FDS = "process_max_fds", Gauge, [], "The soft limit on open file descriptors.";
    RESIDENT = "process_resident_memory_bytes", Gauge, [], "Resident memory, in bytes.";
    VIRTUAL = "process_virtual_memory_bytes", Gauge, [], "Virtual memory, in bytes.";
    START = "process_start_time_seconds", Gauge, [], "When the process started, in seconds since the epoch.";
    THREADS = "process_threads", Gauge, [], "Threads of the process.";
}

/// Writes the families. `program` is its name, as in its packages.
///
/// # Errors
///
/// Only errors of `scrape`.
pub fn write(scrape: &mut Scrape<'_>, program: &str, version: &str) -> fmt::Result {
    scrape.info(BUILD, [program, version])?;
    let process = Process::myself().ok();
    let process = process.as_ref();
    let stat = process.and_then(|process| process.stat().ok());
    let ticks = procfs::ticks_per_second() as f64;
    let cpu = stat
        .as_ref()
        .map(|stat| (stat.utime + stat.stime) as f64 / ticks);
    scrape.number(CPU_SECONDS, cpu)?;
    let limits = process.and_then(|process| process.limits().ok());
    let max_fds = limits.map(|limits| match limits.max_open_files.soft_limit {
        LimitValue::Value(files) => files as f64,
        LimitValue::Unlimited => f64::INFINITY,
    });
    let open_fds = process.and_then(|process| process.fd_count().ok());
    let rss = stat.as_ref().map(|stat| stat.rss_bytes().get() as f64);
    let started = stat.as_ref().and_then(|stat| {
        let booted = procfs::boot_time_secs().ok()?;
        Some(booted as f64 + stat.starttime as f64 / ticks)
    });
    for (family, value) in [
        (OPEN_FDS, open_fds.map(|count| count as f64)),
        (MAX_FDS, max_fds),
        (RESIDENT, rss),
        (VIRTUAL, stat.as_ref().map(|stat| stat.vsize as f64)),
        (START, started),
        (THREADS, stat.as_ref().map(|stat| stat.num_threads as f64)),
    ] {
        scrape.number(family, value)?;
    }
    Ok(())
}
