//! A client's stream below the `h2` crate: it reads frames by the meter's budget, gives responses their heads, and notes
//! whether the client accepts bytes.

use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{
    bounds::MAX_LINGER_BYTES,
    frames::{Frames, Output, Responses, To},
    head::StreamFault,
    meter::{Meter, NextRead},
};
use crate::{
    request::HeadLimits,
    wire::io::{Stream, USUAL_READ},
};

/// Bytes for the `h2` crate: into its buffer, and what that does not take, for the next read.
struct Passed<'p, 'b> {
    buffer: &'p mut ReadBuf<'b>,
    rest: &'p mut Vec<u8>,
}

impl Output for Passed<'_, '_> {
    fn put(&mut self, bytes: &[u8]) {
        // Once bytes wait, all that follow wait behind them: otherwise the order would change.
        let fits = if self.rest.is_empty() {
            bytes.len().min(self.buffer.remaining())
        } else {
            0
        };
        self.buffer.put_slice(&bytes[..fits]);
        self.rest.extend_from_slice(&bytes[fits..]);
    }
}

/// A client's stream with a meter. It reads no more once the budget is used up, unless the connection is closing.
pub(crate) struct MeteredStream<S> {
    stream: S,
    meter: Arc<Meter>,
    frames: Frames,
    /// What the `h2` crate had no room for.
    rest: Vec<u8>,
    responses: Responses,
    is_shut_down: bool,
    /// Bytes read while closing, and after the shutdown.
    lingered: usize,
}

impl<S: Stream> MeteredStream<S> {
    /// Creates the metered form of a stream on which nothing was read.
    pub(super) fn new(stream: S, meter: Arc<Meter>, limits: &HeadLimits) -> Self {
        Self {
            stream,
            meter,
            frames: Frames::new(limits),
            rest: Vec::new(),
            responses: Responses::default(),
            is_shut_down: false,
            lingered: 0,
        }
    }
}

impl<S: Stream> AsyncRead for MeteredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self {
            stream,
            meter,
            frames,
            rest,
            lingered,
            ..
        } = &mut *self;
        if !rest.is_empty() {
            let length = rest.len().min(buffer.remaining());
            buffer.put_slice(&rest[..length]);
            rest.drain(..length);
            if rest.is_empty() {
                *rest = Vec::new();
            }
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        while buffer.filled().len() == before {
            match meter.next_read(*lingered) {
                NextRead::RejectLate => {
                    let out = &mut Passed { buffer, rest };
                    frames.abandon(StreamFault::Late, &mut To { meter, out });
                    continue;
                }
                // Without a waker: the connection loop looks at the meter in each turn, and then reads again.
                NextRead::Wait => return Poll::Pending,
                NextRead::Read => {}
            }
            let mut space = [MaybeUninit::uninit(); USUAL_READ];
            let mut piece = ReadBuf::uninit(&mut space);
            ready!(Pin::new(&mut *stream).poll_read(context, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            let out = &mut Passed { buffer, rest };
            let passed = frames.take(piece.filled(), &mut To { meter, out });
            if meter.is_closing() {
                // Not the DATA of requests in flight: flow control bounds it.
                *lingered += piece.filled().len() - passed;
                meter.note_lingering(*lingered);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: Stream> MeteredStream<S> {
    /// Writes frames that wait, and this payload behind them. Ready once some of the payload was written; without a payload,
    /// once no frame waits. Returns the number of its bytes.
    fn poll_responses(
        &mut self,
        context: &mut Context<'_>,
        payload: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self {
            stream, responses, ..
        } = self;
        loop {
            let slices = [responses.waiting(), payload].map(IoSlice::new);
            let from = usize::from(slices[0].is_empty());
            if slices[from..].iter().all(|slice| slice.is_empty()) {
                return Poll::Ready(Ok(0));
            }
            let wrote = Pin::new(&mut *stream).poll_write_vectored(context, &slices[from..]);
            self.meter.note_write(&wrote);
            let length = ready!(wrote)?;
            if length == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let passed = responses.note_written(length);
            if passed > 0 {
                return Poll::Ready(Ok(passed));
            }
        }
    }
}

impl<S: Stream> AsyncWrite for MeteredStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let (mut taken, mut payload) = (0, &[][..]);
        for slice in slices.iter().filter(|slice| !slice.is_empty()) {
            if self.responses.is_payload(slice) {
                payload = slice;
                break;
            }
            if taken == 0 {
                // At most one call's frames wait.
                ready!(self.poll_responses(context, b""))?;
            }
            let Self {
                responses, meter, ..
            } = &mut *self;
            responses.take(slice, meter)?;
            taken += slice.len();
        }
        match self.poll_responses(context, payload) {
            // They wait: the flush writes them.
            Poll::Pending if taken > 0 => Poll::Ready(Ok(taken)),
            wrote => wrote.map_ok(|passed| taken + passed),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_responses(context, b""))?;
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.meter.note_flush(&flushed);
        flushed
    }

    /// Closes the sending direction, and then reads on for a while: a close with unread bytes would reset the
    /// connection, and the client might lose a GOAWAY or a response.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.meter.begin_shutdown();
        if !self.is_shut_down {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.is_shut_down = true;
        }
        while self.lingered < MAX_LINGER_BYTES {
            let mut space = [MaybeUninit::uninit(); USUAL_READ];
            let mut piece = ReadBuf::uninit(&mut space);
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut piece)) {
                Ok(()) if !piece.filled().is_empty() => self.lingered += piece.filled().len(),
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}
