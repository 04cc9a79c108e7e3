//! The pairs of a query and a form body, borrowed from the request. CONTRACT 2 and 3.

use std::borrow::Cow;

use percent_encoding::percent_decode;
use smallvec::SmallVec;

/// As many pairs as most requests have; more go to the heap.
const INLINE: usize = 16;

/// One pair. The key is known both ways, since a sign's order goes by the decoded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param<'a> {
    wire_key: &'a [u8],
    wire_value: &'a [u8],
    key: Cow<'a, [u8]>,
}

impl<'a> Param<'a> {
    fn parse(pair: &'a [u8]) -> Result<Self, ParamsError> {
        let (wire_key, wire_value) = match pair.iter().position(|&byte| byte == b'=') {
            Some(equals) => (&pair[..equals], &pair[equals + 1..]),
            None => (pair, &b""[..]),
        };
        check_escapes(wire_value)?;
        check_escapes(wire_key)?;
        let key = decode(wire_key);
        let is_text =
            std::str::from_utf8(&key).is_ok() && std::str::from_utf8(&decode(wire_value)).is_ok();
        if is_text {
            Ok(Self {
                wire_key,
                wire_value,
                key,
            })
        } else {
            Err(ParamsError::Malformed)
        }
    }

    /// The key as sent, still percent-encoded.
    #[must_use]
    pub fn wire_key(&self) -> &'a [u8] {
        self.wire_key
    }

    /// The value as sent, still percent-encoded; empty where there was no `=`.
    #[must_use]
    pub fn wire_value(&self) -> &'a [u8] {
        self.wire_value
    }

    /// The key after form-decoding (`+` is a space).
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value after form-decoding (`+` is a space); valid UTF-8.
    #[must_use]
    pub fn value(&self) -> Cow<'a, [u8]> {
        decode(self.wire_value)
    }
}

/// All pairs of a request in order of appearance, the query's before the body's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params<'a>(SmallVec<[Param<'a>; INLINE]>);

impl<'a> Params<'a> {
    /// Takes `query` and `body` apart. Empty pairs (`&&`) are skipped; a pair without `=` has an empty value.
    ///
    /// # Errors
    ///
    /// A broken escape, bytes that are not UTF-8 once decoded, or more than `limit` pairs.
    pub fn parse(query: &'a [u8], body: &'a [u8], limit: usize) -> Result<Self, ParamsError> {
        let mut params = SmallVec::new();
        for source in [query, body] {
            for pair in source
                .split(|&byte| byte == b'&')
                .filter(|pair| !pair.is_empty())
            {
                if params.len() == limit {
                    return Err(ParamsError::TooMany);
                }
                params.push(Param::parse(pair)?);
            }
        }
        Ok(Self(params))
    }

    /// Whether there is no pair at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pairs in order of appearance.
    pub fn iter(&self) -> std::slice::Iter<'_, Param<'a>> {
        self.0.iter()
    }

    /// The one pair of this decoded key, if there is one.
    ///
    /// # Errors
    ///
    /// The key appears more than once.
    pub fn single(&self, key: &str) -> Result<Option<&Param<'a>>, DuplicatedParam> {
        let mut found = self.0.iter().filter(|param| param.key() == key.as_bytes());
        match (found.next(), found.next()) {
            (one, None) => Ok(one),
            _ => Err(DuplicatedParam),
        }
    }
}

/// Why the parameters could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// A `%` without two hex digits, or bytes that are not UTF-8 once decoded.
    #[error("a broken percent-escape, or not UTF-8")]
    Malformed,
    /// More pairs than the limit.
    #[error("more parameters than allowed")]
    TooMany,
}

/// A parameter that may appear once appears more often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the parameter appears more than once")]
pub struct DuplicatedParam;

/// Form-decodes: `+` is a space, `%xx` a byte. Borrows where nothing is encoded, which is the common case.
fn decode(wire: &[u8]) -> Cow<'_, [u8]> {
    if !wire.iter().any(|&byte| byte == b'%' || byte == b'+') {
        return Cow::Borrowed(wire);
    }
    let spaced: Vec<u8> = wire
        .iter()
        .map(|&byte| if byte == b'+' { b' ' } else { byte })
        .collect();
    Cow::Owned(percent_decode(&spaced).collect())
}

fn check_escapes(wire: &[u8]) -> Result<(), ParamsError> {
    let mut rest = wire;
    while let Some(percent) = rest.iter().position(|&byte| byte == b'%') {
        match rest.get(percent + 1..percent + 3) {
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => rest = &rest[percent + 3..],
            _ => return Err(ParamsError::Malformed),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(query: &str, body: &str) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Params::parse(query.as_bytes(), body.as_bytes(), 256)
            .unwrap()
            .iter()
            .map(|param| (text(param.key()), text(&param.value())))
            .collect()
    }

    #[test]
    fn the_query_comes_before_the_body() {
        assert_eq!(
            pairs("b=1", "a=2"),
            [("b".into(), "1".into()), ("a".into(), "2".into())]
        );
    }

    #[test]
    fn empty_pairs_are_skipped_and_a_bare_key_has_an_empty_value() {
        assert_eq!(
            pairs("&a&&b=&", ""),
            [("a".into(), String::new()), ("b".into(), String::new())]
        );
    }

    #[test]
    fn keys_and_values_are_form_decoded() {
        assert_eq!(
            pairs("%61+b=1%26%e5%bc%a0+", ""),
            [("a b".into(), "1&张 ".into())]
        );
    }

    #[test]
    fn only_the_first_equals_sign_separates() {
        assert_eq!(pairs("a=b=c", ""), [("a".into(), "b=c".into())]);
        assert_eq!(pairs("=b", ""), [(String::new(), "b".into())]);
    }

    #[test]
    fn broken_escapes_and_broken_utf8_are_refused() {
        for bad in [
            "a=%",
            "a=%4",
            "a=%zz",
            "%=1",
            "a=%ff",
            "%c3=1",
            "a=%ed%a0%80",
        ] {
            assert_eq!(
                Params::parse(bad.as_bytes(), b"", 9),
                Err(ParamsError::Malformed),
                "{bad}"
            );
            assert_eq!(
                Params::parse(b"", bad.as_bytes(), 9),
                Err(ParamsError::Malformed),
                "{bad}"
            );
        }
    }

    #[test]
    fn the_limit_counts_query_and_body_together() {
        assert!(Params::parse(b"a=1&b=2", b"c=3", 3).is_ok());
        assert_eq!(
            Params::parse(b"a=1&b=2", b"c=3", 2),
            Err(ParamsError::TooMany)
        );
    }

    #[test]
    fn a_key_that_appears_twice_in_two_spellings_is_a_duplicate() {
        let params = Params::parse(b"sign=1&%73ign=2&a=3", b"", 9).unwrap();
        assert_eq!(params.single("sign"), Err(DuplicatedParam));
        assert_eq!(params.single("a").unwrap().unwrap().wire_value(), b"3");
        assert!(params.single("b").unwrap().is_none());
    }
}
