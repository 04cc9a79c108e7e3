//! The proof, before any measurement, that a contestant does the work.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, ensure};
use end_to_end::clock::now_ms;
use gateway::measured::new_app_ident;

use crate::{
    contestant::{Running, Setup},
    keys::Keys,
    requests::{Form, get, post},
};

/// Timeout of an answer. Long, since valgrind slows everything down.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Ten minutes: outside of any valid window.
const STALE_MS: i64 = 600_000;

/// Proves that a contestant routes by version and, if it shall verify, verifies.
///
/// # Errors
///
/// When it does not.
pub fn prove(running: &Running, keys: &Keys) -> anyhow::Result<()> {
    let proof = Proof {
        address: running.address,
    };
    let name = running.contestant.title();
    proof
        .routes(running, keys)
        .with_context(|| format!("{name} does not route"))?;
    if running.contestant.verifies() {
        let verifies = match running.setup {
            Setup::Single => proof.verifies_for_one(keys),
            Setup::Replay => proof
                .verifies_for_one(keys)
                .and_then(|()| proof.rejects_replays(keys)),
            Setup::Multi => proof.verifies_for_many(keys),
        };
        verifies.with_context(|| format!("{name} does not verify"))?;
    }
    Ok(())
}

struct Proof {
    address: SocketAddr,
}

impl Proof {
    fn routes(&self, running: &Running, keys: &Keys) -> anyhow::Result<()> {
        let app = match running.setup {
            Setup::Multi => format!("Acme-X-App: {}\r\n", keys.many[0].0),
            Setup::Single | Setup::Replay => String::new(),
        };
        for (version, served_by) in [
            ("", "v1"),
            ("Acme-X-Version: v1\r\n", "v1"),
            ("Acme-X-Version: v2\r\n", "v2"),
            ("acme-x-version: V2\r\n", "v2"),
        ] {
            let answer = self.exchange(&get("/user", &format!("{app}{version}")))?;
            answer.is(200)?;
            ensure!(
                answer.body.contains(served_by),
                "with {version:?} the answer is not from {served_by}: {}",
                answer.body
            );
        }
        Ok(())
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

    /// Sends a request over a new connection, and reads the whole answer.
    fn exchange(&self, request: &[u8]) -> anyhow::Result<Exchanged> {
        let text = std::str::from_utf8(request)?;
        // So that the answer ends where the connection does.
        let request = text.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream
            .read_to_string(&mut answer)
            .context("the answer is incomplete")?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no head")?;
        let status = head.split(' ').nth(1).context("no status")?;
        Ok(Exchanged {
            status: status.parse()?,
            body: body.to_owned(),
        })
    }
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
