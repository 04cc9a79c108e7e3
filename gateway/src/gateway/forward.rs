//! Forwards an accepted request to its backend.

use super::{
    Gateway,
    receive::Accepted,
    received::{ForwardOutcome, ReceivedRequest},
    respond::FailedForward,
};
use crate::{
    observe::outcome::Outcome,
    request::{Head, client::Client, rejection::Rejection},
    upstream::{backend::upstream::Response, routing::destination::Destination},
};

impl Gateway {
    /// Forwards an accepted request to its backend and relays the response.
    pub(super) async fn forward<C: Client>(
        &self,
        request: &ReceivedRequest<'_, Head>,
        accepted: Accepted<'_>,
        client: &mut C,
    ) {
        let route = accepted.routed().route();
        let backend = &route.backend;
        let balancer = self.balancers[backend.number].as_deref();
        let app = accepted.routed().app().map(|app| &**app);
        let counts = &self.backend_counts[backend.number];
        let destination = Destination::new(backend, balancer, counts, app, request.client);
        let mut forwarded = ForwardOutcome {
            forwarded_at: request.step_time(),
            ..ForwardOutcome::default()
        };
        let sent = match destination {
            Ok(mut destination) => {
                let sent = self.send_to_backend(request, &accepted, &mut destination, client);
                let sent = match sent.await {
                    Ok(response) => {
                        let relayed =
                            self.relay_response(request, route, response, client, &mut forwarded);
                        let relayed = relayed.await;
                        relayed.map_err(|failed| self.counted(&route.backend, failed))
                    }
                    Err(rejection) => Err(rejection),
                };
                forwarded.backend = destination.address();
                sent
            }
            Err(rejection) => Err(rejection),
        };
        match sent {
            Err(rejection) if !client.has_begun_response() => {
                let failed = FailedForward {
                    route,
                    forwarded: &forwarded,
                };
                self.reject(request, Some(failed), &rejection, client).await;
            }
            sent => {
                let outcome = Outcome {
                    app: accepted.routed().app(),
                    rejection: sent.as_ref().err(),
                    ..request.outcome(Some(route), &forwarded)
                };
                self.record(request, &outcome);
            }
        }
    }

    /// Sends the request and waits for the head of its response.
    async fn send_to_backend<C: Client>(
        &self,
        request: &ReceivedRequest<'_, Head>,
        accepted: &Accepted<'_>,
        destination: &mut Destination<'_>,
        client: &mut C,
    ) -> Result<Response, Rejection> {
        let head = accepted.backend_head(&request.id, &self.backend_headers, &self.state.ids);
        self.backends
            .send(accepted.backend_request(&head), destination, client)
            .await
    }
}
