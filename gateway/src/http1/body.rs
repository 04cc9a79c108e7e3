//! A request's body, read whole within one deadline. CONTRACT 2.

use tokio::time::Instant;

use super::stream::{ClientConnection, Waited};
use crate::{
    client::BodyLimits,
    io::Stream,
    rejection::Rejection,
    request::BodyLength,
    syntax::chunked::{ChunkDecoder, MalformedChunks},
};

/// RFC 9110 section 15.2.1.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Reads all of a body, after a `100 Continue` if the client waits for that.
///
/// # Errors
///
/// Too slow, too large, malformed chunks, or a client that left.
pub(crate) async fn read_body<S: Stream>(
    connection: &mut ClientConnection<S>,
    length: BodyLength,
    expects_continue: bool,
    limits: BodyLimits,
) -> Result<Vec<u8>, Rejection> {
    match length {
        BodyLength::None => Ok(Vec::new()),
        BodyLength::Known(length) => {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let mut arrival = Arrival::begin(connection, expects_continue, limits).await?;
            while connection.ahead().len() < length {
                let expected = length - connection.ahead().len();
                arrival.more(connection, expected).await?;
            }
            Ok(connection.take(length))
        }
        BodyLength::Unknown => {
            let mut arrival = Arrival::begin(connection, expects_continue, limits).await?;
            let (mut decoder, mut body) = (ChunkDecoder::for_request(), Vec::new());
            loop {
                let used = decoder
                    .decode(connection.ahead(), &mut body)
                    .map_err(|MalformedChunks| Rejection::NotHttp("malformed chunks"))?;
                connection.skip(used);
                if body.len() > limits.bytes {
                    return Err(Rejection::BodyTooLarge {
                        limit: limits.bytes,
                    });
                }
                if decoder.is_done() {
                    return Ok(body);
                }
                arrival.more(connection, 0).await?;
            }
        }
    }
}

/// Waits for a body's bytes. The clock is read when something is waited for, which is seldom: most bodies arrive with
/// their heads.
struct Arrival {
    limits: BodyLimits,
    deadline: Option<Instant>,
}

impl Arrival {
    async fn begin<S: Stream>(
        connection: &mut ClientConnection<S>,
        expects_continue: bool,
        limits: BodyLimits,
    ) -> Result<Self, Rejection> {
        if expects_continue {
            let sent = connection.send([CONTINUE]).await;
            sent.map_err(|_| Rejection::ClientGone)?;
        }
        Ok(Self {
            limits,
            deadline: None,
        })
    }

    async fn more<S: Stream>(
        &mut self,
        connection: &mut ClientConnection<S>,
        expected: usize,
    ) -> Result<(), Rejection> {
        let limit = self.limits.timeout;
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + limit);
        match connection.receive_large(expected, deadline).await {
            Waited::Received => Ok(()),
            Waited::Ended => Err(Rejection::ClientGone),
            Waited::TimedOut => Err(Rejection::RequestTimeout { limit }),
        }
    }
}
