//! How connections are served, and how long a stop takes.

use std::{ops::RangeInclusive, time::Duration};

use signpost_kit::{
    http_server::HttpTimeouts,
    shutdown::{self, ShutdownSettings},
};

use super::{
    problems::Problems,
    raw::{RawShutdown, RawTimeouts},
};

/// More than several gateways have open to a backend that keeps up; few enough for memory and descriptors.
const CONNECTIONS: u64 = 8192;
/// As at the gateway: nobody who means it needs longer for a head or a form of 64 KiB.
const HEAD_SECONDS: u64 = 10;
const BODY_SECONDS: u64 = 10;
/// Longer than the 90 s for which a gateway keeps idle connections: a backend that closed first would fail a request
/// that is sent at that moment.
const IDLE_SECONDS: u64 = 120;
const SECONDS: RangeInclusive<u64> = 1..=3600;
/// Each wait until the other end takes bytes of an answer, as at the gateway. Answers are small.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// Connections, and how long anything may take on one.
#[derive(Clone, Copy, Debug)]
pub struct Serving {
    /// Connections at once, default 8192.
    pub max_connections: usize,
    /// A whole head, 10 s; silence between two requests, 120 s; a wait while an answer is sent, 60 s.
    pub timeouts: HttpTimeouts,
    /// A whole body. Default 10 s.
    pub body_timeout: Duration,
    /// From the signal to the end.
    pub shutdown: ShutdownSettings,
}

impl Serving {
    pub(super) fn read(
        connections: Option<i64>,
        timeouts: &RawTimeouts,
        stop: &RawShutdown,
        problems: &mut Problems,
    ) -> Self {
        let connections =
            problems.within("limits.connections", connections, CONNECTIONS, 1..=65_536);
        let mut seconds = |key: &str, given, default, range| {
            Duration::from_secs(problems.within(key, given, default, range))
        };
        let head = seconds(
            "timeouts.head_seconds",
            timeouts.head_seconds,
            HEAD_SECONDS,
            SECONDS,
        );
        let body = seconds(
            "timeouts.body_seconds",
            timeouts.body_seconds,
            BODY_SECONDS,
            SECONDS,
        );
        let idle = seconds(
            "timeouts.idle_seconds",
            timeouts.idle_seconds,
            IDLE_SECONDS,
            SECONDS,
        );
        let drain_delay = seconds(
            "shutdown.drain_delay_seconds",
            stop.drain_delay_seconds,
            shutdown::DRAIN_DELAY_SECONDS.into(),
            0..=shutdown::MAX_DRAIN_DELAY_SECONDS.into(),
        );
        let grace = seconds(
            "shutdown.grace_seconds",
            stop.grace_seconds,
            shutdown::GRACE_SECONDS.into(),
            1..=shutdown::MAX_GRACE_SECONDS.into(),
        );
        Self {
            max_connections: usize::try_from(connections).expect("at most 65,536"),
            timeouts: HttpTimeouts {
                head,
                idle,
                send: SEND_TIMEOUT,
            },
            body_timeout: body,
            shutdown: ShutdownSettings { drain_delay, grace },
        }
    }
}
