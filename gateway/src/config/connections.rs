//! Limits of clients' connections. CONTRACT 2.

use std::num::NonZeroU32;

use signpost_kit::config::{Invalid, Read, Section};

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

/// Limits of clients' connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    /// Open connections in all. 1 to 1,000,000, default 50,000; in force at most what the file descriptors allow.
    pub max: usize,
    /// Open connections of one IPv4 address or IPv6 /64. 1 to 1,000,000, default 1,000; in force at most a quarter of
    /// all. An IPv6 /48 has four times as many, at most half of all.
    pub per_address: usize,
    /// Requests of one connection. 1 to 1,000,000,000, default 10,000.
    pub requests: u64,
    /// Smallest rate at which heads and forms must arrive, and responses be taken, in bytes per second. 1 to 1,000,000,
    /// default 100.
    pub min_rate: NonZeroU32,
}

impl ConnectionLimits {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let max = section.number("max", 1..=1_000_000, DEFAULT_MAX);
        let per_address = section.number("per_address", 1..=1_000_000, DEFAULT_PER_ADDRESS);
        let requests = section.number("requests", 1..=1_000_000_000, DEFAULT_REQUESTS);
        let min_rate = section.number("min_bytes_per_second", 1..=1_000_000, DEFAULT_MIN_RATE);
        Ok(Self {
            max: max?,
            per_address: per_address?,
            requests: requests?,
            min_rate: NonZeroU32::new(min_rate?).ok_or(Invalid)?,
        })
    }
}
