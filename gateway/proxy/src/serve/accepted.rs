//! A request that passed all phases, and what its backend gets of it.

use std::sync::Arc;

use signpost_protocol::request_id::RequestId;

use crate::{
    config::{AccountCheck, Changes, SignConfig},
    directory::apps::App,
    limits::spool::Body,
    observe::outcome::Learnt,
    phases::{
        admit::Admitted,
        backend_headers::{Identified, To, write_backend_headers, write_request_line},
        bridge::{Bridged, BridgedRequest, changed, without_signature},
        identify_account::RequestAccount,
        route::{Route, RoutedRequest},
    },
    request::{Head, Method, Target, ids::RequestIds, quotas::Quotas, rejection::Rejection},
    upstream::backend::exchange::BackendRequest,
};

/// A request that passed all phases and may be forwarded. Only `receive` creates one, so a backend gets
/// exactly the bytes that were verified, or what the phase `bridge` made of them.
pub struct Accepted<'h> {
    pub(super) head: &'h Head,
    pub(super) routed: RoutedRequest,
    pub(super) account: RequestAccount,
    pub(super) admitted: Admitted<'h>,
    pub(super) outgoing: Outgoing,
    pub(super) quotas: Quotas,
}

/// What a backend gets of a request, beside its head.
pub(super) struct Outgoing {
    /// The length of the version's prefix, which was taken off the path.
    prefix: u16,
    /// The target, if it is another one than the client's.
    target: Option<Box<str>>,
    body: Body,
    /// What a bridge changed.
    bridged: Option<Bridged>,
}

impl Outgoing {
    /// What was verified, or what a bridge, the version's prefix and `strip_sign` make of that.
    ///
    /// # Errors
    ///
    /// As of [`changed`].
    pub(super) fn new(
        routed: &RoutedRequest,
        method: Method,
        target: Target<'_>,
        body: Body,
        sign: &SignConfig,
    ) -> Result<Self, Rejection> {
        if routed.route().is_bridged() {
            let changed = changed(routed, method, target, &body, sign)?;
            return Ok(Self {
                prefix: target.prefix,
                ..Self::changed(changed, body)
            });
        }
        let (strips, prefix) = (routed.strips_sign(), target.prefix);
        let (target, body) = match (strips, target.prefix) {
            (false, 0) => (None, body),
            (false, _) => (Some(target.at_backend(target.query)), body),
            (true, _) => {
                let (query, form) = without_signature(target.query, body.form());
                let body = match body {
                    Body::Form(_) => body.with(form),
                    body => body,
                };
                (Some(target.at_backend(&query)), body)
            }
        };
        Ok(Self {
            prefix,
            target: target.map(Box::from),
            body,
            bridged: None,
        })
    }

    /// What a bridge made of a request. A body that is no form passes as it is.
    fn changed(changed: BridgedRequest, body: Body) -> Self {
        Self {
            prefix: 0,
            target: Some(changed.target.into()),
            body: match changed.body {
                Some(bytes) => body.with(bytes),
                None => body,
            },
            bridged: Some(changed.bridged),
        }
    }
}

impl Accepted<'_> {
    /// Its application.
    pub(super) fn app(&self) -> Option<&Arc<App>> {
        self.routed.app()
    }

    /// Its route.
    pub(super) fn route(&self) -> &Route {
        self.routed.route()
    }

    /// What the phases have learnt.
    pub(super) fn learnt(&self) -> Learnt<'_> {
        Learnt {
            app: self.app(),
            is_signed: self.routed.verified().signed_app().is_some(),
            route: Some(self.route()),
            // Only a rejected request leaves its form, for the names of its parameters: watchers learn nothing else of
            // a form.
            form: &[],
        }
    }

    /// Its method.
    pub(super) const fn method(&self) -> Method {
        self.admitted.method
    }

    /// The changes that its response may need, if it takes a bridge.
    pub(super) fn response_changes(&self) -> Option<&Arc<Changes>> {
        let bridged = self.outgoing.bridged.as_ref();
        // The version's changes alone do not decide: on a route of its own, no bridge touches request and response.
        let _ = bridged.filter(|bridged| bridged.changes_response)?;
        self.route().version.changes()
    }

    /// The body that its backend gets.
    pub(super) const fn body(&self) -> &Body {
        &self.outgoing.body
    }

    /// The request to its backend, with this head.
    pub(super) fn backend_request<'a>(&'a self, head: &'a [u8]) -> BackendRequest<'a> {
        BackendRequest {
            head,
            body: self.body().in_memory(),
            spooled: self.body().spooled(),
            method: self.method(),
            response: self.route().rules().response,
        }
    }

    /// The head for its backend.
    #[must_use]
    pub fn backend_head(&self, id: &RequestId, ids: &RequestIds) -> Vec<u8> {
        let to = To::route(self.route());
        let mut head = self.head_without_end(to, None, id, ids);
        head.extend_from_slice(b"\r\n");
        head
    }

    /// The head for a backend without its closing empty line, of the request as it is or as a bridge made it for a copy.
    pub(super) fn head_without_end(
        &self,
        to: To<'_>,
        copy: Option<&BridgedRequest>,
        id: &RequestId,
        ids: &RequestIds,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let target = copy.map(|copy| &*copy.target);
        let target = target.or(self.outgoing.target.as_deref());
        let changed = copy.and_then(|copy| copy.body.as_ref());
        let length = changed.map_or(self.body().length(), |body| body.len() as u64);
        write_request_line(self.head, target, (self.method(), length), &mut out);
        // A copy may go to a backend that asks for no account, and must not learn of one.
        let account = self.account.account();
        let bridged = match copy {
            Some(copy) => Some(&copy.bridged),
            None if to.copy_of.is_none() => self.outgoing.bridged.as_ref(),
            None => None,
        };
        let identified = Identified {
            routed: &self.routed,
            to,
            account: account.filter(|_| to.backend.account.check != AccountCheck::None),
            bridged,
            prefix: match self.outgoing.prefix {
                0 => "",
                length => &self.head.target().path[..usize::from(length)],
            },
        };
        write_backend_headers(identified, self.head, &self.admitted, id, ids, &mut out);
        out
    }
}
