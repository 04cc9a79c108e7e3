//! Processor time by process.

use std::{fs, io::ErrorKind, process};

use anyhow::Context;
use rustix::param::clock_ticks_per_second;
use serde::Serialize;

/// Processes with their names in the tables. This program, the load, is always the last one.
#[derive(Clone, Debug, Default)]
pub struct Watched(Vec<(&'static str, u32)>);

/// The name of this program in the tables.
pub const LOAD: &str = "load";

/// The processor time of a process and its children; of the load, only its own.
#[derive(Clone, Debug, Serialize)]
pub struct Usage {
    /// Its name in the tables.
    pub name: &'static str,
    /// User and kernel time, in steps of 10 ms.
    pub seconds: f64,
}

impl Watched {
    /// Adds a process by its id.
    #[must_use]
    pub fn and(mut self, name: &'static str, id: u32) -> Self {
        self.0.push((name, id));
        self
    }

    /// The processor time of each since its start.
    ///
    /// # Errors
    ///
    /// When one has exited.
    pub fn look(&self) -> anyhow::Result<Vec<Usage>> {
        let watched = self.0.iter().map(|&(name, id)| {
            let ticks = with_children(id).with_context(|| format!("{name} has exited"));
            anyhow::Ok((name, ticks?))
        });
        // Without children: the watched processes are children of this program, and would count twice.
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

/// The time of a process in clock ticks, with that of its children, exited or running: Postgres has a child for each
/// connection.
fn with_children(id: u32) -> anyhow::Result<u64> {
    let mut ticks: u64 = times(id)?.iter().sum();
    let children = format!("/proc/{id}/task/{id}/children");
    for child in fs::read_to_string(children)?.split_whitespace() {
        match times(child.parse()?) {
            Ok(times) => ticks += times.iter().sum::<u64>(),
            // It has exited since it was listed.
            Err(cause) if has_exited(&cause) => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(ticks)
}

/// User and kernel time in clock ticks, own and of waited-for children: `proc_pid_stat(5)`, fields 14 to 17.
fn times(id: u32) -> anyhow::Result<[u64; 4]> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The name, the second field, is in parentheses and may have any characters.
    let (_, after_name) = stat.rsplit_once(')').context("no name")?;
    let mut fields = after_name.split_whitespace().skip(11);
    let mut next = || anyhow::Ok(fields.next().context("no times")?.parse()?);
    Ok([next()?, next()?, next()?, next()?])
}

fn has_exited(cause: &anyhow::Error) -> bool {
    // ESRCH: the process exited while its file was read.
    const NO_PROCESS: i32 = 3;
    cause.downcast_ref::<std::io::Error>().is_some_and(|cause| {
        cause.kind() == ErrorKind::NotFound || cause.raw_os_error() == Some(NO_PROCESS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_grows_with_work() {
        let watched = Watched::default();
        let before = watched.look().unwrap()[0].seconds;
        let mut sum = 0_u64;
        while watched.look().unwrap()[0].seconds < before + 0.03 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        let exited = Watched::default().and("absent", u32::MAX).look();
        assert!(
            exited
                .unwrap_err()
                .to_string()
                .contains("absent has exited")
        );
    }
}
