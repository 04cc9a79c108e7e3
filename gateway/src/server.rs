//! The running program: everything is put together here, and served until a signal ends it.

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
    reload::{Hangups, Reloader},
};
use tokio::{runtime::Runtime, sync::Mutex};

use crate::{
    apps::open::open_apps, config::Config, descriptor_reserve::DescriptorReserve, drain::Drain,
    gateway::Gateway, http1::connection::Http1Connections, management::Management,
    observe::access_log::AccessLog, reload::GatewayReload, routing::watching::look_up, stop::Stop,
};

/// pingora stops its runtimes after this. The process has ended long before: a stop takes ten minutes at most.
const PINGORA_GRACE_SECONDS: u64 = 3600;

/// What the kernel may hold of an answer that a client has not taken, in bytes; Linux counts twice as much, for what it
/// needs beside the data. Without a bound it grows to 4 MiB a connection, of which a client that reads nothing, or claims
/// to have a large window, pins all. More than nearly every answer has; and a connection of 100 ms still gets 2.5 MB/s.
const SEND_BUFFER: usize = 256 * 1024;

/// Serves by the configuration of `file` until a signal ends the process. `log` is what the process logs to.
///
/// # Errors
///
/// The store cannot be opened, or an address is taken.
pub(crate) fn run(loaded: Loaded<Config>, file: PathBuf, log: Logging) -> anyhow::Result<()> {
    let Loaded { config, settings } = loaded;
    let control = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot create the control thread")?;
    // First of all, so that a SIGHUP ends no process that is still starting.
    let hangups = control.block_on(async { Hangups::listen() });
    let hangups = hangups.context("cannot handle SIGHUP")?;
    log_warnings(&config.warnings());
    let descriptors = Descriptors::raise_limit();
    // pingora panics when it cannot listen; this says why, before anything else happens.
    probe(&config)?;
    // Its watch lasts as long as this function, which is as long as the process.
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
    tracing::info!(%listen, %management, %public_url, "signpost is serving");
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
    // The process ends without waiting for pingora's runtimes: the threads of one without work stealing go on accepting,
    // and failing to, for ever (0.9.1).
    ended.recv().context("the server stopped by itself")
}

/// Starts the thread that takes no requests: it watches over the addresses of backends, and reloads the configuration.
fn start_control(
    runtime: Runtime,
    hangups: Hangups,
    reload: GatewayReload,
    file: PathBuf,
    settings: Settings,
) -> anyhow::Result<()> {
    let reloader = runtime.block_on(async {
        let balancers: Vec<_> = reload.current.load().balancers().collect();
        // Before the first request asks for an address. A name that cannot be resolved is no reason not to start.
        look_up(&balancers).await;
        reload.monitor.lock().await.follow(balancers.into_iter());
        Reloader::new(reload, file, settings, hangups)
    });
    thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || runtime.block_on(reloader.run()))
        .context("cannot create the control thread")?;
    Ok(())
}

/// Whether both addresses can be listened on, both at once.
fn probe(config: &Config) -> anyhow::Result<()> {
    let listen = |(address, key): (SocketAddr, &str)| {
        TcpListener::bind(address).with_context(|| {
            format!("cannot listen on {address} ({key}): is something else running there?")
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

/// Serves clients: for each thread a service of its own, with a listening socket of its own (`SO_REUSEPORT`).
///
/// The kernel gives each new connection to one of them. Everything of a connection then happens on that one thread, its
/// connections to backends included: a service of several threads accepts on one, and wakes the others for every byte.
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
                // The gateway reads and writes whole pieces: further buffers would only cost memory.
                .l4_buffer(L4BufferSettings::unbuffered())
                .tcp_socket_options(socket),
        );
        service
    };
    (0..threads).map(service).collect()
}

/// The address, written with as many zeros in front of its port as there are listeners before it: pingora takes two
/// listeners of one name for one socket, and closes that twice (0.9.1).
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
            let (clients, client) = (Arc::clone(self), address.ip());
            // On the same thread, since its runtime has no other. pingora's own task has room for a TLS handshake, which
            // an idle connection would hold for all of its life.
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
