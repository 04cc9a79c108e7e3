//! The management listener: what `/readyz` says, and the metrics of the program. `conf/guides/operate.md`.

use std::{net::TcpListener, sync::Arc};

use anyhow::Context;
use http::{Response, StatusCode};
use signpost_kit::{
    config::shared_keys::ManagementSettings,
    log::writer::{DroppedLines, write_dropped},
    metrics::{Metrics, process, store},
    reload::LastReload,
    server::{
        listener::HttpTimeouts,
        management::{Management, Readiness, text},
        shutdown::Phase,
        socket::listen_on,
    },
    trace::write_spans,
};
use signpost_store::StoreError;
use tokio::sync::watch;

use super::{Program, running::Running};
use crate::service::{Service, State};

/// The bound address of `management.listen`.
pub(super) struct BoundManagement {
    settings: ManagementSettings,
    listener: TcpListener,
}

/// What the metrics show besides the service's own state.
pub(super) struct ProcessCounts {
    pub last_reload: Arc<LastReload>,
    pub dropped_lines: DroppedLines,
}

/// Binds the address, if the configuration has one.
///
/// # Errors
///
/// The address is in use.
pub(super) fn bind(service: &Service) -> anyhow::Result<Option<BoundManagement>> {
    let Some(settings) = service.config().management.clone() else {
        return Ok(None);
    };
    let address = settings.listen;
    let listener = listen_on(address).with_context(|| {
        format!("cannot listen on {address} (management.listen): is the port in use by another program, or by another instance of this one?")
    })?;
    Ok(Some(BoundManagement { settings, listener }))
}

impl BoundManagement {
    /// Serves on a thread of its own, as long as what this returns is not dropped.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub(super) fn start(
        self,
        running: &Running,
        counts: ProcessCounts,
    ) -> anyhow::Result<watch::Sender<Phase>> {
        let ManagementSettings { listen, hosts } = self.settings;
        let management = Management {
            hosts,
            readiness: running.clone(),
            metrics: metrics(&running.program, running.state(), counts),
            tls: None,
            other: None,
        };
        let (phase, phases) = watch::channel(Phase::Serving);
        management.start(self.listener, running.state().descriptors, phases)?;
        tracing::info!(management = %listen, "management is listening");
        Ok(phase)
    }
}

/// All sources of the program's metrics.
fn metrics(program: &Program, state: Arc<State>, counts: ProcessCounts) -> Metrics {
    let (name, version) = (program.name, program.version);
    let (counted, spans) = (Arc::clone(&state.metrics), Arc::clone(&state.spans));
    let store = state.database.clone();
    Metrics::default()
        .with(move |scrape| process::write(scrape, name, version))
        .with(move |scrape| store::write(scrape, Some(&store.statistics())))
        .with(move |scrape| counted.write(scrape))
        .with(move |scrape| counts.last_reload.write(scrape))
        .with(move |scrape| write_dropped(scrape, &counts.dropped_lines))
        .with(move |scrape| write_spans(scrape, &spans))
        .with(move |scrape| state.write_caches(scrape))
}

impl Readiness for Running {
    fn timeouts(&self) -> HttpTimeouts {
        self.http_settings().timeouts
    }

    async fn readiness(&self) -> Response<String> {
        let state = self.state();
        let reason = match state.probe().await {
            None => "stopping".into(),
            Some(Ok(())) => return text(StatusCode::OK, "ready\n"),
            Some(Err(StoreError::NotWritable(reason))) => reason,
            Some(Err(_)) => "the store is unavailable".into(),
        };
        text(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n"))
    }
}
