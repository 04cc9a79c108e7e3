//! A stream that does what a test's script says: it delivers, takes, stops and fails at given steps.

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
    client::{BodyLimits, Client, Gone, ResponseHead},
    io::Timer,
    rejection::Rejection,
    syntax::field::NameAndValue,
};

/// What the stream does next. Reads use the steps for reading, writes those for writing, each in their order; steps for both
/// hold up both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A read delivers these bytes, or as many of them as it asks for.
    Give(Vec<u8>),
    /// A read finds nothing; the next one goes on.
    Wait,
    /// A read finds the end of the stream; so do all after it.
    End,
    /// A read fails; so do all after it.
    FailRead,
    /// A write takes so many bytes at most.
    Take(usize),
    /// Every write from now on takes so many bytes at most.
    TakeAlways(usize),
    /// Every write from now on waits.
    HoldAlways,
    /// A write fails; so do all after it.
    FailWrite,
    /// Reads wait until so many bytes were written.
    Until(usize),
}

/// A stream with a script. Without a step for it, a read waits for ever, and a write takes everything.
#[derive(Clone, Debug)]
pub(crate) struct Script(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    reads: VecDeque<Step>,
    writes: VecDeque<Step>,
    written: Vec<u8>,
    writes_made: usize,
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
            writes_made: 0,
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

    /// What was written.
    pub(crate) fn written(&self) -> Vec<u8> {
        self.state().written.clone()
    }

    /// How many writes took something.
    pub(crate) fn writes_made(&self) -> usize {
        self.state().writes_made
    }

    /// The steps for reading that are left.
    pub(crate) fn left(&self) -> Vec<Step> {
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
        let most = match state.writes.pop_front() {
            Some(Step::Take(most)) => most,
            Some(Step::TakeAlways(most)) => {
                state.writes.push_front(Step::TakeAlways(most));
                most
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
        let length = all.len().min(most);
        state.written.extend_from_slice(&all[..length]);
        state.writes_made += 1;
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

/// What a client's side got of an answer, for tests of the backend's side.
#[derive(Debug, Default)]
pub(crate) struct ScriptedClient {
    /// The pieces of the body.
    pub(crate) sent: Vec<String>,
    /// Whether the answer was ended.
    pub(crate) is_finished: bool,
    /// Whether it has left.
    pub(crate) leaves: bool,
    /// It takes no more pieces after so many.
    pub(crate) most_pieces: Option<usize>,
    pub(crate) timer: Timer,
}

impl Client for ScriptedClient {
    async fn read_body(&mut self, _: bool, _: BodyLimits) -> Result<Vec<u8>, Rejection> {
        Ok(Vec::new())
    }

    fn poll_gone(&mut self, _: &mut Context<'_>) -> Poll<()> {
        if self.leaves {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn poll_deadline(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        self.timer.poll(context, deadline)
    }

    fn is_answered(&self) -> bool {
        !self.sent.is_empty()
    }

    fn begin<'f>(&mut self, _: ResponseHead<'_>, _: impl Iterator<Item = NameAndValue<'f>>) {}

    async fn send(&mut self, piece: &[u8]) -> Result<(), Gone> {
        if self.most_pieces.is_some_and(|most| self.sent.len() >= most) {
            return Err(Gone);
        }
        self.sent.push(String::from_utf8_lossy(piece).into_owned());
        Ok(())
    }

    async fn finish(&mut self, last_piece: &[u8]) -> Result<(), Gone> {
        self.send(last_piece).await?;
        self.is_finished = true;
        Ok(())
    }
}
