//! The seven kinds of load that are measured.

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
}

impl Case {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::W1,
        Self::W2,
        Self::W3,
        Self::W4,
        Self::W5,
        Self::W6,
        Self::W7,
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
        }
    }

    /// The configuration of the contestants.
    pub const fn setup(self) -> Setup {
        match self {
            Self::W1 | Self::W2 | Self::W4 | Self::W5 | Self::W7 => Setup::Single,
            Self::W3 => Setup::Multi,
            Self::W6 => Setup::Replay,
        }
    }

    /// Number of busy connections.
    pub const fn connections(self) -> usize {
        match self {
            Self::W4 => 16,
            _ => 64,
        }
    }

    /// Whether its requests are signed: only contestants that verify them do the whole work.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::W2 | Self::W3 | Self::W6 | Self::W7)
    }

    /// The expected status of every answer.
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
