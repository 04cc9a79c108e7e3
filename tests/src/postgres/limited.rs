//! A proxy that makes a Postgres server one of fewer abilities, as engines with Postgres' protocol are.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// Refuses `LISTEN` and `pg_notify`, gives every advisory lock to everyone, and answers one statement in `ONE_IN` with
/// 40001, as an engine that serializes transactions does. It ends with the test's process.
#[derive(Debug)]
pub struct LimitedEngine(SocketAddr);

/// What statements are changed to. The server itself refuses a function that does not exist.
const CHANGED: [(&str, &str); 6] = [
    ("LISTEN ", "SELECT no_listen() -- "),
    ("pg_notify(", "no_notify("),
    ("pg_try_advisory_lock(", "0 <= abs("),
    ("pg_advisory_unlock(", "0 <= abs("),
    ("pg_advisory_lock(", "abs("),
    ("pg_advisory_xact_lock(", "abs("),
];
/// Of so many statements one conflicts with others.
const ONE_IN: u64 = 40;
/// A statement that nobody has prepared: the server rejects it in its turn, and an open transaction with it.
const CONFLICT: &str = "signpost_conflict";

impl LimitedEngine {
    /// Starts it before a server.
    ///
    /// # Panics
    ///
    /// When it gets no port.
    #[must_use]
    pub fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        thread::spawn(move || {
            let counter = Arc::new(AtomicU64::new(1));
            for client in listener.incoming().flatten() {
                let _ = connect(client, server, &counter);
            }
        });
        Self(address)
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.0
    }
}

fn connect(mut client: TcpStream, server: SocketAddr, counter: &Arc<AtomicU64>) -> io::Result<()> {
    let mut server = TcpStream::connect(server)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let (mut to_client, mut from_server) = (client.try_clone()?, server.try_clone()?);
    let counter = Arc::clone(counter);
    thread::spawn(move || {
        // The startup message has no type.
        let _ = pass(&mut client, &mut server, false, |_| {})
            .and_then(|()| pass_all(&mut client, &mut server, |message| limit(message, &counter)));
        let _ = server.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        let _ = pass_all(&mut from_server, &mut to_client, name_conflict);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// A message: its type, and what follows its length.
struct Message {
    kind: u8,
    body: Vec<u8>,
}

fn pass_all(
    from: &mut TcpStream,
    to: &mut TcpStream,
    mut change: impl FnMut(&mut Message),
) -> io::Result<()> {
    loop {
        pass(from, to, true, &mut change)?;
    }
}

fn pass(
    from: &mut TcpStream,
    to: &mut TcpStream,
    has_type: bool,
    change: impl FnOnce(&mut Message),
) -> io::Result<()> {
    let (mut kind, mut length) = ([0], [0; 4]);
    if has_type {
        from.read_exact(&mut kind)?;
    }
    from.read_exact(&mut length)?;
    let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
    from.read_exact(&mut body)?;
    let mut message = Message {
        kind: kind[0],
        body,
    };
    change(&mut message);
    let length = u32::try_from(message.body.len() + 4).expect("a message is short");
    let mut bytes = kind[..usize::from(has_type)].to_vec();
    bytes.extend(length.to_be_bytes());
    bytes.extend(message.body);
    to.write_all(&bytes)
}

/// Changes what a client sends.
fn limit(message: &mut Message, counter: &AtomicU64) {
    match message.kind {
        // Parse, and Query.
        b'P' | b'Q' => {
            let mut text = String::from_utf8_lossy(&message.body).into_owned();
            // Parameters' types are no text.
            if text.as_bytes() == message.body {
                for (from, to) in CHANGED {
                    text = text.replace(from, to);
                }
                message.body = text.into();
            }
        }
        // Bind: the names of a portal and of a statement come first.
        b'B' if is_chosen(counter.fetch_add(1, Ordering::Relaxed)) => {
            let mut parts = message.body.splitn(3, |byte| *byte == 0);
            let (portal, _, rest) = (parts.next(), parts.next(), parts.next());
            let parts = [
                portal.unwrap_or_default(),
                CONFLICT.as_bytes(),
                rest.unwrap_or_default(),
            ];
            message.body = parts.join(&0);
        }
        _ => {}
    }
}

/// Chooses one number in [`ONE_IN`], at irregular distances.
const fn is_chosen(number: u64) -> bool {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32).is_multiple_of(ONE_IN)
}

/// Changes the server's error about [`CONFLICT`].
fn name_conflict(message: &mut Message) {
    if message.kind == b'E' && String::from_utf8_lossy(&message.body).contains(CONFLICT) {
        message.body = b"SERROR\0VERROR\0C40001\0Mrestart transaction\0\0".to_vec();
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::postgres::{Session, shared_server};

    #[test]
    fn it_refuses_what_it_lacks_and_reports_conflicts() {
        let mut address: Url = shared_server().parse().unwrap();
        let server = address.socket_addrs(|| None).unwrap()[0];
        let engine = LimitedEngine::start(server);
        address.set_port(Some(engine.address().port())).unwrap();
        let address = format!("{address}?sslmode=disable");
        let (one, other) = (Session::open(&address), Session::open(&address));
        for refused in ["LISTEN changes", "SELECT pg_notify('changes', '')"] {
            let error = one.try_query(refused).unwrap_err();
            assert_eq!(error.code().unwrap().code(), "42883", "{error:?}");
        }
        for session in [&one, &other] {
            let locked = session.query("SELECT pg_try_advisory_lock(1)");
            assert_eq!(locked.values().collect::<Vec<_>>(), ["t"]);
        }
        let count = 100 * ONE_IN;
        let chosen = (0..count).filter(|number| is_chosen(*number)).count();
        assert!((50..200).contains(&chosen), "{chosen}");
    }
}
