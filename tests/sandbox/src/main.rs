//! The program `sandbox-provider`: `sandbox-provider --callback http://127.0.0.1:8080/login`.
//!
//! For the demo and the tests only: it trusts every visitor.

use std::{
    io::{self, Write, stdout},
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, ensure};
use clap::Parser;
use sandbox_provider::{Settings, serve};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    select,
    signal::unix::{SignalKind, signal},
};
use url::Url;

/// Identity providers of several shapes (OAuth 2.0, OIDC), for demos and tests: any visitor can log in as any user.
#[derive(Debug, Parser)]
#[command(name = "sandbox-provider", version)]
struct Arguments {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:7100")]
    listen: SocketAddr,
    /// The client's registered callback.
    #[arg(long)]
    callback: Url,
    /// The client's id.
    #[arg(long, default_value = "signpost-demo")]
    client_id: String,
    /// The client's secret.
    #[arg(long, default_value = "sandbox-only-secret")]
    client_secret: String,
    /// Issuer, sent as `iss` with every redirect to the callback. Default: what each provider sends.
    #[arg(long)]
    issuer: Option<String>,
    /// Lifetime of an authorization code, in seconds.
    #[arg(long, default_value_t = 60)]
    code_seconds: u64,
    /// Delay of the answers for users with a slow fault, in seconds.
    #[arg(long, default_value_t = 30)]
    slow_seconds: u64,
    /// Only check whether the sandbox provider with these arguments is ready: exit code 0 or 1.
    #[arg(long)]
    health: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.health {
        return check_health(arguments.listen).await;
    }
    let listener = TcpListener::bind(arguments.listen).await.with_context(|| {
        format!(
            "cannot listen on {}: choose another address with --listen",
            arguments.listen
        )
    })?;
    let address = listener.local_addr()?;
    writeln!(stdout(), "sandbox provider ready on http://{address}")?;
    let settings = Settings {
        client_id: arguments.client_id,
        client_secret: arguments.client_secret,
        callback: arguments.callback,
        issuer: arguments.issuer,
        code_lifetime: Duration::from_secs(arguments.code_seconds),
        slowness: Duration::from_secs(arguments.slow_seconds),
    };
    select! {
        served = serve(listener, settings) => served.context("the listener failed"),
        stopped = stop_signal() => stopped.context("signals cannot be handled"),
    }
}

/// Waits for SIGTERM or SIGINT. The kernel ignores both for process 1, which it is in a container, unless there is a
/// handler.
async fn stop_signal() -> io::Result<()> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    select! {
        _ = terminate.recv() => (),
        _ = interrupt.recv() => (),
    }
    Ok(())
}

/// The container's health check. It is part of the program, since the image has no other HTTP client.
async fn check_health(listen: SocketAddr) -> anyhow::Result<()> {
    let mut address = listen;
    if listen.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let mut connection = TcpStream::connect(address)
        .await
        .with_context(|| format!("cannot connect to {address}"))?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    connection.read_to_string(&mut response).await?;
    ensure!(
        response.starts_with("HTTP/1.1 200 "),
        "not ready: {response}"
    );
    Ok(())
}
