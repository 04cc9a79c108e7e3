//! Size limits of requests, the rate limit of unsigned requests, and timeouts. CONTRACT 2, 3 and 8.

use std::{path::PathBuf, time::Duration};

use signpost_kit::{
    config::{Invalid, Read, Section},
    limits::Rate,
    read_all,
};

use crate::request::{HeadLimits, client::PIECE};

/// Maximum of `body_bytes`: a form is verified in memory.
const MAX_BODY: usize = 64 * 1024;

/// Maximum of `headers`: each header is compared with every name in `Connection`, and no client needs more.
const MAX_HEADERS: usize = 250;

/// Default of `per_second`: unsigned requests from one address, sustained. A login takes three or four.
const UNSIGNED_PER_SECOND: u32 = 20;

/// Default of `burst`: 150 people behind one address who all log in at nine o'clock.
const UNSIGNED_BURST: u32 = 500;

/// Size limits of requests, and the rate limit of unsigned requests.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Limits of a request's head.
    pub head: HeadLimits,
    /// Bytes of a form body.
    pub body: usize,
    /// Parameters of query and body together.
    pub params: usize,
    /// Rate of unsigned requests of each client address; `None`: unlimited. CONTRACT 3
    /// and 8.
    pub unsigned: Option<Rate>,
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
        read_all!(Self {
            head: read_all!(HeadLimits {
                bytes: section.number("head_bytes", 1024..=HeadLimits::MAX_BYTES, 32 * 1024),
                headers: section.number("headers", 10..=MAX_HEADERS, 100),
                query: section.number("query_bytes", 64..=HeadLimits::MAX_BYTES, 8 * 1024),
            }),
            body: section.number("body_bytes", 64..=MAX_BODY, MAX_BODY),
            // At least `time` and `sign`, which each signed request has.
            params: section.number("params", 2..=10_000, 256),
            unsigned: section.section("unsigned", |section| {
                let rate = section.number("per_second", 0..=MAX_PER_SECOND, UNSIGNED_PER_SECOND);
                let burst = section.number("burst", 1..=MAX_BURST, UNSIGNED_BURST);
                // A rate of 0 is none.
                Ok(Rate::new(rate?, burst?))
            }),
        })
    }
}

/// Timeouts.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For the whole head, from its first byte; before it, for the PROXY header and the TLS handshake together.
    pub head: Duration,
    /// For the whole body.
    pub body: Duration,
    /// For an idle client connection, between two requests.
    pub idle: Duration,
    /// For connecting to a backend.
    pub connect: Duration,
    /// For each write of a request to a backend.
    pub forward: Duration,
    /// For each read of a backend's response; must exceed the longest long poll.
    pub response: Duration,
    /// For each write of a response to a client.
    pub send: Duration,
}

impl Timeouts {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        // No 0: a peer that never times out could hold its connection for ever.
        let mut seconds = |key, default| section.seconds(key, 1..=3600, default);
        read_all!(Self {
            head: seconds("head_seconds", 10),
            body: seconds("body_seconds", 10),
            idle: seconds("idle_seconds", 60),
            connect: seconds("connect_seconds", 2),
            forward: seconds("forward_seconds", 10),
            response: seconds("response_seconds", 60),
            send: seconds("send_seconds", 60),
        })
    }
}

/// Where bodies wait that are too large for memory.
#[derive(Clone, Debug)]
pub(crate) struct SpoolSettings {
    /// A folder.
    pub folder: PathBuf,
    /// Limit of all bodies in it, in bytes.
    pub bytes: u64,
}

impl SpoolSettings {
    /// Default of `bytes`.
    const DEFAULT_BYTES: u64 = 4 * 1024 * 1024 * 1024;
    /// Minimum of `bytes`: four networks have a share.
    const MIN_BYTES: u64 = 16 * 1024 * 1024;

    /// Reads the table. The folder must exist if versions or routes take a body that does not fit into memory.
    pub(super) fn read(section: &mut Section<'_>, largest_body: u64) -> Read<Self> {
        let allowed = "a folder on a disk, for example \"/var/tmp\"";
        let folder = section.parsed_by("folder", "/var/tmp", allowed, |text| {
            (!text.is_empty()).then(|| PathBuf::from(text))
        });
        if let Ok(folder) = &folder
            && largest_body > PIECE as u64
            && !folder.is_dir()
        {
            let found = format!("'{}', which is no folder", folder.display());
            return Err(section.problem("folder", &found, allowed));
        }
        let bytes = section.number("bytes", Self::MIN_BYTES..=1 << 50, Self::DEFAULT_BYTES);
        Ok(Self {
            folder: folder?,
            bytes: bytes?,
        })
    }

    /// The most that one network may have.
    pub(super) const fn share(&self) -> u64 {
        self.bytes / 4
    }
}
