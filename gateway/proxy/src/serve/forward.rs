//! Forwards an accepted request to its backend.

use std::{
    pin::pin,
    sync::{Arc, OnceLock},
};

use super::{
    Gateway,
    accepted::Accepted,
    copy::{Chosen, choose, copy},
    record::record,
    relay::{FailedResponse, relay_response},
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
    accepted: Accepted<'_>,
    client: &mut C,
) {
    if let Some(changes) = accepted.response_changes() {
        let changes = Arc::clone(changes);
        // Boxed, as the others: a connection has no room for what it rarely needs.
        return Box::pin(forward_over_bridge(
            gateway, request, accepted, &changes, client,
        ))
        .await;
    }
    if let Some(chosen) = choose(gateway, &accepted, request.target.compared()) {
        return Box::pin(forward_and_copy(gateway, request, accepted, chosen, client)).await;
    }
    let mut sent = Sent::default();
    let forwarded = send_and_relay(gateway, request, &accepted, client, &mut sent).await;
    end(gateway, request, &accepted, sent, forwarded, client).await;
}

/// Forwards a request, and copies it once its client has the response.
async fn forward_and_copy<C: Client>(
    gateway: &Gateway,
    request: &mut Received<'_, Head>,
    accepted: Accepted<'_>,
    chosen: Chosen,
    client: &mut C,
) {
    let mut sent = Sent::default();
    let mut recorder = Recorder::new(
        client,
        shadow::MAX_BODY,
        |_: &ResponseHead<'_>, _: &[u8]| Keep::Copy,
    );
    let forwarded = send_and_relay(gateway, request, &accepted, &mut recorder, &mut sent).await;
    let kept = recorder.kept();
    end(gateway, request, &accepted, sent, forwarded, client).await;
    copy(gateway, request, accepted, chosen, kept);
}

/// Forwards a request whose response may have to be changed: then it is held until it is complete.
async fn forward_over_bridge<C: Client>(
    gateway: &Gateway,
    request: &mut Received<'_, Head>,
    accepted: Accepted<'_>,
    changes: &Arc<Changes>,
    client: &mut C,
) {
    let of_request = (accepted.method(), request.target.compared());
    let (held, from) = (OnceLock::new(), request.client);
    let keep = |head: &ResponseHead<'_>, content_type: &[u8]| {
        if !applies(changes, of_request, head.status, content_type) {
            return Keep::Nothing;
        }
        match held.get_or_init(|| Held::begin(from)) {
            Some(_) => Keep::Whole,
            None => Keep::Refuse,
        }
    };
    let mut sent = Sent::default();
    let mut recorder = Recorder::new(client, MAX_BODY, keep);
    let forwarded = send_and_relay(gateway, request, &accepted, &mut recorder, &mut sent).await;
    let forwarded = match (forwarded, recorder.kept()) {
        // Too large a response was broken off here, not by the client.
        (Ok(()) | Err(Rejection::ClientDisconnected), Some(kept))
            if kept.is_complete || kept.is_too_large =>
        {
            match change_held(changes, of_request, kept).await {
                Ok(changed) => {
                    let held = held.into_inner().flatten();
                    let _waits = held.and_then(|held| held.changed(changed.body.len(), from));
                    respond(changed, client, &mut sent).await
                }
                Err(failed) => Err(failed),
            }
        }
        (forwarded, _) => forwarded,
    };
    end(gateway, request, &accepted, sent, forwarded, client).await;
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
    sent.backend = destination.address();
    let relaying = pin!(relay_response(
        gateway, request, accepted, response?, client, sent
    ));
    drain
        .cut_off(relaying)
        .await
        .map_err(|failed| match failed {
            FailedResponse::Rejected(rejection) => rejection,
            // Failures before this are counted where they are retried.
            FailedResponse::Failed(failure) => {
                failure.cause().inspect(|cause| destination.count(*cause));
                failure.into()
            }
        })
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
