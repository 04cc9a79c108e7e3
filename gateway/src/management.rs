//! The management listener: `/healthz` and `/readyz`. CONTRACT 10.
//!
//! It has its own thread and reserved file descriptors, so that it answers under any client load.

use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use arc_swap::ArcSwap;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use signpost_kit::{
    descriptors::Descriptors,
    http_server::{self, HttpSettings, HttpTimeouts},
    shutdown::Phase,
};
use signpost_store::Store;
use tokio::{net::TcpStream, sync::watch};

use crate::{certificate_watch::certificates, config::Timeouts, gateway::Gateway};

/// Timeout of the readiness check's connection to `listen`: a local connect is immediate, unless the port is not
/// served.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Limit of connections: orchestrators, load balancers and monitors open a few each. At most half of the descriptor
/// reserve, which the store and the backends need, too.
const MAX_CONNECTIONS: usize = 256;

/// Serves the liveness and the readiness endpoint.
pub(crate) struct Management {
    /// The address that clients call.
    pub listen: SocketAddr,
    /// The store of applications; `None` in single-application mode.
    pub store: Option<Store>,
    /// The gateway with the current configuration.
    pub current: Arc<ArcSwap<Gateway>>,
}

impl Management {
    /// Starts a thread that serves until the process ends. During a graceful shutdown it goes on, so that monitors can
    /// observe it; once a new process has taken over the listener, `phases` ends it.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub(crate) fn start(
        self,
        listener: TcpListener,
        descriptors: Descriptors,
        phases: watch::Receiver<Phase>,
    ) -> anyhow::Result<()> {
        let half = usize::try_from(descriptors.reserve() / 2).unwrap_or(MAX_CONNECTIONS);
        let max_connections = MAX_CONNECTIONS.min(half);
        listener
            .set_nonblocking(true)
            .context("cannot start management")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start management")?;
        thread::Builder::new()
            .name("management".to_owned())
            .spawn(move || runtime.block_on(self.serve(listener, max_connections, phases)))
            .context("cannot start management")?;
        Ok(())
    }

    async fn serve(
        self,
        listener: TcpListener,
        max_connections: usize,
        phases: watch::Receiver<Phase>,
    ) {
        let listener = match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(cause) => return tracing::error!(%cause, "management cannot listen"),
        };
        let management = Arc::new(self);
        let current = Arc::clone(&management.current);
        let settings = move || {
            let Timeouts {
                head, idle, send, ..
            } = current.load().timeouts;
            HttpSettings {
                name: "management",
                max_connections,
                timeouts: HttpTimeouts { head, idle, send },
            }
        };
        let own_phase = phases.clone();
        let answer = move |request: Request<_>, _| {
            let (management, phase) = (Arc::clone(&management), own_phase.clone());
            async move {
                management
                    .answer(request.method(), request.uri().path(), &phase)
                    .await
            }
        };
        http_server::serve(listener, settings, phases, answer).await;
    }

    async fn answer(
        &self,
        method: &Method,
        path: &str,
        phase: &watch::Receiver<Phase>,
    ) -> Response<String> {
        match (method == Method::GET, path) {
            (true, "/healthz") => text(StatusCode::OK, "alive\n"),
            (true, "/readyz") => self.readiness(phase).await,
            (false, "/healthz" | "/readyz") => text(StatusCode::METHOD_NOT_ALLOWED, "use GET\n"),
            _ => text(
                StatusCode::NOT_FOUND,
                "not found; available: /healthz, /readyz\n",
            ),
        }
    }

    /// The store that requests need, if any.
    fn store_of<'a>(&'a self, gateway: &'a Gateway) -> Option<&'a Store> {
        let accounts = || gateway.state.accounts.get().map(|accounts| &accounts.store);
        let needs_accounts = gateway.versions.check_accounts();
        let of_accounts = || needs_accounts.then(accounts).flatten();
        self.store.as_ref().or_else(of_accounts)
    }

    async fn readiness(&self, phase: &watch::Receiver<Phase>) -> Response<String> {
        let gateway = self.current.load_full();
        if gateway.state.drain.is_draining() {
            // After a hand-over a new process serves here. This one answers on connections that it had accepted.
            if *phase.borrow() >= Phase::Closing {
                return text(StatusCode::OK, "ready\n");
            }
            return text(StatusCode::SERVICE_UNAVAILABLE, "stopping\n");
        }
        // The management listener may be up before the clients' listener.
        let accepts = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(self.listen)).await;
        if !matches!(accepts, Ok(Ok(_))) {
            return text(StatusCode::SERVICE_UNAVAILABLE, "not listening yet\n");
        }
        if let Some(store) = self.store_of(&gateway)
            && store.probe().await.is_err()
        {
            return text(
                StatusCode::SERVICE_UNAVAILABLE,
                "the store is unavailable\n",
            );
        }
        // Routes and canaries are reported, too, but do not decide: logins need the versions' own backends.
        let backends = gateway.versions.iter().map(|version| {
            let backend = version.own();
            let balancer = gateway.balancers[backend.number].as_ref();
            let addresses = balancer.map_or(1, |balancer| balancer.len());
            (&backend.name, addresses)
        });
        let rejections = &gateway.state.secret_rejections;
        let report = rejections.report(Instant::now(), backends);
        if let Some(report) = report.as_ref().filter(|report| report.is_down) {
            return text(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{}\n", report.text),
            );
        }
        let now = gateway.state.clock.now();
        let expiring = certificates(&gateway).filter_map(|one| one.expiry_warning(now));
        let details: Vec<_> = report
            .map(|report| report.text)
            .into_iter()
            .chain(expiring)
            .collect();
        if details.is_empty() {
            return text(StatusCode::OK, "ready\n");
        }
        text(
            StatusCode::OK,
            format!("ready, but {}\n", details.join("; ")),
        )
    }
}

fn text(status: StatusCode, body: impl Into<String>) -> Response<String> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, plain);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
