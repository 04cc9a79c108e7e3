//! The pairs of a query and a form body, borrowed from the request. CONTRACT 2 and 3.

mod decoded;

use std::{borrow::Cow, cmp::Ordering};

use smallvec::SmallVec;

use crate::credential::Credential;

pub(crate) use self::decoded::hex_value;
pub use self::decoded::unescaped;
use self::decoded::{Decoded, check_decoded, check_text};

/// Pairs that are stored without the heap: most requests have fewer.
const INLINE: usize = 16;

/// One pair. It has the decoded key, too, since signing sorts by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param<'a> {
    pair: &'a [u8],
    wire_key_length: usize,
    /// Only if it differs from the key as sent.
    decoded_key: Option<Box<[u8]>>,
    /// The decoded key's first bytes, which nearly always decide a comparison.
    key_start: KeyStart,
    value_is_plain: bool,
}

impl<'a> Param<'a> {
    /// The key as sent, still percent-encoded.
    #[must_use]
    pub fn wire_key(&self) -> &'a [u8] {
        &self.pair[..self.wire_key_length]
    }

    /// The value as sent, still percent-encoded; empty without `=`.
    #[must_use]
    pub fn wire_value(&self) -> &'a [u8] {
        self.pair
            .get(self.wire_key_length + 1..)
            .unwrap_or_default()
    }

    /// The key after form-decoding (`+` is a space).
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.decoded_key.as_deref().unwrap_or(self.wire_key())
    }

    /// The value after form-decoding (`+` is a space); valid UTF-8.
    #[must_use]
    pub fn value(&self) -> Cow<'a, [u8]> {
        match self.plain_value() {
            Some(plain) => Cow::Borrowed(plain),
            None => Cow::Owned(self.decoded_value().collect()),
        }
    }

    /// Whether its decoded key is `key`.
    #[inline]
    #[must_use]
    pub fn is_named(&self, key: &[u8]) -> bool {
        self.key_start == KeyStart::new(key) && self.key() == key
    }

    /// The value as sent; `***` for a secret: by the name of the parameter, or because it is a credential.
    pub(crate) fn shown_value(&self) -> &[u8] {
        let is_named = |name: &&str| self.key().eq_ignore_ascii_case(name.as_bytes());
        let is_credential = || Credential::try_from(&*self.value()).is_ok();
        match self.wire_value() {
            b"" => b"",
            _ if SECRET_PARAMS.iter().any(is_named) || is_credential() => b"***",
            value => value,
        }
    }

    /// Checks key and value, and decodes the key.
    #[cold]
    fn decode_key(&mut self, in_key: Part, in_value: Part) -> Result<(), ParamsError> {
        in_key.check(self.wire_key())?;
        in_value.check(self.wire_value())?;
        if !in_key.reads_the_same() {
            let decoded: Box<[u8]> = Decoded(self.wire_key()).map_while(Result::ok).collect();
            self.key_start = KeyStart::new(&decoded);
            self.decoded_key = Some(decoded);
        }
        Ok(())
    }

    /// The pair as sent, if it has a `=`.
    pub(crate) fn wire_pair(&self) -> Option<&'a [u8]> {
        (self.wire_key_length < self.pair.len()).then_some(self.pair)
    }

    /// The value, if it is the same as sent and decoded.
    pub(crate) fn plain_value(&self) -> Option<&'a [u8]> {
        self.value_is_plain.then(|| self.wire_value())
    }

    /// The decoded value, byte by byte.
    pub(crate) fn decoded_value(&self) -> impl Iterator<Item = u8> + use<'a> {
        // No error is possible: the escapes were checked when the pair was read.
        Decoded(self.wire_value()).map_while(Result::ok)
    }

    /// Compares decoded keys bytewise; the first bytes mostly decide.
    #[inline]
    pub(crate) fn cmp_keys(&self, other: &Self) -> Ordering {
        self.key_start
            .cmp(&other.key_start)
            .then_with(|| self.key().cmp(other.key()))
    }
}

/// The first eight bytes of a key, padded with zeros. Sorts as the keys do, or is equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KeyStart(u64);

impl KeyStart {
    const LENGTH: usize = 8;

    #[inline]
    fn new(key: &[u8]) -> Self {
        let mut start = [0; Self::LENGTH];
        let length = key.len().min(Self::LENGTH);
        start[..length].copy_from_slice(&key[..length]);
        Self(u64::from_be_bytes(start))
    }

    /// As [`Self::new`], for a key at the start of `source`: reads eight bytes at once if there are as many.
    #[inline]
    fn at_start_of(source: &[u8], key_length: usize) -> Self {
        match source.first_chunk() {
            Some(&start) if key_length < Self::LENGTH => {
                Self(u64::from_be_bytes(start) & !(u64::MAX >> (8 * key_length)))
            }
            Some(&start) => Self(u64::from_be_bytes(start)),
            None => Self::new(&source[..key_length]),
        }
    }
}

/// All pairs of a request in order of appearance, the query's first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params<'a> {
    pairs: SmallVec<[Param<'a>; INLINE]>,
    /// Number of pairs in the query.
    in_query: usize,
}

impl<'a> Params<'a> {
    /// Parses `query` and `body`. Empty pairs (`&&`) are skipped; a pair without `=` has an empty value.
    ///
    /// # Errors
    ///
    /// A broken escape, bytes that are not UTF-8 when decoded, or more than `limit` pairs.
    #[inline]
    pub fn parse(query: &'a [u8], body: &'a [u8], limit: usize) -> Result<Self, ParamsError> {
        let mut params = Self::default();
        params.fill(query, body, limit)?;
        Ok(params)
    }

    /// Like [`Self::parse`], into existing, empty parameters. Moving parameters would cost more than reading them takes
    /// for most requests.
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn fill(
        &mut self,
        query: &'a [u8],
        body: &'a [u8],
        limit: usize,
    ) -> Result<(), ParamsError> {
        self.read(query, limit)?;
        self.in_query = self.pairs.len();
        self.read(body, limit)
    }

    /// Whether there are no pairs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The pairs in order of appearance.
    pub fn iter(&self) -> std::slice::Iter<'_, Param<'a>> {
        self.pairs.iter()
    }

    /// The pairs of the query, in order of appearance.
    pub(crate) fn in_query(&self) -> &[Param<'a>] {
        &self.pairs[..self.in_query]
    }

    /// Returns the only pair with this decoded key, if there is one.
    ///
    /// # Errors
    ///
    /// The key appears more than once.
    #[inline]
    pub fn single(&self, key: &str) -> Result<Option<&Param<'a>>, DuplicatedParam> {
        let mut matching = self
            .pairs
            .iter()
            .filter(|param| param.is_named(key.as_bytes()));
        match (matching.next(), matching.next()) {
            (param, None) => Ok(param),
            _ => Err(DuplicatedParam),
        }
    }

    /// Parses `source` in one pass, eight bytes at a time. Only bytes that may be special are examined one by one.
    fn read(&mut self, source: &'a [u8], limit: usize) -> Result<(), ParamsError> {
        if source.is_empty() {
            return Ok(());
        }
        let mut pair = OpenPair::at(0);
        let mut word_start = 0;
        while word_start < source.len() {
            let word = word_at(source, word_start);
            let mut marks = marks(word);
            while marks != 0 {
                let bit = marks.trailing_zeros() & !7;
                let index = word_start + (bit / 8) as usize;
                match (word >> bit) as u8 {
                    b'&' => {
                        self.close(&pair, source, index, limit)?;
                        pair = OpenPair::at(index + 1);
                    }
                    b'=' => pair.take_equals(index),
                    byte => pair.part.take(byte),
                }
                marks &= marks - 1;
            }
            word_start += WORD;
        }
        self.close(&pair, source, source.len(), limit)
    }

    /// Adds the pair that ends before `end`.
    fn close(
        &mut self,
        open: &OpenPair,
        source: &'a [u8],
        end: usize,
        limit: usize,
    ) -> Result<(), ParamsError> {
        let from_pair = &source[open.start..];
        let pair = &from_pair[..end - open.start];
        if pair.is_empty() {
            return Ok(());
        }
        // Empty pairs do not count: `&&` has no parameter.
        if self.pairs.len() == limit {
            return Err(ParamsError::TooMany);
        }
        let (wire_key_length, in_key, in_value) = match open.key {
            Some((length, in_key)) => (length, in_key, open.part),
            None => (pair.len(), open.part, Part::PLAIN),
        };
        let mut param = Param {
            pair,
            wire_key_length,
            decoded_key: None,
            key_start: KeyStart::at_start_of(from_pair, wire_key_length),
            value_is_plain: in_value.reads_the_same(),
        };
        if in_key != Part::PLAIN || in_value != Part::PLAIN {
            param.decode_key(in_key, in_value)?;
        }
        self.pairs.push(param);
        Ok(())
    }
}

/// Number of bytes that are examined together.
const WORD: usize = 8;

/// The bytes from `start` on, the first in the lowest bits, padded with ordinary letters.
#[inline]
fn word_at(source: &[u8], start: usize) -> u64 {
    let rest = &source[start..];
    let word = rest.first_chunk().copied().unwrap_or_else(|| {
        let mut last = [b'a'; WORD];
        last[..rest.len()].copy_from_slice(rest);
        last
    });
    u64::from_le_bytes(word)
}

/// The top bit of every byte that may be special: `&`, `=`, `%`, `+`, bytes beyond ASCII, and a few more, so that one
/// comparison covers all but `=`.
#[inline]
const fn marks(word: u64) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; WORD]);
    const TOP: u64 = EACH * 0x80;
    let low = word & !TOP;
    // Each sum is at most 0xff, so nothing is carried to the next byte.
    let from_comma_on = low + EACH * (0x80 - b',' as u64);
    let not_equals = (low ^ (EACH * b'=' as u64)) + EACH * 0x7f;
    (word | !(from_comma_on & not_equals)) & TOP
}

/// A pair that is still being read.
struct OpenPair {
    start: usize,
    /// Length and content of the key, once its `=` was read.
    key: Option<(usize, Part)>,
    /// Content of the part that is being read.
    part: Part,
}

impl OpenPair {
    fn at(start: usize) -> Self {
        Self {
            start,
            key: None,
            part: Part::PLAIN,
        }
    }

    /// Handles a `=`. Only the first one separates key and value.
    fn take_equals(&mut self, index: usize) {
        if self.key.is_none() {
            self.key = Some((index - self.start, self.part));
            self.part = Part::PLAIN;
        }
    }
}

/// The kinds of special bytes in a key or value, as flags.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part(u8);

impl Part {
    const PLAIN: Self = Self(0);
    const PLUS: u8 = 1;
    const ESCAPE: u8 = 2;
    const NON_ASCII: u8 = 4;

    #[inline]
    fn take(&mut self, byte: u8) {
        self.0 |= match byte {
            b'+' => Self::PLUS,
            b'%' => Self::ESCAPE,
            0x80.. => Self::NON_ASCII,
            _ => 0,
        };
    }

    /// Whether it is the same as sent and decoded.
    fn reads_the_same(self) -> bool {
        self.0 & (Self::PLUS | Self::ESCAPE) == 0
    }

    /// Checks that its escapes are complete, and that it is UTF-8 when decoded.
    fn check(self, wire: &[u8]) -> Result<(), ParamsError> {
        if self.0 & Self::ESCAPE != 0 {
            check_decoded(wire)
        } else if self.0 & Self::NON_ASCII != 0 {
            check_text(wire)
        } else {
            Ok(())
        }
    }
}

/// Why the parameters could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// A `%` without two hex digits, or bytes that are not UTF-8 when decoded.
    #[error("a broken percent-escape, or not UTF-8")]
    Malformed,
    /// More pairs than the limit.
    #[error("more parameters than allowed")]
    TooMany,
}

/// A parameter that may appear only once appears more often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the parameter appears more than once")]
pub struct DuplicatedParam;

/// The parameters that have a meaning in a callback, each at most once. Any others are ignored. CONTRACT 3.
pub const CALLBACK_PARAMS: [&str; 6] = ["state", "code", "error", "confirm", "iss", "provider"];

/// Parameters with secret values: parameters of logins, and other usual names. The gateway never shows their values.
#[rustfmt::skip]
const SECRET_PARAMS: [&str; 16] = [
    "token", "ticket", "code", "code_verifier", "state", "confirm", "authorization", "credential", "password",
    "passwd", "secret", "client_secret", "access_token", "refresh_token", "id_token", "api_key",
];

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
    fn broken_escapes_and_broken_utf8_are_rejected() {
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
