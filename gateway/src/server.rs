//! The running program: everything is put together here, and served until a signal ends it.

use std::{
    net::{SocketAddr, TcpListener},
    pin::Pin,
    sync::{Arc, mpsc},
    thread,
};

use anyhow::Context;
use pingora::{
    apps::HttpServerOptions,
    connectors::{ConnectorOptions, TransportConnector},
    listeners::{L4BufferSettings, ListenerConfig, TcpSocketOptions},
    protocols::Stream,
    proxy::{HttpProxy, ProxyServiceBuilder},
    server::{RunArgs, Server, ShutdownWatch, configuration::ServerConf},
    services::{background::GenBackgroundService, listening::Service},
};

use signpost_process::{descriptors::Descriptors, log_writer::LogWriter};

use crate::{
    apps::open::open_apps,
    balance::{Balancer, watching, watching::Watching},
    config::Config,
    descriptor_reserve::DescriptorReserve,
    downstream::connection::{Http1Connections, Proxy},
    drain::{Drain, Stop},
    gateway::Gateway,
    management::Management,
    phases::record::AccessLog,
    proxying::Proxying,
    upstream::BackendConnector,
};

/// Idle connections to backends that are kept: more than one machine's clients have under way at once.
const UPSTREAM_POOL: usize = 1024;
/// pingora stops its runtimes after this. The process has ended long before: a stop takes ten minutes at most.
const PINGORA_GRACE_SECONDS: u64 = 3600;

/// What the kernel may hold of an answer that a client has not taken, in bytes; Linux counts twice as much, for what it
/// needs beside the data. Without a bound it grows to 4 MiB a connection, of which a client that reads nothing, or claims
/// to have a large window, pins all. More than nearly every answer has; and a connection of 100 ms still gets 2.5 MB/s.
const SEND_BUFFER: usize = 256 * 1024;

/// Serves until a signal ends the process. `log` is what the process logs to.
///
/// # Errors
///
/// The store cannot be opened, or an address is taken.
pub fn run(config: Config, log: LogWriter) -> anyhow::Result<()> {
    let descriptors = Descriptors::raise_limit();
    // pingora panics when it cannot listen; this says why, before anything else happens.
    probe(&config)?;
    // Its watch lasts as long as this function, which is as long as the process.
    let apps = open_apps(&config)?;
    let mut server = Server::new_with_opt_and_conf(None, pingora_conf(&config));
    server.bootstrap();
    let (listen, management) = (config.listen, config.management);
    let public_url = config.public_url.clone();
    let drain = Arc::new(Drain::new());
    let (timeouts, settings) = (config.timeouts, config.shutdown);
    let access_log = config.log.access.then(|| AccessLog::start(log.clone()));
    let access_log = access_log.transpose()?;
    let gateway = Gateway::new(
        config,
        apps.directory,
        Arc::clone(&drain),
        access_log.clone(),
    )?;
    let balancers: Vec<_> = gateway.balancers.iter().flatten().cloned().collect();
    let refusals = Arc::clone(&gateway.refusals);
    let versions = gateway.versions.iter();
    let versions = versions.map(|backend| backend.version.clone()).collect();
    let mut clients = clients_service(gateway, &server.configuration);
    clients.set_connection_filter(Arc::new(DescriptorReserve::new(descriptors)));
    // Heads and bodies are read into buffers of our own: one more for each connection would only cost memory.
    let unbuffered_reads = L4BufferSettings::default().read(0);
    let mut socket = TcpSocketOptions::default();
    socket.tcp_snd_buf = Some(SEND_BUFFER);
    clients.add_listener(
        ListenerConfig::tcp(listen.to_string())
            .l4_buffer(unbuffered_reads)
            .tcp_socket_options(socket),
    );
    server.add_service(clients);
    let health = Management {
        listen,
        store: apps.store,
        refusals,
        versions,
        balancers: balancers.clone(),
        drain: Arc::clone(&drain),
    };
    health.start(management, &timeouts, descriptors)?;
    if !balancers.is_empty() {
        look_up(&balancers)?;
        let watching = Arc::new(Watching(balancers));
        server.add_service(GenBackgroundService::new("backends".to_owned(), watching));
    }
    tracing::info!(%listen, %management, %public_url, "signpost is serving");
    let (end, ended) = mpsc::channel();
    let stop = Stop {
        settings,
        drain,
        access_log,
        log,
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
    // Nothing is in flight any more when the end is told, so nobody waits for pingora's runtimes to stop: the threads
    // of one without work stealing go on accepting, and failing to, for ever (0.9.1).
    ended.recv().context("the server stopped by itself")
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

/// Finds the addresses of backends before the first request asks for one. A name that cannot be looked up is no
/// reason not to start.
fn look_up(balancers: &[Arc<Balancer>]) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot look up backends")?;
    runtime.block_on(watching::look_up(balancers));
    // Not waiting for a name service that is still silent.
    runtime.shutdown_background();
    Ok(())
}

fn clients_service(
    gateway: Gateway,
    server_conf: &Arc<ServerConf>,
) -> Service<HttpProxy<Proxying, BackendConnector>> {
    let gateway = Arc::new(gateway);
    // pingora hands over each connection as it comes, and takes back requests that are whole and verified.
    let mut options = HttpServerOptions::default();
    options.force_custom = true;
    let connector_options = ConnectorOptions::from_server_conf(server_conf);
    let connector = BackendConnector {
        connector: TransportConnector::new(Some(connector_options)),
        patience: gateway.timeouts.forward,
        drain: Arc::clone(&gateway.drain),
    };
    let proxying = Proxying::new(Arc::clone(&gateway));
    let connections = Arc::new(Http1Connections { gateway });
    let serve = move |proxy: Proxy, stream: Stream, shutdown: &ShutdownWatch| -> Serving {
        let (connections, shutdown) = (Arc::clone(&connections), shutdown.clone());
        Box::pin(async move {
            connections.serve(stream, proxy, shutdown).await;
            None
        })
    };
    ProxyServiceBuilder::new(server_conf, proxying)
        .name("clients")
        .custom(connector, Arc::new(serve))
        .server_options(options)
        .build()
}

/// A connection being served. None is given back.
type Serving = Pin<Box<dyn Future<Output = Option<Stream>> + Send>>;

fn pingora_conf(config: &Config) -> ServerConf {
    ServerConf {
        threads: config.threads,
        // Requests are short and alike: a thread that looks for others' work loses more than it wins.
        work_stealing: false,
        upstream_keepalive_pool_size: UPSTREAM_POOL,
        grace_period_seconds: Some(PINGORA_GRACE_SECONDS),
        ..ServerConf::default()
    }
}
