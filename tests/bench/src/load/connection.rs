//! A connection that is kept: opened when it is first used, and again after the server has closed it.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
};

use anyhow::{Context, bail};

use super::answer::{Answer, AnswerReader, Keep, Progress};

/// One request after the other. Of an answer it keeps what `K` does.
#[derive(Debug)]
pub(super) struct Connection<K> {
    address: SocketAddr,
    stream: Option<TcpStream>,
    reader: AnswerReader<K>,
    /// The last answer is whole, and the server is about to close.
    is_closing: bool,
}

/// What is there after a read.
#[derive(Debug)]
pub(super) enum Received {
    /// Nothing new: so far, or until the stream's timeout.
    Nothing,
    /// A part of an answer.
    Partial,
    /// The whole of it.
    Whole(Answer),
    /// The server has closed, as its last answer said.
    Closed,
}

impl<K: Keep> Connection<K> {
    /// To an address.
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            stream: None,
            reader: AnswerReader::default(),
            is_closing: false,
        }
    }

    /// What is kept of the last answer.
    pub(super) const fn kept(&self) -> &K {
        self.reader.kept()
    }

    /// Sends a whole request. A new stream is first made ready.
    ///
    /// # Errors
    ///
    /// Nobody listens there, the connection breaks, or the request is not taken whole.
    pub(super) fn send(
        &mut self,
        request: &[u8],
        make_ready: impl FnOnce(&TcpStream) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = TcpStream::connect(self.address)
                    .with_context(|| format!("cannot connect to {}", self.address))?;
                make_ready(&stream)?;
                none.insert(stream)
            }
        };
        // A request is smaller than an empty socket's buffer, and this one is empty: also a stream that never
        // blocks takes it whole.
        let sent = stream.write_all(request);
        sent.with_context(|| format!("{}: a request was not taken whole", self.address))
    }

    /// Closes it: the next request opens another.
    pub(super) fn close(&mut self) {
        self.stream = None;
        self.is_closing = false;
    }

    /// Reads once.
    ///
    /// # Errors
    ///
    /// The connection breaks, or what comes is no answer.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> anyhow::Result<Received> {
        let Some(stream) = &mut self.stream else {
            return Ok(Received::Nothing);
        };
        let length = match stream.read(buffer) {
            Ok(length) => length,
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(Received::Nothing),
            Err(cause) => return Err(cause).context("a connection broke"),
        };
        if length == 0 {
            if !self.is_closing {
                bail!(
                    "{} closed a connection that it had not said it would",
                    self.address
                );
            }
            self.close();
            return Ok(Received::Closed);
        }
        match self.reader.read(&buffer[..length])? {
            Progress::Partial => Ok(Received::Partial),
            Progress::Whole(answer) => {
                self.is_closing = answer.closes;
                Ok(Received::Whole(answer))
            }
        }
    }
}
