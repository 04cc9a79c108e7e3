//! One stream: its body and its response.

use std::{
    future::poll_fn,
    task::{Context, Poll},
};

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream, server::SendResponse};
use http::{Response, StatusCode};
use tokio::time::Instant;

use super::{meter::Meter, response::header_block};
use crate::{
    request::{
        BodyLength,
        client::{BodyLimits, BodySink, Client, Disconnected, Progress, ResponseHead},
        rejection::Rejection,
    },
    wire::{
        io::{SendLimits, SendPace, Timer, arrival_deadline},
        syntax::field::NameAndValue,
    },
};

/// One stream of a client's connection. If it is dropped before its response is finished, the stream is reset, so that
/// the client notices. If the response is finished before the request, the stream is reset with `NO_ERROR` (RFC 9113
/// section 8.1); the `h2` crate does both.
pub(crate) struct Http2Exchange<'c> {
    respond: SendResponse<Bytes>,
    body: RecvStream,
    /// The response's body, once its head was sent.
    stream: Option<SendStream<Bytes>>,
    /// The header block of the response; it is sent with the first piece.
    head: Option<Vec<u8>>,
    /// The length of the request's body, by its head.
    length: BodyLength,
    is_head: bool,
    /// Whether the response can have a body.
    has_body: bool,
    progress: Progress,
    send_limits: SendLimits,
    pace: SendPace,
    timer: Timer,
    meter: &'c Meter,
}

/// RFC 9113 section 8.1.1.
const BODY_LENGTH: Rejection =
    Rejection::NotHttp("the body has another length than its content-length");

impl<'c> Http2Exchange<'c> {
    /// Creates the exchange of a stream whose head was read. `length`: the length of its body, by the head. `timer` may
    /// have been used by another stream.
    pub(crate) fn new(
        (respond, body): (SendResponse<Bytes>, RecvStream),
        length: BodyLength,
        is_head: bool,
        send_limits: SendLimits,
        timer: Timer,
        meter: &'c Meter,
    ) -> Self {
        Self {
            respond,
            body,
            stream: None,
            head: None,
            length,
            is_head,
            has_body: false,
            progress: Progress::Waiting,
            send_limits,
            pace: SendPace::default(),
            timer,
            meter,
        }
    }

    /// Ends the exchange, and returns its timer for the next one.
    pub(crate) fn end(mut self) -> Timer {
        std::mem::take(&mut self.timer)
    }

    async fn write(&mut self, mut piece: &[u8], is_last: bool) -> Result<(), Disconnected> {
        if let Some(head) = self.head.take() {
            // END_STREAM on the head saves an empty DATA frame.
            let is_whole = !self.has_body || (is_last && piece.is_empty());
            let stream = self.respond.send_response(Response::new(()), is_whole);
            self.stream = Some(stream.map_err(|_| Disconnected)?);
            self.meter.send(self.respond.stream_id().as_u32(), head);
            self.progress = Progress::Sending;
            if is_whole {
                self.set_finished();
                return Ok(());
            }
        } else if self.progress == Progress::Finished {
            // A response without a body, which the backend sent nevertheless.
            return Ok(());
        }
        self.meter.credit_piece(piece.len());
        while !piece.is_empty() {
            let stream = self.stream.as_mut().ok_or(Disconnected)?;
            let (pace, limits) = (&mut self.pace, self.send_limits);
            let capacity = capacity(stream, piece.len(), &mut self.timer, pace, limits).await?;
            self.pace.take(capacity, limits);
            // Never more than the client accepts: the `h2` crate would hold the rest.
            let (now, later) = piece.split_at(capacity);
            let ends = is_last && later.is_empty();
            // Copied: the `h2` crate keeps the bytes until they are written, and the piece is the relay's buffer.
            let sent = stream.send_data(Bytes::copy_from_slice(now), ends);
            sent.map_err(|_| Disconnected)?;
            if ends {
                self.set_finished();
                return Ok(());
            }
            piece = later;
        }
        if is_last {
            let stream = self.stream.as_mut().ok_or(Disconnected)?;
            let sent = stream.send_data(Bytes::new(), true);
            sent.map_err(|_| Disconnected)?;
            self.set_finished();
        }
        Ok(())
    }

    fn send_continue(&mut self) -> Result<(), Rejection> {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::CONTINUE;
        let sent = self.respond.send_informational(response);
        sent.map_err(|_| Rejection::ClientDisconnected)
    }

    fn set_finished(&mut self) {
        self.progress = Progress::Finished;
        self.meter.credit_response();
    }
}

/// Waits until the client accepts bytes, and returns how many of `length`: at least one.
async fn capacity(
    stream: &mut SendStream<Bytes>,
    length: usize,
    timer: &mut Timer,
    pace: &mut SendPace,
    limits: SendLimits,
) -> Result<usize, Disconnected> {
    stream.reserve_capacity(length);
    poll_fn(|context| {
        loop {
            let capacity = stream.capacity().min(length);
            if capacity > 0 {
                return Poll::Ready(Ok(capacity));
            }
            match stream.poll_capacity(context) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(None | Some(Err(_))) => return Poll::Ready(Err(Disconnected)),
                Poll::Pending => {
                    let deadline = pace.deadline(limits);
                    return timer
                        .poll_in_flight(context, deadline)
                        .map(|()| Err(Disconnected));
                }
            }
        }
    })
    .await
}

impl Client for Http2Exchange<'_> {
    fn protocol(&self) -> &'static str {
        "HTTP/2.0"
    }

    async fn read_body(
        &mut self,
        expects_continue: bool,
        limits: BodyLimits,
    ) -> Result<Vec<u8>, Rejection> {
        let mut form = match self.length {
            BodyLength::None => return Ok(Vec::new()),
            BodyLength::Known(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                // The limit decides, not the head: a client can announce any length.
                Vec::with_capacity(length.min(limits.bytes))
            }
            BodyLength::Unknown => Vec::new(),
        };
        self.read_pieces(expects_continue, limits, &mut form)
            .await?;
        Ok(form)
    }

    async fn read_pieces(
        &mut self,
        expects_continue: bool,
        limits: BodyLimits,
        sink: &mut impl BodySink,
    ) -> Result<(), Rejection> {
        if self.length == BodyLength::None {
            return Ok(());
        }
        if expects_continue {
            self.send_continue()?;
        }
        let (timeout, mut started, mut received) = (limits.timeout, None, 0);
        loop {
            let piece = poll_fn(|context| match self.body.poll_data(context) {
                Poll::Ready(piece) => Poll::Ready(Ok(piece)),
                Poll::Pending => {
                    let started = *started.get_or_insert_with(Instant::now);
                    let deadline = arrival_deadline(started, timeout, received, limits.min_rate);
                    let expired = self.timer.poll_in_flight(context, deadline);
                    expired.map(|()| Err(Rejection::RequestTimeout { limit: timeout }))
                }
            });
            let Some(piece) = piece.await? else {
                return match self.length {
                    BodyLength::Known(length) if length != received as u64 => Err(BODY_LENGTH),
                    _ => Ok(()),
                };
            };
            let piece = piece.map_err(|_| Rejection::ClientDisconnected)?;
            received += piece.len();
            if received > limits.bytes {
                return Err(Rejection::BodyTooLarge {
                    limit: limits.bytes,
                });
            }
            if matches!(self.length, BodyLength::Known(length) if length < received as u64) {
                return Err(BODY_LENGTH);
            }
            sink.take(&piece).await?;
            // Fails only if the stream was reset, which the next read notices.
            let _ = self.body.flow_control().release_capacity(piece.len());
        }
    }

    fn poll_disconnected(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.stream {
            Some(stream) => stream.poll_reset(context).map(drop),
            None => self.respond.poll_reset(context).map(drop),
        }
    }

    fn poll_deadline(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        self.timer.poll_in_flight(context, deadline)
    }

    fn has_begun_response(&self) -> bool {
        self.progress != Progress::Waiting
    }

    fn begin<'f>(
        &mut self,
        head: ResponseHead<'_>,
        fields: impl Iterator<Item = NameAndValue<'f>>,
    ) {
        self.has_body =
            !self.is_head && !matches!(head.body, BodyLength::None | BodyLength::Known(0));
        self.head = Some(header_block(head, fields));
    }

    async fn send(&mut self, piece: &[u8]) -> Result<(), Disconnected> {
        self.write(piece, false).await
    }

    async fn finish(&mut self, last_piece: &[u8]) -> Result<(), Disconnected> {
        self.write(last_piece, true).await
    }
}

impl Drop for Http2Exchange<'_> {
    fn drop(&mut self) {
        if self.progress == Progress::Sending
            && let Some(stream) = &mut self.stream
        {
            stream.send_reset(Reason::INTERNAL_ERROR);
        }
    }
}
