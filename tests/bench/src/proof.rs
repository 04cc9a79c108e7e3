//! The proof, before any measurement, that a contestant does the work.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, ensure};
use end_to_end::clock::now_ms;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use signpost_proxy::measured::new_app_ident;

use crate::{
    case::Transport,
    contestant::{Running, Setup},
    keys::Keys,
    load::http2::exchange_once,
    requests::{Form, Http2Request, get, json, post},
    tls::{Sessions, server_name},
};

/// Timeout of a response. Long, since valgrind slows everything down.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Ten minutes: outside of any valid window.
const STALE_MS: i64 = 600_000;

/// Proves that a contestant routes by version and, if it shall verify, verifies: over TLS, with each protocol.
///
/// # Errors
///
/// When it does not.
pub fn prove(running: &Running, keys: &Keys) -> anyhow::Result<()> {
    let address = running.address;
    let name = running.contestant.title();
    let clients = match running.setup {
        Setup::Single | Setup::Multi | Setup::Replay | Setup::Headers => {
            vec![(Transport::Http, Client::Plain)]
        }
        Setup::Tls => vec![
            (
                Transport::Https,
                Client::Tls(Arc::new(keys.tls.client("http/1.1", Sessions::New)?)),
            ),
            (
                Transport::Http2,
                Client::Http2(Arc::new(keys.tls.client("h2", Sessions::New)?)),
            ),
        ],
    };
    for (transport, client) in clients {
        let proof = Proof { address, client };
        let protocol = transport.title();
        proof
            .routes(running, keys)
            .with_context(|| format!("{name} does not route ({protocol})"))?;
        if running.contestant.verifies() {
            proof
                .verifies(running.setup, keys)
                .with_context(|| format!("{name} does not verify ({protocol})"))?;
        }
    }
    Ok(())
}

struct Proof {
    address: SocketAddr,
    client: Client,
}

/// The client's side of a protocol.
enum Client {
    /// HTTP/1.1 without TLS.
    Plain,
    /// HTTP/1.1 over TLS.
    Tls(Arc<ClientConfig>),
    /// HTTP/2 over TLS.
    Http2(Arc<ClientConfig>),
}

impl Proof {
    fn routes(&self, running: &Running, keys: &Keys) -> anyhow::Result<()> {
        let app = match running.setup {
            Setup::Multi => format!("Acme-X-App: {}\r\n", keys.many[0].0),
            Setup::Single | Setup::Replay | Setup::Tls | Setup::Headers => String::new(),
        };
        for (version, served_by) in [
            ("", "v1"),
            ("Acme-X-Version: v1\r\n", "v1"),
            ("Acme-X-Version: v2\r\n", "v2"),
            ("acme-x-version: V2\r\n", "v2"),
        ] {
            let response = self.exchange(&get("/user", &format!("{app}{version}")))?;
            response.is(200)?;
            ensure!(
                response.body.contains(served_by),
                "with {version:?} the response is not from {served_by}: {}",
                response.body
            );
        }
        Ok(())
    }

    fn verifies(&self, setup: Setup, keys: &Keys) -> anyhow::Result<()> {
        match setup {
            Setup::Single | Setup::Tls => self.verifies_for_one(keys),
            Setup::Replay => self
                .verifies_for_one(keys)
                .and_then(|()| self.rejects_replays(keys)),
            Setup::Multi => self.verifies_for_many(keys),
            Setup::Headers => self.verifies_bodies(keys),
        }
    }

    fn verifies_bodies(&self, keys: &Keys) -> anyhow::Result<()> {
        self.exchange(&json("", 0, keys.single.expose()))?.is(200)?;
        self.exchange(&json("", 0, "a key that is not known"))?
            .is(403)
    }

    fn verifies_for_one(&self, keys: &Keys) -> anyhow::Result<()> {
        self.accepts_only_valid_signatures("", keys.single.expose())
    }

    fn verifies_for_many(&self, keys: &Keys) -> anyhow::Result<()> {
        for (index, (ident, key)) in keys.many.iter().enumerate().step_by(997) {
            let header = format!("Acme-X-App: {ident}\r\n");
            self.accepts_only_valid_signatures(&header, key.expose())?;
            let (_, other_key) = &keys.many[(index + 1) % keys.many.len()];
            let form = Form::new(index, now_ms()).signed(other_key.expose());
            self.exchange(&post(&header, &form))?
                .is(403)
                .context("another application's key")?;
        }
        let form = Form::new(0, now_ms()).signed(keys.many[0].1.expose());
        let unknown = format!("Acme-X-App: {}\r\n", new_app_ident()?);
        self.exchange(&post(&unknown, &form))?
            .is(404)
            .context("an unknown application")?;
        self.exchange(&post("", &form))?
            .is(400)
            .context("no application")
    }

    fn accepts_only_valid_signatures(&self, headers: &str, key: &str) -> anyhow::Result<()> {
        let now = now_ms();
        let valid = Form::new(1, now).signed(key);
        let send = |form: &str| self.exchange(&post(headers, form));
        send(&valid)?.is(200).context("a valid signature")?;
        let changed = valid.replace("amount=1999", "amount=1998");
        send(&changed)?.is(403).context("a changed parameter")?;
        let last = if valid.ends_with('0') { '1' } else { '0' };
        let invalid = format!("{}{last}", &valid[..valid.len() - 1]);
        send(&invalid)?.is(403).context("an invalid signature")?;
        let unsigned = valid.split("&sign=").next().unwrap_or_default();
        send(unsigned)?.is(403).context("no signature")?;
        for time in [now - STALE_MS, now + STALE_MS] {
            let stale = Form::new(2, time).signed(key);
            send(&stale)?
                .is(403)
                .context("a time outside of the window")?;
        }
        Ok(())
    }

    fn rejects_replays(&self, keys: &Keys) -> anyhow::Result<()> {
        let request = post("", &Form::new(3, now_ms()).signed(keys.single.expose()));
        self.exchange(&request)?.is(200).context("the first time")?;
        self.exchange(&request)?.is(409).context("the second time")
    }

    /// Sends a request over a new connection, and reads the whole response.
    fn exchange(&self, request: &[u8]) -> anyhow::Result<Exchanged> {
        if let Client::Http2(config) = &self.client {
            let request = Http2Request::from_http1(request)?;
            let (status, body) = exchange_once(self.address, Arc::clone(config), &request)?;
            let body = String::from_utf8(body)?;
            return Ok(Exchanged { status, body });
        }
        let socket = TcpStream::connect(self.address)?;
        socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        if let Client::Tls(config) = &self.client {
            let session = ClientConnection::new(Arc::clone(config), server_name())?;
            return exchange_http1(StreamOwned::new(session, socket), request);
        }
        exchange_http1(socket, request)
    }
}

fn exchange_http1(mut stream: impl Read + Write, request: &[u8]) -> anyhow::Result<Exchanged> {
    let text = std::str::from_utf8(request)?;
    // So that the response ends where the connection does.
    let request = text.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    stream.write_all(request.as_bytes())?;
    let mut response = String::new();
    stream
        .read_to_string(&mut response)
        .context("the response is incomplete")?;
    let (head, body) = response.split_once("\r\n\r\n").context("no head")?;
    let status = head.split(' ').nth(1).context("no status")?;
    Ok(Exchanged {
        status: status.parse()?,
        body: body.to_owned(),
    })
}

struct Exchanged {
    status: u16,
    body: String,
}

impl Exchanged {
    fn is(&self, status: u16) -> anyhow::Result<()> {
        ensure!(
            self.status == status,
            "status {} instead of {status}: {}",
            self.status,
            self.body
        );
        Ok(())
    }
}
