//! A keep-alive connection: opened when first used, and reopened after the server has closed it.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
};

use anyhow::{Context, bail};

use super::{
    response::{Keep, Progress, Response, ResponseReader},
    stream::{Opener, Stream},
};

/// A connection for one request after the other. `K` stores parts of the responses.
#[derive(Debug)]
pub(super) struct Connection<K> {
    address: SocketAddr,
    /// The number of the connection, from 0.
    index: usize,
    opener: Opener,
    stream: Option<Stream>,
    reader: ResponseReader<K>,
    /// Whether the last response is complete and announced that the server closes.
    is_closing: bool,
}

/// The result of a read.
#[derive(Debug)]
pub(super) enum Received {
    /// Nothing, as yet or within the stream's timeout.
    Nothing,
    /// A part of the response.
    Partial,
    /// The complete response.
    Whole(Response),
    /// The server has closed the connection, as its last response announced.
    Closed,
}

impl<K: Keep> Connection<K> {
    /// The connection with this number, from 0, to this address.
    pub(super) fn new(address: SocketAddr, index: usize, opener: Opener) -> Self {
        Self {
            address,
            index,
            opener,
            stream: None,
            reader: ResponseReader::default(),
            is_closing: false,
        }
    }

    /// What was stored of the last response.
    pub(super) const fn kept(&self) -> &K {
        self.reader.kept()
    }

    /// Sends a request. `set_up` is called for a newly opened socket.
    ///
    /// # Errors
    ///
    /// When the connection is refused or fails, or the socket does not accept the whole request.
    pub(super) fn send(
        &mut self,
        request: &[u8],
        set_up: impl FnOnce(&TcpStream) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = super::connect(self.address, self.index)
                    .with_context(|| format!("cannot connect to {}", self.address))?;
                set_up(&stream)?;
                none.insert(self.opener.open(stream)?)
            }
        };
        // The socket's send buffer is empty and larger than a request: a non-blocking stream accepts it at once, too.
        let sent = stream.write_all(request);
        sent.with_context(|| format!("{}: cannot send a request", self.address))
    }

    /// Closes it; the next request opens another one.
    pub(super) fn close(&mut self) {
        self.stream = None;
        self.is_closing = false;
    }

    /// Reads once.
    ///
    /// # Errors
    ///
    /// When the connection fails, or the bytes are not a response.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> anyhow::Result<Received> {
        let Some(stream) = &mut self.stream else {
            return Ok(Received::Nothing);
        };
        let length = match stream.read(buffer) {
            Ok(length) => length,
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(Received::Nothing),
            Err(cause) => return Err(cause).context("the connection failed"),
        };
        if length == 0 {
            if !self.is_closing {
                bail!("{} closed a connection unexpectedly", self.address);
            }
            self.close();
            return Ok(Received::Closed);
        }
        match self.reader.read(&buffer[..length])? {
            Progress::Partial => Ok(Received::Partial),
            Progress::Whole(response) => {
                self.is_closing = response.closes;
                Ok(Received::Whole(response))
            }
        }
    }
}
