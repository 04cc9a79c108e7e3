//! A request that passed all phases, and what its backend gets of it.

use std::sync::Arc;

use signpost_protocol::request_id::RequestId;

use crate::{
    config::{AccountCheck, Changes},
    directory::apps::App,
    observe::outcome::Learnt,
    phases::{
        admit::Admitted,
        backend_headers::{Identified, To, write_backend_headers, write_request_line},
        bridge::BridgedRequest,
        identify_account::RequestAccount,
        route::{Route, RoutedRequest},
    },
    request::{Head, Method, ids::RequestIds, quotas::Quotas},
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

/// What a backend gets of a request, beside its head: what was verified, or what a bridge made of that.
pub(super) enum Outgoing {
    /// The form as it was verified; the target is the head's.
    Verified(Vec<u8>),
    /// Another target and form.
    Bridged(Box<BridgedRequest>),
}

impl Outgoing {
    /// What a bridge made of a request, or the form of one that takes none.
    pub(super) fn new(form: Vec<u8>, bridged: Option<Box<BridgedRequest>>) -> Self {
        match bridged {
            None => Self::Verified(form),
            Some(bridged) => Self::Bridged(bridged),
        }
    }

    pub(super) fn form(&self) -> &[u8] {
        match self {
            Self::Verified(form) => form,
            Self::Bridged(bridged) => &bridged.form,
        }
    }

    fn bridged(&self) -> Option<&BridgedRequest> {
        match self {
            Self::Verified(_) => None,
            Self::Bridged(bridged) => Some(bridged),
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
        let bridged = self.outgoing.bridged();
        // The version's changes alone do not decide: on a route of its own, no bridge touches request and response.
        let _ = bridged.filter(|bridged| bridged.changes_response)?;
        self.route().version.changes()
    }

    /// The request to its backend, with this head.
    pub(super) fn backend_request<'a>(&'a self, head: &'a [u8]) -> BackendRequest<'a> {
        BackendRequest {
            head,
            form: self.outgoing.form(),
            is_get: self.admitted.method == Method::Get,
        }
    }

    /// The head for its backend.
    #[must_use]
    pub fn backend_head(&self, id: &RequestId, ids: &RequestIds) -> Vec<u8> {
        let to = To::route(self.route());
        let mut head = self.head_without_end(to, self.outgoing.bridged(), id, ids);
        head.extend_from_slice(b"\r\n");
        head
    }

    /// The head for a backend without its closing empty line, of the request as it is or as a bridge made it.
    pub(super) fn head_without_end(
        &self,
        to: To<'_>,
        bridged: Option<&BridgedRequest>,
        id: &RequestId,
        ids: &RequestIds,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let target = bridged.map(|bridged| &*bridged.target);
        let form = bridged.map_or(self.outgoing.form(), |bridged| &bridged.form);
        write_request_line(self.head, target, form, &mut out);
        // A copy may go to a backend that asks for no account, and must not learn of one.
        let account = self.account.account();
        let identified = Identified {
            routed: &self.routed,
            to,
            account: account.filter(|_| to.backend.account.check != AccountCheck::None),
            bridged,
        };
        write_backend_headers(identified, self.head, &self.admitted, id, ids, &mut out);
        out
    }
}
