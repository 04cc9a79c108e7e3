//! The management listener of a program: `/healthz`, `/readyz` and `/metrics`, in plain text. CONTRACT 10.
//!
//! It has its own thread and reserved file descriptors, so that it answers under any client load.

use std::{
    net::{SocketAddr, TcpListener},
    sync::{Arc, mpsc},
    thread,
};

use anyhow::Context;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use tokio::sync::watch;

use crate::{
    descriptors::Descriptors,
    http_server::{self, HttpSettings, HttpTimeouts},
    metrics::Metrics,
    shutdown::Phase,
};

/// Limit of connections: orchestrators, load balancers and monitors open a few each. At most half of the descriptor
/// reserve, which the store and the backends need, too.
const MAX_CONNECTIONS: usize = 256;

/// What a program reports of itself.
pub trait Readiness: Send + Sync + 'static {
    /// The answer to `/readyz`, made by [`text`]. `phase` is that of the listener, not of the program.
    fn readiness(&self, phase: Phase) -> impl Future<Output = Response<String>> + Send;

    /// Whether `/metrics` is served; otherwise it answers 404.
    fn has_metrics(&self) -> bool {
        true
    }

    /// The timeouts of connections under the current configuration.
    fn timeouts(&self) -> HttpTimeouts;
}

/// A management listener to start.
#[derive(Debug)]
pub struct Management<R> {
    /// What `/readyz` shows.
    pub readiness: R,
    /// What `/metrics` shows.
    pub metrics: Metrics,
}

impl<R: Readiness> Management<R> {
    /// Starts a thread that serves until the process ends. During a graceful shutdown it goes on, so that monitors can
    /// observe it, unless `phases` ends it: it is that of the listener alone.
    ///
    /// # Errors
    ///
    /// The process cannot get another descriptor or thread.
    pub fn start(
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
        let (sender, started) = mpsc::sync_channel(1);
        // The runtime is made within the thread: on an error it would be dropped here, at which tokio panics in
        // asynchronous code.
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            match runtime {
                Ok(runtime) => {
                    // The caller waits for it.
                    let _ = sender.send(Ok(()));
                    runtime.block_on(self.serve(listener, max_connections, phases));
                }
                Err(error) => drop(sender.send(Err(error))),
            }
        };
        thread::Builder::new()
            .name("management".to_owned())
            .spawn(serve)
            .context("cannot start management")?;
        let started = started.recv().context("cannot start management")?;
        started.context("cannot start management")
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
        let of_settings = Arc::clone(&management);
        let settings = move || HttpSettings {
            name: "management",
            max_connections,
            timeouts: of_settings.readiness.timeouts(),
        };
        let own_phase = phases.clone();
        let answer = move |request: Request<_>, _: SocketAddr| {
            let (management, phase) = (Arc::clone(&management), own_phase.clone());
            async move {
                let (path, headers) = (request.uri().path(), request.headers());
                let method = request.method();
                management.answer(method, path, headers, &phase).await
            }
        };
        http_server::serve(listener, settings, phases, answer).await;
    }

    async fn answer(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        phase: &watch::Receiver<Phase>,
    ) -> Response<String> {
        match (method == Method::GET, path) {
            (true, "/healthz") => text(StatusCode::OK, "alive\n"),
            (true, "/readyz") => {
                let phase = *phase.borrow();
                self.readiness.readiness(phase).await
            }
            (true, "/metrics") if !self.readiness.has_metrics() => {
                text(StatusCode::NOT_FOUND, "metrics.enabled is false\n")
            }
            (true, "/metrics") => self.metrics.answer(headers),
            (false, "/healthz" | "/readyz" | "/metrics") => {
                text(StatusCode::METHOD_NOT_ALLOWED, "use GET\n")
            }
            _ => text(
                StatusCode::NOT_FOUND,
                "not found; available: /healthz, /readyz, /metrics\n",
            ),
        }
    }
}

/// An answer in plain text.
pub fn text(status: StatusCode, body: impl Into<String>) -> Response<String> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, plain);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
