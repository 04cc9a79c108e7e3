//! Forwards an accepted request to its backend: the one way of requests whose response passes, is changed by a bridge, or is
//! compared with another version's.

use std::{
    pin::pin,
    sync::{Arc, OnceLock},
};

use super::{
    Gateway,
    accepted::Accepted,
    copy::{Chosen, choose, copy},
    record::record,
    relay::relay_response,
    request::Received,
    respond::{Failed, reject},
};
use crate::{
    config::Changes,
    observe::outcome::Sent,
    phases::bridge::response::{Held, MAX_BODY, applies, change_held},
    request::{
        BodyLength, Head,
        client::{Client, Disconnected, ResponseHead},
        recorder::{Keep, Recorder, WholeResponse},
        rejection::Rejection,
    },
    shadow,
    upstream::{backend::upstream::Response, routing::destination::Destination},
};

/// Forwards an accepted request to its backend, and relays the response.
pub(super) async fn forward<C: Client>(
    gateway: &Gateway,
    request: &mut Received<'_, Head>,
    accepted: &Accepted<'_>,
    client: &mut C,
) {
    // Lives outside of the futures: a request that is cut off is still recorded with the bytes that its client got.
    let mut sent = Sent::default();
    let mut recording = Recording::of(gateway, request, accepted);
    let forwarded = match &mut recording {
        None => send_and_relay(gateway, request, accepted, client, &mut sent).await,
        Some(recording) => {
            let recorded = recording.forward(gateway, request, accepted, client, &mut sent);
            // Boxed, as the others: a connection has no room for what it rarely needs.
            Box::pin(recorded).await
        }
    };
    end(gateway, request, accepted, sent, forwarded, client).await;
    // Only now: a copy never makes its request slower.
    if let Some(Recording::ForCopy(chosen, response)) = recording.map(|recording| *recording) {
        copy(gateway, request, accepted, chosen, response);
    }
}

/// What a response is recorded for. Most are not.
enum Recording {
    /// A bridge may have to change it, so it is held until it is complete.
    ForBridge(Arc<Changes>),
    /// It is compared with another version's: it passes, and this is what was kept.
    ForCopy(Chosen, Option<WholeResponse>),
}

impl Recording {
    /// `None` if the response only passes.
    fn of(
        gateway: &Gateway,
        request: &Received<'_, Head>,
        accepted: &Accepted<'_>,
    ) -> Option<Box<Self>> {
        // Never both: the configuration allows no shadow beside a bridge.
        if let Some(changes) = accepted.response_changes() {
            return Some(Box::new(Self::ForBridge(Arc::clone(changes))));
        }
        let chosen = choose(gateway, accepted, request.target.compared())?;
        Some(Box::new(Self::ForCopy(chosen, None)))
    }

    /// Forwards a request whose response is recorded.
    async fn forward<C: Client>(
        &mut self,
        gateway: &Gateway,
        request: &mut Received<'_, Head>,
        accepted: &Accepted<'_>,
        client: &mut C,
        sent: &mut Sent,
    ) -> Result<(), Rejection> {
        let of_request = (accepted.method(), request.target.compared());
        // Filled while the response arrives, by a closure that shares it.
        let (place, from) = (OnceLock::new(), request.client);
        let keep = |head: &ResponseHead<'_>, content_type: &[u8]| match &*self {
            Self::ForCopy(..) => Keep::Copy,
            Self::ForBridge(changes)
                if !applies(changes, of_request, head.status, content_type) =>
            {
                Keep::Nothing
            }
            Self::ForBridge(_) => match place.get_or_init(|| Held::begin(from)) {
                Some(_) => Keep::Whole,
                None => Keep::Refuse,
            },
        };
        let limit = match &*self {
            Self::ForBridge(_) => MAX_BODY,
            Self::ForCopy(..) => shadow::MAX_BODY,
        };
        let mut recorder = Recorder::new(client, limit, keep);
        let forwarded = send_and_relay(gateway, request, accepted, &mut recorder, sent).await;
        let recorded = recorder.kept();
        let changes = match self {
            Self::ForCopy(_, response) => {
                *response = recorded;
                return forwarded;
            }
            Self::ForBridge(changes) => changes,
        };
        match (forwarded, recorded) {
            // Too large a response was broken off here, not by the client.
            (Ok(()) | Err(Rejection::ClientDisconnected), Some(response))
                if response.is_complete || response.is_too_large =>
            {
                // The client has no byte of the response yet, so a change that fails is still a whole 502. CONTRACT 5.
                let changed = change_held(changes, of_request, response).await?;
                let place = place.into_inner().flatten();
                // Until the client has it all: a slow client could otherwise have any number of large responses waiting.
                let _waits = place.and_then(|place| place.changed(changed.body.len(), from));
                respond(changed, client, sent).await
            }
            (forwarded, _) => forwarded,
        }
    }
}

/// Sends a whole response.
async fn respond<C: Client>(
    response: WholeResponse,
    client: &mut C,
    sent: &mut Sent,
) -> Result<(), Rejection> {
    let head = ResponseHead {
        status: response.status,
        reason: &response.reason,
        body: match response.has_body {
            true => BodyLength::Known(response.body.len() as u64),
            false => BodyLength::None,
        },
    };
    let fields = response.fields.iter();
    client.begin(head, fields.map(|(name, value)| (&**name, &**value)));
    (sent.status, sent.size) = (response.status, response.body.len() as u64);
    let finished = client.finish(&response.body).await;
    finished.map_err(|Disconnected| Rejection::ClientDisconnected)
}

/// Rejects a request that failed before its response had begun, or records it.
async fn end<C: Client>(
    gateway: &Gateway,
    request: &mut Received<'_, Head>,
    accepted: &Accepted<'_>,
    sent: Sent,
    forwarded: Result<(), Rejection>,
    client: &mut C,
) {
    match forwarded {
        Err(rejection) if !client.has_begun_response() => {
            let failed = Failed {
                learnt: accepted.learnt(),
                quotas: accepted.quotas,
                sent,
            };
            reject(gateway, request, failed, &rejection, client).await;
        }
        // Also a response that broke off: no error response fits in once a byte was sent. The exchange stays
        // unfinished, so that the client notices.
        forwarded => {
            let rejection = forwarded.as_ref().err();
            let outcome = request.outcome(accepted.learnt(), sent, rejection);
            record(gateway, request, &outcome);
        }
    }
}

async fn send_and_relay<C: Client>(
    gateway: &Gateway,
    request: &mut Received<'_, Head>,
    accepted: &Accepted<'_>,
    client: &mut C,
    sent: &mut Sent,
) -> Result<(), Rejection> {
    let target = gateway.policy.backends.target(accepted.route().backend());
    request.timing.begin_forwarding();
    let app = accepted.app().map(|app| &**app);
    let balancer = target.balancer.as_deref();
    let (backend, fixed, counts) = (&target.backend, &target.fixed, &target.counts);
    let mut destination = Destination::new(backend, balancer, fixed, counts, app, request.client)?;
    let drain = &gateway.state.drain;
    let response = {
        let sending = pin!(send(gateway, request, accepted, &mut destination, client));
        drain.cut_off(sending).await
    };
    // Before the result is judged: the access log also names the address of a failed attempt.
    sent.backend = destination.address();
    let response = (response?, &destination);
    // The response can be cut off, too: a client that reads slowly must not outlast a stop.
    let relaying = pin!(relay_response(
        gateway, request, accepted, response, client, sent
    ));
    drain.cut_off(relaying).await
}

/// Sends the request and waits for the head of its response.
async fn send<C: Client>(
    gateway: &Gateway,
    request: &Received<'_, Head>,
    accepted: &Accepted<'_>,
    destination: &mut Destination<'_>,
    client: &mut C,
) -> Result<Response, Rejection> {
    let Gateway { policy, state } = gateway;
    let head = accepted.backend_head(&request.id, &state.ids);
    let request = accepted.backend_request(&head);
    policy
        .backends
        .client
        .send(request, destination, client)
        .await
}
