//! A customer who needs a version longer than its life cycle says.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize, Serializer};
use signpost_kit::clock::Timestamp;
use signpost_protocol::version::Version;

use super::dates::{parse_time, rfc3339};

/// Until when an application may use a version: `v1=2027-03-01T00:00:00Z`, or with a date for 00:00 UTC.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Extension {
    /// The version.
    pub version: Version,
    /// From then on, its brown-outs and its sunset hold.
    pub until: Timestamp,
}

impl Extension {
    /// What its text may be.
    pub const ALLOWED: &str = "a version and a date, for example \"v1=2027-03-01\"";
}

impl FromStr for Extension {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = |(version, until): (&str, &str)| {
            let version = version.trim().parse().ok()?;
            let until = parse_time(until.trim())?;
            Some(Self { version, until })
        };
        text.split_once('=').and_then(parse).ok_or(Self::ALLOWED)
    }
}

impl TryFrom<String> for Extension {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for Extension {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.version, rfc3339(self.until))
    }
}

impl Serialize for Extension {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
