//! A request's form body, read whole within one time limit. CONTRACT 2.

use std::time::Duration;

use pingora::time::fast_timeout::fast_timeout as timeout;

use super::{
    chunked::{ChunkDecoder, MalformedChunks},
    client::Client,
    head::Framing,
};
use crate::rejection::Rejection;

/// RFC 9110 section 15.2.1.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// How large a form may be, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub struct FormLimits {
    /// Bytes, once decoded.
    pub bytes: usize,
    /// For all of it.
    pub patience: Duration,
}

/// The form that follows a head.
pub struct Form<'c> {
    client: &'c mut Client,
    framing: Framing,
    chunks: ChunkDecoder,
    /// What the chunks of a chunked form hold.
    decoded: Vec<u8>,
    is_whole: bool,
}

impl<'c> Form<'c> {
    /// The form that `framing` announces; nothing is read yet.
    #[must_use]
    pub fn new(client: &'c mut Client, framing: Framing) -> Self {
        Self {
            client,
            framing,
            chunks: ChunkDecoder::new(),
            decoded: Vec::new(),
            is_whole: framing == Framing::None,
        }
    }

    /// Whether there is nothing left of it to read.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The form, decoded; all of it once it was read.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let ahead = self.client.ahead();
        match self.framing {
            Framing::None => &[],
            Framing::Length(_) => &ahead[..self.announced().min(ahead.len())],
            Framing::Chunked => &self.decoded,
        }
    }

    /// How long it is, decoded, once it was read; `None` where the head announced none.
    #[must_use]
    pub fn length(&self) -> Option<usize> {
        (self.framing != Framing::None).then(|| self.bytes().len())
    }

    /// Leaves what comes behind it for the next request.
    pub fn finish(self) {
        self.client
            .skip(self.announced().min(self.client.ahead().len()));
    }

    /// How much of what comes next is of a form whose length was told before.
    fn announced(&self) -> usize {
        match self.framing {
            Framing::Length(length) => usize::try_from(length).unwrap_or(usize::MAX),
            Framing::None | Framing::Chunked => 0,
        }
    }

    /// Reads all of it, after a `100 Continue` if the client waits for that.
    ///
    /// # Errors
    ///
    /// Too slow, too large, malformed chunks, or a client that went away.
    pub async fn read(
        &mut self,
        expects_continue: bool,
        limits: FormLimits,
    ) -> Result<(), Rejection> {
        if self.is_whole || (!expects_continue && self.take_in(limits.bytes)?) {
            return Ok(());
        }
        let rest = async {
            if expects_continue {
                let sent = self.client.send(CONTINUE).await;
                sent.map_err(|_| Rejection::ClientGone)?;
            }
            while !self.take_in(limits.bytes)? {
                let expected = self.announced().saturating_sub(self.client.ahead().len());
                if !self.client.receive_large(expected).await {
                    return Err(Rejection::ClientGone);
                }
            }
            Ok(())
        };
        let limit = limits.patience;
        timeout(limit, rest)
            .await
            .unwrap_or(Err(Rejection::RequestTimeout { limit }))
    }

    /// Takes in what has come; tells whether that is all.
    fn take_in(&mut self, limit: usize) -> Result<bool, Rejection> {
        match self.framing {
            Framing::None => self.is_whole = true,
            Framing::Length(_) => self.is_whole = self.client.ahead().len() >= self.announced(),
            Framing::Chunked => self.decode(limit)?,
        }
        Ok(self.is_whole)
    }

    fn decode(&mut self, limit: usize) -> Result<(), Rejection> {
        let came = self.client.ahead();
        let used = self
            .chunks
            .decode(came, &mut self.decoded)
            .map_err(|MalformedChunks| Rejection::NotHttp("malformed chunks"))?;
        self.client.skip(used);
        if self.decoded.len() > limit {
            return Err(Rejection::BodyTooLarge { limit });
        }
        self.is_whole = self.chunks.is_done();
        Ok(())
    }
}
