//! The client's side of a request whose response is kept: held back until it is complete, or copied while it passes.

use std::task::{Context, Poll};

use tokio::time::Instant;

use super::{
    BodyLength,
    client::{BodyLimits, Client, Disconnected, ResponseHead},
    rejection::Rejection,
};
use crate::wire::syntax::field::NameAndValue;

/// What happens to a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// It passes.
    Nothing,
    /// It passes, and is kept if it is not too large.
    Copy,
    /// It is kept, and does not pass. A response that is too large is broken off.
    Whole,
    /// It is broken off at once, as one that is too large.
    Refuse,
}

/// A response as it was kept.
#[derive(Default)]
pub struct WholeResponse {
    /// The status.
    pub status: u16,
    /// The reason phrase.
    pub reason: Vec<u8>,
    /// The fields, names and values.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body, without framing; empty if it was too large.
    pub body: Vec<u8>,
    /// Whether the status allows a body.
    pub has_body: bool,
    /// Whether it ended as its framing says.
    pub is_complete: bool,
    /// Whether its body exceeds the limit, or was refused.
    pub is_too_large: bool,
    /// Whether it was refused, since too many others are kept.
    pub is_refused: bool,
}

// Prints no content, which may include credentials.
signpost_protocol::hide_in_debug!(WholeResponse);

impl WholeResponse {
    /// The value of the first field with this name.
    #[must_use]
    pub fn value(&self, wanted: &str) -> Option<&[u8]> {
        let mut fields = self.fields.iter();
        let field = fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes()));
        field.map(|(_, value)| &**value)
    }

    /// The type of the content in lower case, without parameters; empty if there is none.
    #[must_use]
    pub fn content_type(&self) -> String {
        media_type(self.value("content-type").unwrap_or_default())
    }
}

/// A type of content in lower case, without parameters.
pub(crate) fn media_type(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == b';');
    let value = value[..end.unwrap_or(value.len())].trim_ascii();
    String::from_utf8_lossy(value).to_ascii_lowercase()
}

/// Keeps the response to a request, or lets it pass to its client.
pub(crate) struct Recorder<'c, C, D> {
    client: &'c mut C,
    decide: D,
    limit: usize,
    keep: Keep,
    kept: WholeResponse,
}

impl<'c, C: Client, D: Fn(&ResponseHead<'_>, &[u8]) -> Keep> Recorder<'c, C, D> {
    /// Decides by its head, and the value of its `Content-Type`, whether a response is kept, with a body of at most `limit`
    /// bytes.
    pub(crate) fn new(client: &'c mut C, limit: usize, decide: D) -> Self {
        Self {
            client,
            decide,
            limit,
            keep: Keep::Nothing,
            kept: WholeResponse::default(),
        }
    }

    /// What was kept, if anything was.
    pub(crate) fn kept(self) -> Option<WholeResponse> {
        (self.keep != Keep::Nothing).then_some(self.kept)
    }

    fn take(&mut self, piece: &[u8]) {
        // The difference is never negative: the body has grown within the limit only.
        if self.kept.is_too_large || piece.len() > self.limit - self.kept.body.len() {
            // Dropped at once: of such a body, only that it was too large matters.
            self.kept.is_too_large = true;
            self.kept.body = Vec::new();
        } else {
            self.kept.body.extend_from_slice(piece);
        }
    }
}

impl<C: Client, D: Fn(&ResponseHead<'_>, &[u8]) -> Keep + Send> Client for Recorder<'_, C, D> {
    fn protocol(&self) -> &'static str {
        self.client.protocol()
    }

    async fn read_body(
        &mut self,
        expects_continue: bool,
        limits: BodyLimits,
    ) -> Result<Vec<u8>, Rejection> {
        self.client.read_body(expects_continue, limits).await
    }

    fn poll_disconnected(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.client.poll_disconnected(context)
    }

    fn poll_deadline(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        self.client.poll_deadline(context, deadline)
    }

    fn has_begun_response(&self) -> bool {
        self.client.has_begun_response()
    }

    fn begin<'f>(
        &mut self,
        head: ResponseHead<'_>,
        fields: impl Iterator<Item = NameAndValue<'f>>,
    ) {
        // Read twice: to decide, and to be kept or passed on.
        let fields: Vec<_> = fields.collect();
        let is_type = |(name, _): &&NameAndValue<'_>| name.eq_ignore_ascii_case(b"content-type");
        let content_type = fields
            .iter()
            .find(is_type)
            .map_or(&b""[..], |field| field.1);
        self.keep = (self.decide)(&head, content_type);
        if self.keep != Keep::Nothing {
            let owned = fields
                .iter()
                .map(|(name, value)| (name.to_vec(), value.to_vec()));
            self.kept = WholeResponse {
                status: head.status,
                reason: head.reason.to_vec(),
                fields: owned.collect(),
                has_body: head.body != BodyLength::None,
                // A refused response counts as too large from its head on, so the first piece breaks it off.
                is_too_large: self.keep == Keep::Refuse,
                is_refused: self.keep == Keep::Refuse,
                ..WholeResponse::default()
            };
        }
        // The head of a held response is not passed on: the changed one has another length, and a failed change another
        // status.
        if matches!(self.keep, Keep::Nothing | Keep::Copy) {
            self.client.begin(head, fields.into_iter());
        }
    }

    async fn send(&mut self, piece: &[u8]) -> Result<(), Disconnected> {
        if self.keep != Keep::Nothing {
            self.take(piece);
        }
        match self.keep {
            // To the relay a response that is refused looks like a client that left: it stops reading, and drops the
            // backend's connection. The caller of `kept` tells the two apart.
            Keep::Whole | Keep::Refuse if self.kept.is_too_large => Err(Disconnected),
            Keep::Whole | Keep::Refuse => Ok(()),
            Keep::Nothing | Keep::Copy => self.client.send(piece).await,
        }
    }

    async fn finish(&mut self, last_piece: &[u8]) -> Result<(), Disconnected> {
        if self.keep != Keep::Nothing {
            self.take(last_piece);
        }
        let finished = match self.keep {
            Keep::Whole | Keep::Refuse if self.kept.is_too_large => Err(Disconnected),
            Keep::Whole | Keep::Refuse => Ok(()),
            Keep::Nothing | Keep::Copy => self.client.finish(last_piece).await,
        };
        // A relay calls this only when the backend's framing is complete, so nothing that broke off counts as complete.
        self.kept.is_complete = finished.is_ok();
        finished
    }
}
