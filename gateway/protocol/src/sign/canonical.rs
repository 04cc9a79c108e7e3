//! The canonical string, written piece by piece into a hash or a buffer.

use smallvec::SmallVec;

use super::{AppKey, SignAlgorithm, SignCover, SignLayout, SignProfile, SignValues};
use crate::param::{Param, Params};

/// Buffer size: nearly every canonical string fits, with the key.
const BUFFER_SIZE: usize = 256;

/// Buffers pieces on the stack: hashing twenty small ones costs more than one of 200 bytes.
struct Buffered<'s> {
    buffer: [u8; BUFFER_SIZE],
    length: usize,
    sink: &'s mut dyn FnMut(&[u8]),
}

impl<'s> Buffered<'s> {
    fn new(sink: &'s mut dyn FnMut(&[u8])) -> Self {
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
        (self.sink)(piece);
    }

    fn flush(&mut self) {
        (self.sink)(&self.buffer[..self.length]);
        self.length = 0;
    }
}

/// Everything that a canonical string consists of, except the key.
pub(super) struct Canonical<'a, 'p> {
    profile: &'a SignProfile,
    target: (&'a str, &'a str),
    params: &'a Params<'p>,
}

impl<'a, 'p> Canonical<'a, 'p> {
    /// The string of the contract. `target` is the method and the path.
    pub(super) fn new(
        profile: &'a SignProfile,
        target: (&'a str, &'a str),
        params: &'a Params<'p>,
    ) -> Self {
        Self {
            profile,
            target,
            params,
        }
    }

    pub(super) fn to_vec(&self, key: &AppKey) -> Vec<u8> {
        let mut written = Vec::new();
        self.write(key, &mut |piece| written.extend_from_slice(piece));
        written
    }

    /// Writes the whole string, with the key where the layout has it. With HMAC only `pairs-key` has it.
    pub(super) fn write(&self, key: &AppKey, sink: &mut dyn FnMut(&[u8])) {
        let mut out = Buffered::new(sink);
        let (layout, is_md5) = (
            self.profile.layout,
            self.profile.algorithm == SignAlgorithm::Md5,
        );
        self.put_head(&mut out);
        if is_md5 && layout == SignLayout::ConcatBoth {
            out.put(key.as_bytes());
        }
        let wrote_pairs = self.put_pairs(&mut out);
        if layout == SignLayout::PairsKey {
            out.put(if wrote_pairs { b"&key=" } else { b"key=" });
        }
        if is_md5 || layout == SignLayout::PairsKey {
            out.put(key.as_bytes());
        }
        out.flush();
    }

    /// Writes `METHOD\npath\n` if the profile covers them.
    fn put_head(&self, out: &mut Buffered<'_>) {
        if self.profile.cover == SignCover::Request {
            let (method, path) = self.target;
            out.put(method.as_bytes());
            out.put_byte(b'\n');
            out.put(path.as_bytes());
            out.put_byte(b'\n');
        }
    }

    /// Writes the pairs. Returns whether there was any.
    fn put_pairs(&self, out: &mut Buffered<'_>) -> bool {
        let mut pairs = SmallVec::<[&Param<'_>; 16]>::new();
        for param in self.params.iter() {
            if self.profile.signs(param) {
                pairs.push(param);
            }
        }
        // By decoded key, bytewise ascending, equal keys in order of appearance.
        pairs.sort_by(|param, other| param.cmp_keys(other));
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
}
