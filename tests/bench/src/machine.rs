//! The machine: its set-up for a run, and its description.

use std::{env, fs, process::Command, thread};

use anyhow::{Context, ensure};
use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    thread::{CpuSet, sched_setaffinity},
};
use serde::Serialize;

/// Preferred limit on file descriptors: 10,000 connections need one at each end.
const DESCRIPTORS: u64 = 65_536;

/// Minimum limit on file descriptors.
const MIN_DESCRIPTORS: u64 = 16_384;

/// Moves this process to the load's processor, and raises the limit on file descriptors.
///
/// # Errors
///
/// When there is only one processor, or the limit is too low.
pub fn prepare() -> anyhow::Result<()> {
    let processors = thread::available_parallelism()?.get();
    ensure!(
        processors >= 2,
        "two processors are required: one for the contestants, one for load and backend"
    );
    let mut second = CpuSet::new();
    second.set(1);
    sched_setaffinity(None, &second).context("cannot move to processor 1")?;
    let limit = getrlimit(Resource::Nofile);
    let allowed = limit.maximum.unwrap_or(u64::MAX);
    let wanted = |maximum| Rlimit {
        current: Some(maximum),
        maximum: Some(maximum),
    };
    // Only root may raise the hard limit.
    let is_raised = setrlimit(
        Resource::Nofile,
        wanted(DESCRIPTORS.max(allowed.min(DESCRIPTORS))),
    )
    .is_ok();
    if !is_raised {
        ensure!(
            allowed >= MIN_DESCRIPTORS,
            "the limit on file descriptors is {allowed}; required: at least {MIN_DESCRIPTORS} (ulimit -n)"
        );
        setrlimit(Resource::Nofile, wanted(allowed))?;
    }
    Ok(())
}

/// The machine and the programs of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Number of processors.
    pub processors: usize,
    /// The kernel's release.
    pub kernel: String,
    /// The distribution's name.
    pub system: String,
    /// Names and versions of programs.
    pub versions: Vec<String>,
    /// Date and time, UTC.
    pub date: String,
    /// The command of the run.
    pub command: String,
}

/// Describes the machine.
///
/// # Errors
///
/// When `/proc` cannot be read.
pub fn describe() -> anyhow::Result<Machine> {
    let information = fs::read_to_string("/proc/cpuinfo")?;
    let mut names = information
        .lines()
        .filter_map(|line| line.strip_prefix("model name"))
        .map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned())
        .peekable();
    let processor = names
        .peek()
        .cloned()
        .unwrap_or_else(|| env::consts::ARCH.to_owned());
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let system = system
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let versions = [
        ("rustc", "--version"),
        ("nginx", "-v"),
        ("haproxy", "-v"),
        // Of the system's library, which both use.
        ("openssl", "version"),
        ("valgrind", "--version"),
    ];
    Ok(Machine {
        processor,
        processors: names.count(),
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?
            .trim()
            .to_owned(),
        system: system.unwrap_or("Linux").trim_matches('"').to_owned(),
        versions: versions
            .iter()
            .filter_map(|(name, option)| version(name, option))
            .collect(),
        date: output("date", &["-u", "+%Y-%m-%d %H:%M UTC"]).unwrap_or_default(),
        command: command(env::args().skip(2)),
    })
}

/// The call of `scripts/bench`, without options that name folders of this machine.
fn command(mut arguments: impl Iterator<Item = String>) -> String {
    let mut command = "scripts/bench".to_owned();
    while let Some(argument) = arguments.next() {
        match argument.split('=').next() {
            Some("--binaries" | "--configurations" | "--results") => {
                if !argument.contains('=') {
                    arguments.next();
                }
            }
            _ => {
                command.push(' ');
                command += &argument;
            }
        }
    }
    command
}

/// A program's name and version, from the first line of its output.
fn version(program: &str, option: &str) -> Option<String> {
    let text = output(program, &[option])?;
    let line = text.lines().next()?;
    let number = line
        .split([' ', '/', '-'])
        .find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()))?;
    Some(format!("{program} {number}"))
}

/// Runs a program, and returns its standard output and standard error.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let bytes = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_no_folders() {
        let text = "--quick --binaries some/where --results=there --rounds 3";
        let text = text.split(' ').map(str::to_owned);
        assert_eq!(command(text), "scripts/bench --quick --rounds 3");
    }
}
