//! The canonical string, written piece by piece into whatever takes it: a hash, or a buffer.

use std::borrow::Cow;

use hmac::{Hmac, Mac};
use md5::{Digest, Md5};
use sha2::Sha256;
use smallvec::SmallVec;

use super::{
    AppKey, SIGN, SignAlgorithm, SignCover, SignEmpty, SignLayout, SignProfile, SignValues,
};
use crate::param::{Param, Params};

/// Takes the pieces of a canonical string in order.
pub(super) trait Sink {
    fn put(&mut self, piece: &[u8]);
}

impl Sink for Md5 {
    fn put(&mut self, piece: &[u8]) {
        Digest::update(self, piece);
    }
}

impl Sink for Hmac<Sha256> {
    fn put(&mut self, piece: &[u8]) {
        Mac::update(self, piece);
    }
}

impl Sink for Vec<u8> {
    fn put(&mut self, piece: &[u8]) {
        self.extend_from_slice(piece);
    }
}

/// In which order the pairs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// By decoded key, bytewise ascending, equal keys as they appeared: the contract's.
    Sorted,
    /// As they appeared: a slip that [`explain`](super::explain) looks for.
    Appearance,
}

/// Everything a canonical string is made of but the key.
#[derive(Clone, Copy)]
pub(super) struct Canonical<'a, 'p> {
    pub(super) profile: &'a SignProfile,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) params: &'a Params<'p>,
    pub(super) order: Order,
}

impl Canonical<'_, '_> {
    /// Writes the whole string, the key where the layout has it. With HMAC no key stands in it.
    pub(super) fn write(&self, key: &AppKey, sink: &mut dyn Sink) {
        let key_stands_inside = self.profile.algorithm == SignAlgorithm::Md5;
        self.write_head(sink);
        if key_stands_inside && self.profile.layout == SignLayout::ConcatBoth {
            sink.put(key.as_bytes());
        }
        let wrote_pairs = self.write_pairs(sink);
        if key_stands_inside {
            if self.profile.layout == SignLayout::PairsKey {
                sink.put(if wrote_pairs { b"&key=" } else { b"key=" });
            }
            sink.put(key.as_bytes());
        }
    }

    /// Writes `METHOD\npath\n` when the profile covers them.
    pub(super) fn write_head(&self, sink: &mut dyn Sink) {
        if self.profile.cover == SignCover::Request {
            sink.put(self.method.as_bytes());
            sink.put(b"\n");
            sink.put(self.path.as_bytes());
            sink.put(b"\n");
        }
    }

    /// Writes the pairs; tells whether there was any.
    pub(super) fn write_pairs(&self, sink: &mut dyn Sink) -> bool {
        let mut pairs: SmallVec<[&Param<'_>; 16]> = self
            .params
            .iter()
            .filter(|param| self.is_signed(param))
            .collect();
        if self.order == Order::Sorted {
            pairs.sort_by(|one, other| one.key().cmp(other.key()));
        }
        let (between, inside): (&[u8], &[u8]) = match self.profile.layout {
            SignLayout::Pairs | SignLayout::PairsKey => (b"&", b"="),
            SignLayout::Concat | SignLayout::ConcatBoth => (b"", b""),
        };
        for (place, param) in pairs.iter().enumerate() {
            if place > 0 {
                sink.put(between);
            }
            match self.profile.values {
                SignValues::Wire => {
                    sink.put(param.wire_key());
                    sink.put(inside);
                    sink.put(param.wire_value());
                }
                SignValues::Decoded => {
                    sink.put(param.key());
                    sink.put(inside);
                    sink.put(&param.value());
                }
            }
        }
        !pairs.is_empty()
    }

    fn is_signed(&self, param: &Param<'_>) -> bool {
        let is_dropped = self.profile.empty == SignEmpty::Drop && param.wire_value().is_empty();
        let is_left_out = || {
            param.key() == SIGN.as_bytes()
                || self
                    .profile
                    .leave_out
                    .iter()
                    .any(|key| key.as_bytes() == param.key())
        };
        !is_dropped && !is_left_out()
    }
}

/// `%E5` for `%e5` and the reverse, as `change` does it to the two digits; everything else stays.
pub(super) fn respell_escapes(written: &[u8], change: fn(&u8) -> u8) -> Cow<'_, [u8]> {
    if !written.contains(&b'%') {
        return Cow::Borrowed(written);
    }
    let mut respelled = written.to_vec();
    let mut place = 0;
    while place < respelled.len() {
        if respelled[place] == b'%' {
            let digits_end = respelled.len().min(place + 3);
            respelled[place + 1..digits_end]
                .iter_mut()
                .for_each(|digit| *digit = change(digit));
            place += 3;
        } else {
            place += 1;
        }
    }
    Cow::Owned(respelled)
}
