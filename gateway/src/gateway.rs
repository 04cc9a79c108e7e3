//! A request's way to its backend: the phases in the contract's order, each a call into its file.

use std::{sync::Arc, time::Instant};

use http::HeaderValue;
use signpost_process::rate_limit::{NetworkLimiter, TooMany};

use crate::{
    apps::directory::AppDirectory,
    balance::Balancer,
    clock::{Clock, SystemClock},
    config::{Config, Limits, Secret, Timeouts, Versions},
    downstream::{
        form::{Form, FormLimits},
        head::Head,
    },
    drain::Drain,
    phases::{
        address::Addressing,
        admit::{Admission, Admitted, admit, closes},
        forward::Forwarding,
        identify_app::identify_app,
        limit::is_unsigned,
        origin::{Peer, client},
        read_params::read_params,
        record::AccessLog,
        route::route,
        verify::Verifier,
        way_in::callback,
    },
    rejection::Rejection,
    request_context::RequestContext,
    request_ids::RequestIds,
    secret_refusals::SecretRefusals,
};

/// Everything that a request meets on its way.
pub struct Gateway {
    /// What addressing errors goes by.
    pub addressing: Addressing,
    /// What admission goes by.
    pub admission: Admission,
    /// Counts unsigned requests by the client's network, unless that is switched off.
    pub limiter: Option<NetworkLimiter>,
    /// Where applications are looked up.
    pub apps: AppDirectory,
    /// What verification goes by, and remembers.
    pub verifier: Verifier,
    /// The versions and their backends.
    pub versions: Versions,
    /// Who chooses among a version's addresses, by its number; `None` where there is nothing to choose.
    pub balancers: Vec<Option<Arc<Balancer>>>,
    /// What forwarding goes by.
    pub forwarding: Forwarding,
    /// Backends that do not accept the gateway's secret.
    pub refusals: Arc<SecretRefusals>,
    /// How large requests may be.
    pub limits: Limits,
    /// How long anything may take.
    pub timeouts: Timeouts,
    /// Makes request ids.
    pub ids: RequestIds,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Tells when the end has come.
    pub drain: Arc<Drain>,
    /// Where each request leaves a line, unless that is switched off.
    pub access_log: Option<AccessLog>,
}

impl Gateway {
    /// What `config` says, with these applications.
    ///
    /// # Errors
    ///
    /// The gateway's secret cannot stand in a header.
    pub fn new(
        config: Config,
        apps: AppDirectory,
        drain: Arc<Drain>,
        access_log: Option<AccessLog>,
    ) -> anyhow::Result<Self> {
        let names = Arc::new(config.headers);
        let secret = config
            .gateway_secret
            .as_ref()
            .map(secret_header)
            .transpose()?;
        let scheme = if config.public_url.scheme() == "https" {
            "https"
        } else {
            "http"
        };
        let browser_paths = [
            config.sign.browser_paths.clone(),
            config.sign.callback_paths.clone(),
        ]
        .concat();
        Ok(Self {
            addressing: Addressing {
                names: Arc::clone(&names),
                browser_paths,
            },
            admission: Admission {
                names: Arc::clone(&names),
                trusted_proxies: config.trusted_proxies,
                scheme,
                largest_body: config.limits.body,
                limits: config.limits.head,
            },
            limiter: config
                .limits
                .unsigned
                .map(|limits| NetworkLimiter::new(limits.network, limits.site, Instant::now())),
            apps,
            verifier: Verifier::new(config.sign),
            balancers: config
                .versions
                .iter()
                .map(|backend| Balancer::of(backend))
                .collect(),
            versions: config.versions,
            forwarding: Forwarding { names, secret },
            refusals: Arc::new(SecretRefusals::default()),
            limits: config.limits,
            timeouts: config.timeouts,
            ids: RequestIds::default(),
            clock: Arc::new(SystemClock),
            drain,
            access_log,
        })
    }

    /// The beginning of a request from `peer`.
    #[must_use]
    pub fn context(&self, peer: &Peer) -> RequestContext {
        let started = self.access_log.as_ref().map(|_| Instant::now());
        RequestContext::new(self.ids.next(), peer, started)
    }

    /// Takes a request whose head has come to its route, or finds out why it has none. CONTRACT 2 has the order.
    ///
    /// # Errors
    ///
    /// Whatever a phase has against it. Then nothing of it goes any further.
    pub async fn receive(
        &self,
        head: &Head,
        peer: &Peer,
        form: &mut Form<'_>,
        context: &mut RequestContext,
    ) -> Result<(), Rejection> {
        context.is_last = head.is_http_1_0() || self.drain.is_draining();
        let (target, framing) = (head.target(), head.framing());
        let admitted = self.admit(head, peer).inspect_err(|_| {
            // `Connection: close` holds whatever becomes of the request.
            context.is_last |= closes(head);
            context.client = client(peer, head, &self.admission.trusted_proxies);
        })?;
        if let Some(theirs) = admitted.request_id {
            context.request_id = theirs;
        }
        context.is_last |= admitted.closes;
        context.traceparent = admitted.traceparent;
        context.client = admitted.origin.client;
        context.origin = Some(admitted.origin);
        context.passing = admitted.passing;
        let method = admitted.method;
        let verified = match callback(method, framing, target, self.verifier.config()) {
            Some(callback) => self.verifier.pass_callback(callback),
            None => {
                let paths = &self.verifier.config().browser_paths;
                let names = &self.admission.names;
                let app = identify_app(admitted.app, target, paths, names, &self.apps).await?;
                context.app = Some(Arc::clone(&app));
                // RFC 9110 section 10.1.1: an HTTP/1.0 client does not know what a 100 is.
                let expects_continue = admitted.expects_continue && !head.is_http_1_0();
                let limits = FormLimits {
                    bytes: self.limits.body,
                    patience: self.timeouts.body,
                };
                form.read(expects_continue, limits).await?;
                let params = read_params(target, form.bytes(), &self.limits)?;
                let now = self.clock.now();
                self.verifier.verify(app, method, target, &params, now)?
            }
        };
        context.body_length = form.length();
        context.route = Some(route(&verified, admitted.version, &self.versions)?);
        Ok(())
    }

    /// Admits a request that its client's network may still make. CONTRACT 7: the address' rate comes behind the method,
    /// and before anything else that the headers could be refused for.
    fn admit<'h>(&self, head: &'h Head, peer: &Peer) -> Result<Admitted<'h>, Rejection> {
        let (method, rules) = (head.method(), &self.admission);
        if let Some(limiter) = &self.limiter
            && is_unsigned(method, head.target(), self.verifier.config())
        {
            let client = client(peer, head, &rules.trusted_proxies);
            let counted = limiter.count(client, Instant::now());
            counted
                .map_err(|TooMany { retry_after }| Rejection::AddressRateLimited { retry_after })?;
        }
        admit(method, head, head.framing(), peer, rules)
    }
}

fn secret_header(secret: &Secret) -> anyhow::Result<HeaderValue> {
    let mut value = HeaderValue::from_str(secret.expose())
        .map_err(|_| anyhow::anyhow!("gateway_secret has characters that no header can have"))?;
    value.set_sensitive(true);
    Ok(value)
}
