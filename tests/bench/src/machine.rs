//! The machine: made ready, and described.

use std::{env, fs, process::Command, thread};

use anyhow::{Context, ensure};
use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    thread::{CpuSet, sched_setaffinity},
};
use serde::Serialize;

/// File handles that are wanted: 10,000 connections have one at each end.
const HANDLES: u64 = 65_536;

/// The fewest that will do.
const FEWEST_HANDLES: u64 = 16_384;

/// Moves this process to the load's processor, and makes room for connections.
///
/// # Errors
///
/// There is one processor only, or too few file handles are allowed.
pub fn prepare() -> anyhow::Result<()> {
    let processors = thread::available_parallelism()?.get();
    ensure!(
        processors >= 2,
        "two processors are needed: one for the contestants, one for load and backend"
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
    // Only root may go beyond what is allowed.
    let is_raised = setrlimit(Resource::Nofile, wanted(HANDLES.max(allowed.min(HANDLES)))).is_ok();
    if !is_raised {
        ensure!(
            allowed >= FEWEST_HANDLES,
            "{FEWEST_HANDLES} file handles are needed, {allowed} are allowed: see ulimit -n"
        );
        setrlimit(Resource::Nofile, wanted(allowed))?;
    }
    Ok(())
}

/// What it was measured on, and with.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many of them.
    pub processors: usize,
    /// The kernel's release.
    pub kernel: String,
    /// The distribution's name.
    pub system: String,
    /// Names and versions of programs.
    pub versions: Vec<String>,
    /// The day.
    pub date: String,
    /// How this was called.
    pub command: String,
}

/// Describes the machine.
///
/// # Errors
///
/// `/proc` is not there.
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

/// The script's call, without what only says where something is on this machine.
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

/// A program's name and version, from the first line that it says of itself.
fn version(program: &str, option: &str) -> Option<String> {
    let said = output(program, &[option])?;
    let line = said.lines().next()?;
    let number = line
        .split([' ', '/', '-'])
        .find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()))?;
    Some(format!("{program} {number}"))
}

/// What a program writes, wherever it writes it.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let bytes = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_says_nothing_of_places() {
        let said = "--quick --binaries some/where --results=there --rounds 3";
        let said = said.split(' ').map(str::to_owned);
        assert_eq!(command(said), "scripts/bench --quick --rounds 3");
    }
}
