//! Builds a gateway from its configuration.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use http::HeaderValue;
use signpost_kit::{
    clock::SystemClock,
    limits::NetworkLimiter,
    secret::Secret,
    server::descriptors::Descriptors,
    trace::{ServiceName, SpanCounters, Tracer},
};

use super::{Gateway, State};
use crate::{
    config::{Applications, Backend, Config, ListenerSettings},
    directory::apps::directory::AppDirectory,
    limits::connections::OpenConnections,
    observe::{access_log::AccessLog, metrics::RequestCells},
    phases::{
        admit::AdmissionRules, backend_headers::BackendHeaderRules, cors::CorsRules,
        error_format::ErrorFormatRules, limit::RequestLimiter, verify::Verifier,
    },
    request::{drain::Drain, ids::RequestIds, quotas::LimitedRequests},
    upstream::{
        backend::upstream::BackendClient,
        routing::{Balancer, counts::BackendCounts},
        secret_rejections::SecretRejections,
    },
};

/// Limit of a reload's duration after backend names are resolved.
const RELOAD_MARGIN: Duration = Duration::from_secs(10);

/// The port of https, if `public_url` names no other.
const HTTPS_PORT: u16 = 443;

/// The gateway, in its spans.
const SERVICE: ServiceName = ServiceName {
    name: "signpost",
    version: env!("CARGO_PKG_VERSION"),
};

impl Gateway {
    /// Builds the first gateway of a process.
    ///
    /// # Errors
    ///
    /// The gateway's secret is not a valid header value.
    pub fn new(
        config: Config,
        apps: AppDirectory,
        drain: Arc<Drain>,
        access_log: Option<AccessLog>,
    ) -> anyhow::Result<Self> {
        let has_store = matches!(apps, AppDirectory::Multi(_));
        let spans = Arc::new(SpanCounters::default());
        let listeners = config.listeners.len();
        let backend_counts = backend_counts(&config, None);
        let parts = Parts {
            generation: 0,
            apps,
            limiter: config
                .limits
                .unsigned
                .map(|limits| NetworkLimiter::new(limits.network, limits.site, Instant::now())),
            rate_limits: request_limiter(&config, None),
            verifier: Verifier::new(config.sign.clone()),
            balancers: balancers(&config, None, &backend_counts),
            backend_counts,
            listeners: config.listeners.iter().cloned().map(Arc::new).collect(),
            backends: BackendClient::new(&config.timeouts, Arc::clone(&drain)),
            tracer: Tracer::new(&config.tracing, SERVICE, &spans, None),
            state: Arc::new(State {
                secret_rejections: SecretRejections::default(),
                accounts: OnceLock::new(),
                ids: RequestIds::default(),
                clock: Arc::new(SystemClock),
                drain,
                open_connections: Arc::new(OpenConnections::new(
                    Descriptors::raise_limit(),
                    listeners,
                )),
                limited: LimitedRequests::default(),
                reloads: Arc::default(),
                access_log,
                usage: has_store.then(Arc::default),
                metrics: Arc::default(),
                spans,
            }),
        };
        Self::from_parts(config, parts)
    }

    /// Builds the gateway that replaces this one after a reload. It keeps the state that outlives a configuration.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub(crate) fn with_config(&self, config: Config, apps: AppDirectory) -> anyhow::Result<Self> {
        let limiter = config.limits.unsigned.map(|limits| match &self.limiter {
            Some(limiter) => limiter.with_rates(limits.network, limits.site),
            None => NetworkLimiter::new(limits.network, limits.site, Instant::now()),
        });
        let now = self.state.clock.now().into();
        self.clear_stale_rejections(&config);
        let backend_counts = backend_counts(&config, Some(self));
        let parts = Parts {
            generation: self.generation + 1,
            apps,
            limiter,
            rate_limits: request_limiter(&config, Some(&self.rate_limits)),
            verifier: self
                .verifier
                .with_config(config.sign.clone(), now, self.max_reception()),
            balancers: balancers(&config, Some(self), &backend_counts),
            backend_counts,
            listeners: self.reloaded_listeners(&config),
            backends: self.backends.with_timeouts(&config.timeouts),
            tracer: Tracer::new(
                &config.tracing,
                SERVICE,
                &self.state.spans,
                self.tracer.as_deref(),
            ),
            state: Arc::clone(&self.state),
        };
        Self::from_parts(config, parts)
    }

    /// The new settings of the listeners; their addresses stay until a restart. One that the configuration no longer has
    /// keeps its settings.
    fn reloaded_listeners(&self, config: &Config) -> Vec<Arc<ListenerSettings>> {
        let reloaded = |running: &Arc<ListenerSettings>| {
            let mut new = config.listeners.iter();
            let new = new.find(|new| new.address == running.address);
            new.map_or_else(
                || Arc::clone(running),
                |new| Arc::new(new.continuing(running)),
            )
        };
        self.listeners.iter().map(reloaded).collect()
    }

    /// Limit of the time in which requests that have begun are verified, and a reload completes.
    fn max_reception(&self) -> Duration {
        self.timeouts.head + self.timeouts.body + RELOAD_MARGIN
    }

    /// Clears the rejections of the secret if the secret or a version's addresses change.
    fn clear_stale_rejections(&self, config: &Config) {
        let secret = config.gateway_secret.as_ref().map(Secret::expose);
        let known = self.backend_headers.secret.as_ref();
        let is_same_secret = known.map(HeaderValue::as_bytes) == secret.map(str::as_bytes);
        let is_same = |(old, new): (&Arc<Backend>, &Arc<Backend>)| {
            old.name == new.name && old.upstream == new.upstream
        };
        let (old, new) = (self.versions.backends(), config.versions.backends());
        let are_same_upstreams = old.len() == new.len() && old.zip(new).all(is_same);
        if !is_same_secret || !are_same_upstreams {
            self.state.secret_rejections.clear();
        }
    }

    fn from_parts(config: Config, parts: Parts) -> anyhow::Result<Self> {
        let names = Arc::new(config.headers);
        let secret = config
            .gateway_secret
            .as_ref()
            .map(secret_header)
            .transpose()?;
        let scheme = if config.public_url.is_https() {
            "https"
        } else {
            "http"
        };
        let metrics = &parts.state.metrics;
        let metrics = metrics.configured(config.metrics, config.versions.backends());
        let clock_skew = metrics.as_ref().map(RequestCells::clock_skew);
        let page_paths = [config.sign.browser_paths, config.sign.callback_paths].concat();
        let life_cycle = config.versions.life_cycle_fields();
        let cors = config
            .cors
            .map(|cors| CorsRules::new(cors, &names, &life_cycle));
        Ok(Self {
            generation: parts.generation,
            error_format: ErrorFormatRules {
                names: Arc::clone(&names),
                page_paths,
            },
            admission: AdmissionRules {
                names: Arc::clone(&names),
                trusted_proxies: config.trusted_proxies,
                scheme,
                max_body: config.limits.body,
                limits: config.limits.head,
            },
            cors,
            limiter: parts.limiter,
            rate_limits: parts.rate_limits,
            apps: parts.apps,
            verifier: parts.verifier.observing(clock_skew),
            balancers: parts.balancers,
            backend_counts: parts.backend_counts,
            versions: config.versions,
            backend_headers: BackendHeaderRules { names, secret },
            backends: parts.backends,
            listeners: parts.listeners,
            connections: config.connections,
            https_port: config.public_url.https_port().unwrap_or(HTTPS_PORT),
            limits: config.limits,
            timeouts: config.timeouts,
            shutdown: config.shutdown,
            logs_access: config.log.access,
            metrics,
            tracer: parts.tracer,
            access_sample: config.log.access_sample,
            state: parts.state,
        })
    }

    /// The balancers of all backends that have one.
    pub(crate) fn balancers(&self) -> impl Iterator<Item = Arc<Balancer>> {
        self.balancers.iter().flatten().cloned()
    }
}

/// The parts of a gateway that a reload carries over or rebuilds.
struct Parts {
    generation: u64,
    apps: AppDirectory,
    limiter: Option<NetworkLimiter>,
    rate_limits: RequestLimiter,
    verifier: Verifier,
    balancers: Vec<Option<Arc<Balancer>>>,
    backend_counts: Vec<Arc<BackendCounts>>,
    listeners: Vec<Arc<ListenerSettings>>,
    backends: BackendClient,
    tracer: Option<Arc<Tracer>>,
    state: Arc<State>,
}

/// The rate limits of a configuration. Only with a store can they be shared.
fn request_limiter(config: &Config, before: Option<&RequestLimiter>) -> RequestLimiter {
    let has_store = matches!(config.applications, Applications::Multi(_));
    let mut limits = config.rate_limits.clone();
    limits.is_shared &= has_store;
    RequestLimiter::new(limits, before, Instant::now())
}

/// The balancer of each backend: the previous one, if its configuration is unchanged.
fn balancers(
    config: &Config,
    before: Option<&Gateway>,
    counts: &[Arc<BackendCounts>],
) -> Vec<Option<Arc<Balancer>>> {
    let balancer = |backend: &Arc<Backend>| {
        let known = before.and_then(|before| before.versions.backend(&backend.name));
        let balancer = known
            .zip(before)
            .and_then(|(known, before)| before.balancers[known.number].as_ref());
        match (known, balancer) {
            (Some(known), Some(balancer)) if known.upstream == backend.upstream => {
                Some(Arc::clone(balancer))
            }
            (_, balancer) => {
                let balancer = balancer.map(|balancer| &**balancer);
                Balancer::counting(backend, balancer, &counts[backend.number])
            }
        }
    };
    config.versions.backends().map(balancer).collect()
}

/// What is counted of each backend: a backend continues the counts of the one with its name, also if its addresses changed.
fn backend_counts(config: &Config, before: Option<&Gateway>) -> Vec<Arc<BackendCounts>> {
    let counts = |backend: &Arc<Backend>| {
        let known = before.and_then(|before| {
            let known = before.versions.backend(&backend.name)?;
            Some(Arc::clone(&before.backend_counts[known.number]))
        });
        known.unwrap_or_default()
    };
    config.versions.backends().map(counts).collect()
}

fn secret_header(secret: &Secret) -> anyhow::Result<HeaderValue> {
    let mut value = HeaderValue::from_str(secret.expose()).map_err(|_| {
        anyhow::anyhow!("gateway_secret has characters that are not allowed in a header")
    })?;
    value.set_sensitive(true);
    Ok(value)
}
