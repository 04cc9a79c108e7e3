//! The load generator: one thread, ready-made requests, every answer checked.
//!
//! It shares its processor with the backend, so it does little: it writes a request's bytes as they were built, and
//! of an answer it reads the status and where it ends. A closed loop keeps every connection busy; an open one
//! sends at a fixed rate, whether or not answers come, and counts latency from the moment when the request was due.

mod answer;
mod schedule;

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use hdrhistogram::Histogram;
use rustix::{
    buffer::spare_capacity,
    event::{
        Timespec,
        epoll::{self, Event, EventData, EventFlags},
    },
};

pub use self::answer::Answer;
use self::{
    answer::{AnswerReader, Progress},
    schedule::Schedule,
};
use crate::requests::Requests;

/// When nothing at all comes for so long, the measurement has failed.
const PATIENCE: Timespec = Timespec {
    tv_sec: 30,
    tv_nsec: 0,
};

/// Bytes that are read at once: a download of 1 MiB should not cost the load more than it must.
const READ_AT_ONCE: usize = 256 * 1024;

/// Events that are taken at once.
const EVENTS: usize = 256;

/// What the schedule's timer is known by among the connections.
const TIMER: u64 = u64::MAX;

/// When a closed loop ends.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After so many requests.
    Requests(u64),
    /// As soon as so much time is over, or the requests have run out.
    Time(Duration),
}

/// What a closed loop did.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// Requests that were answered as they should be.
    pub requests: u64,
    /// How long that took.
    pub elapsed: Duration,
}

/// A number of connections to one address.
#[derive(Debug)]
pub struct Load<'r> {
    address: SocketAddr,
    requests: &'r Requests,
    /// How many of the requests were sent so far: they come in turn.
    sent: usize,
    connections: Vec<Connection>,
    epoll: OwnedFd,
    buffer: Vec<u8>,
}

#[derive(Debug, Default)]
struct Connection {
    stream: Option<TcpStream>,
    answer: AnswerReader,
    /// When the request that is under way was sent, or was due.
    since: Option<Instant>,
    /// The answer is whole, and the server is about to close.
    is_closing: bool,
}

impl<'r> Load<'r> {
    /// So many connections, opened when they are first used.
    ///
    /// # Errors
    ///
    /// The system gives no more file handles.
    pub fn new(
        address: SocketAddr,
        connections: usize,
        requests: &'r Requests,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            address,
            requests,
            sent: 0,
            connections: (0..connections).map(|_| Connection::default()).collect(),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            buffer: vec![0; READ_AT_ONCE],
        })
    }

    /// Sends the next request on each connection as soon as the last one is answered.
    ///
    /// # Errors
    ///
    /// An answer is not as it should be, or does not come.
    pub fn closed(&mut self, until: Until) -> anyhow::Result<Served> {
        let started = Instant::now();
        let (most, deadline) = match until {
            Until::Requests(most) => (most, None),
            Until::Time(time) => (self.requests.most_from(self.sent), Some(started + time)),
        };
        let (mut begun, mut answered) = (0, 0);
        for index in 0..self.connections.len() {
            if begun < most {
                self.send(index, started)?;
                begun += 1;
            }
        }
        let mut events = Vec::with_capacity(EVENTS);
        while answered < begun {
            self.wait(&mut events)?;
            for event in events.drain(..) {
                let index = connection_of(event);
                if self.read(index)?.is_none() {
                    continue;
                }
                answered += 1;
                if begun < most && deadline.is_none_or(|deadline| Instant::now() < deadline) {
                    self.send(index, started)?;
                    begun += 1;
                }
            }
        }
        Ok(Served {
            requests: answered,
            elapsed: started.elapsed(),
        })
    }

    /// Sends so many requests at so many a second; gives their latencies in nanoseconds.
    ///
    /// # Errors
    ///
    /// An answer is not as it should be, or does not come.
    pub fn open(&mut self, count: u64, a_second: u64) -> anyhow::Result<Histogram<u64>> {
        let mut latencies = Histogram::new(3).context("three digits are a precision")?;
        let schedule = Schedule::start(a_second, count)?;
        epoll::add(
            &self.epoll,
            schedule.timer(),
            EventData::new_u64(TIMER),
            EventFlags::IN,
        )?;
        let mut due = VecDeque::new();
        // In turn, so that all of them are in use.
        let mut idle: VecDeque<usize> = (0..self.connections.len()).collect();
        let mut begun = 0;
        let mut events = Vec::with_capacity(EVENTS);
        while latencies.len() < count {
            self.wait(&mut events)?;
            for event in events.drain(..) {
                if event.data.u64() == TIMER {
                    schedule.quieten()?;
                    continue;
                }
                let index = connection_of(event);
                if let Some(since) = self.read(index)? {
                    let latency = since.elapsed().as_nanos();
                    latencies.record(u64::try_from(latency)?)?;
                    idle.push_back(index);
                }
            }
            while let Some(moment) = schedule.due(begun) {
                due.push_back(moment);
                begun += 1;
            }
            while !due.is_empty()
                && let Some(index) = idle.pop_front()
                && let Some(moment) = due.pop_front()
            {
                self.send(index, moment)?;
            }
        }
        epoll::delete(&self.epoll, schedule.timer())?;
        Ok(latencies)
    }

    /// Sends one request on each connection, a few at a time, and leaves them all open.
    ///
    /// # Errors
    ///
    /// An answer is not as it should be, or does not come.
    pub fn each_once(&mut self, at_a_time: usize) -> anyhow::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        for first in (0..self.connections.len()).step_by(at_a_time) {
            let last = self.connections.len().min(first + at_a_time);
            for index in first..last {
                self.send(index, Instant::now())?;
            }
            let mut under_way = last - first;
            while under_way > 0 {
                self.wait(&mut events)?;
                for event in events.drain(..) {
                    under_way -= usize::from(self.read(connection_of(event))?.is_some());
                }
            }
        }
        Ok(())
    }

    fn wait(&self, events: &mut Vec<Event>) -> anyhow::Result<()> {
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&PATIENCE)) {
            Ok(0) => bail!("{}: nothing came for {} s", self.address, PATIENCE.tv_sec),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(cause) => Err(cause.into()),
        }
    }

    fn send(&mut self, index: usize, since: Instant) -> anyhow::Result<()> {
        let request = self.requests.at(self.sent)?;
        self.sent += 1;
        let connection = &mut self.connections[index];
        let stream = match &mut connection.stream {
            Some(stream) => stream,
            none => {
                let stream = TcpStream::connect(self.address)
                    .with_context(|| format!("cannot connect to {}", self.address))?;
                stream.set_nonblocking(true)?;
                let data = EventData::new_u64(u64::try_from(index)?);
                epoll::add(&self.epoll, &stream, data, EventFlags::IN)?;
                none.insert(stream)
            }
        };
        connection.since = Some(since);
        // A request is smaller than an empty socket's buffer, and this one is empty.
        let written = stream.write(request)?;
        if written < request.len() {
            bail!("{}: a request was not taken whole", self.address);
        }
        Ok(())
    }

    /// Reads what there is; gives the moment from which the request counts when its answer is whole.
    fn read(&mut self, index: usize) -> anyhow::Result<Option<Instant>> {
        let connection = &mut self.connections[index];
        let Some(stream) = &mut connection.stream else {
            return Ok(None);
        };
        let length = match stream.read(&mut self.buffer) {
            Ok(length) => length,
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(cause) => return Err(cause).context("a connection broke"),
        };
        if length == 0 {
            connection.stream = None;
            if !connection.is_closing {
                bail!(
                    "{} closed a connection that it had not said it would",
                    self.address
                );
            }
            connection.is_closing = false;
            return Ok(connection.since.take());
        }
        match connection.answer.read(&self.buffer[..length])? {
            Progress::Partial => Ok(None),
            Progress::Whole(answer) => {
                self.requests
                    .check(&answer)
                    .with_context(|| format!("{}: not as it should be", self.address))?;
                if answer.closes {
                    // It counts once the server has closed: so no port stays behind in TIME_WAIT here.
                    connection.is_closing = true;
                    return Ok(None);
                }
                Ok(connection.since.take())
            }
        }
    }
}

fn connection_of(event: Event) -> usize {
    usize::try_from(event.data.u64()).unwrap_or(usize::MAX)
}
