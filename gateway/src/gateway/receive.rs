//! Receives a request: runs the phases up to the account.

use std::{net::IpAddr, pin::pin, sync::Arc, time::Instant};

use signpost_kit::{clock::Timestamp, limits::RateExceeded};
use signpost_protocol::request_id::RequestId;

use super::{Gateway, received::ReceivedRequest};
use crate::{
    config::{AccountCheck, Backend},
    directory::apps::App,
    observe::spans::{RequestSpans, Step, samples},
    phases::{
        admit::{Admitted, admit},
        backend_headers::{
            BackendHeaderRules, Identified, write_backend_headers, write_request_line,
        },
        callback::match_callback,
        identify_account::{RequestAccount, identify_account},
        identify_app::identify_app,
        limit::is_unsigned,
        origin::{Peer, client_address},
        read_params::read_params,
        route::{RoutedRequest, Unrouted, Wanted, route},
        verify::VerifiedRequest,
    },
    request::{
        Head, Method, Target,
        client::{BodyLimits, Client},
        ids::RequestIds,
        rejection::Rejection,
    },
    upstream::backend::exchange::BackendRequest,
};

impl Gateway {
    /// Runs the phases up to the account, in the order of CONTRACT 7.
    ///
    /// # Errors
    ///
    /// The first rejection of a phase. Nothing of the request then reaches a backend.
    pub async fn receive<'h, C: Client>(
        &self,
        head: &'h Head,
        peer: &Peer,
        request: &mut ReceivedRequest<'h, Head>,
        client: &mut C,
    ) -> Result<Accepted<'h>, Rejection> {
        let mut admitted = self.admit(head, peer)?;
        self.begin_spans(request, &mut admitted);
        request.client = admitted.origin.client;
        let (method, target) = (admitted.method, head.target());
        let callback = match_callback(method, head.body(), target, self.verifier.config());
        let (verified, form, now) = match callback {
            Some(callback) => (self.verifier.pass_callback(callback), Vec::new(), None),
            None => {
                let app = self.identify_app(&admitted, target, request).await?;
                let form = self.read_form(&admitted, request, client).await?;
                let now = self.state.clock.now();
                let verified = self.verify(app, method, target, &form, now, request)?;
                (verified, form, Some(now))
            }
        };
        self.count_app(&verified, method, target, request)?;
        let now = || now.unwrap_or_else(|| self.state.clock.now());
        let routed = self.route(verified, &admitted, target, now, request)?;
        let account = self.identify_account(&routed, &mut admitted, now, request);
        let account = account.await?;
        Ok(Accepted {
            head,
            routed,
            account,
            admitted,
            form,
        })
    }

    /// Finds the application that the request names.
    async fn identify_app(
        &self,
        admitted: &Admitted<'_>,
        target: Target<'_>,
        request: &mut ReceivedRequest<'_, Head>,
    ) -> Result<Arc<App>, Rejection> {
        let paths = &self.verifier.config().browser_paths;
        let names = &self.admission.names;
        request.begin_step(Step::LookUpApplication);
        let app = identify_app(admitted.app, target, paths, names, &self.apps).await?;
        request.end_step();
        request.named_app = Some(Arc::clone(&app));
        Ok(app)
    }

    /// Reads the form, if the request has one.
    async fn read_form<C: Client>(
        &self,
        admitted: &Admitted<'_>,
        request: &mut ReceivedRequest<'_, Head>,
        client: &mut C,
    ) -> Result<Vec<u8>, Rejection> {
        let limits = BodyLimits {
            bytes: self.limits.body,
            timeout: self.timeouts.body,
            min_rate: self.connections.min_rate,
        };
        let form = pin!(client.read_body(admitted.expects_continue, limits));
        request.wait_for_form(form).await
    }

    /// Verifies the parameters of target and form.
    fn verify(
        &self,
        app: Arc<App>,
        method: Method,
        target: Target<'_>,
        form: &[u8],
        now: Timestamp,
        request: &mut ReceivedRequest<'_, Head>,
    ) -> Result<VerifiedRequest, Rejection> {
        request.begin_step(Step::Verify);
        let params = read_params(target, form, &self.limits)?;
        let verifier = &self.verifier;
        let verified = verifier.verify(app, method, target, &params, now.into())?;
        request.end_step();
        request.is_signed = verified.signed_app().is_some();
        Ok(verified)
    }

    /// Counts a signed request for its application, if it has a limit.
    fn count_app(
        &self,
        verified: &VerifiedRequest,
        method: Method,
        target: Target<'_>,
        request: &mut ReceivedRequest<'_, Head>,
    ) -> Result<(), Rejection> {
        let limits = &self.rate_limits;
        if let Some(app) = verified.signed_app().filter(|app| limits.counts(app)) {
            request.quotas = limits.count_app(app, method, target.path, Instant::now())?;
        }
        Ok(())
    }

    /// Chooses the backend. A request that is rejected although its version is known notes the route, for its response.
    fn route(
        &self,
        verified: VerifiedRequest,
        admitted: &Admitted<'_>,
        target: Target<'_>,
        now: impl Fn() -> Timestamp,
        request: &mut ReceivedRequest<'_, Head>,
    ) -> Result<RoutedRequest, Rejection> {
        let wanted = Wanted {
            version: admitted.version,
            path: target.path,
            client: admitted.origin.client,
        };
        let is_available = |backend: &Backend| self.is_available(backend);
        let routed = route(verified, wanted, &self.versions, now, is_available);
        routed.map_err(|Unrouted { rejection, route }| {
            request.rejected_route = route;
            rejection
        })
    }

    /// Identifies the account, if the route asks for one. A request that is rejected notes its route: the response has the
    /// version's headers.
    async fn identify_account(
        &self,
        routed: &RoutedRequest,
        admitted: &mut Admitted<'_>,
        now: impl FnOnce() -> Timestamp,
        request: &mut ReceivedRequest<'_, Head>,
    ) -> Result<RequestAccount, Rejection> {
        let accounts = self.state.accounts.get();
        let accounts = accounts.map(|accounts| &*accounts.directory);
        if routed.route().backend.account.check != AccountCheck::None {
            request.begin_step(Step::IdentifyAccount);
        }
        let account = identify_account(routed, admitted, request.headers, accounts, now).await;
        request.end_step();
        account.inspect_err(|_| request.rejected_route = Some(Box::new(routed.route().clone())))
    }

    /// Takes a trusted proxy's request id, and begins the spans of a sampled request. The gateway's own id decides about
    /// those, since no client can choose it.
    fn begin_spans(&self, request: &mut ReceivedRequest<'_, Head>, admitted: &mut Admitted<'_>) {
        let tracer = self.tracer.as_ref();
        let tracer = tracer.filter(|tracer| samples(tracer, &request.id, admitted));
        if let Some(theirs) = admitted.request_id {
            request.id = theirs;
        }
        if let Some(tracer) = tracer {
            let (ids, clock) = (&self.state.ids, &*self.state.clock);
            let spans = RequestSpans::begin(tracer, &request.id, admitted, ids, clock);
            request.spans = Some(spans);
        }
    }

    /// Checks the limits of client addresses, then admits the request. CONTRACT 7: the limits come after the method, and
    /// before every other check of the headers.
    fn admit<'h>(&self, head: &'h Head, peer: &Peer) -> Result<Admitted<'h>, Rejection> {
        let (method, rules) = (head.method(), &self.admission);
        if self.limiter.is_some() && is_unsigned(method, head.target(), self.verifier.config()) {
            self.count_unsigned(client_address(peer, head, &rules.trusted_proxies))?;
        }
        if self.rate_limits.counts_addresses() {
            let client = client_address(peer, head, &rules.trusted_proxies);
            let (path, now) = (head.target().path, Instant::now());
            self.rate_limits.count_address(method, path, client, now)?;
        }
        admit(method, head, head.body(), peer, rules)
    }

    /// Counts an unsigned request for its client's network, if the limit is on.
    pub(super) fn count_unsigned(&self, client: IpAddr) -> Result<(), Rejection> {
        let Some(limiter) = &self.limiter else {
            return Ok(());
        };
        let counted = limiter.count(client, Instant::now());
        counted
            .map_err(|RateExceeded { retry_after }| Rejection::AddressRateLimited { retry_after })
    }
}

/// A request that passed all phases and may be forwarded. Only [`Gateway::receive`] creates one, so a backend gets
/// exactly the bytes that were verified.
pub struct Accepted<'h> {
    head: &'h Head,
    routed: RoutedRequest,
    account: RequestAccount,
    admitted: Admitted<'h>,
    form: Vec<u8>,
}

impl Accepted<'_> {
    /// Its application and route.
    pub(super) fn routed(&self) -> &RoutedRequest {
        &self.routed
    }

    /// The request to its backend, with this head.
    pub(super) fn backend_request<'a>(&'a self, head: &'a [u8]) -> BackendRequest<'a> {
        BackendRequest {
            head,
            form: &self.form,
            is_get: self.admitted.method == Method::Get,
        }
    }

    /// Writes the head for the backend.
    #[must_use]
    pub fn backend_head(
        &self,
        id: &RequestId,
        rules: &BackendHeaderRules,
        ids: &RequestIds,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        write_request_line(self.head, &self.form, &mut out);
        write_backend_headers(
            Identified {
                routed: &self.routed,
                account: &self.account,
            },
            self.head,
            &self.admitted,
            id,
            rules,
            ids,
            &mut out,
        );
        out.extend_from_slice(b"\r\n");
        out
    }
}
