//! Forwards an accepted request to its backend: the one way of requests whose response passes, is changed by a bridge, or is
//! compared with another version's.

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    Gateway,
    accepted::Accepted,
    convert::{conversion, convert},
    copy::{Chosen, choose, copy},
    record::record,
    relay::relay_response,
    request::Received,
    respond::{Failed, reject},
};
use crate::{
    config::Changes,
    convert::{Conversion, Converted},
    observe::outcome::Sent,
    phases::bridge::response::{Held, MAX_BODY, MAX_HELD, applies, change_held, converts},
    request::{
        BodyLength, Head,
        client::{Client, Disconnected, ResponseHead},
        recorder::{Keep, Recorder, WholeResponse},
        rejection::Rejection,
    },
    shadow,
    upstream::{
        backend::{exchange::BackendRequest, upstream::Response},
        routing::destination::Destination,
    },
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
        None => send_and_relay(gateway, request, accepted, (client, None), &mut sent).await,
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
    ForBridge(Arc<Changes>, Option<Conversion>),
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
            let other = accepted.route().serving().as_str().as_bytes();
            let other = gateway.policy.backends.versions.named(other)?;
            let to = (other, accepted.route().backend());
            let conversion = conversion(gateway, request, accepted, to, false);
            return Some(Box::new(Self::ForBridge(Arc::clone(changes), conversion)));
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
        match self {
            Self::ForCopy(_, response) => {
                let keep = |_: &ResponseHead<'_>, _: &[u8]| Keep::Copy;
                let mut recorder = Recorder::new(client, shadow::MAX_BODY, keep);
                let to = (&mut recorder, None);
                let forwarded = send_and_relay(gateway, request, accepted, to, sent).await;
                *response = recorder.kept();
                forwarded
            }
            Self::ForBridge(changes, conversion) => {
                let by = (&*changes, conversion.as_mut());
                forward_bridged(gateway, request, accepted, by, client, sent).await
            }
        }
    }
}

/// Forwards a request whose response is held until it is changed.
async fn forward_bridged<C: Client>(
    gateway: &Gateway,
    request: &mut Received<'_, Head>,
    accepted: &Accepted<'_>,
    (changes, mut conversion): (&Arc<Changes>, Option<&mut Conversion>),
    client: &mut C,
    sent: &mut Sent,
) -> Result<(), Rejection> {
    let of_request = (accepted.method(), request.target.compared());
    // Filled while the response arrives, by a closure that shares it.
    let (place, from) = (Mutex::new(None), request.client);
    let held = || place.lock().unwrap_or_else(PoisonError::into_inner);
    let hold = || {
        let mut place = held();
        *place = place.take().or_else(|| Held::begin(from));
        place.is_some()
    };
    let converted = match &mut conversion {
        None => None,
        Some(conversion) => {
            // Before the first call: a client has no more of them than places.
            if !hold() {
                return Err(conversion.failed(format!(
                    "{MAX_HELD} others are held, or a quarter for this network"
                )));
            }
            Some(convert(gateway, request, accepted, conversion, client).await?)
        }
    };
    let keep = |head: &ResponseHead<'_>, content_type: &[u8]| {
        if !applies(changes, of_request, head.status, content_type) {
            // What passes is not held: it can be a stream.
            *held() = None;
            return Keep::Nothing;
        }
        match hold() {
            true => Keep::Whole,
            false => Keep::Refuse,
        }
    };
    let mut recorder = Recorder::new(client, MAX_BODY, keep);
    let to = (&mut recorder, converted.as_ref());
    let forwarded = send_and_relay(gateway, request, accepted, to, sent).await;
    match (forwarded, recorder.kept()) {
        // Too large a response was broken off here, not by the client.
        (Ok(()) | Err(Rejection::ClientDisconnected), Some(mut response))
            if response.is_complete || response.is_too_large =>
        {
            if let Some(conversion) =
                conversion.filter(|_| converts(changes, of_request, &response))
            {
                let backends = &gateway.policy.backends.client;
                let converting = pin!(conversion.response(backends, response, client));
                response = gateway.state.drain.cut_off(converting).await?;
            }
            // The client has no byte of the response yet, so a change that fails is still a whole 502. CONTRACT 5.
            let changed = change_held(changes, of_request, response).await?;
            let place = place.into_inner().ok().flatten();
            // Until the client has it all: a slow client could otherwise have any number of large responses waiting.
            let _waits = place.and_then(|place| place.changed(changed.body.len(), from));
            respond(changed, client, sent).await
        }
        (forwarded, _) => forwarded,
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
    (client, converted): (&mut C, Option<&Converted>),
    sent: &mut Sent,
) -> Result<(), Rejection> {
    let target = gateway.policy.backends.target(accepted.route().backend());
    request.timing.begin_forwarding();
    let app = accepted.app().map(|app| &**app);
    let mut destination = Destination::new(target, app, request.client)?;
    let drain = &gateway.state.drain;
    let response = {
        let to = (&mut destination, converted);
        let sending = pin!(send(gateway, request, accepted, to, client));
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
    (destination, converted): (&mut Destination<'_>, Option<&Converted>),
    client: &mut C,
) -> Result<Response, Rejection> {
    let Gateway { policy, state } = gateway;
    let head = match converted {
        Some(_) => Vec::new(),
        None => accepted.backend_head(&request.id, &state.ids),
    };
    let request = accepted.backend_request(&head);
    let request = match converted {
        Some(Converted { head, body, method }) => BackendRequest {
            head,
            body,
            method: *method,
            ..request
        },
        None => request,
    };
    policy
        .backends
        .client
        .send(request, destination, client)
        .await
}
