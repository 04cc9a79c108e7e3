//! Limits on what clients can start, and timeouts of their requests and connections.

use std::time::Duration;

use signpost_kit::{
    config::{Invalid, Read, Section},
    limits::Rate,
    read_all,
    server::listener::HttpTimeouts,
};

/// Polling logins of one application, a second and at once: the peak of a busy game. Each leaves a row for `login_ttl` and
/// an hour.
const STARTS: [u32; 2] = [100, 1_000];
/// Callbacks of one address: a company where a thousand users log in within a minute.
const CALLBACKS: [u32; 2] = [20, 200];
/// Calls to providers in flight. A healthy provider answers within half a second, so this allows 500 logins a second.
const PROVIDER_CALLS: usize = 256;
/// More than several gateways open to a healthy backend, and few enough for memory and file descriptors. Half of them for
/// requests that wait are 4,096, an eighth for an application 1,024.
const CONNECTIONS: usize = 8192;
/// As the gateway's: enough for a head or a form of 64 KiB.
const HEAD_SECONDS: u64 = 10;
const BODY_SECONDS: u64 = 10;
/// Longer than the default of the gateway's `idle_seconds`, 90: if the backend closed first, a request sent at that moment
/// would fail.
const IDLE_SECONDS: u64 = 120;
/// Timeout of each write of a response, as the gateway's. Responses are small.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// Limits on what clients can start, for each process. CONTRACT 8.
#[derive(Clone, Copy, Debug)]
pub struct LoginLimits {
    /// Polling logins started by one application; default 100 per second, bursts of 1,000.
    pub starts: Rate,
    /// Callbacks of one client address that call a provider; default 20 per second, bursts of 200. For IPv6, one /64
    /// counts as an address, and one /48 has four times the limit.
    pub callbacks: Rate,
    /// Calls to providers in flight, 1 to 10,000, default 256. One client address (IPv6: one /48) gets at most an
    /// eighth.
    pub provider_calls: usize,
    /// Open connections, 1 to 65,536, default 8192.
    pub connections: usize,
}

impl LoginLimits {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let mut rate = |[second_key, burst_key]: [&str; 2], [per_second, burst]: [u32; 2]| {
            let per_second = section.number(second_key, 1..=100_000, per_second);
            let burst = section.number(burst_key, 1..=1_000_000, burst);
            Rate::new(per_second?, burst?).ok_or(Invalid)
        };
        read_all!(Self {
            starts: rate(["starts_per_second", "starts_burst"], STARTS),
            callbacks: rate(["callbacks_per_second", "callbacks_burst"], CALLBACKS),
            provider_calls: section.number("provider_calls", 1..=10_000, PROVIDER_CALLS),
            connections: section.number("connections", 1..=65_536, CONNECTIONS),
        })
    }
}

/// Timeouts of requests and connections.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// The request head, default 10 s; an idle connection, default 120 s; each write of a response, 60 s.
    pub connection: HttpTimeouts,
    /// The request body. Default 10 s.
    pub body: Duration,
}

impl Timeouts {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let mut seconds = |key, default| section.seconds(key, 1..=3600, default);
        read_all!(Self {
            connection: read_all!(HttpTimeouts {
                head: seconds("head_seconds", HEAD_SECONDS),
                idle: seconds("idle_seconds", IDLE_SECONDS),
                send: Ok(SEND_TIMEOUT),
            }),
            body: seconds("body_seconds", BODY_SECONDS),
        })
    }
}
