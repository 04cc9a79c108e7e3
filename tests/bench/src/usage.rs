//! Processor time by process.

use std::{fs, io::ErrorKind, process};

use anyhow::Context;
use rustix::param::clock_ticks_per_second;
use serde::Serialize;

/// Processes by what tables call them. This program, the load, is always among them, as the last.
#[derive(Clone, Debug, Default)]
pub struct Watched(Vec<(&'static str, u32)>);

/// What tables call this program.
pub const LOAD: &str = "load";

/// One process's processor time, with its children's; the load's own.
#[derive(Clone, Debug, Serialize)]
pub struct Usage {
    /// What tables call it.
    pub name: &'static str,
    /// Of user and kernel time, to 10 ms.
    pub seconds: f64,
}

impl Watched {
    /// One more process, by its number.
    #[must_use]
    pub fn and(mut self, name: &'static str, id: u32) -> Self {
        self.0.push((name, id));
        self
    }

    /// What each has used since it started.
    ///
    /// # Errors
    ///
    /// One is gone.
    pub fn look(&self) -> anyhow::Result<Vec<Usage>> {
        let watched = self.0.iter().map(|&(name, id)| {
            let ticks = with_children(id).with_context(|| format!("{name} is gone"));
            anyhow::Ok((name, ticks?))
        });
        // What is watched was started by this program, and is not counted twice.
        let [user, kernel, ..] = times(process::id())?;
        let second = clock_ticks_per_second() as f64;
        watched
            .chain([Ok((LOAD, user + kernel))])
            .map(|used| used.map(|(name, ticks)| Usage::new(name, ticks as f64 / second)))
            .collect()
    }
}

impl Usage {
    const fn new(name: &'static str, seconds: f64) -> Self {
        Self { name, seconds }
    }
}

/// A process's time in clock ticks, that of the children it has waited for, and that of those that run: Postgres has one for each
/// connection.
fn with_children(id: u32) -> anyhow::Result<u64> {
    let mut ticks: u64 = times(id)?.iter().sum();
    let children = format!("/proc/{id}/task/{id}/children");
    for child in fs::read_to_string(children)?.split_whitespace() {
        match times(child.parse()?) {
            Ok(times) => ticks += times.iter().sum::<u64>(),
            // It has ended since it was listed.
            Err(cause) if is_gone(&cause) => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(ticks)
}

/// User and kernel time in clock ticks, own and of children that were waited for: `proc_pid_stat(5)`, fields 14 to 17.
fn times(id: u32) -> anyhow::Result<[u64; 4]> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The name, the second field, is in parentheses and may have any characters.
    let (_, behind_name) = stat.rsplit_once(')').context("no name")?;
    let mut fields = behind_name.split_whitespace().skip(11);
    let mut next = || anyhow::Ok(fields.next().context("no times")?.parse()?);
    Ok([next()?, next()?, next()?, next()?])
}

fn is_gone(cause: &anyhow::Error) -> bool {
    // A process that ends while its file is read has no number any more (ESRCH).
    const NO_PROCESS: i32 = 3;
    cause.downcast_ref::<std::io::Error>().is_some_and(|cause| {
        cause.kind() == ErrorKind::NotFound || cause.raw_os_error() == Some(NO_PROCESS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time() {
        let watched = Watched::default();
        let before = watched.look().unwrap()[0].seconds;
        let mut sum = 0_u64;
        while watched.look().unwrap()[0].seconds < before + 0.03 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        let gone = Watched::default().and("nobody", u32::MAX).look();
        assert!(gone.unwrap_err().to_string().contains("nobody is gone"));
    }
}
