//! Listening, serving, and stopping without dropping what is in flight.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, Request},
};
use hyper::body::Incoming;
use signpost_kit::{
    descriptors::Descriptors,
    http_server::{self, HttpSettings},
    shutdown::{Phase, ShutdownSettings, StopSignals},
};
use tokio::{
    net::TcpListener,
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};
use tower::ServiceExt;

use super::{Program, sweeper::sweep_until_stopped};
use crate::service::Service;

/// Serves until SIGTERM or SIGINT.
pub(super) async fn serve(
    program: &Program,
    service: &Arc<Service>,
    app: Router,
) -> anyhow::Result<()> {
    let serving = *service.config().serving();
    let descriptors = Descriptors::raise_limit();
    let settings = HttpSettings {
        name: program.name,
        max_connections: descriptors.at_most(serving.max_connections),
        timeouts: serving.timeouts,
    };
    if settings.max_connections < serving.max_connections {
        tracing::warn!(
            "limits.connections is {}, but {} file descriptors are enough for {} connections only",
            serving.max_connections,
            descriptors.limit(),
            settings.max_connections
        );
    }
    let address = service.config().listen();
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address}: is another program, or an earlier start of this one, using the port?"))?;
    let signals = StopSignals::listen().context("no handlers for SIGTERM and SIGINT")?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "{} {} listens on {address}", program.name, program.version);
    let sweeper = tokio::spawn(sweep_until_stopped(Arc::clone(service)));
    let handler = move |request: hyper::Request<Incoming>, peer| answer(app.clone(), request, peer);
    let server = http_server::serve(
        listener,
        move || settings.clone(),
        service.phases(),
        handler,
    );
    stop(service, signals, serving.shutdown, tokio::spawn(server)).await;
    sweeper.abort();
    Ok(())
}

async fn answer(
    app: Router,
    request: hyper::Request<Incoming>,
    peer: SocketAddr,
) -> axum::response::Response {
    let mut request: Request = request.map(Body::new);
    request.extensions_mut().insert(ConnectInfo(peer));
    match app.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// Waits for a signal, and then for what is in flight. A second signal ends the wait.
async fn stop(
    service: &Service,
    mut signals: StopSignals,
    settings: ShutdownSettings,
    server: JoinHandle<()>,
) {
    signals.next().await;
    let ShutdownSettings { drain_delay, grace } = settings;
    tracing::info!(
        "stopping: new requests are served for another {} s, then those in flight have {} s",
        drain_delay.as_secs(),
        grace.as_secs()
    );
    service.enter(Phase::Draining);
    tokio::select! {
        () = sleep(drain_delay) => {}
        () = signals.next() => return,
    }
    service.enter(Phase::Closing);
    let closed_at = Instant::now();
    let all = async {
        // An error would be a panic, which was logged.
        let _ = server.await;
        service.finished().await;
    };
    let give_up = async {
        sleep_until(closed_at + settings.patience()).await;
        service.enter(Phase::GivingUp);
        sleep_until(closed_at + grace).await;
    };
    tokio::select! {
        () = all => {}
        () = give_up => tracing::warn!("requests in flight were cut off after {} s", grace.as_secs()),
        () = signals.next() => {}
    }
}
