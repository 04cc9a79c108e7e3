//! The load generator: every answer is checked.
//!
//! It shares its processors with what it measures, so it does little. There are two kinds of load, over the same
//! `connection` and the same reader of `answer`s:
//!
//! - [`Load`] has one thread and ready-made requests: it writes a request's bytes as they were built, and of an answer
//!   it reads the status and where it ends. A closed loop keeps every connection busy; an open one sends at a fixed
//!   rate (its `schedule`), whether or not answers come, and counts latency from the moment when the request was due.
//! - [`workers`] have a thread each. What they send depends on what was answered, over a [`client`] that keeps heads and
//!   bodies: each goes on as soon as it is answered.

mod answer;
pub mod client;
mod connection;
mod schedule;
pub mod workers;

use std::{
    collections::VecDeque,
    net::SocketAddr,
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
    connection::{Connection, Received},
    schedule::Schedule,
};
use crate::requests::Requests;

/// When nothing at all comes for so many seconds, the measurement has failed.
const TIMEOUT_SECONDS: u32 = 30;

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
    /// With the moment when the request in flight was sent, or was due.
    connections: Vec<(Connection<()>, Option<Instant>)>,
    epoll: OwnedFd,
    buffer: Vec<u8>,
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
            connections: (0..connections)
                .map(|_| (Connection::new(address), None))
                .collect(),
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
        let mut latencies = latencies()?;
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
        let timeout = Timespec {
            tv_sec: TIMEOUT_SECONDS.into(),
            tv_nsec: 0,
        };
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout)) {
            Ok(0) => bail!("{}: nothing came for {TIMEOUT_SECONDS} s", self.address),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(cause) => Err(cause.into()),
        }
    }

    fn send(&mut self, index: usize, since: Instant) -> anyhow::Result<()> {
        let request = self.requests.at(self.sent)?;
        self.sent += 1;
        let (connection, in_flight) = &mut self.connections[index];
        *in_flight = Some(since);
        connection.send(request, |stream| {
            stream.set_nonblocking(true)?;
            let data = EventData::new_u64(u64::try_from(index)?);
            epoll::add(&self.epoll, stream, data, EventFlags::IN)?;
            Ok(())
        })
    }

    /// Reads what there is; gives the moment from which the request counts when its answer is whole.
    fn read(&mut self, index: usize) -> anyhow::Result<Option<Instant>> {
        let (connection, in_flight) = &mut self.connections[index];
        match connection.receive(&mut self.buffer)? {
            Received::Nothing | Received::Partial => Ok(None),
            Received::Closed => Ok(in_flight.take()),
            Received::Whole(answer) => {
                self.requests
                    .check(&answer)
                    .with_context(|| format!("{}: not as it should be", self.address))?;
                // If the server closes, it counts once that is done: so no port stays behind in TIME_WAIT here.
                Ok((!answer.closes).then(|| in_flight.take()).flatten())
            }
        }
    }
}

/// No latencies yet, in whatever unit is recorded.
fn latencies() -> anyhow::Result<Histogram<u64>> {
    Histogram::new(3).context("three digits are a precision")
}

fn connection_of(event: Event) -> usize {
    usize::try_from(event.data.u64()).unwrap_or(usize::MAX)
}
