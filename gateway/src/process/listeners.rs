//! The listening sockets: opened or taken over at the start, opened and closed by reloads.
//!
//! Each worker thread has a socket of its own for each listener. The kernel assigns each new connection to one socket; the
//! connection stays on that thread, with its backend connections. If several threads accepted from one socket, reads would
//! wake other threads.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use anyhow::Context;
use rustix::net::sockopt::ipv6_v6only;
use signpost_kit::server::socket::{listen_on, overlap};
use signpost_proxy::program::{
    ListenerSettings, ListeningSockets, OpenSockets, Policy, WorkerSocket, bound_socket,
    probe_listener as probe, start_listening,
};
use tokio::sync::mpsc;

use crate::process::upgrade::TakenOver;

/// The key of the management listener's address.
const MANAGEMENT: &str = "management.listen";

/// The listeners of this process, by their addresses.
pub(crate) struct Listeners {
    sockets: Arc<ListeningSockets>,
    /// A worker thread takes its sockets from each.
    workers: Vec<mpsc::UnboundedSender<WorkerSocket>>,
    /// The address of the management listener, fixed until an upgrade.
    pub management: SocketAddr,
}

/// The sockets of a listener that is not served yet. They are closed if this is dropped.
#[derive(Debug)]
pub(crate) struct BoundListener {
    address: SocketAddr,
    key: String,
    sockets: Vec<TcpListener>,
    /// A second descriptor of each.
    copies: Vec<TcpListener>,
}

impl Listeners {
    /// Opens the management listener, or takes it over. Returns its socket, and what gives each worker thread its sockets.
    ///
    /// # Errors
    ///
    /// The address is in use.
    pub(crate) fn open(
        threads: usize,
        management: SocketAddr,
        taken: Option<&TakenOver>,
    ) -> anyhow::Result<(
        Self,
        TcpListener,
        Vec<mpsc::UnboundedReceiver<WorkerSocket>>,
    )> {
        let (workers, receivers) = (0..threads).map(|_| mpsc::unbounded_channel()).unzip();
        let listeners = Self {
            sockets: Arc::default(),
            workers,
            management,
        };
        let socket = match taken.and_then(|taken| taken.take(management).pop()) {
            Some(socket) => socket,
            None => named(listen_on(management), management, MANAGEMENT)?,
        };
        // Registered as the others, so that an upgrade hands it over, too.
        let (open, _) = OpenSockets::new(management, vec![socket.try_clone()?]);
        listeners.sockets.add(open);
        Ok((listeners, socket, receivers))
    }

    /// Listeners that a test does not open.
    #[cfg(test)]
    pub(crate) fn unused(config: &signpost_proxy::Config) -> Self {
        let sockets = ListeningSockets::default();
        for listener in &config.listeners {
            sockets.add(OpenSockets::new(listener.address, Vec::new()).0);
        }
        Self {
            sockets: Arc::new(sockets),
            workers: Vec::new(),
            management: config.management.settings.listen,
        }
    }

    /// All sockets, to hand them over and to close them.
    pub(crate) fn sockets(&self) -> Arc<ListeningSockets> {
        Arc::clone(&self.sockets)
    }

    /// Creates the sockets of listeners that are not open, or takes them over from an older process. That may have had more
    /// threads: then a worker has several sockets of a listener, since a socket without a worker would lose its connections.
    ///
    /// # Errors
    ///
    /// An address is in use, or the system does not allow it. Nothing is open then.
    pub(crate) fn bind(
        &self,
        listeners: &[ListenerSettings],
        taken: Option<&TakenOver>,
    ) -> anyhow::Result<Vec<BoundListener>> {
        let open = self.sockets.addresses();
        let is_open = |listener: &&ListenerSettings| open.contains(&listener.address);
        self.probe(listeners, taken)?;
        listeners
            .iter()
            .filter(|listener| !is_open(listener))
            .map(|listener| self.bind_one(listener, taken))
            .collect()
    }

    fn bind_one(
        &self,
        listener: &ListenerSettings,
        taken: Option<&TakenOver>,
    ) -> anyhow::Result<BoundListener> {
        let ListenerSettings { address, key, .. } = listener;
        let mut sockets = taken.map(|taken| taken.take(*address)).unwrap_or_default();
        // A release before this one has bound it for both families, which cannot be changed.
        let is_dual = |socket: &TcpListener| ipv6_v6only(socket) == Ok(false);
        let is_any = address.is_ipv6() && address.ip().is_unspecified();
        if is_any && sockets.iter().any(is_dual) {
            tracing::warn!("{key}: {address} still takes connections of IPv4, until a restart");
        }
        // The old process may have had fewer threads. A worker without a socket would get no connections at all.
        while sockets.len() < self.workers.len() {
            sockets.push(named(bound_socket(*address), *address, key)?);
        }
        // The workers get the sockets themselves. The copies stay here, to be held or handed over.
        let copies = sockets.iter().map(TcpListener::try_clone).collect();
        Ok(BoundListener {
            address: *address,
            key: key.clone(),
            copies: named(copies, *address, key)?,
            sockets,
        })
    }

    /// Checks that no other program, nor another listener, has an address: the sockets of several threads share theirs, so
    /// that another instance of this program could share it, too. An address that overlaps with one that is about to be
    /// closed, for example `0.0.0.0:80` with `127.0.0.1:80`, cannot be checked.
    fn probe(
        &self,
        listeners: &[ListenerSettings],
        taken: Option<&TakenOver>,
    ) -> anyhow::Result<()> {
        let taken = taken.map(TakenOver::addresses).unwrap_or_default();
        let open = [self.sockets.addresses(), taken].concat();
        let stays = |address: &SocketAddr| {
            *address == self.management
                || listeners
                    .iter()
                    .any(|listener| listener.address == *address)
        };
        let is_probed = |listener: &&ListenerSettings| {
            let mut leaving = open.iter().filter(|address| !stays(address));
            !open.contains(&listener.address)
                && !leaving.any(|other| overlap(listener.address, *other))
        };
        let mut probed = listeners.iter().filter(is_probed);
        probed.try_for_each(|listener| {
            named(probe(listener.address), listener.address, &listener.key)
        })
    }

    /// Gives the workers their sockets. `policy` is the current one.
    pub(crate) fn serve(&self, bound: Vec<BoundListener>, policy: &Policy) {
        for listener in bound {
            let BoundListener {
                address,
                sockets,
                copies,
                ..
            } = listener;
            let Some(listener) = policy.listener(address) else {
                continue;
            };
            let (open, receiver) = OpenSockets::new(address, copies);
            self.sockets.add(open);
            // `cycle`: no socket may be left over. The kernel would assign it connections that nothing accepts.
            for (socket, worker) in sockets.into_iter().zip(self.workers.iter().cycle()) {
                // Workers run until the process ends.
                let _ = worker.send(WorkerSocket {
                    socket,
                    listener: Arc::clone(listener),
                    open: receiver.clone(),
                });
            }
        }
    }

    /// Lets the kernel accept connections for all sockets of the start.
    ///
    /// # Errors
    ///
    /// The system does not allow it.
    pub(crate) fn listen(&self) -> anyhow::Result<()> {
        let open = self.sockets.lock();
        let mut clients = open
            .iter()
            .filter(|sockets| sockets.address != self.management);
        // A socket that was taken over listens already: a second call changes nothing but the size of its backlog.
        clients.try_for_each(|open| listen(&open.sockets, open.address, "listen"))
    }

    /// Closes the listeners that `policy` does not have. Connections in their backlog are still served.
    pub(crate) fn close_others(&self, policy: &Policy) -> Vec<SocketAddr> {
        let listeners = policy.listeners.iter().map(|listener| listener.address);
        let addresses: Vec<_> = listeners.chain([self.management]).collect();
        self.sockets.keep(&addresses)
    }
}

impl BoundListener {
    /// Its address.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets the kernel accept connections.
    ///
    /// # Errors
    ///
    /// The system does not allow it.
    pub(crate) fn listen(&self) -> anyhow::Result<()> {
        listen(&self.sockets, self.address, &self.key)
    }
}

fn listen(sockets: &[TcpListener], address: SocketAddr, key: &str) -> anyhow::Result<()> {
    sockets
        .iter()
        .try_for_each(|socket| named(start_listening(socket), address, key))
}

/// Names the address and its key in an error.
fn named<T>(result: io::Result<T>, address: SocketAddr, key: &str) -> anyhow::Result<T> {
    let is_in_use = matches!(&result, Err(error) if error.kind() == io::ErrorKind::AddrInUse);
    let question = if is_in_use {
        ": is the port in use by another program, or by another instance of this one?"
    } else {
        ""
    };
    result.with_context(|| format!("cannot listen on {address} ({key}){question}"))
}
