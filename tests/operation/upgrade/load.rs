//! Clients of all kinds that send requests without a pause.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use end_to_end::{
    certificates::Authority, http2_client::Http2Client, raw_connection::RawConnection,
    signed_client::SignedClient, stack::Stack, waiting::until,
};
use tokio::{net::TcpStream, task::JoinSet};

/// The name in the certificate.
pub(super) const NAME: &str = "api.example.com";

/// The TLS listener.
pub(super) struct TlsTarget {
    pub(super) address: SocketAddr,
    pub(super) authority: Authority,
}

/// Running clients.
pub(super) struct Load {
    shared: Arc<Shared>,
    clients: JoinSet<()>,
}

/// How a client uses its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// HTTP/1.1: one connection for many requests.
    KeepAlive,
    /// HTTP/1.1: a new connection for each request.
    Once,
    /// HTTP/2: two requests at a time.
    Http2,
}

/// A client: its use, and whether it uses TLS.
type Kind = (Use, bool);

const KINDS: [Kind; 6] = [
    (Use::KeepAlive, false),
    (Use::KeepAlive, true),
    (Use::Once, false),
    (Use::Once, true),
    (Use::Http2, false),
    (Use::Http2, true),
];

#[derive(Default)]
struct Shared {
    is_stopping: AtomicBool,
    /// Whether `/readyz` may answer 503.
    expects_stop: AtomicBool,
    /// Whether `/readyz` has answered 503: clients open no more connections then.
    is_unready: AtomicBool,
    served: Mutex<BTreeMap<Kind, usize>>,
    checks: Mutex<usize>,
    failures: Mutex<Vec<String>>,
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    fn is_unready(&self) -> bool {
        self.is_unready.load(Ordering::SeqCst)
    }

    fn count(&self, kind: Kind) {
        *self.served.lock().unwrap().entry(kind).or_default() += 1;
    }

    fn fail(&self, what: String) {
        self.failures.lock().unwrap().push(what);
    }
}

/// What a client needs.
#[derive(Clone)]
struct Client {
    kind: Kind,
    plain: SocketAddr,
    tls: SocketAddr,
    config: Arc<rustls::ClientConfig>,
    signer: SignedClient,
    shared: Arc<Shared>,
}

impl Load {
    pub(super) fn start(stack: &Stack, tls: &TlsTarget) -> Self {
        let shared = Arc::new(Shared::default());
        let mut clients = JoinSet::new();
        for kind in KINDS {
            let protocol = match kind.0 {
                Use::Http2 => "h2",
                Use::KeepAlive | Use::Once => "http/1.1",
            };
            let client = Client {
                kind,
                plain: stack.addresses().gateway,
                tls: tls.address,
                config: tls.authority.client(&[protocol], None),
                signer: stack.client(),
                shared: Arc::clone(&shared),
            };
            for _ in 0..2 {
                clients.spawn(client.clone().run());
            }
        }
        let management = stack.addresses().management;
        clients.spawn(check_readiness(management, Arc::clone(&shared)));
        Self { shared, clients }
    }

    /// Waits until each kind of client has been served `more` further times, and the readiness checked as often.
    pub(super) async fn serve(&self, more: usize) {
        let counts = || {
            let served = self.shared.served.lock().unwrap();
            let counts = KINDS.map(|kind| served.get(&kind).copied().unwrap_or(0));
            (counts, *self.shared.checks.lock().unwrap())
        };
        let (served, checks) = counts();
        until("requests to be served", || async {
            let (now, checked) = counts();
            let is_served = now
                .iter()
                .zip(&served)
                .all(|(now, then)| *now >= then + more);
            (is_served && checked >= checks + more).then_some(())
        })
        .await;
    }

    /// From now on `/readyz` may answer 503; then the clients open no more connections.
    pub(super) fn expect_stop(&self) {
        self.shared.expects_stop.store(true, Ordering::SeqCst);
    }

    /// Ends all clients, and expects that no request has failed.
    pub(super) async fn stop(self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        self.finish().await;
    }

    /// Waits until all clients have ended, and expects that no request has failed.
    pub(super) async fn finish(self) {
        self.clients.join_all().await;
        let failures = self.shared.failures.lock().unwrap();
        let served = self.shared.served.lock().unwrap();
        assert!(failures.is_empty(), "{failures:#?} of {served:?}");
    }
}

impl Client {
    async fn run(self) {
        match self.kind.0 {
            Use::Http2 => self.run_http_2().await,
            Use::KeepAlive | Use::Once => self.run_http_1().await,
        }
    }

    async fn run_http_1(self) {
        let mut open = None;
        while !self.shared.is_stopping() {
            let mut connection = match open.take() {
                Some(connection) => connection,
                None if self.shared.is_unready() => return,
                None => match self.connect().await {
                    Ok(connection) => connection,
                    Err(cause) => return self.fail(&cause),
                },
            };
            let call = self.signer.post("/form").param("a", "1");
            connection.send(&call.bytes(&[])).await;
            match connection.response().await {
                Some(response) if response.status == 200 => {
                    self.shared.count(self.kind);
                    let is_kept = response.header("connection") != Some("close");
                    open = (is_kept && self.kind.0 == Use::KeepAlive).then_some(connection);
                }
                other => return self.fail(&other),
            }
        }
    }

    async fn connect(&self) -> io::Result<RawConnection> {
        if !self.kind.1 {
            let source = IpAddr::V4(Ipv4Addr::LOCALHOST);
            return RawConnection::try_open_from(source, self.plain).await;
        }
        let stream = TcpStream::connect(self.tls).await?;
        RawConnection::begin_tls(stream, NAME, Arc::clone(&self.config)).await
    }

    async fn run_http_2(self) {
        while !self.shared.is_stopping() && !self.shared.is_unready() {
            let opened = match self.kind.1 {
                false => Http2Client::try_open(self.plain).await,
                true => Http2Client::try_open_tls(self.tls, NAME, Arc::clone(&self.config)).await,
            };
            let client = match opened {
                Ok(client) => client,
                Err(cause) => return self.fail(&cause),
            };
            while !self.shared.is_stopping() && !client.is_closed().await {
                let (get, post) = (
                    self.signer.get("/x").param("a", "1"),
                    self.signer.post("/y"),
                );
                let (one, other) = tokio::join!(client.send(&get), client.send(&post));
                for response in [one, other] {
                    match response {
                        Ok(response) if response.status == 200 => self.shared.count(self.kind),
                        // The client sends it again, over the next connection.
                        Err(error) if end_to_end::http2_client::is_refused(&error) => {}
                        other => return self.fail(&other),
                    }
                }
            }
        }
    }

    fn fail(&self, what: &dyn std::fmt::Debug) {
        self.shared.fail(format!("{:?}: {what:?}", self.kind));
    }
}

/// Calls `/readyz` over a new connection each time, as a balancer does.
async fn check_readiness(management: SocketAddr, shared: Arc<Shared>) {
    let source = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let check = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    while !shared.is_stopping() {
        let mut connection = match RawConnection::try_open_from(source, management).await {
            Ok(connection) => connection,
            Err(cause) => return shared.fail(format!("/readyz: {cause}")),
        };
        connection.send(check).await;
        match connection.response().await {
            Some(response) if response.status == 200 => *shared.checks.lock().unwrap() += 1,
            Some(response)
                if response.status == 503 && shared.expects_stop.load(Ordering::SeqCst) =>
            {
                return shared.is_unready.store(true, Ordering::SeqCst);
            }
            other => shared.fail(format!("/readyz: {other:?}")),
        }
    }
}
