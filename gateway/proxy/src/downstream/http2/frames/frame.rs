//! The syntax of a frame. RFC 9113 sections 4 and 6.

use h2::Reason;

use crate::downstream::http2::bounds::{PIECE_COST, REQUEST_COST, SMALL_PIECE, SMALL_PIECE_COST};

/// Length of a frame's head. RFC 9113 section 4.1.
pub(super) const FRAME_HEAD: usize = 9;
/// Kinds of frames. RFC 9113 section 6.
pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const HEADERS: u8 = 1;
    pub(in super::super) const SETTINGS: u8 = 4;
    pub(in super::super) const PING: u8 = 6;
    pub(in super::super) const GOAWAY: u8 = 7;
    pub(in super::super) const WINDOW_UPDATE: u8 = 8;
    pub(in super::super) const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub(super) mod flag {
    pub(in super::super) const ACK: u8 = 1;
    pub(in super::super) const END_STREAM: u8 = 1;
    pub(in super::super) const END_HEADERS: u8 = 4;
    pub(in super::super) const PADDED: u8 = 8;
    pub(in super::super) const PRIORITY: u8 = 0x20;
}

/// Where bytes for the `h2` crate go.
pub trait Output {
    /// Appends bytes.
    fn put(&mut self, bytes: &[u8]);
}

impl Output for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// The head of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameHead {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHead {
    pub(super) const fn parse(bytes: [u8; FRAME_HEAD]) -> Self {
        let [a, b, c, kind, flags, d, e, f, g] = bytes;
        Self {
            length: (a as usize) << 16 | (b as usize) << 8 | c as usize,
            kind,
            flags,
            // The highest bit is reserved.
            stream: u32::from_be_bytes([d & 0x7f, e, f, g]),
        }
    }

    /// What the frame costs. Those of requests have a fixed cost, since other limits apply to their bytes.
    pub(super) const fn cost(self) -> u64 {
        match self.kind {
            kind::HEADERS => REQUEST_COST,
            kind::DATA if self.length < SMALL_PIECE => SMALL_PIECE_COST,
            kind::DATA | kind::CONTINUATION => PIECE_COST,
            _ => (FRAME_HEAD + self.length) as u64,
        }
    }

    pub(super) const fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The part of the header block in a frame. RFC 9113 section 6.2.
pub(super) fn fragment(frame: FrameHead, payload: &[u8]) -> Result<&[u8], Reason> {
    if frame.kind == kind::CONTINUATION {
        return Ok(payload);
    }
    let mut fragment = payload;
    let mut padding = 0;
    if frame.has(flag::PADDED) {
        let (&length, rest) = fragment.split_first().ok_or(Reason::FRAME_SIZE_ERROR)?;
        (padding, fragment) = (usize::from(length), rest);
    }
    if frame.has(flag::PRIORITY) {
        // RFC 9113 section 5.3.2: ignored.
        fragment = fragment.get(5..).ok_or(Reason::FRAME_SIZE_ERROR)?;
    }
    // RFC 9113 section 6.2: padding that is longer than the rest is a PROTOCOL_ERROR.
    let end = fragment.len().checked_sub(padding);
    Ok(&fragment[..end.ok_or(Reason::PROTOCOL_ERROR)?])
}

pub(super) fn put_frame(out: &mut impl Output, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    let [d, e, f, g] = stream.to_be_bytes();
    out.put(&[a, b, c, kind, flags, d, e, f, g]);
    out.put(payload);
}
