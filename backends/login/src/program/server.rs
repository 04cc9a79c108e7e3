//! The server: listens, serves, and shuts down gracefully.

use std::{
    net::SocketAddr,
    os::fd::{AsFd, OwnedFd},
};

use anyhow::Context;
use axum::{
    body::Body,
    extract::{ConnectInfo, Request},
};
use hyper::body::Incoming;
use signpost_kit::server::{
    backlog::{self, LAST_ACCEPTS},
    listener,
    shutdown::{Phase, ShutdownSettings},
    signals::StopSignals,
    socket::listen_on,
};
use tokio::{
    net::TcpListener,
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use super::{
    management::{self, ProcessCounts},
    running::Running,
    sweeper::sweep_until_stopped,
};
use crate::http::Routes;

/// Serves until SIGTERM or SIGINT.
pub(super) async fn serve(running: &Running, counts: ProcessCounts) -> anyhow::Result<()> {
    let program = &running.program;
    let address = running.service().config().listen;
    let listener = listen_on(address).and_then(TcpListener::from_std);
    let listener = listener.with_context(|| format!("cannot listen on {address}: is the port in use by another program, or by another instance of this one?"))?;
    // Both addresses before anything is served: one that is in use ends the start.
    let management = management::bind(&running.service())?;
    let signals = StopSignals::listen().context("cannot handle SIGTERM and SIGINT")?;
    let address = listener.local_addr()?;
    // A second descriptor, since the server takes the listener: a stop must reach the socket before it is closed.
    let socket = listener.as_fd().try_clone_to_owned()?;
    tracing::info!(
        %address, program.name = program.name, program.version = program.version,
        "the login service is listening"
    );
    // It goes on while the requests in flight finish.
    let _management = management
        .map(|management| management.start(running, counts))
        .transpose()?;
    let sweeper = tokio::spawn(sweep_until_stopped(running.clone()));
    let (settings, current) = (running.clone(), running.clone());
    let handler =
        move |request: hyper::Request<Incoming>, peer| response(current.routes(), request, peer);
    let server = listener::serve(
        listener,
        move || settings.http_settings(),
        running.state().phase.subscribe(),
        listener::plain,
        handler,
    );
    stop(running, signals, socket, tokio::spawn(server)).await;
    sweeper.abort();
    Ok(())
}

async fn response(
    routes: Routes,
    request: hyper::Request<Incoming>,
    peer: SocketAddr,
) -> axum::response::Response {
    let mut request: Request = request.map(Body::new);
    request.extensions_mut().insert(ConnectInfo(peer));
    routes.serve(request).await
}

/// Waits for a signal, then for the requests in flight. A second signal ends the wait.
async fn stop(
    running: &Running,
    mut signals: StopSignals,
    socket: OwnedFd,
    server: JoinHandle<()>,
) {
    signals.next().await;
    let state = running.state();
    let settings = running.service().config().shutdown;
    let ShutdownSettings { drain_delay, grace } = settings;
    tracing::info!(
        drain_delay_seconds = drain_delay.as_secs(),
        grace_seconds = grace.as_secs(),
        "stopping: new requests are served for the drain delay, then those in flight have the grace period"
    );
    state.phase.send_replace(Phase::Draining);
    tokio::select! {
        () = sleep(drain_delay) => {}
        () = signals.next() => return,
    }
    // As at the gateway: requests that wait in the backlog must be accepted before the kernel resets them.
    backlog::hold(&socket);
    // Dropped before the server closes its own descriptor: otherwise the socket would stay open, and connections would
    // wait in it for nobody.
    drop(socket);
    sleep(LAST_ACCEPTS).await;
    state.phase.send_replace(Phase::Closing);
    let closed_at = Instant::now();
    let all = async {
        // An error can only be a panic, which the panic hook has logged.
        let _ = server.await;
        // After the server: its requests still begin tasks, which finish logins of browsers that have left.
        state.tasks.close();
        state.tasks.wait().await;
    };
    let give_up = async {
        sleep_until(closed_at + settings.wait_timeout()).await;
        state.phase.send_replace(Phase::GivingUp);
        // As at the gateway: the responses get their time even if the machine has paused.
        sleep(grace - settings.wait_timeout()).await;
    };
    tokio::select! {
        () = all => {}
        () = give_up => tracing::warn!(
            grace_seconds = grace.as_secs(),
            "aborted requests still in flight after the grace period"
        ),
        () = signals.next() => {}
    }
}
