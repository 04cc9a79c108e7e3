//! How large requests may be, and how long anything may take. CONTRACT 2.

use std::time::Duration;

use super::table::Section;
use crate::downstream::head::HeadLimits;

/// pingora resends a body of this size intact and hangs on one byte more (0.9.1), so more cannot be allowed.
const LARGEST_BODY: usize = 64 * 1024;

/// pingora reads no head with more than 256 of them (0.9.1).
const MOST_HEADERS: usize = 250;

/// How large requests may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The head's.
    pub head: HeadLimits,
    /// Bytes of a form body. Default and most: 64 KiB.
    pub body: usize,
    /// Parameters, query and body together. Default 256.
    pub params: usize,
}

impl Limits {
    pub(super) fn from_section(mut section: Section<'_>) -> Option<Self> {
        let bytes = section.number("head_bytes", 1024..=HeadLimits::MOST_BYTES, 32 * 1024);
        let headers = section.number("headers", 10..=MOST_HEADERS, 100);
        let query = section.number("query_bytes", 64..=HeadLimits::MOST_BYTES, 8 * 1024);
        let body = section.number("body_bytes", 64..=LARGEST_BODY, LARGEST_BODY);
        let params = section.number("params", 2..=10_000, 256);
        let head = HeadLimits {
            bytes: bytes?,
            headers: headers?,
            query: query?,
        };
        Some(Self {
            head,
            body: body?,
            params: params?,
        })
    }
}

/// How long anything may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// The whole head, from its first byte. Default 10 s.
    pub head: Duration,
    /// The whole body. Default 10 s.
    pub body: Duration,
    /// Silence between two requests of a connection. Default 60 s.
    pub idle: Duration,
    /// Connecting to a backend. Default 2 s.
    pub connect: Duration,
    /// Each wait until a backend takes bytes of a request. Default 10 s.
    pub forward: Duration,
    /// Each wait for bytes of a backend's answer; longer than the longest long poll. Default 60 s.
    pub answer: Duration,
    /// Each wait until a client takes bytes of an answer. Default 60 s.
    pub send: Duration,
}

impl Timeouts {
    pub(super) fn from_section(mut section: Section<'_>) -> Option<Self> {
        let mut seconds = |key, default| section.seconds(key, 1..=3600, default);
        let head = seconds("head_seconds", 10);
        let body = seconds("body_seconds", 10);
        let idle = seconds("idle_seconds", 60);
        let connect = seconds("connect_seconds", 2);
        let forward = seconds("forward_seconds", 10);
        let answer = seconds("answer_seconds", 60);
        let send = seconds("send_seconds", 60);
        Some(Self {
            head: head?,
            body: body?,
            idle: idle?,
            connect: connect?,
            forward: forward?,
            answer: answer?,
            send: send?,
        })
    }
}
