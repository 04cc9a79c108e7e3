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
    listeners::{L4BufferSettings, ListenerConfig},
    protocols::Stream,
    proxy::{HttpProxy, ProxyServiceBuilder},
    server::{RunArgs, Server, ShutdownWatch, configuration::ServerConf},
    services::listening::Service,
};
use signpost_store::{Database, changes, changes::Watch};

use crate::{
    apps::{
        directory::{AppDirectory, CachedApps},
        seal::Sealer,
        sqlite::SqliteAppStore,
        store::AppStore,
    },
    config::{Applications, Config},
    downstream::connection::{Http1Connections, Proxy},
    drain::{Drain, Signals},
    gateway::Gateway,
    management::Management,
    phases::record::AccessLog,
    proxying::Proxying,
    upstream::BackendConnector,
};

/// Idle connections to backends that are kept: more than one machine's clients have under way at once.
const UPSTREAM_POOL: usize = 1024;

/// Serves until a signal ends the process.
///
/// # Errors
///
/// The store cannot be opened, or an address is taken.
pub fn run(config: Config) -> anyhow::Result<()> {
    // pingora panics when it cannot listen; this says why, before anything else happens.
    probe(&config)?;
    // The watch lasts as long as the process.
    let (apps, store, _watch) = applications(&config)?;
    let mut server = Server::new_with_opt_and_conf(None, pingora_conf(&config));
    server.bootstrap();
    let (listen, management) = (config.listen, config.management);
    tracing::info!(%listen, %management, public_url = %config.public_url, "signpost is serving");
    let drain = Arc::new(Drain::new());
    let access_log = config.log.access.then(AccessLog::start).transpose()?;
    let mut clients = clients_service(
        config,
        apps,
        Arc::clone(&drain),
        access_log.clone(),
        &server.configuration,
    )?;
    // Heads and bodies are read into buffers of our own: one more for each connection would only cost memory.
    let unbuffered_reads = L4BufferSettings::default().read(0);
    clients.add_listener(ListenerConfig::tcp(listen.to_string()).l4_buffer(unbuffered_reads));
    let mut health = Service::new("management".to_owned(), Management { listen, store });
    health.add_tcp(&management.to_string());
    health.threads = Some(1);
    server.add_service(clients);
    server.add_service(health);
    let (end, ended) = mpsc::channel();
    let signals = Signals {
        drain,
        access_log,
        end,
    };
    thread::Builder::new()
        .name("server".to_owned())
        .spawn(move || {
            server.run(RunArgs {
                shutdown_signal: Box::new(signals),
            });
        })
        .context("cannot start the server")?;
    // Nothing is under way any more when the end is told, so nobody waits for pingora's runtimes to stop: the threads
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

type Store = Option<Arc<dyn AppStore>>;

/// The applications; if there is a store behind them, that and the watch over its changes.
fn applications(config: &Config) -> anyhow::Result<(AppDirectory, Store, Option<Watch>)> {
    let profile = config.sign.profile.clone();
    let multi = match &config.applications {
        Applications::Single(key) => {
            return Ok((AppDirectory::single(key.clone(), profile), None, None));
        }
        Applications::Multi(multi) => multi,
    };
    let (database, store) = open_store(config, multi)?;
    let store: Arc<dyn AppStore> = Arc::new(store);
    let apps = Arc::new(CachedApps::new(Arc::clone(&store), multi.cache_entries));
    let told = Arc::clone(&apps);
    let watch = changes::watch(&database, move |change| told.on_change(&change))
        .context("cannot watch the store for changes")?;
    Ok((AppDirectory::Multi(apps), Some(store), Some(watch)))
}

/// Opens the store of applications, for the gateway and for its commands.
///
/// # Errors
///
/// The database or the master key cannot be opened, or is not the one that seals what is stored.
pub fn open_store(
    config: &Config,
    multi: &crate::config::MultiApplications,
) -> anyhow::Result<(Database, SqliteAppStore)> {
    let database = Database::open(&config.store)?;
    let sealed = SqliteAppStore::any_sealed_key(&database)?;
    let sealer = Sealer::from_config(&multi.master_key, config.store.path(), sealed.is_some())?;
    if let Some((ident, key)) = sealed {
        sealer.open(&key, ident).context(
            "the master key is not the one that the store's applications are sealed under: restore that one",
        )?;
    }
    let store = SqliteAppStore::new(database.clone(), sealer, config.sign.profile.clone());
    Ok((database, store))
}

fn clients_service(
    config: Config,
    apps: AppDirectory,
    drain: Arc<Drain>,
    access_log: Option<AccessLog>,
    server_conf: &Arc<ServerConf>,
) -> anyhow::Result<Service<HttpProxy<Proxying, BackendConnector>>> {
    let gateway = Arc::new(Gateway::new(config, apps, drain, access_log)?);
    // pingora hands over each connection as it comes, and takes back requests that are whole and verified.
    let mut options = HttpServerOptions::default();
    options.force_custom = true;
    let connector_options = ConnectorOptions::from_server_conf(server_conf);
    let connector = BackendConnector {
        connector: TransportConnector::new(Some(connector_options)),
        patience: gateway.timeouts.answer,
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
    let service = ProxyServiceBuilder::new(server_conf, proxying)
        .name("clients")
        .custom(connector, Arc::new(serve))
        .server_options(options)
        .build();
    Ok(service)
}

/// A connection being served. None is given back.
type Serving = Pin<Box<dyn Future<Output = Option<Stream>> + Send>>;

fn pingora_conf(config: &Config) -> ServerConf {
    ServerConf {
        threads: config.threads,
        // Requests are short and alike: a thread that looks for others' work loses more than it wins.
        work_stealing: false,
        upstream_keepalive_pool_size: UPSTREAM_POOL,
        ..ServerConf::default()
    }
}
