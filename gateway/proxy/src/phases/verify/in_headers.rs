//! Signatures in headers: they sign method, target and body. CONTRACT 3.

use std::time::Duration;

use signpost_protocol::sign::{
    AppKey, BodyHash, ReplayPolicy, Sign, SignCarrier, SignTime, SignedHead,
    explain::{Explanation, Slip, explain_form, explain_head},
    sign_head,
};

use super::{SignedRequest, Verifier};
use crate::{
    directory::apps::App,
    phases::admit::SignFields,
    request::rejection::{Canonical, Rejection},
};

/// The headers of a signature, and the body that they sign.
#[derive(Clone, Copy)]
pub struct HeaderSign<'r> {
    /// The headers.
    pub(crate) fields: SignFields<'r>,
    /// The body.
    pub(crate) body: SignedBody<'r>,
}

/// A body, as a signature in headers covers it.
#[derive(Clone, Copy)]
pub(crate) enum SignedBody<'r> {
    /// In memory; it may be empty.
    Bytes(&'r [u8]),
    /// Hashed as it arrived; it is no form.
    Hashed(&'r BodyHash),
}

impl HeaderSign<'_> {
    /// Without headers and body.
    pub const NONE: Self = Self {
        fields: SignFields {
            time: None,
            sign: None,
            nonce: None,
        },
        body: SignedBody::Bytes(b""),
    };

    pub(super) const fn has_body(&self) -> bool {
        match self.body {
            SignedBody::Bytes(bytes) => !bytes.is_empty(),
            SignedBody::Hashed(_) => true,
        }
    }

    pub(super) fn hash(&self) -> BodyHash {
        match self.body {
            SignedBody::Bytes(bytes) => BodyHash::of(bytes),
            SignedBody::Hashed(hash) => hash.clone(),
        }
    }
}

impl Verifier {
    /// Whether the request is judged by a signature in headers.
    pub(crate) fn is_in_headers(&self, app: &App, headers: &HeaderSign<'_>) -> bool {
        match self.profile_of(app).carrier {
            SignCarrier::Parameters => false,
            SignCarrier::Headers => true,
            SignCarrier::Both => {
                !headers.fields.are_absent() || matches!(headers.body, SignedBody::Hashed(_))
            }
        }
    }

    /// Checks what can be checked before a body that is no form is read: a stranger must not make the gateway receive and
    /// keep large bodies. Returns how long such a body may take, if its time matters when it is whole: until then its
    /// signature can be remembered.
    ///
    /// # Errors
    ///
    /// The application signs parameters alone, which do not cover the body; or the headers are missing or malformed, or the
    /// time is outside the window.
    pub(crate) fn check_before_body(
        &self,
        app: &App,
        fields: SignFields<'_>,
        now: SignTime,
    ) -> Result<Option<Duration>, Rejection> {
        let profile = self.profile_of(app);
        if profile.carrier == SignCarrier::Parameters {
            let hint = Box::new(Slip::BodyUnsigned.into());
            return Err(Rejection::SignMissing(Some(hint)));
        }
        let time = read_head_time(fields)?;
        self.check_window(time, now)?;
        match fields.sign.unwrap_or_default() {
            b"" => Err(Rejection::SignMissing(None)),
            sign => match Sign::from_hex(sign) {
                Some(_) => {
                    let is_remembered = profile.replay == ReplayPolicy::Reject;
                    Ok(is_remembered.then(|| self.config.window.left(time, now)))
                }
                None => Err(explain_form(profile.header_algorithm()).into()),
            },
        }
    }

    /// Checks the signature in the headers, and returns it.
    pub(super) fn check_head(
        &self,
        request: SignedRequest<'_, '_>,
        may_search: impl FnOnce() -> bool,
    ) -> Result<Sign, Rejection> {
        let (app, fields) = (request.app, request.headers.fields);
        let algorithm = self.profile_of(app).header_algorithm();
        let sent = fields.sign.unwrap_or_default();
        if sent.is_empty() {
            return Err(Rejection::SignMissing(None));
        }
        let head = SignedHead {
            method: request.method.as_str(),
            target: request.target.sent,
            time: fields.time.unwrap_or_default(),
            nonce: fields.nonce.unwrap_or_default(),
        };
        let body = request.headers.hash();
        let given = Sign::from_hex(sent);
        let matches = |key: &AppKey| {
            given.is_some_and(|given| sign_head(algorithm, key, head, &body).matches(&given))
        };
        let previous = app.previous_key.as_ref();
        let previous = previous.filter(|previous| previous.until >= request.now);
        if matches(&app.key) || previous.is_some_and(|previous| matches(&previous.key)) {
            // It was read, or nothing would match.
            return given.ok_or(Rejection::SignMissing(None));
        }
        if !may_search() {
            return Err(Explanation::from(Slip::NotSearched).into());
        }
        let bytes = match request.headers.body {
            SignedBody::Bytes(bytes) => Some(bytes),
            SignedBody::Hashed(_) => None,
        };
        let keys: Vec<_> = app.keys().collect();
        let is_weak = keys.iter().any(|key| key.check_strength().is_err());
        let canonical = (!is_weak).then(|| head.for_client(algorithm, &body, &keys));
        if let Some(None) = canonical {
            return Err(Explanation::from(Slip::KeySent).into());
        }
        let target = (head, request.target.host);
        let explanation = explain_head(sent, algorithm, &app.key, target, (&body, bytes));
        let is_searched = explanation.slip != Slip::TooLarge;
        let canonical = canonical.flatten();
        let canonical = canonical.filter(|_| is_searched && self.config.shows_canonical);
        let canonical = canonical.map(|text| Box::new(Canonical(text)));
        Err(Rejection::SignMismatch(explanation.into(), canonical))
    }
}

pub(super) fn read_head_time(fields: SignFields<'_>) -> Result<SignTime, Rejection> {
    match fields.time.unwrap_or_default() {
        b"" => Err(Rejection::TimeMissing(None)),
        time => {
            SignTime::try_from(time).map_err(|error| Rejection::TimeInvalid { slip: error.slip })
        }
    }
}
