//! A connection that is kept: the load shares its processors with what it measures, so this does little.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use memchr::memmem;

/// When nothing at all comes for so long, the measurement has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes that are read at once: more than any answer here has.
const READ_AT_ONCE: usize = 16 * 1024;

/// No head is so long.
const LONGEST_HEAD: usize = 64 * 1024;

/// Blocking, one request after the other. Opened when it is first used, and again after the server has closed it.
#[derive(Debug)]
pub struct Connection {
    address: SocketAddr,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its status line and headers, as they came.
    pub head: String,
    /// Its body.
    pub body: Vec<u8>,
}

impl Connection {
    /// To an address.
    pub const fn new(address: SocketAddr) -> Self {
        Self {
            address,
            stream: None,
            buffer: Vec::new(),
        }
    }

    /// Sends a whole request, and reads its answer.
    ///
    /// # Errors
    ///
    /// Nobody listens there, the connection breaks, or the answer has no length.
    pub fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Answer> {
        self.stream()?.write_all(request)?;
        let answer = self.read();
        let is_over = answer.as_ref().map_or(true, |answer| {
            let said = answer.header("connection");
            said.is_some_and(|said| said.eq_ignore_ascii_case("close"))
        });
        if is_over {
            self.stream = None;
        }
        answer.with_context(|| format!("an answer of {}", self.address))
    }

    fn stream(&mut self) -> anyhow::Result<&mut TcpStream> {
        match &mut self.stream {
            Some(stream) => Ok(stream),
            none => {
                let stream = TcpStream::connect(self.address)
                    .with_context(|| format!("cannot connect to {}", self.address))?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Ok(none.insert(stream))
            }
        }
    }

    fn read(&mut self) -> anyhow::Result<Answer> {
        self.buffer.clear();
        let end = loop {
            if let Some(end) = memmem::find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            ensure!(self.buffer.len() < LONGEST_HEAD, "a head without an end");
            self.read_more()?;
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        let mut answer = Answer {
            status: status(&head)?,
            head,
            body: Vec::new(),
        };
        let length = answer.header("content-length");
        let length: usize = length
            .with_context(|| format!("no length: {}", answer.head))?
            .parse()?;
        while self.buffer.len() < end + length {
            self.read_more()?;
        }
        ensure!(
            self.buffer.len() == end + length,
            "bytes behind an answer's end"
        );
        answer.body = self.buffer.split_off(end);
        Ok(answer)
    }

    fn read_more(&mut self) -> anyhow::Result<()> {
        let stream = self.stream.as_mut().context("there is a connection")?;
        let known = self.buffer.len();
        self.buffer.resize(known + READ_AT_ONCE, 0);
        let read = stream.read(&mut self.buffer[known..]);
        self.buffer
            .truncate(known + read.as_ref().copied().unwrap_or(0));
        if read? == 0 {
            bail!("the connection was closed before the answer was whole");
        }
        Ok(())
    }
}

impl Answer {
    /// The value of a header, by its name in small letters; of several, the first.
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

    /// This answer, if its status is the right one.
    ///
    /// # Errors
    ///
    /// It is another one.
    pub fn expect(self, status: u16) -> anyhow::Result<Self> {
        ensure!(
            self.status == status,
            "status {} for {status}: {}",
            self.status,
            self.text()
        );
        Ok(self)
    }
}

fn status(head: &str) -> anyhow::Result<u16> {
    let digits = head
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3));
    Ok(digits
        .with_context(|| format!("no answer: {head}"))?
        .parse()?)
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    #[test]
    fn answers_are_read_one_by_one_and_a_closed_connection_is_opened_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let answers = [
                ["HTTP/1.1 200 OK\r\nContent-Le", "ngth: 3\r\n\r\na", "bc"].as_slice(),
                ["HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\nConnection: close\r\n\r\n"]
                    .as_slice(),
            ];
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                for pieces in answers {
                    assert!(stream.read(&mut [0; 64]).unwrap() > 0);
                    for piece in pieces {
                        stream.write_all(piece.as_bytes()).unwrap();
                        stream.flush().unwrap();
                    }
                }
            }
        });
        let mut connection = Connection::new(address);
        for _ in 0..2 {
            let first = connection.exchange(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            assert_eq!((first.status, first.text().as_str()), (200, "abc"));
            let second = connection.exchange(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            assert_eq!(second.header("location"), Some("/x"));
            assert!(second.expect(200).is_err());
        }
        server.join().unwrap();
    }
}
