//! The times at which requests of a fixed rate are due.

use std::{
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use anyhow::ensure;
use rustix::{
    event::Timespec,
    io::Errno,
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create,
        timerfd_settime,
    },
};

/// Equally spaced moments, and a timer that fires at each of them.
///
/// The timer is the kernel's high-resolution one: a wait for events with a timeout is only exact to 50 µs.
#[derive(Debug)]
pub(super) struct Schedule {
    started: Instant,
    interval: Duration,
    count: u64,
    timer: OwnedFd,
}

impl Schedule {
    /// Starts a schedule of `count` moments.
    ///
    /// # Errors
    ///
    /// When the system cannot create a timer, or the rate is not 1 to 1,000,000 a second.
    pub(super) fn start(a_second: u64, count: u64) -> anyhow::Result<Self> {
        ensure!(
            (1..=1_000_000).contains(&a_second),
            "rate: found {a_second}/s; allowed: 1 to 1000000"
        );
        let nanoseconds = 1_000_000_000 / a_second;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        let interval = Timespec {
            tv_sec: i64::try_from(nanoseconds / 1_000_000_000)?,
            tv_nsec: i64::try_from(nanoseconds % 1_000_000_000)?,
        };
        let started = Instant::now();
        let times = Itimerspec {
            it_interval: interval,
            it_value: interval,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)?;
        Ok(Self {
            started,
            interval: Duration::from_nanos(nanoseconds),
            count,
            timer,
        })
    }

    /// The timer, readable when a moment has been reached.
    pub(super) const fn timer(&self) -> &OwnedFd {
        &self.timer
    }

    /// Resets the timer after it has fired.
    ///
    /// # Errors
    ///
    /// When the timer cannot be read.
    pub(super) fn acknowledge(&self) -> anyhow::Result<()> {
        match rustix::io::read(&self.timer, &mut [0_u8; 8]) {
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(cause) => Err(cause.into()),
        }
    }

    /// The moment with this index, from 0, if it has been reached.
    pub(super) fn due(&self, index: u64) -> Option<Instant> {
        let after = Duration::from_nanos(
            u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX) * (index + 1),
        );
        let moment = self.started + after;
        (index < self.count && moment <= Instant::now()).then_some(moment)
    }
}
