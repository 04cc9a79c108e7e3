//! A position in a list of events.

use std::{fmt, str::FromStr};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// The position behind an event: the next page begins with the next older one.
///
/// It names an event and not a number of events, so new events do not shift it. Its text is 11 characters of base64url,
/// opaque to clients. Not a secret: an account's list has the account's own events only, wherever it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventCursor(i64);

impl EventCursor {
    /// The position behind the event with this id: of a page's last event, it is where the next page begins.
    #[must_use]
    pub fn behind(id: i64) -> Self {
        Self(id)
    }

    /// The id that all events of the page are below.
    pub(super) fn id(self) -> i64 {
        self.0
    }
}

impl fmt::Display for EventCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&URL_SAFE_NO_PAD.encode(self.0.to_be_bytes()))
    }
}

impl FromStr for EventCursor {
    type Err = ParseEventCursorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 8];
        match URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) {
            Ok(8) => Ok(Self(i64::from_be_bytes(bytes))),
            _ => Err(ParseEventCursorError),
        }
    }
}

/// The text is not one that [`EventCursor`] writes.
#[derive(Debug, thiserror::Error)]
#[error("11 characters of base64url")]
pub struct ParseEventCursorError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back() {
        for id in [0, 1, 255, 1 << 40, i64::MAX] {
            let text = EventCursor::behind(id).to_string();
            assert_eq!(text.len(), 11);
            assert_eq!(text.parse::<EventCursor>().unwrap().id(), id);
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        for bad in [
            "",
            "1",
            "AAAAAAAAAA",
            "AAAAAAAAAAAA",
            "AAAAAAAAAA=",
            "AAAAAAAAAAB",
            "AAAAAAAAAA+",
            "AAAAAAAAAAé",
            &"A".repeat(9999),
        ] {
            assert!(bad.parse::<EventCursor>().is_err(), "{bad}");
        }
    }
}
