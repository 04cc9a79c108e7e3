//! A request as a search reads it.

use std::borrow::Cow;

use crate::{param::Params, sign::SIGN};

/// What some languages write for a missing value.
pub(super) const MISSING: [&[u8]; 4] = [b"null", b"None", b"undefined", b"nil"];

/// A pair of the request, decoded once for the whole search.
pub(super) struct Pair<'a> {
    pub(super) wire_key: &'a [u8],
    pub(super) wire_value: &'a [u8],
    pub(super) key: &'a [u8],
    pub(super) value: Cow<'a, [u8]>,
    /// Its place in the request.
    pub(super) index: usize,
    pub(super) is_in_query: bool,
}

/// What was sent.
pub(super) struct Sent<'a> {
    /// Method, host and path.
    pub(super) target: (&'a str, &'a str, &'a str),
    /// The query without `sign`, which a client adds last.
    pub(super) query: Vec<u8>,
    /// By key.
    pub(super) pairs: Vec<Pair<'a>>,
}

impl<'a> Sent<'a> {
    pub(super) fn new(target: (&'a str, &'a str, &'a str), params: &'a Params<'_>) -> Self {
        let in_query = params.in_query();
        let pairs = params.iter().enumerate().map(|(index, param)| Pair {
            wire_key: param.wire_key(),
            wire_value: param.wire_value(),
            key: param.key(),
            value: param.value(),
            index,
            is_in_query: index < in_query.len(),
        });
        let mut pairs: Vec<_> = pairs.collect();
        // Stable: equal keys keep the order of the request, as in the canonical string.
        pairs.sort_by(|pair, other| pair.key.cmp(other.key));
        let query = in_query
            .iter()
            .filter(|param| !param.is_named(SIGN.as_bytes()))
            .map(|param| param.wire_pair().unwrap_or(param.wire_key()));
        Self {
            target,
            query: query.collect::<Vec<_>>().join(&b'&'),
            pairs,
        }
    }
}
