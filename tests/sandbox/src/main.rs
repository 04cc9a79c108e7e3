//! The sandbox provider as a program: `sandbox-provider --callback http://127.0.0.1:8080/login`.
//!
//! For the demo and the tests only. It listens where it is told and trusts everybody.

use std::{
    io::{Write, stdout},
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, ensure};
use clap::Parser;
use sandbox_provider::{Settings, serve};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use url::Url;

/// A sign-in provider of Bitbucket's shape that lets anybody in.
#[derive(Debug, Parser)]
#[command(name = "sandbox-provider", version)]
struct Arguments {
    /// Where to listen.
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
    /// Sent as `iss` with every answer of the page; nothing is sent without it.
    #[arg(long)]
    issuer: Option<String>,
    /// How long a code can be exchanged, in seconds.
    #[arg(long, default_value_t = 60)]
    code_seconds: u64,
    /// How long a slow user keeps the caller waiting, in seconds.
    #[arg(long, default_value_t = 30)]
    slow_seconds: u64,
    /// Only ask the sandbox provider that runs with these arguments whether it is up: exit code 0 or 1.
    #[arg(long)]
    health: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.health {
        return ask(arguments.listen).await;
    }
    let listener = TcpListener::bind(arguments.listen).await.with_context(|| {
        format!(
            "cannot listen on {}: choose another --listen",
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
    serve(listener, settings)
        .await
        .context("the listener failed")
}

/// What a container's health check runs, since nothing else that could ask needs to be there.
async fn ask(listen: SocketAddr) -> anyhow::Result<()> {
    let mut address = listen;
    if listen.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let mut connection = TcpStream::connect(address)
        .await
        .context("nobody listens")?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    ensure!(
        answer.starts_with("HTTP/1.1 200 "),
        "it is not up: {answer}"
    );
    Ok(())
}
