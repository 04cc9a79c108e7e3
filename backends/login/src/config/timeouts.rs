//! Timeouts of requests and connections.

use std::time::Duration;

use signpost_kit::{
    config::{Read, Section},
    server::listener::HttpTimeouts,
};

/// As the gateway's: enough for a head or a form of 64 KiB.
const HEAD_SECONDS: u64 = 10;
const BODY_SECONDS: u64 = 10;
/// Longer than the gateway's idle timeout of 90 s: if the backend closed first, a request sent at that moment would
/// fail.
const IDLE_SECONDS: u64 = 120;
/// Timeout of each write of a response, as the gateway's. Responses are small.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

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
        let head = seconds("head_seconds", HEAD_SECONDS);
        let body = seconds("body_seconds", BODY_SECONDS);
        let idle = seconds("idle_seconds", IDLE_SECONDS);
        Ok(Self {
            connection: HttpTimeouts {
                head: head?,
                idle: idle?,
                send: SEND_TIMEOUT,
            },
            body: body?,
        })
    }
}
