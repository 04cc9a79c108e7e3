//! The limit on open files (`RLIMIT_NOFILE`): raised at the start, with a reserve that client connections cannot use.

use std::{fs, io, os::fd::AsFd, os::fd::AsRawFd};

use rustix::process::{Resource, Rlimit, setrlimit};

/// Upper bound for raising: more than a program can use. Container runtimes set hard limits of a thousand million.
const MAX_RAISED: u64 = 1 << 20;
/// Assumed if the limit cannot be read: the usual soft limit of Linux distributions.
const USUAL_LIMIT: u64 = 1024;
/// A quarter of the limit is reserved, within these bounds: for management, backends, providers and the store.
const MIN_RESERVE: u64 = 32;
const MAX_RESERVE: u64 = 4096;

/// The limit on the process' open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// The limit in force.
    pub limit: u64,
}

impl Descriptors {
    /// Raises the soft limit to the hard one, to at most 1,048,576. If the system forbids that, the soft limit stays.
    #[must_use]
    pub fn raise_limit() -> Self {
        // Not by getrlimit(2): rustix assumes that it cannot fail, but a sandbox may forbid it.
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let (soft, hard) = parse_limits(&limits).unwrap_or((USUAL_LIMIT, USUAL_LIMIT));
        let raised = hard.min(MAX_RAISED);
        let wanted = Rlimit {
            current: Some(raised),
            // The hard limit stays: without privileges nobody could raise it again. `None` is infinity.
            maximum: (hard != u64::MAX).then_some(hard),
        };
        if raised > soft && setrlimit(Resource::Nofile, wanted).is_ok() {
            Self { limit: raised }
        } else {
            Self { limit: soft }
        }
    }

    /// Descriptors that client connections cannot use: a quarter of the limit, 32 to 4096.
    #[must_use]
    pub fn reserve(self) -> u64 {
        (self.limit / 4).clamp(MIN_RESERVE, MAX_RESERVE)
    }

    /// Whether a client connection may be accepted: whether the reserve is still free.
    ///
    /// The system gives every new descriptor the lowest free number, so the number of a probe shows how many are open.
    /// Nothing has to be counted, and no count can be wrong.
    #[must_use]
    pub fn has_room(self) -> bool {
        let probe = io::stderr().as_fd().try_clone_to_owned();
        // A failed probe counts as full: then the limit itself is reached.
        probe.is_ok_and(|probe| {
            u64::try_from(probe.as_raw_fd())
                .is_ok_and(|number| number < self.limit.saturating_sub(self.reserve()))
        })
    }

    /// A limit on connections that leaves the reserve free: `wanted`, or the limit without the reserve if that is less.
    #[must_use]
    pub fn connection_limit(self, wanted: usize) -> usize {
        let available = self.limit.saturating_sub(self.reserve());
        usize::try_from(available).map_or(wanted, |available| wanted.min(available).max(1))
    }
}

/// Soft and hard limit from the table of `/proc/self/limits`, proc(5).
fn parse_limits(limits: &str) -> Option<(u64, u64)> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    let mut columns = line.split_whitespace().map(|number| match number {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    });
    Some((columns.next()??, columns.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_read_from_the_table() {
        let table = "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max processes             127000               127000               processes \n\
                     Max open files            1024                 524288               files     \n";
        assert_eq!(parse_limits(table), Some((1024, 524_288)));
        let unlimited = "Max open files   1024   unlimited   files\n";
        assert_eq!(parse_limits(unlimited), Some((1024, u64::MAX)));
        assert_eq!(parse_limits(""), None);
    }

    #[test]
    fn a_quarter_is_reserved() {
        for (limit, reserve) in [(64, 32), (256, 64), (1024, 256), (1 << 20, 4096)] {
            assert_eq!(Descriptors { limit }.reserve(), reserve, "{limit}");
        }
        assert_eq!(Descriptors { limit: 256 }.connection_limit(1024), 192);
        assert_eq!(Descriptors { limit: 65_536 }.connection_limit(1024), 1024);
    }

    #[test]
    fn a_process_with_few_open_files_has_room() {
        assert!(Descriptors { limit: 1 << 20 }.has_room());
        assert!(!Descriptors { limit: 32 }.has_room());
    }
}
