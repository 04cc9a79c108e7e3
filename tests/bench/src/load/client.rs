//! A client that waits for each response, and keeps head and body.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, bail, ensure};

use super::{
    TIMEOUT_SECONDS,
    connection::{Connection, Received},
    response::Keep,
    stream::Opener,
};

/// Bytes per read: more than any response here has.
const READ_AT_ONCE: usize = 16 * 1024;

/// A blocking client: one request after the other.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    connection: Connection<Whole>,
    buffer: Vec<u8>,
}

/// A complete response.
#[derive(Debug)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Its status line and headers, as received.
    pub head: String,
    /// Its body.
    pub body: Vec<u8>,
}

/// Head and body of the last response.
#[derive(Debug, Default)]
struct Whole {
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Keep for Whole {
    fn head(&mut self, bytes: &[u8]) {
        self.head.clear();
        self.head.extend_from_slice(bytes);
        self.body.clear();
    }

    fn body(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }
}

impl Client {
    /// A client of this address.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            connection: Connection::new(address, 0, Opener::Plain),
            buffer: vec![0; READ_AT_ONCE],
        }
    }

    /// Sends a request, and reads its response. After a failure, the next request opens a new connection.
    ///
    /// # Errors
    ///
    /// When the connection is refused or fails, or the response has no length.
    pub fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Response> {
        let response = self.try_exchange(request);
        if response.is_err() {
            // A new one, so that no part of the failed answer remains.
            self.connection = Connection::new(self.address, 0, Opener::Plain);
        }
        response.with_context(|| format!("no valid answer from {}", self.address))
    }

    fn try_exchange(&mut self, request: &[u8]) -> anyhow::Result<Response> {
        self.connection.send(request, |stream| {
            stream.set_nodelay(true)?;
            let timeout = Duration::from_secs(TIMEOUT_SECONDS.into());
            Ok(stream.set_read_timeout(Some(timeout))?)
        })?;
        loop {
            match self.connection.receive(&mut self.buffer)? {
                Received::Partial => {}
                Received::Nothing | Received::Closed => {
                    bail!("no answer within {TIMEOUT_SECONDS} s")
                }
                Received::Whole(response) => {
                    // Without waiting for the server: it may wait for the client to close first.
                    if response.closes {
                        self.connection.close();
                    }
                    let kept = self.connection.kept();
                    return Ok(Response {
                        status: response.status,
                        head: String::from_utf8_lossy(&kept.head).into_owned(),
                        body: kept.body.clone(),
                    });
                }
            }
        }
    }
}

impl Response {
    /// The value of a header; of several, the first.
    pub fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1);
        let mut fields = fields.filter_map(|line| line.split_once(':'));
        let value = fields
            .find(|(field, _)| field.eq_ignore_ascii_case(name))?
            .1;
        Some(value.trim())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns this response if it has the expected status.
    ///
    /// # Errors
    ///
    /// When it has another one.
    pub fn expect(self, status: u16) -> anyhow::Result<Self> {
        ensure!(
            self.status == status,
            "status {} instead of {status}: {}",
            self.status,
            self.text()
        );
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
        thread,
    };

    use super::*;

    #[test]
    fn responses_are_read_one_by_one_and_a_closed_connection_is_reopened() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let responses = [
                ["HTTP/1.1 200 OK\r\nContent-Le", "ngth: 3\r\n\r\na", "bc"].as_slice(),
                ["HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\nConnection: close\r\n\r\n"]
                    .as_slice(),
            ];
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                for pieces in responses {
                    assert!(stream.read(&mut [0; 64]).unwrap() > 0);
                    for piece in pieces {
                        stream.write_all(piece.as_bytes()).unwrap();
                        stream.flush().unwrap();
                    }
                }
            }
        });
        let mut client = Client::new(address);
        for _ in 0..2 {
            let first = client.exchange(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            assert_eq!((first.status, first.text().as_str()), (200, "abc"));
            let second = client.exchange(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            assert_eq!(second.header("location"), Some("/x"));
            assert!(second.expect(200).is_err());
        }
        server.join().unwrap();
    }
}
