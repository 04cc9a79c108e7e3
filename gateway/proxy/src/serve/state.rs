//! What outlives a configuration.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use arc_swap::ArcSwap;
use signpost_kit::{
    clock::{Clock, SystemClock, Timestamp},
    metrics::cells::LabelCounters,
    reload::LastReload,
    server::descriptors::Descriptors,
    trace::SpanCounters,
};
use signpost_protocol::version::Version;

use super::challenge::ChallengeReads;
use crate::{
    directory::{accounts::open::OpenAccounts, apps::directory::AppDirectory},
    limits::connections::OpenConnections,
    observe::{access_log::FailureLog, metrics::RequestMetrics, usage::Usage, watch::Watch},
    request::{drain::Drain, ids::RequestIds, quotas::RequestLimit},
    shadow::Shadows,
    tls::Tls,
    upstream::{routing::drained::DrainedAddress, secret_rejections::SecretRejections},
};

/// State that outlives a configuration. Parts of a [`Policy`](super::Policy) carry over more: the replay memory, rate
/// limits, cached applications, and the state of addresses.
pub struct State {
    /// Backends that do not accept the gateway's secret.
    pub secret_rejections: SecretRejections,
    /// The accounts, from the first configuration on that needs their store. With many applications that is open, too.
    pub accounts: OnceLock<OpenAccounts>,
    /// Generates request ids.
    pub ids: RequestIds,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// The phase of a stop, and the requests in flight.
    pub drain: Arc<Drain>,
    /// Clients' open connections.
    pub open_connections: Arc<OpenConnections>,
    /// Reads of ACME challenges.
    pub(crate) challenge_reads: ChallengeReads,
    /// The management listener with TLS.
    pub management_tls: Option<(SocketAddr, Arc<Tls>)>,
    /// The addresses that operators have drained, as last read from the store.
    pub drained: ArcSwap<Vec<DrainedAddress>>,
    /// The versions that end.
    pub version_ends: ArcSwap<Vec<VersionEnd>>,
    /// Copies of requests, and what differs.
    pub shadows: Arc<Shadows>,
    /// The last reload.
    pub last_reload: Arc<LastReload>,
    /// What is recorded of requests.
    pub records: Records,
}

/// What is recorded of requests, and where.
pub struct Records {
    /// Counts requests by application and version; `None` in single-application mode.
    pub usage: Option<Arc<Usage>>,
    /// Counts requests for `/metrics`.
    pub metrics: Arc<RequestMetrics>,
    /// Counts spans.
    pub spans: Arc<SpanCounters>,
    /// The requests that limits have rejected.
    pub limited: LabelCounters<RequestLimit>,
    /// Logs failures.
    pub failures: FailureLog,
    /// What operators watch; `None` without the management API.
    pub watch: Option<Arc<Watch>>,
}

/// Who uses a version that ends, as last read from the store.
#[derive(Debug)]
pub struct VersionEnd {
    /// The version.
    pub version: Arc<Version>,
    /// The number of applications that used it lately.
    pub users: u64,
    /// The last time until which an application may use it longer.
    pub extended: Option<Timestamp>,
}

impl State {
    /// The state of a process that begins with these applications.
    #[must_use]
    pub fn new(apps: &AppDirectory, descriptors: Descriptors) -> Self {
        let has_store = matches!(apps, AppDirectory::Multi(_));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let usage = || Arc::new(Usage::new(Arc::clone(&clock)));
        let usage = has_store.then(usage);
        let open_connections = OpenConnections::new(descriptors);
        Self {
            secret_rejections: SecretRejections::default(),
            accounts: OnceLock::new(),
            ids: RequestIds::default(),
            clock,
            drain: Arc::new(Drain::new()),
            open_connections: Arc::new(open_connections),
            challenge_reads: ChallengeReads::default(),
            management_tls: None,
            drained: ArcSwap::default(),
            version_ends: ArcSwap::default(),
            shadows: Arc::default(),
            last_reload: Arc::default(),
            records: Records {
                usage,
                metrics: Arc::default(),
                spans: Arc::default(),
                limited: LabelCounters::default(),
                failures: FailureLog::default(),
                watch: None,
            },
        }
    }
}
