//! A stream and a client for tests. The stream follows a script: it delivers and accepts bytes, waits and fails.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

use crate::{
    request::{
        client::{BodyLimits, Client, Disconnected, ResponseHead},
        rejection::Rejection,
    },
    wire::{io::Timer, syntax::field::NameAndValue},
};

/// A step of the script. Reads use the steps for reading, writes those for writing, each in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A read delivers these bytes; in several reads if the buffer is smaller.
    Give(Vec<u8>),
    /// A read finds nothing; the next one continues.
    Wait,
    /// This and all further reads find the end of the stream.
    End,
    /// This and all further reads fail.
    FailRead,
    /// A write accepts at most this many bytes.
    Take(usize),
    /// This and all further writes accept at most this many bytes.
    TakeAlways(usize),
    /// This and all further writes wait.
    HoldAlways,
    /// This and all further writes fail.
    FailWrite,
    /// Reads wait until this many bytes were written.
    Until(usize),
}

/// A stream with a script. Without a step left, a read waits for ever, and a write accepts everything.
#[derive(Clone, Debug)]
pub(crate) struct Script(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    reads: VecDeque<Step>,
    writes: VecDeque<Step>,
    written: Vec<u8>,
    write_count: usize,
    reader: Option<Waker>,
    is_shut_down: bool,
}

impl Script {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let is_read = |step: &Step| {
            matches!(
                step,
                Step::Give(_) | Step::Wait | Step::End | Step::FailRead | Step::Until(_)
            )
        };
        let (reads, writes) = steps.into_iter().partition(is_read);
        Self(Arc::new(Mutex::new(State {
            reads,
            writes,
            written: Vec::new(),
            write_count: 0,
            reader: None,
            is_shut_down: false,
        })))
    }

    /// Delivers `bytes` in pieces of `size`, waiting before each.
    pub(crate) fn giving(bytes: &[u8], size: usize) -> Vec<Step> {
        bytes
            .chunks(size)
            .flat_map(|piece| [Step::Wait, Step::Give(piece.to_vec())])
            .collect()
    }

    /// All bytes written so far.
    pub(crate) fn written(&self) -> Vec<u8> {
        self.state().written.clone()
    }

    /// The number of successful writes.
    pub(crate) fn write_count(&self) -> usize {
        self.state().write_count
    }

    /// The remaining steps for reading.
    pub(crate) fn remaining_reads(&self) -> Vec<Step> {
        self.state().reads.iter().cloned().collect()
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.state().is_shut_down
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl AsyncRead for Script {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.state();
        loop {
            match state.reads.pop_front() {
                None => {
                    state.reader = Some(context.waker().clone());
                    return Poll::Pending;
                }
                Some(Step::Until(count)) if state.written.len() < count => {
                    state.reads.push_front(Step::Until(count));
                    state.reader = Some(context.waker().clone());
                    return Poll::Pending;
                }
                Some(Step::Wait) => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Step::Give(mut bytes)) => {
                    let length = bytes.len().min(buffer.remaining());
                    let rest = bytes.split_off(length);
                    buffer.put_slice(&bytes);
                    if !rest.is_empty() {
                        state.reads.push_front(Step::Give(rest));
                    }
                    return Poll::Ready(Ok(()));
                }
                Some(Step::End) => {
                    state.reads.push_front(Step::End);
                    return Poll::Ready(Ok(()));
                }
                Some(Step::FailRead) => {
                    state.reads.push_front(Step::FailRead);
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
                Some(_) => {}
            }
        }
    }
}

impl Script {
    fn poll_take(&self, parts: &[&[u8]]) -> Poll<io::Result<usize>> {
        let mut state = self.state();
        let max = match state.writes.pop_front() {
            Some(Step::Take(max)) => max,
            Some(Step::TakeAlways(max)) => {
                state.writes.push_front(Step::TakeAlways(max));
                max
            }
            Some(Step::HoldAlways) => {
                state.writes.push_front(Step::HoldAlways);
                return Poll::Pending;
            }
            Some(Step::FailWrite) => {
                state.writes.push_front(Step::FailWrite);
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            _ => usize::MAX,
        };
        let all = parts.concat();
        let length = all.len().min(max);
        state.written.extend_from_slice(&all[..length]);
        state.write_count += 1;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(length))
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_take(&[bytes])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let parts: Vec<&[u8]> = slices.iter().map(|slice| &**slice).collect();
        self.poll_take(&parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.state().is_shut_down = true;
        Poll::Ready(Ok(()))
    }
}

/// A client's side that records a response, for tests of the backend's side.
#[derive(Debug, Default)]
pub(crate) struct ScriptedClient {
    /// The pieces of the body.
    pub sent: Vec<String>,
    /// Whether the response was finished.
    pub is_finished: bool,
    /// Whether it has disconnected.
    pub(crate) is_disconnected: bool,
    /// It disconnects after this many pieces.
    pub(crate) max_pieces: Option<usize>,
    pub timer: Timer,
}

impl Client for ScriptedClient {
    fn protocol(&self) -> &'static str {
        "HTTP/1.1"
    }

    async fn read_body(&mut self, _: bool, _: BodyLimits) -> Result<Vec<u8>, Rejection> {
        Ok(Vec::new())
    }

    fn poll_disconnected(&mut self, _: &mut Context<'_>) -> Poll<()> {
        if self.is_disconnected {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn poll_deadline(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        self.timer.poll(context, deadline)
    }

    fn has_begun_response(&self) -> bool {
        !self.sent.is_empty()
    }

    fn begin<'f>(&mut self, _: ResponseHead<'_>, _: impl Iterator<Item = NameAndValue<'f>>) {}

    async fn send(&mut self, piece: &[u8]) -> Result<(), Disconnected> {
        if self.max_pieces.is_some_and(|max| self.sent.len() >= max) {
            return Err(Disconnected);
        }
        self.sent.push(String::from_utf8_lossy(piece).into_owned());
        Ok(())
    }

    async fn finish(&mut self, last_piece: &[u8]) -> Result<(), Disconnected> {
        self.send(last_piece).await?;
        self.is_finished = true;
        Ok(())
    }
}
