//! The start: creates all parts of the program, and serves until a signal ends the process.

use std::{
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use anyhow::Context;
use arc_swap::ArcSwap;
use async_trait::async_trait;
use pingora::{
    server::{ListenFds, RunArgs, Server, ShutdownWatch, configuration::ServerConf},
    services::Service,
};
use ring::hmac;
use sd_notify::NotifyState;
use signpost_kit::{
    config::{Loaded, Settings, origin::Origin},
    log::{Logging, log_warnings},
    reload::{ReloadSignals, Reloader},
    server::{
        descriptors::Descriptors, management::Management, notify_service_manager, shutdown::Phase,
    },
};
use signpost_release::RELEASE;
use signpost_store::Store;
use tokio::{
    runtime::Runtime,
    sync::{Mutex, Notify, watch},
};

use crate::{
    config::Config,
    directory::apps::{
        loader::AppLoader,
        open::{OpenApps, open_apps},
    },
    downstream::{
        listeners::{Clients, bound_socket, start_listening},
        sockets::ListeningSockets,
    },
    gateway::{Gateway, State},
    observe::usage::writer::{UsageFlush, UsageWriter},
    process::{
        certificate_watch::CertificateWatch,
        rate_sharing::RateSharing,
        readiness::GatewayReadiness,
        reconnect,
        reload::{GatewayReload, Upgrade},
        scrape::metrics,
        stop::Stop,
        upgrade::{NewProcess, TakenOver},
    },
    upstream::routing::monitor::resolve_all,
};

/// Grace period after which pingora stops its runtimes. The process ends earlier: a shutdown takes ten minutes at most.
const PINGORA_GRACE_SECONDS: u64 = 3600;

/// Serves with the configuration of `file` until a signal ends the process. `log` is the process' log, `taken` what an
/// older process has handed over.
///
/// # Errors
///
/// The store cannot be opened, or an address is in use.
pub(crate) fn run(
    loaded: Loaded<Config>,
    file: PathBuf,
    log: Logging,
    taken: Option<&TakenOver>,
) -> anyhow::Result<()> {
    let Loaded { config, settings } = loaded;
    // First, because an unhandled SIGHUP would end a process that is still starting.
    let control = Control::new(&file, settings)?;
    log_warnings(&config.warnings());
    let descriptors = Descriptors::raise_limit();
    let sockets = Sockets::open(&config, taken)?;
    let (management, public_url) = (config.management.clone(), config.public_url.clone());
    let store_settings = config.store.clone();
    // Holds the store's change watch, which must live as long as the process.
    let mut apps = open_apps(&config)?;
    let mut server = Server::new_with_opt_and_conf(None, pingora_conf());
    server.bootstrap();
    let current = first_gateway(config, &mut apps, descriptors)?;
    let (mut writers, usage) = StoreWriters::new(&current, apps.store.as_ref(), apps.rate_key)?;
    writers.loader = apps.loader;
    let handed_over = Arc::new(Notify::new());
    let (management_phase, management_phases) = watch::channel(Phase::Serving);
    let addresses = sockets.addresses.clone();
    let reload = GatewayReload {
        current: Arc::clone(&current),
        monitor: Mutex::default(),
        log: log.clone(),
        addresses: addresses.clone(),
        management: management.listen,
        store: apps.store.clone(),
        store_settings,
        upgrade: Upgrade {
            new_process: NewProcess::new(&file)?,
            sockets: Arc::clone(&sockets.all),
            management: management_phase,
            handed_over: Arc::clone(&handed_over),
        },
    };
    control.start(reload, writers)?;
    let health = Management {
        hosts: management.hosts,
        readiness: GatewayReadiness {
            listen: addresses[0],
            store: apps.store,
            current: Arc::clone(&current),
        },
        metrics: metrics(&current, log.writer().dropped_lines()),
    };
    // From here on, connections wait for this process: what could fail has been done.
    let management_socket = sockets.serve(&mut server, &current, descriptors)?;
    health.start(management_socket, descriptors, management_phases)?;
    log_start(&addresses, management.listen, &public_url);
    let (stop, ended) = Stop::new(current, log.writer().clone(), usage, handed_over);
    run_in_background(server, stop)?;
    if let Some(taken) = taken {
        taken.ready()?;
    }
    notify_service_manager(&[NotifyState::Ready]);
    ended.recv().context("the server stopped by itself")
}

fn log_start(addresses: &[SocketAddr], management: SocketAddr, public_url: &Origin) {
    let listen = addresses.iter().map(SocketAddr::to_string);
    let listen = listen.collect::<Vec<_>>().join(", ");
    tracing::info!(
        listen, %management, %public_url, program.version = RELEASE,
        "signpost is listening"
    );
}

/// The gateway by the configuration of the start.
fn first_gateway(
    config: Config,
    apps: &mut OpenApps,
    descriptors: Descriptors,
) -> anyhow::Result<Arc<ArcSwap<Gateway>>> {
    let (state, stale) = (
        State::new(&config, &apps.directory, descriptors),
        config.stale,
    );
    let gateway = Gateway::new(config, apps.directory.clone(), state)?;
    if let Some(accounts) = apps.accounts.take() {
        // It was empty.
        let _ = gateway.state.accounts.set(accounts);
    }
    gateway.set_stale(stale);
    Ok(Arc::new(ArcSwap::from_pointee(gateway)))
}

/// Runs the server in a thread. The process ends without waiting for pingora's runtimes: without work stealing, their
/// threads never stop trying to accept connections (0.9.1).
fn run_in_background(server: Server, stop: Stop) -> anyhow::Result<()> {
    let shutdown_signal = Box::new(stop);
    thread::Builder::new()
        .name("server".to_owned())
        .spawn(move || server.run(RunArgs { shutdown_signal }))
        .context("cannot start the server")?;
    Ok(())
}

/// What reads and writes the store every few seconds; nothing in single-application mode.
struct StoreWriters {
    loader: Option<AppLoader>,
    rate_limits: Option<RateSharing>,
    usage: Option<UsageWriter>,
}

impl StoreWriters {
    /// Also returns what writes the last counts at a stop.
    fn new(
        current: &Arc<ArcSwap<Gateway>>,
        store: Option<&Store>,
        rate_key: Option<hmac::Key>,
    ) -> anyhow::Result<(Self, UsageFlush)> {
        let rate_limits = store.zip(rate_key).map(|(store, key)| {
            let current = Arc::clone(current);
            RateSharing::new(current, store.clone(), key)
        });
        let state = Arc::clone(&current.load().state);
        let usage = state.records.usage.as_ref().zip(store);
        let usage = usage.map(|(usage, store)| {
            let clock = Arc::clone(&state.clock);
            UsageWriter::new(Arc::clone(usage), store.clone(), clock)
        });
        let (usage, flush) = usage.transpose()?.unzip();
        let writers = Self {
            loader: None,
            rate_limits,
            usage,
        };
        Ok((writers, flush.unwrap_or(UsageFlush::none())))
    }
}

/// The control thread, which serves no requests: it monitors the backends' addresses, reloads the configuration, shares
/// what rate limits count, and writes the counts of requests.
struct Control {
    runtime: Runtime,
    hangups: ReloadSignals,
    file: PathBuf,
    settings: Settings,
}

impl Control {
    fn new(file: &Path, settings: Settings) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot create the control thread")?;
        let hangups = runtime.block_on(async { ReloadSignals::listen() });
        Ok(Self {
            hangups: hangups.context("cannot handle SIGHUP")?,
            runtime,
            file: file.to_owned(),
            settings,
        })
    }

    fn start(self, reload: GatewayReload, writers: StoreWriters) -> anyhow::Result<()> {
        let Self {
            runtime,
            hangups,
            file,
            settings,
        } = self;
        let certificates = CertificateWatch::new(Arc::clone(&reload.current));
        let reconnecting = reconnect::run(Arc::clone(&reload.current));
        let state = Arc::clone(&reload.current.load().state);
        let reloader = runtime.block_on(async {
            let balancers: Vec<_> = reload.current.load().policy.backends.balancers().collect();
            // Resolves names before the first request needs them. If a name cannot be resolved, the gateway starts
            // nevertheless.
            resolve_all(&balancers).await;
            reload.monitor.lock().await.follow(balancers.into_iter());
            if let Some(rate_limits) = writers.rate_limits {
                tokio::spawn(rate_limits.run());
            }
            if let Some(loader) = writers.loader {
                tokio::spawn(loader.run());
            }
            if let Some(usage) = writers.usage {
                tokio::spawn(usage.run());
            }
            let last = Arc::clone(&state.last_reload);
            Reloader::new(reload, file, settings, hangups, last)
        });
        let run = async { tokio::join!(reloader.run(), certificates.run(), reconnecting) };
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || runtime.block_on(run))
            .context("cannot create the control thread")?;
        Ok(())
    }
}

/// Checks that the gateway can listen on all addresses at the same time.
fn probe_addresses(config: &Config) -> anyhow::Result<()> {
    let listen = |(address, key): (SocketAddr, &str)| {
        TcpListener::bind(address).with_context(|| {
            format!("cannot listen on {address} ({key}): is the port in use by another program, or by another instance of this one?")
        })
    };
    let listeners = config.listeners.iter().map(|one| (one.address, "listen"));
    listeners
        .chain([(config.management.listen, "management.listen")])
        .map(listen)
        .collect::<Result<Vec<_>, _>>()
        .map(drop)
}

/// All listening sockets of the process.
struct Sockets {
    /// The addresses of the clients' listeners, by their numbers.
    addresses: Vec<SocketAddr>,
    /// The same sockets once more, for the next process.
    all: Arc<ListeningSockets>,
    /// The sockets of each worker thread, with the numbers of their listeners.
    workers: Vec<Vec<(usize, TcpListener)>>,
    management: TcpListener,
}

impl Sockets {
    /// Opens the sockets, or takes them over from an older process.
    ///
    /// Each worker thread has a socket of its own for each listener. The kernel assigns each new connection to one
    /// socket; the connection stays on that thread, with its backend connections. If several threads accepted from one
    /// socket, reads would wake other threads. The older process may have had more threads: then a worker has several
    /// sockets of a listener, since a socket without a worker would lose its connections.
    fn open(config: &Config, taken: Option<&TakenOver>) -> anyhow::Result<Self> {
        if taken.is_none() {
            probe_addresses(config)?;
        }
        let all = Arc::new(ListeningSockets::default());
        let mut workers: Vec<Vec<_>> = (0..config.threads).map(|_| Vec::new()).collect();
        let addresses: Vec<_> = config.listeners.iter().map(|one| one.address).collect();
        for (number, &address) in addresses.iter().enumerate() {
            let mut sockets = taken.map(|taken| taken.take(address)).unwrap_or_default();
            while sockets.len() < config.threads {
                let socket = bound_socket(address);
                let socket = socket.with_context(|| format!("cannot listen on {address} (listen)"));
                sockets.push(socket?);
            }
            for (index, socket) in sockets.into_iter().enumerate() {
                all.add(address, &socket)?;
                workers[index % config.threads].push((number, socket));
            }
        }
        let address = config.management.listen;
        let management = match taken.and_then(|taken| taken.take(address).pop()) {
            Some(socket) => socket,
            None => TcpListener::bind(address)
                .with_context(|| format!("cannot listen on {address} (management.listen)"))?,
        };
        all.add(address, &management)?;
        Ok(Self {
            addresses,
            all,
            workers,
            management,
        })
    }

    /// Begins to listen, and adds the worker threads to the server. Returns the socket for management.
    fn serve(
        self,
        server: &mut Server,
        current: &Arc<ArcSwap<Gateway>>,
        descriptors: Descriptors,
    ) -> anyhow::Result<TcpListener> {
        for (_, socket) in self.workers.iter().flatten() {
            start_listening(socket).context("cannot listen (listen)")?;
        }
        let clients = Arc::new(Clients::new(current, descriptors, self.all));
        for (number, sockets) in self.workers.into_iter().enumerate() {
            server.add_service(Worker {
                name: format!("clients-{number}"),
                sockets,
                clients: Arc::clone(&clients),
            });
        }
        Ok(self.management)
    }
}

/// A worker thread: a runtime with one listening socket for each listener.
struct Worker {
    name: String,
    /// The sockets, with the numbers of their listeners.
    sockets: Vec<(usize, TcpListener)>,
    clients: Arc<Clients>,
}

#[async_trait]
impl Service for Worker {
    async fn start_service(&mut self, _: Option<ListenFds>, _: ShutdownWatch, _: usize) {
        for (number, socket) in self.sockets.drain(..) {
            tokio::spawn(Arc::clone(&self.clients).accept(socket, number));
        }
        // Connections are served on this runtime until the process ends.
        std::future::pending().await
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn threads(&self) -> Option<usize> {
        Some(1)
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
