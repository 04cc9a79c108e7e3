//! Reads the client's frames before the `h2` crate does, and takes the heads of requests out of them.
//!
//! For the `h2` crate, a field that HTTP does not allow ends the connection, and so does a number of requests that the
//! client resets before they are served. Behind a proxy, a connection carries the requests of many clients, so one of
//! them could end the requests of all others. RFC 9113 section 8.1.1 says that a malformed request ends its stream.
//!
//! | frame | passed on as |
//! | --- | --- |
//! | HEADERS of a new stream, with its CONTINUATIONs | HEADERS of a fixed request. The head itself is decoded here, and waits in the [`Meter`] |
//! | trailers | an empty DATA frame that ends the stream: trailers end here |
//! | any other | itself |
//!
//! A connection that is closing takes no new streams: their frames are dropped, and those in flight are served to their
//! end.

mod block;
mod frame;
mod responses;

use h2::Reason;

pub use self::frame::Output;
pub(super) use self::responses::Responses;
use self::{
    block::{Block, decode},
    frame::{FRAME_HEAD, FrameHead, flag, fragment, kind, put_frame},
};
use super::{
    PREFACE,
    bounds::max_list,
    head::{HeadWriter, StreamFault, StreamHead},
    hpack::Decoder,
    meter::Meter,
};
use crate::{downstream::http1::head::HeadFault, request::HeadLimits};

/// Largest payload of a frame: the default of `SETTINGS_MAX_FRAME_SIZE`, which the gateway does not change.
const MAX_FRAME: usize = 16_384;

/// The header block of the fixed request: `GET http /`, as entries of the static table.
const FIXED_BLOCK: [u8; 3] = [0x82, 0x86, 0x84];

/// What the next bytes are.
#[derive(Clone, Copy, Debug)]
enum FramePlace {
    /// The head of a frame; this many bytes of it have arrived.
    Head(usize),
    /// So many bytes of a payload, or of the preface, which are passed on or dropped.
    Payload { left: usize, passes: bool },
    /// A part of a header block: the payload of this frame.
    Block(FrameHead),
}

/// Where the frames of a client go: heads to the meter, everything else to the `h2` crate.
pub struct To<'t, O> {
    /// Takes heads, costs and errors.
    pub meter: &'t Meter,
    /// Takes what the `h2` crate reads.
    pub out: &'t mut O,
}

/// The frames of a client.
#[derive(Debug)]
pub struct Frames {
    place: FramePlace,
    head: [u8; FRAME_HEAD],
    /// The payload of a header frame, until it is complete.
    payload: Vec<u8>,
    block: Option<Block>,
    decoder: Decoder,
    writer: HeadWriter,
    /// The header list that a head can have.
    max_list: usize,
    /// The newest stream that was passed on.
    newest: u32,
}

impl Frames {
    /// The frames of a connection. Nothing of it was read.
    pub fn new(limits: &HeadLimits) -> Self {
        Self {
            place: FramePlace::Payload {
                left: PREFACE.len(),
                passes: true,
            },
            head: [0; FRAME_HEAD],
            payload: Vec::new(),
            block: None,
            decoder: Decoder::default(),
            writer: HeadWriter::new(limits.bytes),
            max_list: max_list(limits),
            newest: 0,
        }
    }

    /// Takes bytes of the client. Stops at a connection error, which the meter then has. Returns the number
    /// of bytes of DATA that were passed on: the windows limit them.
    pub fn take(&mut self, mut bytes: &[u8], to: &mut To<'_, impl Output>) -> usize {
        let length = bytes.len();
        let mut data = 0;
        while !bytes.is_empty() {
            let taken = match self.place {
                FramePlace::Head(filled) => self.take_head(filled, bytes, to),
                FramePlace::Payload { left, passes } => {
                    let taken = left.min(bytes.len());
                    if passes {
                        to.out.put(&bytes[..taken]);
                        data += if self.head[3] == kind::DATA { taken } else { 0 };
                    }
                    self.place = match left - taken {
                        0 => FramePlace::Head(0),
                        left => FramePlace::Payload { left, passes },
                    };
                    Ok(taken)
                }
                FramePlace::Block(frame) => self.take_payload(frame, bytes, to),
            };
            match taken {
                Ok(taken) => bytes = &bytes[taken..],
                Err(reason) => {
                    to.meter.fail(reason);
                    return data;
                }
            }
        }
        let is_receiving = self.block.as_ref().is_some_and(|block| !block.is_dropped);
        to.meter.note_head(is_receiving.then_some(length));
        data
    }

    fn take_head(
        &mut self,
        filled: usize,
        bytes: &[u8],
        to: &mut To<'_, impl Output>,
    ) -> Result<usize, Reason> {
        let taken = (FRAME_HEAD - filled).min(bytes.len());
        self.head[filled..filled + taken].copy_from_slice(&bytes[..taken]);
        self.place = FramePlace::Head(filled + taken);
        if filled + taken == FRAME_HEAD {
            self.begin(FrameHead::parse(self.head), to)?;
        }
        Ok(taken)
    }

    /// Begins a frame whose head has arrived.
    fn begin(&mut self, frame: FrameHead, to: &mut To<'_, impl Output>) -> Result<(), Reason> {
        let is_closing = to.meter.is_closing();
        let passes = !is_closing || self.passes_while_closing(frame);
        if passes {
            to.meter.spend(frame.cost());
        }
        if let Some(block) = &self.block
            && (frame.kind, frame.stream) != (kind::CONTINUATION, block.stream)
        {
            // RFC 9113 section 6.10.
            return Err(Reason::PROTOCOL_ERROR);
        }
        let is_of_block = frame.kind == kind::HEADERS || self.block.is_some();
        // The `h2` crate rejects what is too large, and CONTINUATIONs without HEADERS.
        if !is_of_block || frame.length > MAX_FRAME {
            // An empty DATA frame has no effect, but the `h2` crate allows a connection only 100 of them.
            let is_empty = frame.kind == kind::DATA
                && frame.length == 0
                && !frame.has(flag::END_STREAM)
                && (1..=self.newest).contains(&frame.stream);
            let passes = passes && !is_empty;
            if passes {
                to.out.put(&self.head);
            }
            self.place = match frame.length {
                0 => FramePlace::Head(0),
                left => FramePlace::Payload { left, passes },
            };
            return Ok(());
        }
        if self.block.is_none() {
            // RFC 9113 section 5.1.1. Any other HEADERS are trailers, or an error that the `h2` crate finds.
            let is_new = frame.stream > self.newest && frame.stream % 2 == 1;
            self.decoder.begin();
            self.block = Some(Block {
                stream: frame.stream,
                is_new,
                ends_stream: frame.has(flag::END_STREAM),
                rest: Vec::new(),
                retry_at: 0,
                listed: 0,
                is_dropped: is_closing && is_new,
            });
        }
        self.place = FramePlace::Block(frame);
        if frame.length == 0 {
            self.take_payload(frame, b"", to)?;
        }
        Ok(())
    }

    /// Whether a closing connection needs the frame: frames of streams in flight, and frames that end the connection.
    const fn passes_while_closing(&self, frame: FrameHead) -> bool {
        match frame.stream {
            0 => match frame.kind {
                kind::WINDOW_UPDATE | kind::GOAWAY => true,
                kind::SETTINGS | kind::PING => frame.has(flag::ACK),
                _ => false,
            },
            stream => stream <= self.newest,
        }
    }

    /// Takes bytes of a header frame's payload. Once it is complete, decodes it.
    fn take_payload(
        &mut self,
        frame: FrameHead,
        bytes: &[u8],
        to: &mut To<'_, impl Output>,
    ) -> Result<usize, Reason> {
        let taken = (frame.length - self.payload.len()).min(bytes.len());
        // A payload that arrived whole is decoded in place.
        if taken == frame.length {
            self.read_payload(frame, &bytes[..taken], to)?;
            return Ok(taken);
        }
        self.payload.extend_from_slice(&bytes[..taken]);
        if self.payload.len() == frame.length {
            let payload = std::mem::take(&mut self.payload);
            self.read_payload(frame, &payload, to)?;
        }
        Ok(taken)
    }

    fn read_payload(
        &mut self,
        frame: FrameHead,
        payload: &[u8],
        to: &mut To<'_, impl Output>,
    ) -> Result<(), Reason> {
        self.place = FramePlace::Head(0);
        let fragment = fragment(frame, payload)?;
        let Some(block) = &mut self.block else {
            return Ok(());
        };
        let is_last = frame.has(flag::END_HEADERS);
        // A closing connection decodes nothing: no later head needs the state.
        if !block.is_dropped && !to.meter.is_closing() {
            decode(
                block,
                fragment,
                is_last,
                &mut self.decoder,
                &mut self.writer,
            )?;
            if block.is_too_large(self.max_list) {
                self.abandon(StreamFault::Head(HeadFault::TooLarge), to);
            }
        }
        if is_last {
            self.end_block(to);
        }
        Ok(())
    }

    /// Ends a header block.
    fn end_block(&mut self, to: &mut To<'_, impl Output>) {
        let Some(block) = self.block.take() else {
            return;
        };
        let is_dropped = block.is_dropped || (block.is_new && to.meter.is_closing());
        match (is_dropped, block.is_new, block.ends_stream) {
            (true, ..) => {}
            (false, true, ends_stream) => {
                let head = self.writer.finish(!ends_stream);
                self.pass(block.stream, head, ends_stream, to);
            }
            (false, false, true) => {
                put_frame(to.out, kind::DATA, flag::END_STREAM, block.stream, b"")
            }
            // Malformed: the `h2` crate resets the stream.
            (false, false, false) => {
                put_frame(to.out, kind::HEADERS, flag::END_HEADERS, block.stream, b"")
            }
        }
    }

    /// Rejects the request whose head is being received, and closes the connection: until its client has sent the rest, it
    /// can send nothing else.
    pub(super) fn abandon(&mut self, fault: StreamFault, to: &mut To<'_, impl Output>) {
        to.meter.close();
        let Some(block) = &mut self.block else {
            return;
        };
        block.is_dropped = true;
        block.rest = Vec::new();
        let (stream, is_new, ends_stream) = (block.stream, block.is_new, block.ends_stream);
        if is_new {
            let head = self.writer.abandon(fault);
            self.pass(stream, head, ends_stream, to);
        }
    }

    /// Passes a new stream on.
    fn pass(
        &mut self,
        stream: u32,
        head: StreamHead,
        ends_stream: bool,
        to: &mut To<'_, impl Output>,
    ) {
        self.newest = stream;
        to.meter.receive(stream, head);
        let end = if ends_stream { flag::END_STREAM } else { 0 };
        put_frame(
            to.out,
            kind::HEADERS,
            flag::END_HEADERS | end,
            stream,
            &FIXED_BLOCK,
        );
    }
}

#[cfg(test)]
mod tests;
