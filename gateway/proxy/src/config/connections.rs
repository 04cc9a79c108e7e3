//! Limits of clients' connections. CONTRACT 2.

use std::num::NonZeroU32;

use signpost_kit::{
    config::{Invalid, Read, Section},
    limits::Rate,
    read_all,
};

use super::limits::{MAX_PER_SECOND, rate};

/// Default of `max`: what a machine with 16 GiB can hold if each connection has a request of the largest size.
const DEFAULT_MAX: usize = 50_000;

/// Default of `per_address`: an office behind one address, with a few connections for each browser.
const DEFAULT_PER_ADDRESS: usize = 1000;

/// Default of `requests`: a new connection for one request in 10,000 costs nothing that can be measured, and balancers
/// get to distribute long-lived clients anew.
const DEFAULT_REQUESTS: u64 = 10_000;

/// Default of `min_bytes_per_second`: less than the slowest modem, more than a client that sends or takes single
/// bytes.
const DEFAULT_MIN_RATE: u32 = 100;

/// Default of `handshakes_per_second`: a tenth of what makes other clients of two cores wait several times as long. An
/// office of 1,000 people behind one address needs a few, except when all of them connect again.
const DEFAULT_HANDSHAKES: u32 = 50;

/// Handshakes of an address at once, as a multiple of its handshakes per second.
const HANDSHAKE_BURST: u32 = 10;

/// Limits of clients' connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Open connections in all; at most what the file descriptors allow.
    pub max: usize,
    /// Open connections of one IPv4 address or IPv6 /64; at most a quarter of
    /// all. An IPv6 /48 has four times as many, at most half of all.
    pub per_address: usize,
    /// Requests of one connection.
    pub requests: u64,
    /// Smallest rate at which heads and forms must arrive, and responses be taken, in bytes per second.
    pub min_rate: NonZeroU32,
    /// TLS handshakes of one IPv4 address or IPv6 /64, per second. At once ten times as many. An
    /// IPv6 /48 has four times as many.
    pub handshakes: Rate,
}

impl ConnectionLimits {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let non_zero = |number| NonZeroU32::new(number).ok_or(Invalid);
        let handshakes = |number| rate(number, number.saturating_mul(HANDSHAKE_BURST));
        read_all!(Self {
            max: section.number("max", 1..=1_000_000, DEFAULT_MAX),
            per_address: section.number("per_address", 1..=1_000_000, DEFAULT_PER_ADDRESS),
            requests: section.number("requests", 1..=1_000_000_000, DEFAULT_REQUESTS),
            min_rate: section
                .number("min_bytes_per_second", 1..=1_000_000, DEFAULT_MIN_RATE)
                .and_then(non_zero),
            handshakes: section
                .number(
                    "handshakes_per_second",
                    1..=MAX_PER_SECOND,
                    DEFAULT_HANDSHAKES
                )
                .and_then(handshakes),
        })
    }
}
