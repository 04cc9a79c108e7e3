//! The frames of the `h2` crate on their way to the client. Its HEADERS of a response have the same fixed head for all: here
//! they get the header block that waits in the [`Meter`].

use std::io::{self, ErrorKind};

use super::{
    MAX_FRAME,
    frame::{FRAME_HEAD, FrameHead, flag, kind, put_frame},
};
use crate::downstream::http2::meter::Meter;

/// How the crate encodes `:status` of a fixed head, 200: as an entry of the static table. Behind a change of the table's
/// size, and never in a response of 100.
const FIXED_STATUS: u8 = 0x88;

/// `:status` 500: the head of a response whose stream has ended before it was written.
const ENDED_BLOCK: [u8; 1] = [0x8e];

/// Frames that wait for the client.
#[derive(Debug, Default)]
pub(in super::super) struct Responses {
    frames: Vec<u8>,
    /// How much of them was written.
    written: usize,
    /// What the crate has not passed yet of the last frame's payload.
    left: usize,
}

impl Responses {
    /// The bytes that wait.
    pub(in super::super) fn waiting(&self) -> &[u8] {
        &self.frames[self.written..]
    }

    /// Whether these next bytes of the crate are only payload, which can be written as it is.
    pub(in super::super) const fn is_payload(&self, bytes: &[u8]) -> bool {
        bytes.len() <= self.left
    }

    /// Takes bytes of the crate: the head of a frame always comes whole, and of HEADERS the payload, too.
    ///
    /// # Errors
    ///
    /// They are no frames.
    pub(in super::super) fn take(&mut self, mut bytes: &[u8], meter: &Meter) -> io::Result<()> {
        loop {
            let (payload, frames) = bytes.split_at(self.left.min(bytes.len()));
            self.frames.extend_from_slice(payload);
            self.left -= payload.len();
            let Some((head, rest)) = frames.split_first_chunk::<FRAME_HEAD>() else {
                let is_end = frames.is_empty();
                return is_end.then_some(()).ok_or(ErrorKind::InvalidData.into());
            };
            let frame = FrameHead::parse(*head);
            if frame.kind == kind::HEADERS {
                let payload = rest.split_at_checked(frame.length);
                let (payload, rest) = payload.ok_or(ErrorKind::InvalidData)?;
                if let Some((&FIXED_STATUS, before)) = payload.split_last() {
                    self.put_head(frame, before, meter);
                    bytes = rest;
                    continue;
                }
            }
            self.frames.extend_from_slice(head);
            self.left = frame.length;
            bytes = rest;
        }
    }

    /// Puts the head of a response, in as many frames as it needs. `before`: what changes the table's size.
    fn put_head(&mut self, frame: FrameHead, before: &[u8], meter: &Meter) {
        let block = meter.take_sent(frame.stream);
        let mut block = block.unwrap_or_else(|| ENDED_BLOCK.into());
        if !before.is_empty() {
            block.splice(0..0, before.iter().copied());
        }
        let (mut kind, mut flags) = (kind::HEADERS, frame.flags & !flag::END_HEADERS);
        let mut pieces = block.chunks(MAX_FRAME).peekable();
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                flags |= flag::END_HEADERS;
            }
            put_frame(&mut self.frames, kind, flags, frame.stream, piece);
            (kind, flags) = (kind::CONTINUATION, 0);
        }
    }

    /// Notes that so many bytes were written, of those that waited and of the payload behind them. Returns how many of the
    /// payload.
    pub(in super::super) fn note_written(&mut self, length: usize) -> usize {
        let waited = length.min(self.waiting().len());
        self.written += waited;
        if self.written == self.frames.len() {
            // A connection that is idle keeps no room.
            (self.frames, self.written) = (Vec::new(), 0);
        }
        let payload = length - waited;
        self.left -= payload;
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::downstream::http2::frames::frame::fragment;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, kind, flags, stream, payload);
        bytes
    }

    /// Everything that waits, which is written in pieces of this size.
    fn written(responses: &mut Responses, size: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while !responses.waiting().is_empty() {
            let piece = responses.waiting();
            let piece = piece[..piece.len().min(size)].to_vec();
            assert_eq!(responses.note_written(piece.len()), 0);
            bytes.extend(piece);
        }
        bytes
    }

    #[test]
    fn responses_get_their_heads_and_other_frames_stay() {
        let (mut responses, meter) = (Responses::default(), Meter::default());
        meter.send(3, vec![3; 5]);
        meter.send(1, vec![1; 2]);
        let settings = frame(kind::SETTINGS, flag::ACK, 0, b"");
        let continues = frame(kind::HEADERS, flag::END_HEADERS, 1, b"\x08\x82\x08\x01");
        let head = |stream, block| frame(kind::HEADERS, flag::END_HEADERS, stream, block);
        let data = frame(kind::DATA, flag::END_STREAM, 1, b"a body");
        let of_h2 = [
            &settings[..],
            &continues,
            &head(1, &[FIXED_STATUS]),
            // Behind the new size of the table, 0.
            &head(3, &[0x20, FIXED_STATUS]),
            &head(5, &[FIXED_STATUS]),
            &data,
        ]
        .concat();
        // The rest of the last payload comes alone.
        let (first, rest) = of_h2.split_at(of_h2.len() - 4);
        responses.take(first, &meter).unwrap();
        assert!(responses.is_payload(rest) && !responses.is_payload(&[0; 5]));
        let expected = [
            &settings[..],
            &continues,
            &head(1, &[1; 2]),
            &head(3, &[0x20, 3, 3, 3, 3, 3]),
            &head(5, &ENDED_BLOCK),
            &data[..data.len() - 4],
        ]
        .concat();
        assert_eq!(written(&mut responses, 7), expected);
        assert_eq!(responses.note_written(rest.len()), rest.len());
        assert!(!responses.is_payload(b"a") && meter.waiting_responses() == 0);
        let cut = [&data[..], &data[..5]].concat();
        responses.take(&cut, &meter).unwrap_err();
    }

    #[test]
    fn a_long_head_takes_several_frames() {
        let (mut responses, meter) = (Responses::default(), Meter::default());
        let block: Vec<_> = (0..2 * MAX_FRAME + 1).map(|place| place as u8).collect();
        meter.send(1, block.clone());
        let flags = flag::END_HEADERS | flag::END_STREAM;
        let of_h2 = frame(kind::HEADERS, flags, 1, &[FIXED_STATUS]);
        responses.take(&of_h2, &meter).unwrap();
        let (bytes, mut whole, mut heads) = (written(&mut responses, 4096), Vec::new(), Vec::new());
        let mut rest = &bytes[..];
        while let Some((head, after)) = rest.split_first_chunk() {
            let head = FrameHead::parse(*head);
            let (payload, after) = after.split_at(head.length);
            whole.extend_from_slice(fragment(head, payload).unwrap());
            heads.push((head.kind, head.flags, head.stream));
            rest = after;
        }
        let expected = [
            (kind::HEADERS, flag::END_STREAM, 1),
            (kind::CONTINUATION, 0, 1),
            (kind::CONTINUATION, flag::END_HEADERS, 1),
        ];
        assert!(heads == expected && whole == block, "{heads:?}");
    }
}
