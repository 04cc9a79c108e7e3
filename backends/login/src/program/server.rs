//! Listening, serving, and stopping without dropping what is under way.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context;
use axum::{Router, serve::ListenerExt};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use super::{Program, sweeper::sweep_until_stopped};
use crate::service::Service;

/// What is under way when the process is told to stop has this long to end.
const GRACE: Duration = Duration::from_secs(5);

/// Serves until SIGTERM or SIGINT.
pub(super) async fn serve(
    program: &Program,
    service: &Arc<Service>,
    app: Router,
) -> anyhow::Result<()> {
    let address = service.config().listen();
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address}: is another program, or an earlier start of this one, using the port?"))?;
    let mut terminate = signal(SignalKind::terminate()).context("no SIGTERM handler")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("no SIGINT handler")?;
    tracing::info!(address = %listener.local_addr()?, "{} {} listens on {}", program.name, program.version, listener.local_addr()?);
    let sweeper = tokio::spawn(sweep_until_stopped(Arc::clone(service)));

    // Answers are small and written at once: waiting to fill a packet only delays them.
    let listener = listener.tap_io(|connection| {
        if let Err(cause) = connection.set_nodelay(true) {
            tracing::debug!(%cause, "a connection cannot be told to send at once");
        }
    });
    let stopping = Arc::clone(service);
    let server = axum::serve(
        listener,
        app.into_make_service_with_connect_info::<SocketAddr>(),
    )
    .with_graceful_shutdown(async move { stopping.stopped().await });
    let mut server = tokio::spawn(server.into_future());
    tokio::select! {
        ended = &mut server => return ended.context("the server broke off")?.context("the server ended"),
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("{} stops", program.name);
    service.stop();
    if tokio::time::timeout(GRACE, server).await.is_err() {
        tracing::warn!(
            "requests under way were cut off after {} s",
            GRACE.as_secs()
        );
    }
    sweeper.abort();
    Ok(())
}
