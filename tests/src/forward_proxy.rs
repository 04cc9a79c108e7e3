//! A forward proxy, which alone knows the names of some servers: HTTP with the whole URL, and CONNECT (RFC 9110).

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

use crate::listener::Listener;

/// A proxy. When dropped, it is gone.
#[derive(Debug)]
pub struct ForwardProxy {
    listener: Listener,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    servers: BTreeMap<&'static str, SocketAddr>,
    /// The value of `Proxy-Authorization` without which nothing is passed on.
    authorization: Option<&'static str>,
    requests: Mutex<Vec<String>>,
}

impl ForwardProxy {
    /// Starts a proxy on a free port that knows these servers by name.
    ///
    /// # Panics
    ///
    /// When there is no port.
    pub async fn start(
        servers: &[(&'static str, SocketAddr)],
        authorization: Option<&'static str>,
    ) -> Self {
        let state = Arc::new(State {
            servers: servers.iter().copied().collect(),
            authorization,
            requests: Mutex::default(),
        });
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let of_listener = Arc::clone(&state);
        let serve = move |stream| {
            let state = Arc::clone(&of_listener);
            async move {
                // A client or a server that leaves is no fault of the proxy.
                let _ = state.serve(stream).await;
            }
        };
        Self {
            listener: Listener::start(socket.expect("a free port"), serve),
            state,
        }
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// The request lines of its connections.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        let requests = self.state.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes its port.
    pub async fn end(&mut self) {
        self.listener.end().await;
    }
}

impl State {
    fn note(&self, line: &str) {
        let requests = self.requests.lock();
        let mut requests = requests.unwrap_or_else(PoisonError::into_inner);
        requests.push(line.to_owned());
    }

    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut client = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if client.read_line(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let (line, fields) = head.split_once("\r\n").unwrap_or_default();
        self.note(line);
        let is_it = |field: &str| {
            let field = field.split_once(": ");
            field.is_some_and(|(name, value)| {
                name.eq_ignore_ascii_case("proxy-authorization")
                    && Some(value) == self.authorization
            })
        };
        if self.authorization.is_some() && !fields.lines().any(is_it) {
            let rejected = b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n";
            return client.write_all(rejected).await;
        }
        let mut words = line.split(' ');
        let (method, target) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let (authority, path) = match target.strip_prefix("http://") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => (target, ""),
        };
        let name = authority.split(':').next().unwrap_or_default();
        let Some(address) = self.servers.get(name) else {
            return client
                .write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
                .await;
        };
        let mut server = TcpStream::connect(address).await?;
        if method == "CONNECT" {
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        } else {
            // So that each request has a connection, and its line is seen.
            let fields = format!("Connection: close\r\n{fields}");
            server
                .write_all(format!("{method} {path} HTTP/1.1\r\n{fields}").as_bytes())
                .await?;
        }
        copy_bidirectional(&mut client, &mut server).await?;
        Ok(())
    }
}
