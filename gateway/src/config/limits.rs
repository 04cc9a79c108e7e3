//! How large requests may be, how often unsigned ones may come, and how long anything may take. CONTRACT 2, 3 and 8.

use std::time::Duration;

use signpost_kit::{
    config::{Invalid, Read, Section},
    rate_limit::Rate,
};

use crate::request::HeadLimits;

/// Forms are verified, and so held in memory, whole.
const MAX_BODY: usize = 64 * 1024;

/// No client needs more; each is compared with every name in `Connection`.
const MAX_HEADERS: usize = 250;

/// Unsigned requests a second from one address, all day. A login takes three or four.
const UNSIGNED_PER_SECOND: u32 = 20;

/// Unsigned requests at once from one address: an office of 150 people behind one, all of whom log in at nine o'clock.
const UNSIGNED_BURST: u32 = 500;

/// An IPv6 /48, which is what a site gets and a provider hands out by the thousand, may do so many times as much as one
/// of its 65,536 networks.
const NETWORKS_OF_SITE: u32 = 4;

/// How large requests may be, and how often unsigned ones may come.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The head's.
    pub head: HeadLimits,
    /// Bytes of a form body. Default and most: 64 KiB.
    pub(crate) body: usize,
    /// Parameters, query and body together. Default 256.
    pub(crate) params: usize,
    /// How often requests that nobody signed may come from one network; `None`: as often as they like.
    pub(crate) unsigned: Option<UnsignedLimits>,
}

/// How often unsigned requests may come. CONTRACT 3 and 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnsignedLimits {
    /// From one IPv4 address, or one IPv6 /64. Default 20 a second, 500 at once.
    pub network: Rate,
    /// From one IPv6 /48. Default four times that.
    pub site: Rate,
}

impl UnsignedLimits {
    fn read(section: &mut Section<'_>) -> Read<Option<Self>> {
        let enabled = section.flag("enabled", true);
        let mut number = |key, least, most, default| section.number(key, least..=most, default);
        let per_second = number("per_second", 1, MAX_PER_SECOND, UNSIGNED_PER_SECOND);
        let burst = number("burst", 1, MAX_BURST, UNSIGNED_BURST);
        // A site that may do less than one of its networks would be a network.
        let (least, least_burst) = (per_second.unwrap_or(1), burst.unwrap_or(1));
        let site_per_second = number(
            "ipv6_48_per_second",
            least,
            MAX_PER_SECOND,
            (least * NETWORKS_OF_SITE).min(MAX_PER_SECOND),
        );
        let site_burst = number(
            "ipv6_48_burst",
            least_burst,
            MAX_BURST,
            (least_burst * NETWORKS_OF_SITE).min(MAX_BURST),
        );
        let limits = Self {
            network: rate(per_second?, burst?)?,
            site: rate(site_per_second?, site_burst?)?,
        };
        Ok(enabled?.then_some(limits))
    }
}

/// The highest rate that can be set: more than one machine serves.
const MAX_PER_SECOND: u32 = 1_000_000;
/// The largest burst that can be set.
const MAX_BURST: u32 = 10_000_000;

fn rate(per_second: u32, burst: u32) -> Read<Rate> {
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

/// How long anything may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// The whole head, from its first byte. Default 10 s.
    pub(crate) head: Duration,
    /// The whole body. Default 10 s.
    pub(crate) body: Duration,
    /// Silence between two requests of a connection. Default 60 s.
    pub(crate) idle: Duration,
    /// Connecting to a backend. Default 2 s.
    pub(crate) connect: Duration,
    /// Each wait until a backend takes bytes of a request. Default 10 s.
    pub(crate) forward: Duration,
    /// Each wait for bytes of a backend's answer; longer than the longest long poll. Default 60 s.
    pub(crate) answer: Duration,
    /// Each wait until a client takes bytes of an answer. Default 60 s.
    pub send: Duration,
}

impl Timeouts {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let mut seconds = |key, default| section.seconds(key, 1..=3600, default);
        let head = seconds("head_seconds", 10);
        let body = seconds("body_seconds", 10);
        let idle = seconds("idle_seconds", 60);
        let connect = seconds("connect_seconds", 2);
        let forward = seconds("forward_seconds", 10);
        let answer = seconds("answer_seconds", 60);
        let send = seconds("send_seconds", 60);
        Ok(Self {
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
