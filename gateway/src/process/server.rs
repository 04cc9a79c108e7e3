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
    server::{ListenFds, RunArgs, Server, ShutdownWatch, configuration::ServerConf},
    services::Service,
};
use sd_notify::NotifyState;
use signpost_kit::{
    config::{Loaded, Settings},
    log::{Logging, log_warnings},
    reload::{ReloadSignals, Reloader},
    server::{
        descriptors::Descriptors,
        management::{Management, ManagementSettings},
        service_manager::notify_service_manager,
        shutdown::Phase,
    },
};
use tokio::{
    runtime::Runtime,
    sync::{Mutex, Notify, watch},
};

use crate::{
    config::Config,
    directory::apps::open::open_apps,
    downstream::{
        listeners::{Clients, bound_socket, start_listening},
        sockets::ListeningSockets,
    },
    gateway::{Gateway, State},
    observe::{
        access_log::AccessLog,
        metrics::applications::rank_applications,
        usage::writer::{UsageFlush, UsageWriter},
    },
    process::{
        certificate_watch::CertificateWatch,
        rate_sharing::RateSharing,
        readiness::GatewayReadiness,
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
    let control = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot create the control thread")?;
    // First, because an unhandled SIGHUP would end a process that is still starting.
    let hangups = control.block_on(async { ReloadSignals::listen() });
    let hangups = hangups.context("cannot handle SIGHUP")?;
    log_warnings(&config.warnings());
    let descriptors = Descriptors::raise_limit();
    if taken.is_none() {
        probe_addresses(&config)?;
    }
    let addresses: Vec<_> = config.listeners.iter().map(|one| one.address).collect();
    let ManagementSettings {
        listen: management,
        hosts,
    } = config.management.clone();
    let listening = Listening::open(&addresses, management, config.threads, taken)?;
    // Holds the store's change watch, which must live as long as the process.
    let apps = open_apps(&config)?;
    let store = apps
        .store
        .clone()
        .map(|store| (config.store.clone(), store));
    let mut server = Server::new_with_opt_and_conf(None, pingora_conf());
    server.bootstrap();
    let public_url = config.public_url.clone();
    let access_log = AccessLog::start(log.writer().clone())?;
    let (rate_key, store_settings) = (apps.rate_key.clone(), config.store.clone());
    let state = State::new(&config, &apps.directory, descriptors, Some(access_log));
    let gateway = Gateway::new(config, apps.directory, state)?;
    if let Some(accounts) = apps.accounts {
        // It was empty.
        let _ = gateway.state.accounts.set(accounts);
    }
    let current = Arc::new(ArcSwap::from_pointee(gateway));
    let Listening {
        sockets,
        workers,
        management: management_socket,
    } = listening;
    let clients = Arc::new(Clients::new(&current, descriptors, Arc::clone(&sockets)));
    let (management_phase, management_phases) = watch::channel(Phase::Serving);
    let health = Management {
        hosts,
        readiness: GatewayReadiness {
            listen: addresses[0],
            store: store.as_ref().map(|(_, store)| store.clone()),
            current: Arc::clone(&current),
        },
        metrics: metrics(&current),
    };
    let handed_over = Arc::new(Notify::new());
    let reload = GatewayReload {
        current: Arc::clone(&current),
        monitor: Mutex::default(),
        log: log.clone(),
        addresses: addresses.clone(),
        management,
        store,
        store_settings,
        upgrade: Upgrade {
            new_process: NewProcess::new(&file)?,
            sockets,
            management: management_phase,
            handed_over: Arc::clone(&handed_over),
        },
    };
    let rate_limits = rate_key.and_then(|key| RateSharing::new(&reload, key));
    let (usage, usage_flush) = usage_writer(&reload)?.unzip();
    let sharing = Sharing { rate_limits, usage };
    start_control(control, hangups, reload, sharing, file, settings)?;
    // From here on, connections wait for this process: what could fail has been done.
    for (_, socket) in workers.iter().flatten() {
        start_listening(socket).context("cannot listen (listen)")?;
    }
    for (number, sockets) in workers.into_iter().enumerate() {
        server.add_service(Worker {
            name: format!("clients-{number}"),
            sockets,
            clients: Arc::clone(&clients),
        });
    }
    health.start(management_socket, descriptors, management_phases)?;
    let listen = addresses.iter().map(SocketAddr::to_string);
    let listen = listen.collect::<Vec<_>>().join(", ");
    tracing::info!(
        listen, %management, %public_url, program.version = env!("CARGO_PKG_VERSION"),
        "signpost is listening"
    );
    let (end, ended) = mpsc::channel();
    let stop = Stop {
        current,
        log: log.writer().clone(),
        usage: usage_flush.unwrap_or(UsageFlush::none()),
        end,
        handed_over,
    };
    thread::Builder::new()
        .name("server".to_owned())
        .spawn(move || {
            server.run(RunArgs {
                shutdown_signal: Box::new(stop),
            });
        })
        .context("cannot start the server")?;
    if let Some(taken) = taken {
        taken.ready()?;
    }
    notify_service_manager(&[NotifyState::Ready]);
    // The process ends without waiting for pingora's runtimes: without work stealing, their threads never stop trying
    // to accept connections (0.9.1).
    ended.recv().context("the server stopped by itself")
}

/// What writes to the store every few seconds; nothing in single-application mode.
struct Sharing {
    rate_limits: Option<RateSharing>,
    usage: Option<UsageWriter>,
}

/// The writer of the gateway's counts; `None` in single-application mode.
fn usage_writer(reload: &GatewayReload) -> anyhow::Result<Option<(UsageWriter, UsageFlush)>> {
    let state = Arc::clone(&reload.current.load().state);
    let (Some(usage), Some((_, store))) = (&state.records.usage, &reload.store) else {
        return Ok(None);
    };
    let clock = Arc::clone(&state.clock);
    UsageWriter::new(Arc::clone(usage), store.clone(), clock).map(Some)
}

/// Starts the control thread, which serves no requests: it monitors the backends' addresses, reloads the configuration,
/// shares the debts of rate limits, writes the counts of requests, and ranks applications for the metrics.
fn start_control(
    runtime: Runtime,
    hangups: ReloadSignals,
    reload: GatewayReload,
    sharing: Sharing,
    file: PathBuf,
    settings: Settings,
) -> anyhow::Result<()> {
    let certificates = CertificateWatch::new(Arc::clone(&reload.current));
    let requests = Arc::clone(&reload.current.load().state.records.metrics);
    let reloads = Arc::clone(&reload.current.load().state.reloads);
    let reloader = runtime.block_on(async {
        let balancers: Vec<_> = reload.current.load().policy.backends.balancers().collect();
        // Resolves names before the first request needs them. If a name cannot be resolved, the gateway starts
        // nevertheless.
        resolve_all(&balancers).await;
        reload.monitor.lock().await.follow(balancers.into_iter());
        tokio::spawn(rank_applications(requests));
        if let Some(rate_limits) = sharing.rate_limits {
            tokio::spawn(rate_limits.run());
        }
        if let Some(usage) = sharing.usage {
            tokio::spawn(usage.run());
        }
        Reloader::new(reload, file, settings, hangups, reloads)
    });
    thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || runtime.block_on(async { tokio::join!(reloader.run(), certificates.run()) }))
        .context("cannot create the control thread")?;
    Ok(())
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
struct Listening {
    /// The same sockets once more, for the next process.
    sockets: Arc<ListeningSockets>,
    /// The sockets of each worker thread, with the numbers of their listeners.
    workers: Vec<Vec<(usize, TcpListener)>>,
    management: TcpListener,
}

impl Listening {
    /// Opens the sockets, or takes them over from an older process.
    ///
    /// Each worker thread has a socket of its own for each listener. The kernel assigns each new connection to one
    /// socket; the connection stays on that thread, with its backend connections. If several threads accepted from one
    /// socket, reads would wake other threads. The older process may have had more threads: then a worker has several
    /// sockets of a listener, since a socket without a worker would lose its connections.
    fn open(
        addresses: &[SocketAddr],
        management: SocketAddr,
        threads: usize,
        taken: Option<&TakenOver>,
    ) -> anyhow::Result<Self> {
        let sockets = Arc::new(ListeningSockets::default());
        let mut workers: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
        for (number, &address) in addresses.iter().enumerate() {
            let mut all = taken.map(|taken| taken.take(address)).unwrap_or_default();
            while all.len() < threads {
                let socket = bound_socket(address);
                all.push(socket.with_context(|| format!("cannot listen on {address} (listen)"))?);
            }
            for (index, socket) in all.into_iter().enumerate() {
                sockets.add(address, &socket)?;
                workers[index % threads].push((number, socket));
            }
        }
        let inherited = taken.and_then(|taken| taken.take(management).pop());
        let bind = || {
            let socket = TcpListener::bind(management);
            socket.with_context(|| format!("cannot listen on {management} (management.listen)"))
        };
        let management_socket = inherited.map_or_else(bind, Ok)?;
        sockets.add(management, &management_socket)?;
        Ok(Self {
            sockets,
            workers,
            management: management_socket,
        })
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
