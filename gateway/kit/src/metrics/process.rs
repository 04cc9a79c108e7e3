//! Metrics of the process and its build, with the names that Prometheus' own libraries give them.

use std::fmt;

use procfs::{
    WithCurrentSystemInfo,
    process::{LimitValue, Process},
};

use super::{Family, Scrape, Source};

const BUILD: Family = Family {
    name: "signpost_build",
    help: "The program and its version",
};
const CPU_SECONDS: Family = Family {
    name: "process_cpu_seconds",
    help: "Processor time of the process, user and system, in seconds",
};
const OPEN_FDS: Family = Family {
    name: "process_open_fds",
    help: "Open file descriptors",
};
const MAX_FDS: Family = Family {
    name: "process_max_fds",
    help: "The soft limit on open file descriptors",
};
const RESIDENT: Family = Family {
    name: "process_resident_memory_bytes",
    help: "Resident memory, in bytes",
};
const VIRTUAL: Family = Family {
    name: "process_virtual_memory_bytes",
    help: "Virtual memory, in bytes",
};
const START: Family = Family {
    name: "process_start_time_seconds",
    help: "When the process started, in seconds since the epoch",
};
const THREADS: Family = Family {
    name: "process_threads",
    help: "Threads of the process",
};

/// The process, read from `/proc` at each scrape. What cannot be read is left out.
#[derive(Debug)]
pub struct ProcessMetrics {
    /// The program's name, for example `signpost`.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
}

impl Source for ProcessMetrics {
    fn write(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        let build = [("program", self.program), ("version", self.version)];
        scrape.info(BUILD, &build)?;
        let process = Process::myself().ok();
        let process = process.as_ref();
        let stat = process.and_then(|process| process.stat().ok());
        let ticks = procfs::ticks_per_second() as f64;
        let cpu = stat
            .as_ref()
            .map(|stat| (stat.utime + stat.stime) as f64 / ticks);
        scrape.counter(CPU_SECONDS, |add| cpu.map_or(Ok(()), |cpu| add(&[], cpu)))?;
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
            scrape.gauge(family, |add| value.map_or(Ok(()), |value| add(&[], value)))?;
        }
        Ok(())
    }
}
