//! Size limits of requests, rate limits of unsigned requests, and timeouts. CONTRACT 2, 3 and 8.

use std::time::Duration;

use signpost_kit::{
    config::{Invalid, Read, Section},
    limits::Rate,
};

use crate::request::HeadLimits;

/// Maximum of `body_bytes`: a form is verified as a whole, and so held in memory.
const MAX_BODY: usize = 64 * 1024;

/// Maximum of `headers`: each header is compared with every name in `Connection`, and no client needs more.
const MAX_HEADERS: usize = 250;

/// Default of `per_second`: unsigned requests from one address, sustained. A login takes three or four.
const UNSIGNED_PER_SECOND: u32 = 20;

/// Default of `burst`: 150 people behind one address who all log in at nine o'clock.
const UNSIGNED_BURST: u32 = 500;

/// Default limits of an IPv6 /48 (one site), as a multiple of the limits of one of its 65,536 networks. Providers
/// assign /48s by the thousand, so a site needs limits of its own.
const SITE_FACTOR: u32 = 4;

/// Size limits of requests, and rate limits of unsigned requests.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Limits of a request's head.
    pub head: HeadLimits,
    /// Bytes of a form body. 64 B to 64 KiB, default 64 KiB.
    pub(crate) body: usize,
    /// Parameters of query and body together. 2 to 10,000, default 256.
    pub(crate) params: usize,
    /// Rate limits of unsigned requests; `None`: unlimited.
    pub(crate) unsigned: Option<UnsignedLimits>,
}

/// Rate limits of unsigned requests. CONTRACT 3 and 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnsignedLimits {
    /// Limit of one IPv4 address, or one IPv6 /64. Default 20 requests per second, burst 500.
    pub network: Rate,
    /// Limit of one IPv6 /48. Default four times `network`.
    pub site: Rate,
}

impl UnsignedLimits {
    fn read(section: &mut Section<'_>) -> Read<Option<Self>> {
        let enabled = section.flag("enabled", true);
        let mut number = |key, min, max, default| section.number(key, min..=max, default);
        let per_second = number("per_second", 1, MAX_PER_SECOND, UNSIGNED_PER_SECOND);
        let burst = number("burst", 1, MAX_BURST, UNSIGNED_BURST);
        // A site contains its networks, so its limits are at least theirs.
        let (min_per_second, min_burst) = (per_second.unwrap_or(1), burst.unwrap_or(1));
        let site_per_second = number(
            "ipv6_48_per_second",
            min_per_second,
            MAX_PER_SECOND,
            (min_per_second * SITE_FACTOR).min(MAX_PER_SECOND),
        );
        let site_burst = number(
            "ipv6_48_burst",
            min_burst,
            MAX_BURST,
            (min_burst * SITE_FACTOR).min(MAX_BURST),
        );
        let limits = Self {
            network: rate(per_second?, burst?)?,
            site: rate(site_per_second?, site_burst?)?,
        };
        Ok(enabled?.then_some(limits))
    }
}

/// Maximum of `per_second`: more than one machine can serve.
pub(super) const MAX_PER_SECOND: u32 = 1_000_000;
/// Maximum of `burst`.
pub(super) const MAX_BURST: u32 = 10_000_000;

pub(super) fn rate(per_second: u32, burst: u32) -> Read<Rate> {
    Rate::new(per_second, burst).ok_or(Invalid)
}

impl Limits {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let bytes = section.number("head_bytes", 1024..=HeadLimits::MAX_BYTES, 32 * 1024);
        let headers = section.number("headers", 10..=MAX_HEADERS, 100);
        let query = section.number("query_bytes", 64..=HeadLimits::MAX_BYTES, 8 * 1024);
        let body = section.number("body_bytes", 64..=MAX_BODY, MAX_BODY);
        let params = section.number("params", 2..=10_000, 256);
        let unsigned = section.section("unsigned", UnsignedLimits::read);
        let head = HeadLimits {
            bytes: bytes?,
            headers: headers?,
            query: query?,
        };
        Ok(Self {
            head,
            body: body?,
            params: params?,
            unsigned: unsigned?,
        })
    }
}

/// Timeouts, each 1 s to 3600 s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// For the whole head, from its first byte. Default 10 s.
    pub(crate) head: Duration,
    /// For the whole body. Default 10 s.
    pub(crate) body: Duration,
    /// For the PROXY header and the TLS handshake of a connection. Default 10 s.
    pub(crate) handshake: Duration,
    /// For an idle client connection, between two requests. Default 60 s.
    pub(crate) idle: Duration,
    /// For connecting to a backend. Default 2 s.
    pub(crate) connect: Duration,
    /// For each write of a request to a backend. Default 10 s.
    pub(crate) forward: Duration,
    /// For each read of a backend's response; must exceed the longest long poll. Default 60 s.
    pub(crate) response: Duration,
    /// For each write of a response to a client. Default 60 s.
    pub send: Duration,
}

impl Timeouts {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let mut seconds = |key, default| section.seconds(key, 1..=3600, default);
        let head = seconds("head_seconds", 10);
        let body = seconds("body_seconds", 10);
        let handshake = seconds("handshake_seconds", 10);
        let idle = seconds("idle_seconds", 60);
        let connect = seconds("connect_seconds", 2);
        let forward = seconds("forward_seconds", 10);
        let response = seconds("response_seconds", 60);
        let send = seconds("send_seconds", 60);
        Ok(Self {
            head: head?,
            body: body?,
            handshake: handshake?,
            idle: idle?,
            connect: connect?,
            forward: forward?,
            response: response?,
            send: send?,
        })
    }
}
