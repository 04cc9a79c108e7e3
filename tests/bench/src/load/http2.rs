//! The load over HTTP/2: several concurrent requests on each connection, always over TLS.

use std::{
    cell::{Cell, RefCell},
    net::SocketAddr,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use bytes::Bytes;
use futures_util::future::{try_join, try_join_all};
use h2::client::{Builder, SendRequest};
use hdrhistogram::Histogram;
use rustls::ClientConfig;
use tokio::{
    io::AsyncReadExt,
    net::{TcpStream, unix::pipe},
    runtime::{self, Runtime},
    sync::{
        Mutex,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{Response, Served, TIMEOUT_SECONDS, Until, check, latencies, schedule::Schedule};
use crate::{
    requests::{Http2Request, Requests},
    tls,
};

/// Flow-control window of the load, of streams and connections: a response never waits for it.
const WINDOW: u32 = 4 * 1024 * 1024;

/// Connections opened at a time: fewer than any listen backlog holds.
const OPENED_AT_A_TIME: usize = 64;

/// Connections to one address, and the requests to send.
#[derive(Debug)]
pub(super) struct Http2Load<'r> {
    address: SocketAddr,
    requests: &'r Requests,
    /// Number of requests sent so far, in order.
    sent: usize,
    config: Arc<ClientConfig>,
    connections: Vec<Option<SendRequest<Bytes>>>,
    runtime: Runtime,
}

impl<'r> Http2Load<'r> {
    /// A load with this number of connections, each opened when first used.
    ///
    /// # Errors
    ///
    /// When no file descriptor is left.
    pub(super) fn new(
        address: SocketAddr,
        connections: usize,
        requests: &'r Requests,
    ) -> anyhow::Result<Self> {
        let config = requests.tls().context("HTTP/2 is over TLS")?;
        Ok(Self {
            address,
            requests,
            sent: 0,
            config: Arc::new(config.clone()),
            connections: vec![None; connections],
            runtime: new_runtime()?,
        })
    }

    /// Sends the next request on each stream as soon as the last one is answered.
    pub(super) fn closed(&mut self, until: Until) -> anyhow::Result<Served> {
        let started = Instant::now();
        self.open_all()?;
        let remaining = self.requests.remaining_from(self.sent);
        let (max_requests, deadline) = match until {
            Until::Requests(count) => (count, None),
            Until::Time(time) => (remaining, Some(started + time)),
        };
        let (first, begun) = (self.sent, Cell::new(0));
        let is_over = || {
            begun.get() >= max_requests
                || deadline.is_some_and(|deadline| Instant::now() >= deadline)
        };
        let stream = async |mut connection: SendRequest<Bytes>| {
            while !is_over() {
                let index = first + usize::try_from(begun.replace(begun.get() + 1))?;
                connection = self.serve(connection, index).await?;
            }
            anyhow::Ok(())
        };
        let streams = self.streams().map(stream);
        self.runtime.block_on(try_join_all(streams))?;
        self.sent += usize::try_from(begun.get())?;
        Ok(Served {
            requests: begun.get(),
            elapsed: started.elapsed(),
        })
    }

    /// Sends `count` requests at a fixed rate, and returns their latencies in nanoseconds.
    pub(super) fn open(&mut self, count: u64, a_second: u64) -> anyhow::Result<Histogram<u64>> {
        self.open_all()?;
        let schedule = Schedule::start(a_second, count)?;
        let latencies = RefCell::new(latencies()?);
        let (due, moments) = unbounded_channel();
        // Its lock is a queue, so that all streams are used.
        let moments = Mutex::new(moments);
        let sent = Cell::new(self.sent);
        let stream = async |mut connection: SendRequest<Bytes>| {
            while let Some(moment) = next(&moments).await {
                let index = sent.replace(sent.get() + 1);
                connection = self.serve(connection, index).await?;
                let latency = u64::try_from(moment.elapsed().as_nanos())?;
                latencies.borrow_mut().record(latency)?;
            }
            anyhow::Ok(())
        };
        let streams = try_join_all(self.streams().map(stream));
        let all = try_join(announce(&schedule, count, due), streams);
        self.runtime.block_on(all)?;
        self.sent = sent.get();
        Ok(latencies.into_inner())
    }

    /// Sends one request on each connection, `at_a_time` in parallel.
    pub(super) fn each_once(&mut self, at_a_time: usize) -> anyhow::Result<()> {
        for first in (0..self.connections.len()).step_by(at_a_time) {
            let some = first..self.connections.len().min(first + at_a_time);
            // Each is used as soon as it is open: a server may limit the time until the first request.
            self.open_some(some.clone())?;
            let connections = self.connections[some].iter().flatten().cloned();
            let serve = |(index, connection)| self.serve(connection, self.sent + index);
            let all = try_join_all(connections.enumerate().map(serve));
            self.sent += self.runtime.block_on(all)?.len();
        }
        Ok(())
    }

    /// Opens all connections that are not open yet.
    fn open_all(&mut self) -> anyhow::Result<()> {
        for first in (0..self.connections.len()).step_by(OPENED_AT_A_TIME) {
            self.open_some(first..self.connections.len().min(first + OPENED_AT_A_TIME))?;
        }
        Ok(())
    }

    /// Opens those of these connections that are not open yet, in parallel.
    fn open_some(&mut self, some: Range<usize>) -> anyhow::Result<()> {
        let (address, config) = (self.address, &self.config);
        let numbered = some.clone().zip(&mut self.connections[some]);
        let missing = numbered.filter(|(_, one)| one.is_none());
        let open = async |(index, one): (usize, &mut Option<SendRequest<Bytes>>)| {
            *one = Some(connect(address, index, Arc::clone(config)).await?);
            anyhow::Ok(())
        };
        self.runtime.block_on(try_join_all(missing.map(open)))?;
        Ok(())
    }

    /// A handle to the connection for each stream.
    fn streams(&self) -> impl Iterator<Item = SendRequest<Bytes>> {
        let repeated = (0..self.requests.streams()).flat_map(|_| self.connections.iter());
        repeated.flatten().cloned()
    }

    /// Sends the request with this index, checks its response, and returns the connection for the next one.
    async fn serve(
        &self,
        connection: SendRequest<Bytes>,
        index: usize,
    ) -> anyhow::Result<SendRequest<Bytes>> {
        let request = self.requests.http2_at(index)?;
        let mut length = 0;
        let exchange = exchange(connection, request, |bytes| length += bytes.len() as u64);
        let time = Duration::from_secs(TIMEOUT_SECONDS.into());
        let (status, connection) = timeout(time, exchange)
            .await
            .with_context(|| format!("{}: no answer within {TIMEOUT_SECONDS} s", self.address))??;
        let response = Response {
            status,
            length,
            closes: false,
        };
        check(self.requests, &response, self.address)?;
        Ok(connection)
    }
}

/// Sends one request over a new connection, and returns status and body of the response.
///
/// # Errors
///
/// When the connection or the exchange fails.
pub fn exchange_once(
    address: SocketAddr,
    config: Arc<ClientConfig>,
    request: &Http2Request,
) -> anyhow::Result<(u16, Vec<u8>)> {
    new_runtime()?.block_on(async {
        let time = Duration::from_secs(TIMEOUT_SECONDS.into());
        let mut body = Vec::new();
        let exchange = async {
            let connection = connect(address, 0, config).await?;
            exchange(connection, request, |bytes| body.extend_from_slice(bytes)).await
        };
        let (status, _) = timeout(time, exchange).await.context("no response")??;
        Ok((status, body))
    })
}

fn new_runtime() -> anyhow::Result<Runtime> {
    runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("a runtime for HTTP/2")
}

/// Opens the connection with this number, from 0.
async fn connect(
    address: SocketAddr,
    index: usize,
    config: Arc<ClientConfig>,
) -> anyhow::Result<SendRequest<Bytes>> {
    let socket =
        super::connect(address, index).with_context(|| format!("cannot connect to {address}"))?;
    socket.set_nodelay(true)?;
    socket.set_nonblocking(true)?;
    let socket = TcpStream::from_std(socket)?;
    let stream = TlsConnector::from(config)
        .connect(tls::server_name(), socket)
        .await
        .with_context(|| format!("{address}: no TLS"))?;
    let protocol = stream.get_ref().1.alpn_protocol();
    ensure!(protocol == Some(b"h2"), "{address} does not choose h2");
    let (send, connection) = Builder::new()
        .enable_push(false)
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .handshake(stream)
        .await
        .with_context(|| format!("{address}: no HTTP/2"))?;
    // Its failure fails every exchange, which reports it.
    tokio::spawn(async move { connection.await.ok() });
    Ok(send)
}

/// Sends a request, and reads the whole response. Returns its status, and the connection for the next request.
async fn exchange(
    connection: SendRequest<Bytes>,
    request: &Http2Request,
    mut keep: impl FnMut(&[u8]),
) -> anyhow::Result<(u16, SendRequest<Bytes>)> {
    let mut connection = connection.ready().await.context("the connection failed")?;
    let is_whole = request.body.is_empty();
    let (response, mut upload) = connection.send_request(request.head.clone(), is_whole)?;
    if !is_whole {
        upload.send_data(request.body.clone(), true)?;
    }
    let response = response.await.context("no response")?;
    let status = response.status().as_u16();
    let mut body = response.into_body();
    while let Some(bytes) = body.data().await {
        let bytes = bytes.context("the response is incomplete")?;
        body.flow_control().release_capacity(bytes.len())?;
        keep(&bytes);
    }
    Ok((status, connection))
}

/// Sends each moment of the schedule once it has been reached.
async fn announce(
    schedule: &Schedule,
    count: u64,
    due: UnboundedSender<Instant>,
) -> anyhow::Result<()> {
    // The runtime reads the timer as if it were a pipe: its own timers are only exact to 1 ms.
    let mut timer = pipe::Receiver::from_owned_fd_unchecked(schedule.timer().try_clone()?)?;
    let mut begun = 0;
    while begun < count {
        timer.read_u64_le().await?;
        while let Some(moment) = schedule.due(begun) {
            due.send(moment).context("no stream is left")?;
            begun += 1;
        }
    }
    Ok(())
}

async fn next(moments: &Mutex<UnboundedReceiver<Instant>>) -> Option<Instant> {
    moments.lock().await.recv().await
}
