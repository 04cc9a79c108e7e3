//! Texts from clients as log lines show them: with a limited length, so that a large request does not cause a large
//! line.

use std::borrow::Cow;

use crate::sign::check_strength;

/// Limit on a method in a log line, in bytes: twice the longest registered method.
const MAX_METHOD_BYTES: usize = 32;
/// Limit on a path in a log line, in bytes. A head, and so a path, may have 64 KiB.
const MAX_PATH_BYTES: usize = 512;
/// Limit on an ident in a log line, in bytes: the maximum length of a valid one.
const MAX_IDENT_BYTES: usize = 64;

/// Limit on a `Host` in a log line, in bytes: the longest name, with a port.
const MAX_HOST_BYTES: usize = 261;
/// Limit on a `User-Agent` in a log line, in bytes: browsers send up to 200.
const MAX_USER_AGENT_BYTES: usize = 256;

/// Marks where a text was cut.
pub(crate) const CUT: &str = "…";
/// Minimum length of a text that may be a key of 128 bits; a generated ident has 24. CONTRACT 4.
const MIN_KEY_CHARACTERS: usize = 32;
/// Characters shown of a text that may be a key.
const SHOWN_KEY_CHARACTERS: usize = 6;

/// Cuts a method at `MAX_METHOD_BYTES`.
#[must_use]
pub fn method(method: &str) -> Cow<'_, str> {
    cut(method, MAX_METHOD_BYTES)
}

/// Cuts a path at `MAX_PATH_BYTES`.
#[must_use]
pub fn path(path: &str) -> Cow<'_, str> {
    cut(path, MAX_PATH_BYTES)
}

/// Cuts a `Host` at `MAX_HOST_BYTES`. What is not UTF-8 is replaced.
#[must_use]
pub fn host(sent: &[u8]) -> Cow<'_, str> {
    cut_bytes(sent, MAX_HOST_BYTES)
}

/// Cuts a `User-Agent` at `MAX_USER_AGENT_BYTES`. What is not UTF-8 is replaced.
#[must_use]
pub fn user_agent(sent: &[u8]) -> Cow<'_, str> {
    cut_bytes(sent, MAX_USER_AGENT_BYTES)
}

/// Escapes an ident, or a version, as a client sent it, and cuts it at `MAX_IDENT_BYTES`.
///
/// If 32 or more characters look like a key, only the first six are shown: a client may send its key in the wrong
/// header.
#[must_use]
pub fn ident(sent: &[u8]) -> String {
    let is_key = |text: &str| text.len() >= MIN_KEY_CHARACTERS && check_strength(text).is_ok();
    if std::str::from_utf8(sent).is_ok_and(is_key) {
        return format!("{}{CUT}", sent[..SHOWN_KEY_CHARACTERS].escape_ascii());
    }
    let start = &sent[..sent.len().min(MAX_IDENT_BYTES)];
    let escaped = start.escape_ascii().to_string();
    // Again: an escape takes up to four bytes.
    let cut = cut(&escaped, MAX_IDENT_BYTES);
    if start.len() < sent.len() && !cut.ends_with(CUT) {
        format!("{cut}{CUT}")
    } else {
        cut.into_owned()
    }
}

/// As [`cut`]; reads no more bytes than are shown.
fn cut_bytes(sent: &[u8], bytes: usize) -> Cow<'_, str> {
    if sent.len() <= bytes {
        return String::from_utf8_lossy(sent);
    }
    let start = String::from_utf8_lossy(&sent[..bytes]);
    Cow::Owned(format!("{start}{CUT}"))
}

/// Cuts a text at a number of bytes, between characters, and appends an ellipsis.
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
    fn a_header_that_is_not_utf_8_is_replaced_and_cut() {
        assert_eq!(host(b"api.example.com:8443"), "api.example.com:8443");
        assert_eq!(user_agent(b"app/1 \xff"), "app/1 \u{fffd}");
        let long = user_agent(&[b'a'; 70_000]).into_owned();
        assert_eq!(long, format!("{}…", "a".repeat(MAX_USER_AGENT_BYTES)));
        let invalid = host(&[0xff; 70_000]).into_owned();
        assert_eq!(invalid.chars().count(), MAX_HOST_BYTES + 1);
    }

    #[test]
    fn an_ident_is_escaped_and_cut() {
        assert_eq!(ident(b"shop-de_1.x"), "shop-de_1.x");
        assert_eq!(ident(b"a\"b\xff\n"), "a\\\"b\\xff\\n");
        assert_eq!(ident(&[b'a'; 65]), format!("{}…", "a".repeat(64)));
        assert!(ident(&[0xff; 4000]).len() <= MAX_IDENT_BYTES + CUT.len());
    }

    #[test]
    fn a_text_that_looks_like_a_key_is_not_shown() {
        assert_eq!(ident(&"4283fe".repeat(11).as_bytes()[..64]), "4283fe…");
        // A key of 32 hex digits, and a generated ident.
        assert_eq!(ident(b"8934e7d15453e97507ef794cf7b0519d"), "8934e7…");
        assert_eq!(
            ident(b"Qb7Zk2mVx9LrT4wYc8NdPf3s"),
            "Qb7Zk2mVx9LrT4wYc8NdPf3s"
        );
    }
}
