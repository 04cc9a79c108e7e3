//! The load generator: every response is checked.
//!
//! It shares its processors with the measured programs, so it does little work. There are two kinds of load:
//!
//! - [`Load`] has one thread and prepared requests, over HTTP/1.1 or HTTP/2. Of a response it
//!   reads the status and the end. A closed loop keeps every connection busy. An open loop sends at a fixed rate (its
//!   `schedule`), whether or not answers arrive, and measures latency from the moment at which the request was due.
//! - [`workers`] have a thread each. Their requests depend on earlier answers, so a [`client`] keeps heads and bodies.
//!   Each worker continues as soon as it has its response.
//!
//! Over HTTP/1.1, both have the same `connection`, its `stream`, and the same reader of `response`s.

pub mod client;
mod connection;
mod http1;
pub mod http2;
mod response;
mod schedule;
mod stream;
#[cfg(test)]
mod tests;
pub mod workers;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream},
    time::Duration,
};

use anyhow::Context;
use hdrhistogram::Histogram;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

pub use self::response::Response;
use self::{http1::Http1Load, http2::Http2Load};
use crate::{case::Transport, requests::Requests};

/// Timeout: if no response arrives for this time, the measurement fails.
const TIMEOUT_SECONDS: u32 = 30;

/// The end of a closed loop.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this number of requests.
    Requests(u64),
    /// After this time, or when no unsent request is left.
    Time(Duration),
}

/// The result of a closed loop.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// Correctly answered requests.
    pub requests: u64,
    /// Duration of the loop.
    pub elapsed: Duration,
}

/// A load: connections to one address, and the requests to send.
#[derive(Debug)]
pub struct Load<'r>(Protocol<'r>);

#[derive(Debug)]
enum Protocol<'r> {
    Http1(Http1Load<'r>),
    Http2(Http2Load<'r>),
}

impl<'r> Load<'r> {
    /// A load with this number of connections, each opened when first used.
    ///
    /// # Errors
    ///
    /// When no file descriptor is left.
    pub fn new(
        address: SocketAddr,
        connections: usize,
        requests: &'r Requests,
    ) -> anyhow::Result<Self> {
        Ok(Self(match requests.transport() {
            Transport::Http2 => Protocol::Http2(Http2Load::new(address, connections, requests)?),
            _ => Protocol::Http1(Http1Load::new(address, connections, requests)?),
        }))
    }

    /// Closed loop: sends the next request as soon as one is answered, so that every connection stays busy.
    ///
    /// # Errors
    ///
    /// When a response is not as expected, or does not arrive.
    pub fn closed(&mut self, until: Until) -> anyhow::Result<Served> {
        match &mut self.0 {
            Protocol::Http1(load) => load.closed(until),
            Protocol::Http2(load) => load.closed(until),
        }
    }

    /// Open loop: sends `count` requests at a fixed rate, and returns their latencies in nanoseconds.
    ///
    /// # Errors
    ///
    /// When a response is not as expected, or does not arrive.
    pub fn open(&mut self, count: u64, a_second: u64) -> anyhow::Result<Histogram<u64>> {
        match &mut self.0 {
            Protocol::Http1(load) => load.open(count, a_second),
            Protocol::Http2(load) => load.open(count, a_second),
        }
    }

    /// Sends one request on each connection, `at_a_time` in parallel, and leaves all connections open.
    ///
    /// # Errors
    ///
    /// When a response is not as expected, or does not arrive.
    pub fn each_once(&mut self, at_a_time: usize) -> anyhow::Result<()> {
        match &mut self.0 {
            Protocol::Http1(load) => load.each_once(at_a_time),
            Protocol::Http2(load) => load.each_once(at_a_time),
        }
    }
}

/// Opens the socket of the connection with this index.
///
/// Each thousand has a client address of its own: the gateway allows one address a quarter of all connections.
///
/// # Errors
///
/// When the connection is refused or fails.
fn connect(address: SocketAddr, index: usize) -> io::Result<TcpStream> {
    let thousands = u8::try_from(index / 1000).unwrap_or(u8::MAX - 1);
    if thousands == 0 {
        return TcpStream::connect(address);
    }
    let socket = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let client = Ipv4Addr::new(127, 0, 0, thousands + 1);
    rustix::net::bind(&socket, &SocketAddrV4::new(client, 0))?;
    rustix::net::connect(&socket, &address)?;
    Ok(socket.into())
}

/// Checks a response, and names the server if it is not as expected.
fn check(requests: &Requests, response: &Response, address: SocketAddr) -> anyhow::Result<()> {
    let checked = requests.check(response);
    checked.with_context(|| format!("{address}: unexpected response"))
}

/// An empty histogram of latencies, in any unit.
fn latencies() -> anyhow::Result<Histogram<u64>> {
    Histogram::new(3).context("three digits are a precision")
}
