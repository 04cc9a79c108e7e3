//! The settings of version 3, and what it counts.

use std::time::Duration;

use login::{
    own::{Counter, OwnSettings, OwnState, Start, StartError},
    settings::{Read, Section, read_all},
};

/// `[own]`.
#[derive(Debug)]
pub struct Settings {
    pub(crate) keep: Duration,
}

impl OwnSettings for Settings {
    const EXAMPLE: &'static str = include_str!("../../../conf/v3.toml");

    fn read(own: &mut Section<'_>) -> Read<Self> {
        read_all!(Settings {
            keep: own.seconds("keep_seconds", 60..=31_536_000, 2_592_000),
        })
    }
}

/// What outlives a request.
#[derive(Debug)]
pub struct State {
    pub(crate) notes: Counter,
}

impl OwnState<Settings> for State {
    async fn start(start: &Start<Settings>) -> Result<Self, StartError> {
        Ok(Self {
            notes: start.counter("notes", "Notes that were kept")?,
        })
    }
}
