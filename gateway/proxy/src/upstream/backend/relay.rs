//! Relays the body of a response as it arrives. RFC 9112 sections 6.3 and 7.
//!
//! The gateway buffers one piece at a time, and reads the next once the client has accepted it.

use std::{
    future::poll_fn,
    io,
    pin::pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{io::AsyncReadExt, time::Instant};

use super::{backend_head::ResponseBody, exchange::ReceivedHead, failure::BackendFailure};
use crate::{
    request::client::{Client, Disconnected},
    wire::{
        io::{Stream, USUAL_READ, poll_receive},
        syntax::chunked::{ChunkDecoder, MalformedChunks},
    },
};

/// Relays the body of a response whose head was passed to the client's side.
pub(crate) struct Relay<S> {
    stream: S,
    /// The bytes that arrived; those before `start` are used.
    received: Vec<u8>,
    start: usize,
    /// The data of its chunks.
    decoded: Vec<u8>,
    keeps_alive: bool,
    body: Body,
    timeout: Duration,
    /// Limit of the next read of a body whose length is known.
    max_piece: usize,
    /// Whether the head still waits to be sent with the first piece.
    head_waits: bool,
}

/// What is left of a response's body.
pub(crate) enum Body {
    None,
    Length { left: u64 },
    Chunked(ChunkDecoder),
    UntilClose,
}

/// The part of the received bytes that belongs to the body.
pub(crate) struct Piece<'p> {
    data: &'p [u8],
    /// Whether the body ends with it.
    pub is_last: bool,
    /// Whether surplus bytes follow the body.
    has_surplus: bool,
}

impl<S: Stream> Relay<S> {
    /// Creates a relay for the body after `head`. `timeout` limits each read.
    pub(crate) fn new(stream: S, head: ReceivedHead, timeout: Duration) -> Self {
        Self {
            stream,
            body: match head.is_head {
                true => Body::None,
                false => Body::new(head.head.body),
            },
            received: head.bytes,
            start: head.length,
            decoded: Vec::new(),
            keeps_alive: head.keeps_alive,
            timeout,
            max_piece: 0,
            head_waits: true,
        }
    }

    /// Relays the whole body and counts its bytes in `passed`. Before each read, `piece_limit` gets the stream and that
    /// number. If the connection can be reused, `release` gets it before the last piece is sent.
    ///
    /// # Errors
    ///
    /// The body is incomplete or malformed, or the client disconnected. The response is then aborted.
    pub(crate) async fn run<C: Client>(
        mut self,
        client: &mut C,
        passed: &mut u64,
        piece_limit: impl Fn(&mut S, u64) -> usize,
        release: impl FnOnce(S),
    ) -> Result<(), BackendFailure> {
        loop {
            let arrived = &self.received[self.start..];
            let piece = self.body.take(arrived, &mut self.decoded)?;
            let data = piece.data;
            if piece.is_last {
                // Before the client has the rest: its next request may take this very connection.
                if self.keeps_alive && !piece.has_surplus {
                    // Not with surplus bytes: the next request on the connection would take them for its response.
                    release(self.stream);
                }
                client.finish(data).await.map_err(client_disconnected)?;
                *passed += data.len() as u64;
                return Ok(());
            }
            if !data.is_empty() {
                client.send(data).await.map_err(client_disconnected)?;
                *passed += data.len() as u64;
                self.head_waits = false;
            }
            self.received.clear();
            self.start = 0;
            self.max_piece = piece_limit(&mut self.stream, *passed);
            if !self.receive(client).await? {
                return match self.body {
                    // Only here the close ends the body. Any other body is truncated, and the client must notice.
                    Body::UntilClose => client.finish(b"").await.map_err(client_disconnected),
                    _ => Err(BackendFailure::ended("closed within the response's body")),
                };
            }
        }
    }

    /// Waits for more of the body. Returns `false` at the end of the connection.
    async fn receive<C: Client>(&mut self, client: &mut C) -> Result<bool, BackendFailure> {
        let mut deadline = None;
        loop {
            let received = poll_fn(|context| {
                match self.poll_read(context) {
                    Poll::Ready(received) => {
                        return Poll::Ready(received.map(Some).map_err(BackendFailure::from));
                    }
                    // The client gets the head now, and need not wait for the body.
                    Poll::Pending if self.head_waits => return Poll::Ready(Ok(None)),
                    Poll::Pending => {}
                }
                if client.poll_disconnected(context).is_ready() {
                    return Poll::Ready(Err(BackendFailure::ClientDisconnected));
                }
                let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.timeout);
                client
                    .poll_deadline(context, deadline)
                    .map(|()| Err(BackendFailure::TimedOut))
            });
            match received.await? {
                Some(length) => return Ok(length > 0),
                None => {
                    self.head_waits = false;
                    client.send(b"").await.map_err(client_disconnected)?;
                }
            }
        }
    }

    /// Reads; in large pieces if the rest of the body is known to be large.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self.body {
            Body::Length { left } if left > USUAL_READ as u64 => {
                let wanted =
                    usize::try_from(left).map_or(self.max_piece, |left| left.min(self.max_piece));
                self.received.reserve(wanted);
                // A new future for each poll loses nothing, since `read_buf` has no state between polls.
                pin!(self.stream.read_buf(&mut self.received)).poll(context)
            }
            _ => poll_receive(&mut self.stream, context, &mut self.received),
        }
    }
}

impl Body {
    /// The body that a head announces.
    pub(crate) fn new(body: ResponseBody) -> Self {
        match body {
            ResponseBody::None => Self::None,
            ResponseBody::Length(left) => Self::Length { left },
            ResponseBody::Chunked => Self::Chunked(ChunkDecoder::for_response()),
            ResponseBody::UntilClose => Self::UntilClose,
        }
    }

    /// Returns the part of `arrived` that belongs to the body. The data of chunks is stored in `decoded`.
    ///
    /// # Errors
    ///
    /// Its chunks are malformed.
    pub(crate) fn take<'p>(
        &mut self,
        arrived: &'p [u8],
        decoded: &'p mut Vec<u8>,
    ) -> Result<Piece<'p>, BackendFailure> {
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
                    .map_err(|MalformedChunks| {
                        BackendFailure::Malformed("its chunks are malformed")
                    })?;
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

fn client_disconnected(_: Disconnected) -> BackendFailure {
    BackendFailure::ClientDisconnected
}

#[cfg(test)]
mod tests;
