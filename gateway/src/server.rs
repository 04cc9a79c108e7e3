//! Starts and runs the server: creates all parts, and serves until a signal ends the process.

use std::{
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
};

use anyhow::Context;
use arc_swap::ArcSwap;
use async_trait::async_trait;
use pingora::{
    apps::ServerApp,
    listeners::{L4BufferSettings, ListenerConfig, TcpSocketOptions},
    protocols::Stream,
    server::{RunArgs, Server, ShutdownWatch, configuration::ServerConf},
    services::listening::Service,
};
use signpost_kit::{
    config::{Loaded, Settings},
    descriptors::Descriptors,
    logging::{Logging, log_warnings},
    reload::{ReloadSignals, Reloader},
};
use tokio::{runtime::Runtime, sync::Mutex};

use crate::{
    apps::open::open_apps, client::ConnectionInfo, config::Config,
    descriptor_reserve::DescriptorReserve, drain::Drain, gateway::Gateway,
    http1::connection::Http1Connections, management::Management, observe::access_log::AccessLog,
    reload::GatewayReload, routing::monitor::resolve_all, stop::Stop,
};

/// Grace period after which pingora stops its runtimes. The process ends earlier: a shutdown takes ten minutes at most.
const PINGORA_GRACE_SECONDS: u64 = 3600;

/// Send buffer of a client connection, in bytes; Linux doubles it for its own bookkeeping.
///
/// Without a limit the kernel's buffer grows to 4 MiB, and a client that does not read pins all of it. 256 KiB hold
/// nearly every answer, and still allow 2.5 MB/s at a round-trip time of 100 ms.
const SEND_BUFFER: usize = 256 * 1024;

/// Serves with the configuration of `file` until a signal ends the process. `log` is the process' log.
///
/// # Errors
///
/// The store cannot be opened, or an address is in use.
pub(crate) fn run(loaded: Loaded<Config>, file: PathBuf, log: Logging) -> anyhow::Result<()> {
    let Loaded { config, settings } = loaded;
    let control = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot create the control thread")?;
    // First, because an unhandled SIGHUP would end a process that is still starting.
    let hangups = control.block_on(async { ReloadSignals::listen() });
    let hangups = hangups.context("cannot handle SIGHUP")?;
    log_warnings(&config.warnings());
    let descriptors = Descriptors::raise_limit();
    // pingora panics if it cannot listen; this reports the reason first.
    probe_addresses(&config)?;
    // Holds the store's change watch, which must live as long as the process.
    let apps = open_apps(&config)?;
    let store = apps
        .store
        .clone()
        .map(|store| (config.store.clone(), store));
    let mut server = Server::new_with_opt_and_conf(None, pingora_conf());
    server.bootstrap();
    let (listen, management, threads) = (config.listen, config.management, config.threads);
    let public_url = config.public_url.clone();
    let drain = Arc::new(Drain::new());
    let access_log = AccessLog::start(log.writer().clone())?;
    let gateway = Gateway::new(config, apps.directory, drain, Some(access_log))?;
    let current = Arc::new(ArcSwap::from_pointee(gateway));
    for service in client_services(&current, listen, threads, descriptors) {
        server.add_service(service);
    }
    let health = Management {
        listen,
        store: store.as_ref().map(|(_, store)| store.clone()),
        current: Arc::clone(&current),
    };
    health.start(management, descriptors)?;
    let reload = GatewayReload {
        current: Arc::clone(&current),
        monitor: Mutex::default(),
        log: log.clone(),
        listen,
        management,
        store,
    };
    start_control(control, hangups, reload, file, settings)?;
    tracing::info!(
        %listen, %management, %public_url,
        "signpost {} is listening on {listen}, management on {management}",
        env!("CARGO_PKG_VERSION")
    );
    let (end, ended) = mpsc::channel();
    let stop = Stop {
        current,
        log: log.writer().clone(),
        end,
    };
    thread::Builder::new()
        .name("server".to_owned())
        .spawn(move || {
            server.run(RunArgs {
                shutdown_signal: Box::new(stop),
            });
        })
        .context("cannot start the server")?;
    // The process ends without waiting for pingora's runtimes: without work stealing, their threads never stop trying
    // to accept connections (0.9.1).
    ended.recv().context("the server stopped by itself")
}

/// Starts the control thread, which serves no requests: it monitors the backends' addresses and reloads the
/// configuration.
fn start_control(
    runtime: Runtime,
    hangups: ReloadSignals,
    reload: GatewayReload,
    file: PathBuf,
    settings: Settings,
) -> anyhow::Result<()> {
    let reloader = runtime.block_on(async {
        let balancers: Vec<_> = reload.current.load().balancers().collect();
        // Resolves names before the first request needs them. If a name cannot be resolved, the gateway starts
        // nevertheless.
        resolve_all(&balancers).await;
        reload.monitor.lock().await.follow(balancers.into_iter());
        Reloader::new(reload, file, settings, hangups)
    });
    thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || runtime.block_on(reloader.run()))
        .context("cannot create the control thread")?;
    Ok(())
}

/// Checks that the gateway can listen on both addresses at the same time.
fn probe_addresses(config: &Config) -> anyhow::Result<()> {
    let listen = |(address, key): (SocketAddr, &str)| {
        TcpListener::bind(address).with_context(|| {
            format!("cannot listen on {address} ({key}): is the port in use by another program, or by another instance of this one?")
        })
    };
    let addresses = [
        (config.listen, "listen"),
        (config.management, "management.listen"),
    ];
    addresses
        .into_iter()
        .map(listen)
        .collect::<Result<Vec<_>, _>>()
        .map(drop)
}

/// Creates one service per thread, each with its own listening socket (`SO_REUSEPORT`).
///
/// The kernel assigns each new connection to one socket. The connection stays on that thread, with its backend
/// connections. A service with several threads would accept on one thread and wake the others for every read.
fn client_services(
    current: &Arc<ArcSwap<Gateway>>,
    listen: SocketAddr,
    threads: usize,
    descriptors: Descriptors,
) -> Vec<Service<Clients>> {
    let reserve = Arc::new(DescriptorReserve::new(descriptors));
    let service = |number: usize| {
        let connections = Http1Connections {
            current: Arc::clone(current),
        };
        let mut service = Service::new(format!("clients-{number}"), Clients(connections));
        service.threads = Some(1);
        service.set_connection_filter(Arc::clone(&reserve) as _);
        let mut socket = TcpSocketOptions::default();
        socket.tcp_snd_buf = Some(SEND_BUFFER);
        socket.so_reuseport = Some(true);
        service.add_listener(
            ListenerConfig::tcp(listener_name(listen, number))
                // The gateway reads and writes in large pieces: another buffer would only cost memory.
                .l4_buffer(L4BufferSettings::unbuffered())
                .tcp_socket_options(socket),
        );
        service
    };
    (0..threads).map(service).collect()
}

/// The address, with `number` zeros in front of its port. pingora treats two listeners with the same name as one
/// socket, and closes it twice (0.9.1).
fn listener_name(address: SocketAddr, number: usize) -> String {
    let text = address.to_string();
    let (host, port) = text.rsplit_once(':').unwrap_or((&text, ""));
    format!("{host}:{}{port}", "0".repeat(number))
}

/// Serves the connections that pingora accepts.
struct Clients(Http1Connections);

#[async_trait]
impl ServerApp for Clients {
    async fn process_new(self: &Arc<Self>, stream: Stream, _: &ShutdownWatch) -> Option<Stream> {
        let digest = stream.get_socket_digest();
        let address = digest
            .as_ref()
            .and_then(|digest| digest.peer_addr()?.as_inet());
        if let Some(address) = address {
            let (clients, client) = (Arc::clone(self), ConnectionInfo::plain(address.ip()));
            // Runs on the same thread, since its runtime has only one. A new task, because pingora's own is large
            // enough for a TLS handshake, memory that an idle connection would hold for its whole life.
            tokio::spawn(async move { clients.0.serve(stream, client).await });
        }
        None
    }
}

fn pingora_conf() -> ServerConf {
    ServerConf {
        // Connections stay on the thread that accepted them.
        work_stealing: false,
        grace_period_seconds: Some(PINGORA_GRACE_SECONDS),
        ..ServerConf::default()
    }
}

#[cfg(test)]
mod tests {
    use std::net::ToSocketAddrs;

    use super::*;

    #[test]
    fn listeners_of_one_address_have_different_names() {
        for address in ["127.0.0.1:8080", "[::1]:443", "[fe80::1%2]:80", "0.0.0.0:1"] {
            let address: SocketAddr = address.parse().unwrap();
            let names: Vec<_> = (0..64)
                .map(|number| listener_name(address, number))
                .collect();
            let different: std::collections::BTreeSet<_> = names.iter().collect();
            assert_eq!(different.len(), names.len());
            for name in names {
                let found: Vec<_> = name.to_socket_addrs().unwrap().collect();
                assert_eq!(found, [address], "{name}");
            }
        }
    }
}
