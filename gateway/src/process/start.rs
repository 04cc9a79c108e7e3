//! The start: creates all parts of the program, and serves until a signal ends the process.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    thread,
};

use anyhow::Context;
use arc_swap::ArcSwap;
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use pingora::{
    server::{ListenFds, RunArgs, Server, ShutdownWatch, configuration::ServerConf},
    services::Service,
};
use sd_notify::NotifyState;
use signpost_kit::{
    config::{Loaded, Settings, origin::Origin},
    log::{Logging, log_warnings},
    reload::{ReloadHandle, ReloadSignals, Reloader},
    server::{
        descriptors::Descriptors,
        management::{Management, ManagementTls},
        notify_service_manager,
        shutdown::{LastWrite, Phase},
    },
};
use signpost_management::{readiness::GatewayReadiness, reports::rejections::RejectionSearch};
use signpost_proxy::{
    Config, Gateway,
    program::{
        Clients, OpenApps, ShadowWriter, State, Tls, UsageWriter, WorkerSocket, metrics, open_apps,
        resolve_all,
    },
};
use signpost_release::RELEASE;
use tokio::{
    runtime::Runtime,
    sync::{Mutex, Notify, mpsc, watch},
};

use crate::process::{
    certificate_watch::CertificateWatch,
    drain_watch::DrainWatch,
    listeners::Listeners,
    old_rows,
    presence::Presence,
    rate_sharing::RateSharing,
    reconnect,
    reload::{GatewayReload, Upgrade},
    stop::{LastWrites, Stop},
    upgrade::{NewProcess, TakenOver},
    version_ends,
};

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
    // First: a reload follows each SIGHUP from here on.
    let control = Control::new(&file, settings)?;
    log_warnings(&config.warnings());
    let descriptors = Descriptors::raise_limit();
    let (threads, management_listen) = (config.threads, config.management.settings.listen);
    // The addresses come before the store: a second instance that was started by mistake fails here, and migrates
    // nothing.
    let (listeners, management_socket, workers) =
        Listeners::open(threads, management_listen, taken)?;
    let bound = listeners.bind(&config.listeners, taken)?;
    let listeners = Arc::new(listeners);
    let (management, public_url) = (config.management.clone(), config.public_url.clone());
    let store_settings = config.store.clone();
    // Holds the store's change watch, which must live as long as the process.
    let mut apps = open_apps(&config)?;
    let mut server = Server::new_with_opt_and_conf(None, pingora_conf());
    server.bootstrap();
    let current = first_gateway(config, &mut apps, descriptors)?;
    let readiness = GatewayReadiness::new(apps.stored.as_ref(), &current);
    let (tasks, last_writes) = StoreTasks::new(&current, &mut apps, &readiness)?;
    let row = tasks.presence.as_ref().map(Presence::row);
    let handed_over = Arc::new(Notify::new());
    let (management_phase, management_phases) = watch::channel(Phase::Serving);
    // The sockets wait in the workers' channels until pingora starts their threads.
    listeners.serve(bound, &current.load().policy);
    let reload = GatewayReload {
        current: Arc::clone(&current),
        monitor: Mutex::default(),
        log: log.clone(),
        listeners: Arc::clone(&listeners),
        store: apps.store.clone(),
        store_settings,
        upgrade: Upgrade {
            new_process: NewProcess::new(&file)?,
            management: management_phase.clone(),
            handed_over: Arc::clone(&handed_over),
            replying: OnceLock::new(),
        },
    };
    let reload = control.start(reload, tasks)?;
    let api = apps.stored.take().filter(|_| management.api);
    let has_tls = management.tls.is_some();
    let pages = api.map(|apps| {
        signpost_management::router(apps, &current, reload, management.console, has_tls)
    });
    let health = Management {
        hosts: management.settings.hosts,
        tls: management.tls.map(management_tls),
        other: pages.transpose()?,
        readiness,
        metrics: metrics(&current, log.writer().dropped_lines()),
    };
    // From here on, connections wait for this process: what could fail has been done.
    listeners.listen()?;
    let clients = Arc::new(Clients::new(&current, descriptors, listeners.sockets()));
    add_workers(&mut server, workers, &clients);
    // Before the first connection: a signal begins a stop from here on.
    let (stop, ended) = Stop::new(
        Arc::clone(&current),
        &listeners,
        log.writer().clone(),
        last_writes,
        row,
        handed_over,
        management_phase,
    )?;
    health.start(management_socket, descriptors, management_phases)?;
    log_start(&current.load(), management_listen, &public_url);
    run_until_stopped(server, stop, &ended, taken)
}

/// The TLS of the management listener, whose files are watched like the files of clients' listeners.
fn management_tls(tls: Arc<Tls>) -> ManagementTls {
    ManagementTls {
        needs_certificate: tls.needs_certificate_by_request(),
        server: Box::new(move || tls.loaded().server()),
    }
}

fn log_start(gateway: &Gateway, management: SocketAddr, public_url: &Origin) {
    let listeners = gateway.policy.listeners.iter();
    let listen = listeners.map(|listener| listener.address.to_string());
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
    let (mut state, stale) = (State::new(&apps.directory, descriptors), config.stale);
    let management = &config.management;
    let tls = management.tls.clone();
    state.management_tls = tls.map(|tls| (management.settings.listen, tls));
    state.records.watch = management.api.then(Arc::default);
    let gateway = Gateway::new(config, apps.directory.clone(), state)?;
    if let Some(accounts) = apps.accounts.take() {
        // It was empty.
        let _ = gateway.state.accounts.set(accounts);
    }
    gateway.set_stale(stale);
    Ok(Arc::new(ArcSwap::from_pointee(gateway)))
}

/// Adds a worker thread for each of these sets of sockets.
fn add_workers(
    server: &mut Server,
    workers: Vec<mpsc::UnboundedReceiver<WorkerSocket>>,
    clients: &Arc<Clients>,
) {
    for (number, sockets) in workers.into_iter().enumerate() {
        server.add_service(Worker {
            name: format!("clients-{number}"),
            sockets,
            clients: Arc::clone(clients),
        });
    }
}

/// Runs pingora's server in a thread until it stops. The process ends without waiting for pingora's runtimes: without work
/// stealing, their threads never stop trying to accept connections (0.9.1).
fn run_until_stopped(
    server: Server,
    stop: Stop,
    ended: &std::sync::mpsc::Receiver<()>,
    taken: Option<&TakenOver>,
) -> anyhow::Result<()> {
    let shutdown_signal = Box::new(stop);
    thread::Builder::new()
        .name("server".to_owned())
        .spawn(move || server.run(RunArgs { shutdown_signal }))
        .context("cannot start the server")?;
    if let Some(taken) = taken {
        // From here on the old process drains, so everything that can fail comes before. If that process has given up
        // waiting, it goes on serving, and this one must end.
        taken.ready()?;
    }
    notify_service_manager(&[NotifyState::Ready]);
    // The server's thread owns the sender. A panic there drops it, and the process ends, instead of living on without
    // clients.
    ended.recv().context("the server stopped by itself")
}

/// What reads and writes the store every few seconds; nothing in single-application mode.
struct StoreTasks {
    drains: Option<DrainWatch>,
    presence: Option<Presence>,
    /// Other tasks, which need nothing more.
    others: Vec<BoxFuture<'static, ()>>,
}

impl StoreTasks {
    /// Also returns what writes the last counts at a stop.
    fn new(
        current: &Arc<ArcSwap<Gateway>>,
        apps: &mut OpenApps,
        readiness: &GatewayReadiness,
    ) -> anyhow::Result<(Self, LastWrites)> {
        let (snapshot, snapshot_requests) = LastWrite::new();
        let mut last = LastWrites {
            // Without a task that writes, the receiver is dropped, and a stop finds nothing to wait for.
            usage: LastWrite::new().0,
            snapshot,
        };
        let mut tasks = Self {
            drains: None,
            presence: None,
            others: Vec::new(),
        };
        let Some(store) = apps.store.clone() else {
            return Ok((tasks, last));
        };
        let state = Arc::clone(&current.load().state);
        let mut add = |task: BoxFuture<'static, ()>| tasks.others.push(task);
        if let Some(key) = apps.rate_key.take() {
            let sharing = RateSharing::new(Arc::clone(current), store.clone(), key);
            add(Box::pin(sharing.run()));
        }
        if let Some(loader) = apps.loader.take() {
            add(Box::pin(loader.run(snapshot_requests)));
        }
        add(Box::pin(old_rows::run(Arc::clone(current), store.clone())));
        add(Box::pin(version_ends::run(
            Arc::clone(current),
            store.clone(),
        )));
        if let Some(watch) = &state.records.watch {
            let rejections = RejectionSearch {
                store: store.clone(),
                watch: Arc::clone(watch),
                wanted: Arc::clone(&apps.rejection_wanted),
            };
            add(Box::pin(rejections.run()));
        }
        if let Some(usage) = &state.records.usage {
            let (usage, clock) = (Arc::clone(usage), Arc::clone(&state.clock));
            let (usage, flush) = UsageWriter::new(usage, store.clone(), clock)?;
            last.usage = flush;
            add(Box::pin(usage.run()));
        }
        let (shadows, clock) = (Arc::clone(&state.shadows), Arc::clone(&state.clock));
        let shadows = ShadowWriter::new(shadows, store.clone(), clock)?;
        add(Box::pin(shadows.run()));
        let presence = apps.stored.as_ref();
        let presence = presence.map(|stored| Presence::new(stored, readiness.clone()));
        tasks.presence = presence.transpose()?;
        let changed = Arc::clone(&apps.drains_changed);
        tasks.drains = Some(DrainWatch::new(Arc::clone(current), store, changed));
        Ok((tasks, last))
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

    /// Starts the thread, and returns what reloads in it.
    fn start(self, reload: GatewayReload, tasks: StoreTasks) -> anyhow::Result<ReloadHandle> {
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
            if let Some(mut drains) = tasks.drains {
                // A drained address must not get requests again only because this process has just started.
                drains.start().await;
                tokio::spawn(drains.run());
            }
            let balancers: Vec<_> = reload.current.load().policy.backends.balancers().collect();
            // Resolves names before the first request needs them. If a name cannot be resolved, the gateway starts
            // nevertheless.
            resolve_all(&balancers).await;
            reload.monitor.lock().await.follow(balancers.into_iter());
            for task in tasks.others {
                tokio::spawn(task);
            }
            let last = Arc::clone(&state.last_reload);
            let reloader = Reloader::new(reload, file, settings, hangups, last);
            if let Some(presence) = tasks.presence {
                tokio::spawn(presence.run(reloader.handle()));
            }
            reloader
        });
        let handle = reloader.handle();
        let run = async { tokio::join!(reloader.run(), certificates.run(), reconnecting) };
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || runtime.block_on(run))
            .context("cannot create the control thread")?;
        Ok(handle)
    }
}

/// A worker thread: a runtime with one listening socket for each listener.
struct Worker {
    name: String,
    /// The sockets of the start, then sockets that reloads open.
    sockets: mpsc::UnboundedReceiver<WorkerSocket>,
    clients: Arc<Clients>,
}

#[async_trait]
impl Service for Worker {
    async fn start_service(&mut self, _: Option<ListenFds>, _: ShutdownWatch, _: usize) {
        while let Some(socket) = self.sockets.recv().await {
            tokio::spawn(Arc::clone(&self.clients).accept(socket));
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
        ..ServerConf::default()
    }
}
