//! The body of an answer, passed on as it arrives. RFC 9112 sections 6.3 and 7.
//!
//! The gateway holds one piece of it at a time, and reads the next one when the client has taken it.

use std::{
    future::poll_fn,
    io,
    pin::pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{io::AsyncReadExt, time::Instant};

use super::{answer_head::AnswerBody, exchange::ReceivedHead, failure::Failure};
use crate::{
    client::{Client, Gone},
    io::{Stream, USUAL_READ, poll_receive},
    syntax::chunked::{ChunkDecoder, MalformedChunks},
};

/// Limit of a piece, in bytes. With 64 KiB, a large answer costs a fifth more.
const MAX_PIECE: usize = 256 * 1024;

/// The body of an answer whose head the client's side has begun.
pub(crate) struct Relay<S> {
    stream: S,
    /// What arrived, of which the part up to `start` is used.
    received: Vec<u8>,
    start: usize,
    /// What the chunks in it hold.
    decoded: Vec<u8>,
    keeps_alive: bool,
    body: Body,
    timeout: Duration,
    /// Whether nothing was sent yet, so that the head waits for the first piece.
    head_waits: bool,
}

enum Body {
    None,
    Length { left: u64 },
    Chunked(ChunkDecoder),
    UntilClose,
}

/// What a body takes of the bytes that arrived.
struct Piece<'p> {
    data: &'p [u8],
    /// Whether the body ends with it.
    is_last: bool,
    /// Whether bytes follow that are not the body's.
    has_surplus: bool,
}

impl<S: Stream> Relay<S> {
    /// The body that begins behind a head. The backend may be silent for `timeout`.
    pub(crate) fn new(stream: S, head: ReceivedHead, timeout: Duration) -> Self {
        Self {
            stream,
            body: match head.head.body {
                AnswerBody::None => Body::None,
                AnswerBody::Length(left) => Body::Length { left },
                AnswerBody::Chunked => Body::Chunked(ChunkDecoder::for_answer()),
                AnswerBody::UntilClose => Body::UntilClose,
            },
            received: head.bytes,
            start: head.length,
            decoded: Vec::new(),
            keeps_alive: head.keeps_alive,
            timeout,
            head_waits: true,
        }
    }

    /// Passes the body on to its end, counting the bytes in `passed`. Before the last piece is sent, `release` gets the
    /// connection, if it can serve another request.
    ///
    /// # Errors
    ///
    /// The body is not whole, or is malformed, or the client left. The answer is broken off then.
    pub(crate) async fn run<C: Client>(
        mut self,
        client: &mut C,
        passed: &mut u64,
        release: impl FnOnce(S),
    ) -> Result<(), Failure> {
        loop {
            let arrived = &self.received[self.start..];
            let Piece {
                data,
                is_last,
                has_surplus,
            } = self.body.take(arrived, &mut self.decoded)?;
            if is_last {
                if self.keeps_alive && !has_surplus {
                    release(self.stream);
                }
                client.finish(data).await.map_err(gone)?;
                *passed += data.len() as u64;
                return Ok(());
            }
            if !data.is_empty() {
                client.send(data).await.map_err(gone)?;
                *passed += data.len() as u64;
                self.head_waits = false;
            }
            self.received.clear();
            self.start = 0;
            if !self.receive(client).await? {
                return match self.body {
                    Body::UntilClose => client.finish(b"").await.map_err(gone),
                    _ => Err(Failure::ended("closed within the answer's body")),
                };
            }
        }
    }

    /// Waits for more of the body; `false` at the end of the connection.
    async fn receive<C: Client>(&mut self, client: &mut C) -> Result<bool, Failure> {
        let mut deadline = None;
        loop {
            let received = poll_fn(|context| {
                match self.poll_read(context) {
                    Poll::Ready(read) => return Poll::Ready(read.map(Some).map_err(Failure::from)),
                    // The client need not wait for a head while its body is being made.
                    Poll::Pending if self.head_waits => return Poll::Ready(Ok(None)),
                    Poll::Pending => {}
                }
                if client.poll_gone(context).is_ready() {
                    return Poll::Ready(Err(Failure::ClientGone));
                }
                let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.timeout);
                client
                    .poll_deadline(context, deadline)
                    .map(|()| Err(Failure::TimedOut))
            });
            match received.await? {
                Some(length) => return Ok(length > 0),
                None => {
                    self.head_waits = false;
                    client.send(b"").await.map_err(gone)?;
                }
            }
        }
    }

    /// Reads in large pieces what is known to be large.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self.body {
            Body::Length { left } if left > USUAL_READ as u64 => {
                let wanted = usize::try_from(left).unwrap_or(MAX_PIECE).min(MAX_PIECE);
                self.received.reserve(wanted);
                pin!(self.stream.read_buf(&mut self.received)).poll(context)
            }
            _ => poll_receive(&mut self.stream, context, &mut self.received),
        }
    }
}

impl Body {
    /// Takes what belongs to the body; `decoded` is where chunks' data goes.
    fn take<'p>(
        &mut self,
        arrived: &'p [u8],
        decoded: &'p mut Vec<u8>,
    ) -> Result<Piece<'p>, Failure> {
        Ok(match self {
            Self::None => Piece {
                data: &[],
                is_last: true,
                has_surplus: !arrived.is_empty(),
            },
            Self::Length { left } => {
                let length =
                    usize::try_from(*left).map_or(arrived.len(), |left| left.min(arrived.len()));
                *left -= length as u64;
                Piece {
                    data: &arrived[..length],
                    is_last: *left == 0,
                    has_surplus: length < arrived.len(),
                }
            }
            Self::Chunked(decoder) => {
                decoded.clear();
                let used = decoder
                    .decode(arrived, decoded)
                    .map_err(|MalformedChunks| Failure::Malformed("its chunks are malformed"))?;
                Piece {
                    data: decoded,
                    is_last: decoder.is_done(),
                    has_surplus: used < arrived.len(),
                }
            }
            Self::UntilClose => Piece {
                data: arrived,
                is_last: false,
                has_surplus: false,
            },
        })
    }
}

fn gone(_: Gone) -> Failure {
    Failure::ClientGone
}

#[cfg(test)]
mod tests;
