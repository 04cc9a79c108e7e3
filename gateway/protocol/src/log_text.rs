//! What a log line shows of a text that a client sent: bounded, so that a request of many kilobytes costs a line of few.

use std::borrow::Cow;

use crate::sign::KeyStrength;

/// Longest method in a log line, in bytes; no method of HTTP has more than half of that.
const MAX_METHOD_BYTES: usize = 32;
/// Longest path in a log line, in bytes. A head, and so a path, may have 64 KiB.
const MAX_PATH_BYTES: usize = 512;
/// Longest ident in a log line, in bytes: the longest that an application can have.
const MAX_IDENT_BYTES: usize = 64;

/// Stands where a text was cut.
const CUT: &str = "…";
/// A text of so many characters can hold a key of 128 bits; an ident that Signpost makes has 24. CONTRACT 4.
const KEY_CHARACTERS: usize = 32;
/// So much is shown of what could be a key.
const SHOWN_OF_KEY: usize = 6;

/// A method, cut at `MAX_METHOD_BYTES`.
#[must_use]
pub fn method(method: &str) -> Cow<'_, str> {
    cut(method, MAX_METHOD_BYTES)
}

/// A path, cut at `MAX_PATH_BYTES`.
#[must_use]
pub fn path(path: &str) -> Cow<'_, str> {
    cut(path, MAX_PATH_BYTES)
}

/// What a client named its application by: escaped, and cut at `MAX_IDENT_BYTES`.
///
/// Of 32 or more characters that could be a key's, only the first six are shown: it may be the key, sent in the wrong header.
#[must_use]
pub fn ident(sent: &[u8]) -> String {
    let is_key = |text: &str| text.len() >= KEY_CHARACTERS && KeyStrength::of(text).is_ok();
    if std::str::from_utf8(sent).is_ok_and(is_key) {
        return format!("{}{CUT}", sent[..SHOWN_OF_KEY].escape_ascii());
    }
    let start = &sent[..sent.len().min(MAX_IDENT_BYTES)];
    let escaped = start.escape_ascii().to_string();
    let cut = cut(&escaped, MAX_IDENT_BYTES);
    if start.len() < sent.len() && !cut.ends_with(CUT) {
        format!("{cut}{CUT}")
    } else {
        cut.into_owned()
    }
}

/// The text, or as many of its first characters as fit into so many bytes, with an ellipsis behind them.
fn cut(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(bytes);
    Cow::Owned(format!("{}{CUT}", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(method(&"M".repeat(32)), "M".repeat(32));
        assert_eq!(method(&"M".repeat(33)), format!("{}…", "M".repeat(32)));
        let long = format!("{}é", "a".repeat(MAX_PATH_BYTES - 1));
        assert_eq!(path(&long), format!("{}…", "a".repeat(MAX_PATH_BYTES - 1)));
    }

    #[test]
    fn an_ident_is_shown_as_sent_if_it_could_be_one() {
        assert_eq!(ident(b"shop-de_1.x"), "shop-de_1.x");
        assert_eq!(ident(b"a\"b\xff\n"), "a\\\"b\\xff\\n");
        assert_eq!(ident(&[b'a'; 65]), format!("{}…", "a".repeat(64)));
        assert!(ident(&[0xff; 4000]).len() <= MAX_IDENT_BYTES + CUT.len());
    }

    #[test]
    fn what_looks_like_a_key_is_not_shown() {
        assert_eq!(ident(&"4283fe".repeat(11).as_bytes()[..64]), "4283fe…");
        // A key as other teams have them, and an ident as Signpost makes it.
        assert_eq!(ident(b"8934e7d15453e97507ef794cf7b0519d"), "8934e7…");
        assert_eq!(
            ident(b"Qb7Zk2mVx9LrT4wYc8NdPf3s"),
            "Qb7Zk2mVx9LrT4wYc8NdPf3s"
        );
    }
}
