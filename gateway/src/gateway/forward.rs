//! Forwards an accepted request to its backend.

use std::pin::pin;

use super::{
    Gateway, Target,
    receive::Accepted,
    record::record,
    relay::{FailedResponse, relay_response},
    request::Received,
    respond::{Failed, reject},
};
use crate::{
    observe::outcome::Sent,
    request::{Head, client::Client, rejection::Rejection},
    upstream::{backend::upstream::Response, routing::destination::Destination},
};

/// Forwards an accepted request to its backend, and relays the response.
pub(super) async fn forward<C: Client>(
    gateway: &Gateway,
    request: &mut Received<'_, Head>,
    accepted: Accepted<'_>,
    client: &mut C,
) {
    let target = gateway.policy.backends.target(accepted.route().backend());
    let mut sent = Sent::default();
    request.timing.begin_forwarding();
    let forwarded = send_and_relay(gateway, request, &accepted, target, client, &mut sent).await;
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
    target: &Target,
    client: &mut C,
    sent: &mut Sent,
) -> Result<(), Rejection> {
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
