//! The canonical string, written piece by piece into a hash or a buffer.

use std::borrow::Cow;

use hmac::{Hmac, Mac};
use md5::{Digest, Md5};
use sha2::Sha256;
use smallvec::SmallVec;

use super::{
    AppKey, SIGN, SignAlgorithm, SignCover, SignEmpty, SignLayout, SignProfile, SignValues, TIME,
};
use crate::param::{Param, Params};

/// Receives the pieces of a canonical string in order.
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

/// Buffer size: nearly every canonical string fits, with the key.
const BUFFER_SIZE: usize = 256;

/// Buffers pieces on the stack: hashing twenty small ones costs more than one of 200 bytes.
pub(super) struct Buffered<'s> {
    buffer: [u8; BUFFER_SIZE],
    length: usize,
    sink: &'s mut dyn Sink,
}

impl<'s> Buffered<'s> {
    fn new(sink: &'s mut dyn Sink) -> Self {
        Self {
            buffer: [0; BUFFER_SIZE],
            length: 0,
            sink,
        }
    }

    #[inline]
    fn put(&mut self, piece: &[u8]) {
        let end = self.length + piece.len();
        match self.buffer.get_mut(self.length..end) {
            Some(free) => {
                free.copy_from_slice(piece);
                self.length = end;
            }
            None => self.put_directly(piece),
        }
    }

    #[inline]
    fn put_byte(&mut self, byte: u8) {
        if self.length == BUFFER_SIZE {
            self.flush();
        }
        self.buffer[self.length] = byte;
        self.length += 1;
    }

    #[cold]
    fn put_directly(&mut self, piece: &[u8]) {
        self.flush();
        self.sink.put(piece);
    }

    fn flush(&mut self) {
        self.sink.put(&self.buffer[..self.length]);
        self.length = 0;
    }
}

/// The order of the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// By decoded key, bytewise ascending, equal keys in order of appearance: the contract's order.
    Sorted,
    /// In order of appearance: a mistake that [`explain`](super::explain) looks for.
    Appearance,
}

/// The pairs that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Those of query and body: the contract's rule.
    All,
    /// Those of the body, and `time`: a mistake that [`explain`](super::explain) looks for.
    Body,
}

/// Everything that a canonical string consists of, except the key.
#[derive(Clone, Copy)]
pub(super) struct Canonical<'a, 'p> {
    pub(super) profile: &'a SignProfile,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) params: &'a Params<'p>,
    pub(super) order: Order,
    pub(super) extent: Extent,
}

impl Canonical<'_, '_> {
    /// Writes the whole string, with the key where the layout has it. With HMAC the string contains no key.
    pub(super) fn write(&self, key: &AppKey, sink: &mut dyn Sink) {
        let mut out = Buffered::new(sink);
        let contains_key = self.profile.algorithm == SignAlgorithm::Md5;
        self.put_head(&mut out);
        if contains_key && self.profile.layout == SignLayout::ConcatBoth {
            out.put(key.as_bytes());
        }
        let wrote_pairs = self.put_pairs(&mut out);
        if contains_key {
            if self.profile.layout == SignLayout::PairsKey {
                out.put(if wrote_pairs { b"&key=" } else { b"key=" });
            }
            out.put(key.as_bytes());
        }
        out.flush();
    }

    /// Writes only the pairs.
    pub(super) fn write_pairs(&self, sink: &mut dyn Sink) {
        let mut out = Buffered::new(sink);
        self.put_pairs(&mut out);
        out.flush();
    }

    /// Writes `METHOD\npath\n` if the profile covers them.
    fn put_head(&self, out: &mut Buffered<'_>) {
        if self.profile.cover == SignCover::Request {
            out.put(self.method.as_bytes());
            out.put_byte(b'\n');
            out.put(self.path.as_bytes());
            out.put_byte(b'\n');
        }
    }

    /// Writes the pairs. Returns whether there was any.
    fn put_pairs(&self, out: &mut Buffered<'_>) -> bool {
        let mut pairs = SmallVec::<[&Param<'_>; 16]>::new();
        if self.extent == Extent::Body
            && let Ok(Some(time)) = self.params.single(TIME)
            && !self.params.in_body().contains(time)
        {
            pairs.push(time);
        }
        let params = match self.extent {
            Extent::All => self.params.all(),
            Extent::Body => self.params.in_body(),
        };
        for param in params {
            if self.is_signed(param) {
                pairs.push(param);
            }
        }
        if self.order == Order::Sorted {
            pairs.sort_by(|one, other| one.cmp_keys(other));
        }
        for (index, param) in pairs.iter().enumerate() {
            match self.profile.layout {
                SignLayout::Pairs | SignLayout::PairsKey => {
                    if index > 0 {
                        out.put_byte(b'&');
                    }
                    self.put_pair(param, out);
                }
                SignLayout::Concat | SignLayout::ConcatBoth => {
                    self.put_key(param, out);
                    self.put_value(param, out);
                }
            }
        }
        !pairs.is_empty()
    }

    fn put_pair(&self, param: &Param<'_>, out: &mut Buffered<'_>) {
        match param.wire_pair() {
            Some(pair) if self.profile.values == SignValues::Wire => out.put(pair),
            _ => {
                self.put_key(param, out);
                out.put_byte(b'=');
                self.put_value(param, out);
            }
        }
    }

    fn put_key(&self, param: &Param<'_>, out: &mut Buffered<'_>) {
        out.put(match self.profile.values {
            SignValues::Wire => param.wire_key(),
            SignValues::Decoded => param.key(),
        });
    }

    fn put_value(&self, param: &Param<'_>, out: &mut Buffered<'_>) {
        match (self.profile.values, param.plain_value()) {
            (SignValues::Wire, _) => out.put(param.wire_value()),
            (SignValues::Decoded, Some(plain)) => out.put(plain),
            (SignValues::Decoded, None) => {
                param.decoded_value().for_each(|byte| out.put_byte(byte))
            }
        }
    }

    fn is_signed(&self, param: &Param<'_>) -> bool {
        let is_dropped = self.profile.empty == SignEmpty::Drop && param.wire_value().is_empty();
        let is_left_out = || {
            param.is_named(SIGN.as_bytes())
                || self
                    .profile
                    .leave_out
                    .iter()
                    .any(|key| param.is_named(key.as_bytes()))
        };
        !is_dropped && !is_left_out()
    }
}

/// Applies `change` to the two digits of every percent-escape, for example to turn `%e5` into `%E5`.
pub(super) fn respell_escapes(written: &[u8], change: fn(&u8) -> u8) -> Cow<'_, [u8]> {
    if !written.contains(&b'%') {
        return Cow::Borrowed(written);
    }
    let mut respelled = written.to_vec();
    let mut index = 0;
    while index < respelled.len() {
        if respelled[index] == b'%' {
            let digits_end = respelled.len().min(index + 3);
            respelled[index + 1..digits_end]
                .iter_mut()
                .for_each(|digit| *digit = change(digit));
            index += 3;
        } else {
            index += 1;
        }
    }
    Cow::Owned(respelled)
}
