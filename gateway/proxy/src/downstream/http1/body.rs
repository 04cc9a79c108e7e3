//! Reads the whole body of a request within one deadline. CONTRACT 2.

use tokio::time::Instant;

use super::stream::{ClientConnection, ReceiveOutcome};
use crate::{
    request::{
        BodyLength,
        client::{BodyLimits, BodySink},
        rejection::Rejection,
    },
    wire::{
        io::{Stream, arrival_deadline},
        syntax::chunked::{ChunkDecoder, MalformedChunks},
    },
};

/// RFC 9110 section 15.2.1.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Reads the whole body, after a `100 Continue` if the client expects one.
///
/// # Errors
///
/// The body is too slow, too large or malformed, or the client disconnected.
pub(crate) async fn read_body<S: Stream>(
    connection: &mut ClientConnection<S>,
    length: BodyLength,
    expects_continue: bool,
    limits: BodyLimits,
) -> Result<Vec<u8>, Rejection> {
    match length {
        BodyLength::None => Ok(Vec::new()),
        BodyLength::Known(length) => {
            // No limit here: `admit` has rejected a form whose head announces too much.
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let mut reader = BodyReader::start(connection, expects_continue, limits).await?;
            while connection.ahead().len() < length {
                let expected = length - connection.ahead().len();
                let received = connection.ahead().len();
                reader.receive(connection, expected, received).await?;
            }
            Ok(connection.take(length))
        }
        BodyLength::Unknown => {
            let mut reader = BodyReader::start(connection, expects_continue, limits).await?;
            let (mut decoder, mut body) = (ChunkDecoder::for_request(), Vec::new());
            let mut received = 0;
            loop {
                let used = decoder
                    .decode(connection.ahead(), &mut body)
                    .map_err(|MalformedChunks| Rejection::NotHttp("malformed chunks"))?;
                connection.skip(used);
                received += used;
                // Chunks announce no length for the whole body, so each read is checked before the next one.
                if body.len() > limits.bytes {
                    return Err(Rejection::BodyTooLarge {
                        limit: limits.bytes,
                    });
                }
                if decoder.is_done() {
                    return Ok(body);
                }
                reader.receive(connection, 0, received).await?;
            }
        }
    }
}

/// A read of a body that has proved to be large, in bytes.
const LARGE_READ: usize = 32 * 1024;

/// As [`read_body`], but each piece goes to `sink` as it arrives.
///
/// # Errors
///
/// As there; or the sink's.
pub(crate) async fn read_pieces<S: Stream>(
    connection: &mut ClientConnection<S>,
    length: BodyLength,
    expects_continue: bool,
    limits: BodyLimits,
    sink: &mut impl BodySink,
) -> Result<(), Rejection> {
    if length == BodyLength::None {
        return Ok(());
    }
    let mut reader = BodyReader::start(connection, expects_continue, limits).await?;
    let mut received = 0;
    if let BodyLength::Known(length) = length {
        let mut left = usize::try_from(length).unwrap_or(usize::MAX);
        loop {
            let now = connection.ahead().len().min(left);
            if now > 0 {
                sink.take(&connection.ahead()[..now]).await?;
                connection.skip(now);
                (left, received) = (left - now, received + now);
            }
            if left == 0 {
                return Ok(());
            }
            // Not at once: who announces much and sends nothing holds no memory.
            let expected = if received > LARGE_READ { LARGE_READ } else { 0 };
            let expected = expected.min(left);
            reader.receive(connection, expected, received).await?;
        }
    }
    let (mut decoder, mut piece, mut decoded) = (ChunkDecoder::for_request(), Vec::new(), 0);
    loop {
        let used = decoder
            .decode(connection.ahead(), &mut piece)
            .map_err(|MalformedChunks| Rejection::NotHttp("malformed chunks"))?;
        connection.skip(used);
        received += used;
        decoded += piece.len();
        if decoded > limits.bytes {
            return Err(Rejection::BodyTooLarge {
                limit: limits.bytes,
            });
        }
        sink.take(&piece).await?;
        piece.clear();
        if decoder.is_done() {
            return Ok(());
        }
        reader.receive(connection, 0, received).await?;
    }
}

/// Waits for bytes of the body.
///
/// It reads the clock only when it has to wait, which is rare: most bodies arrive with their heads.
struct BodyReader {
    limits: BodyLimits,
    started: Option<Instant>,
}

impl BodyReader {
    async fn start<S: Stream>(
        connection: &mut ClientConnection<S>,
        expects_continue: bool,
        limits: BodyLimits,
    ) -> Result<Self, Rejection> {
        if expects_continue {
            let sent = connection.send([CONTINUE]).await;
            sent.map_err(|_| Rejection::ClientDisconnected)?;
        }
        Ok(Self {
            limits,
            started: None,
        })
    }

    async fn receive<S: Stream>(
        &mut self,
        connection: &mut ClientConnection<S>,
        expected: usize,
        received: usize,
    ) -> Result<(), Rejection> {
        let BodyLimits {
            timeout, min_rate, ..
        } = self.limits;
        let started = *self.started.get_or_insert_with(Instant::now);
        let deadline = arrival_deadline(started, timeout, received, min_rate);
        match connection.receive_large(expected, deadline).await {
            ReceiveOutcome::Received => Ok(()),
            ReceiveOutcome::Ended => Err(Rejection::ClientDisconnected),
            ReceiveOutcome::TimedOut => Err(Rejection::RequestTimeout { limit: timeout }),
        }
    }
}
