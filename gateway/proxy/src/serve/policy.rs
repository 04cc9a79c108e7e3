//! What one configuration says.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use signpost_kit::{
    config::origin::Origin,
    server::shutdown::ShutdownSettings,
    trace::{ServiceName, Tracer},
};

use super::{
    State,
    backends::Backends,
    listener::{Listener, find},
};
use crate::{
    config::{Applications, Config, ConnectionLimits, Limits, ResponseHeaders, Timeouts},
    directory::apps::directory::AppDirectory,
    limits::spool::Spool,
    phases::{
        admit::AdmissionRules, cors::CorsRules, error_format::ErrorFormatRules,
        limit::RequestLimiter, origin::Peer, verify::Verifier,
    },
    wire::io::SendLimits,
};

/// Limit of a reload's duration after backend names are resolved.
const RELOAD_MARGIN: Duration = Duration::from_secs(10);

/// The port of https, if the configuration names no other.
const HTTPS_PORT: u16 = 443;

/// The gateway, in its spans.
const SERVICE: ServiceName = ServiceName {
    name: "signpost",
    version: signpost_release::RELEASE,
};

/// What one configuration says, and what works by it.
pub struct Policy {
    /// Number of the configuration in this process, from 0.
    pub generation: u64,
    /// Rules of the phases.
    pub rules: Rules,
    /// The directory of applications.
    pub apps: AppDirectory,
    /// How long the audit is kept; `None`: for ever.
    pub audit_retention: Option<Duration>,
    /// Verifies signatures.
    pub verifier: Verifier,
    /// Counts requests by client address, application and path.
    pub rate_limits: RequestLimiter,
    /// The versions and their backends.
    pub backends: Backends,
    /// The listeners, in the order of the file.
    pub listeners: Vec<Arc<Listener>>,
    /// Limits and durations.
    pub bounds: Bounds,
    /// Where large bodies wait.
    pub(crate) spool: Arc<Spool>,
    /// What is recorded of requests.
    pub recording: Recording,
}

/// Rules of the phases.
pub struct Rules {
    /// Rules for the format of errors.
    pub(crate) error_format: ErrorFormatRules,
    /// Rules for admission.
    pub admission: AdmissionRules,
    /// Rules for pages of other origins; `None` if none may call.
    pub cors: Option<CorsRules>,
    /// Fixed headers of responses without a version.
    pub response_headers: ResponseHeaders,
    /// Where plain requests are redirected to.
    pub(crate) https_port: u16,
    /// Where clients call the gateway.
    pub public_url: Origin,
}

/// Limits and durations.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// Limits of requests.
    pub requests: Limits,
    /// Limits of clients' connections.
    pub connections: ConnectionLimits,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Durations of an orderly stop.
    pub shutdown: ShutdownSettings,
}

/// What is recorded of requests.
pub struct Recording {
    /// Of so many successes, one is in the access log; 0: it is off.
    pub access_sample: u32,
    /// Samples requests and exports their spans; `None` if no collector is configured.
    pub tracer: Option<Arc<Tracer>>,
}

impl Policy {
    /// The policy of a configuration. It continues the state of its predecessor's parts.
    pub(super) fn new(
        config: Config,
        apps: AppDirectory,
        state: &State,
        before: Option<&Self>,
    ) -> anyhow::Result<Self> {
        if let Some(before) = before {
            // A rejection of the former secret would keep the gateway unready until it expired.
            before.clear_stale_rejections(&config, state);
        }
        let rate_limits = request_limiter(&config, before);
        let open = before.map(|before| &before.listeners[..]);
        let listeners = Listener::all(&config, open.unwrap_or_default());
        let metrics = &state.records.metrics;
        if let Some(usage) = &state.records.usage {
            usage.show(config.counted_applications);
        }
        let verifier = verifier(&config, state, before);
        let tracer = before.and_then(|before| before.recording.tracer.as_deref());
        let recording = Recording {
            access_sample: config.log.access_sample,
            tracer: Tracer::new(&config.tracing, SERVICE, &state.records.spans, tracer),
        };
        let rules = Rules::new(&config);
        let (folder, bytes) = (&*config.spool.folder, config.spool.bytes);
        let spool = before.map(|before| &before.spool);
        // Its room outlives a configuration, unless that has another folder.
        let spool = match spool.filter(|spool| spool.is(folder, bytes)) {
            Some(spool) => Arc::clone(spool),
            None => Arc::new(Spool::new(folder, bytes)),
        };
        let before_backends = before.map(|before| &before.backends);
        let backends = Backends::new(config.versions, &config.timeouts, metrics, before_backends);
        // Balancers that are new know nothing of what operators have drained.
        backends.drain(&state.drained.load(), state.clock.now());
        Ok(Self {
            generation: before.map_or(0, |before| before.generation + 1),
            rules,
            apps,
            audit_retention: config.applications.audit_retention(),
            verifier: verifier.observing(Arc::clone(metrics.clock_skew())),
            rate_limits,
            backends,
            listeners,
            bounds: Bounds {
                requests: config.limits,
                connections: config.connections,
                timeouts: config.timeouts,
                shutdown: config.shutdown,
            },
            spool,
            recording,
        })
    }

    /// The listener at this address; `None` if this configuration has none there.
    pub fn listener(&self, address: SocketAddr) -> Option<&Arc<Listener>> {
        find(&self.listeners, address)
    }

    /// The folder with the ACME challenges of a connection's listener.
    pub(super) fn acme_webroot(&self, peer: &Peer) -> Option<&Path> {
        let id = peer.connection.listener?;
        let listener = self.listeners.iter().find(|listener| listener.id == id)?;
        listener.acme_webroot.as_deref().map(PathBuf::as_path)
    }

    /// Clears the rejections of secrets if a backend's secret or addresses change.
    fn clear_stale_rejections(&self, config: &Config, state: &State) {
        if !self.backends.are_same(&config.versions) {
            state.secret_rejections.clear();
        }
    }
}

impl Rules {
    fn new(config: &Config) -> Self {
        let names = Arc::new(config.headers.clone());
        let sign = &config.sign;
        let life_cycle = config.versions.life_cycle_fields();
        let cors = config.cors.clone();
        Self {
            error_format: ErrorFormatRules {
                names: Arc::clone(&names),
                page_paths: [&sign.browser_paths[..], &sign.callback_paths].concat(),
            },
            admission: AdmissionRules::new(config, &names),
            cors: cors.map(|cors| {
                let methods = config.versions.methods;
                CorsRules::new(cors, &names, &life_cycle, methods)
            }),
            response_headers: config.response_headers.clone(),
            https_port: https_port(config),
            public_url: config.public_url.clone(),
        }
    }
}

impl Bounds {
    /// The limits of sending responses.
    #[must_use]
    pub const fn send(&self) -> SendLimits {
        SendLimits {
            timeout: self.timeouts.send,
            min_rate: self.connections.min_rate,
        }
    }

    /// Limit of the time in which requests that have begun are verified, and a reload completes.
    fn max_reception(&self) -> Duration {
        self.timeouts.head + self.timeouts.body + RELOAD_MARGIN
    }
}

/// The port of `public_url` if that is https, otherwise of the first listener with TLS. Without both, something in front
/// serves https.
fn https_port(config: &Config) -> u16 {
    let mut listeners = config.listeners.iter();
    let listener = listeners.find(|listener| listener.tls.is_some());
    let port = config.public_url.https_port();
    port.or(listener.map(|listener| listener.address.port()))
        .unwrap_or(HTTPS_PORT)
}

/// The verifier of a configuration. Signatures that were used stay used.
fn verifier(config: &Config, state: &State, before: Option<&Policy>) -> Verifier {
    let sign = config.sign.clone();
    let Some(before) = before else {
        return Verifier::new(sign);
    };
    let (now, in_flight) = (state.clock.now().into(), before.bounds.max_reception());
    before.verifier.with_config(sign, now, in_flight)
}

/// The rate limits of a configuration. Only with a store can they be shared.
fn request_limiter(config: &Config, before: Option<&Policy>) -> RequestLimiter {
    let has_store = matches!(config.applications, Applications::Multi(_));
    let mut limits = config.rate_limits.clone();
    limits.is_shared &= has_store;
    let before = before.map(|before| &before.rate_limits);
    RequestLimiter::new(limits, config.limits.unsigned, before, Instant::now())
}
