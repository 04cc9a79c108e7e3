//! The kinds of load that are measured.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

use crate::contestant::Setup;

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Case {
    /// A small GET without parameters.
    W1,
    /// A signed POST form of six parameters, one application.
    W2,
    /// W2 with 10,000 applications.
    W3,
    /// A download of 1 MiB.
    W4,
    /// A new connection for each request.
    W5,
    /// W2 with replay protection.
    W6,
    /// W2 with a wrong signature.
    W7,
    /// W1 over TLS.
    W8,
    /// W5 over TLS, with a full handshake for each request.
    W9,
    /// W1 over HTTP/2 and TLS.
    W10,
    /// W2 over HTTP/2 and TLS.
    W11,
    /// W5 over TLS, with a resumed handshake for each request.
    W12,
    /// A JSON body of 1 KiB, signed in headers.
    W13,
}

/// The protocols between load and contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// HTTP/1.1 without TLS.
    Http,
    /// HTTP/1.1 over TLS. Each handshake is a full one.
    Https,
    /// HTTP/1.1 over TLS. Each handshake resumes the session of the previous one, if there was one.
    HttpsResumed,
    /// HTTP/2 over TLS.
    Http2,
}

impl Transport {
    /// Its title in the tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Https | Self::HttpsResumed => "HTTPS",
            Self::Http2 => "HTTP/2 over TLS",
        }
    }
}

impl Case {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::W1,
        Self::W2,
        Self::W3,
        Self::W4,
        Self::W5,
        Self::W6,
        Self::W7,
        Self::W8,
        Self::W9,
        Self::W10,
        Self::W11,
        Self::W12,
        Self::W13,
    ];

    /// Its title in the tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::W1 => "small GET",
            Self::W2 => "signed POST, one application",
            Self::W3 => "signed POST, 10,000 applications",
            Self::W4 => "1 MiB download",
            Self::W5 => "a new connection each",
            Self::W6 => "W2, replays rejected",
            Self::W7 => "W2, wrong sign",
            Self::W8 => "W1 over HTTPS",
            Self::W9 => "HTTPS, a full handshake each",
            Self::W10 => "W1 over HTTP/2",
            Self::W11 => "W2 over HTTP/2",
            Self::W12 => "HTTPS, a resumed handshake each",
            Self::W13 => "JSON of 1 KiB, signed in headers",
        }
    }

    /// The configuration of the contestants.
    pub const fn setup(self) -> Setup {
        match self {
            Self::W1 | Self::W2 | Self::W4 | Self::W5 | Self::W7 => Setup::Single,
            Self::W3 => Setup::Multi,
            Self::W6 => Setup::Replay,
            Self::W13 => Setup::Headers,
            Self::W8 | Self::W9 | Self::W10 | Self::W11 | Self::W12 => Setup::Tls,
        }
    }

    /// The protocols between load and contestant.
    pub const fn transport(self) -> Transport {
        match self {
            Self::W1
            | Self::W2
            | Self::W3
            | Self::W4
            | Self::W5
            | Self::W6
            | Self::W7
            | Self::W13 => Transport::Http,
            Self::W8 | Self::W9 => Transport::Https,
            Self::W12 => Transport::HttpsResumed,
            Self::W10 | Self::W11 => Transport::Http2,
        }
    }

    /// Number of busy connections.
    pub const fn connections(self) -> usize {
        match self {
            Self::W4 | Self::W10 | Self::W11 => 16,
            _ => 64,
        }
    }

    /// Number of concurrent requests on each busy connection.
    pub const fn streams(self) -> usize {
        match self.transport() {
            Transport::Http2 => 8,
            _ => 1,
        }
    }

    /// Whether its requests are signed: only contestants that verify them do the whole work.
    pub const fn is_signed(self) -> bool {
        matches!(
            self,
            Self::W2 | Self::W3 | Self::W6 | Self::W7 | Self::W11 | Self::W13
        )
    }

    /// The expected status of every response.
    pub const fn status(self) -> u16 {
        match self {
            Self::W7 => 403,
            _ => 200,
        }
    }

    /// Requests before the measurement, which open all connections and fill caches.
    pub const fn warm_up(self) -> u64 {
        match self {
            Self::W3 => crate::keys::APPLICATIONS as u64,
            Self::W4 => 64,
            _ => 1000,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
