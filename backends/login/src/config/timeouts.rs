//! How long a request and a connection may take.

use std::time::Duration;

use signpost_kit::{
    config::{Read, Section},
    http_server::HttpTimeouts,
};

/// As at the gateway: enough for a head or a form of 64 KiB.
const HEAD_SECONDS: u64 = 10;
const BODY_SECONDS: u64 = 10;
/// Longer than the 90 s for which a gateway keeps idle connections: a backend that closed first would fail a request
/// that is sent at that moment.
const IDLE_SECONDS: u64 = 120;
/// Each wait until the other end takes bytes of an answer, as at the gateway. Answers are small.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// How long anything may take on a connection.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// A whole head, 10 s; silence between two requests, 120 s; a wait while an answer is sent, 60 s.
    pub connection: HttpTimeouts,
    /// A whole body. Default 10 s.
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
