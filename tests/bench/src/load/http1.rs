//! The load over HTTP/1.1, with or without TLS: one request at a time on each connection.

use std::{collections::VecDeque, net::SocketAddr, os::fd::OwnedFd, time::Instant};

use anyhow::bail;
use hdrhistogram::Histogram;
use rustix::{
    buffer::spare_capacity,
    event::{
        Timespec,
        epoll::{self, Event, EventData, EventFlags},
    },
};

use super::{
    Served, TIMEOUT_SECONDS, Until, check,
    connection::{Connection, Received},
    latencies,
    schedule::Schedule,
    stream::Opener,
};
use crate::requests::Requests;

/// Bytes per read: large, so that a download of 1 MiB costs the load little.
const READ_AT_ONCE: usize = 256 * 1024;

/// Events per wait.
const EVENTS: usize = 256;

/// Event data of the schedule's timer; connections have their index.
const TIMER: u64 = u64::MAX;

/// Connections to one address, and the requests to send.
#[derive(Debug)]
pub(super) struct Http1Load<'r> {
    address: SocketAddr,
    requests: &'r Requests,
    /// Number of requests sent so far, in order.
    sent: usize,
    /// Each with the moment at which its request in flight was sent or due.
    connections: Vec<(Connection<()>, Option<Instant>)>,
    epoll: OwnedFd,
    buffer: Vec<u8>,
}

impl<'r> Http1Load<'r> {
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
        let opener = Opener::new(requests);
        Ok(Self {
            address,
            requests,
            sent: 0,
            connections: (0..connections)
                .map(|index| {
                    (
                        Connection::new(address, index, opener.for_connection()),
                        None,
                    )
                })
                .collect(),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            buffer: vec![0; READ_AT_ONCE],
        })
    }

    /// Sends the next request on each connection as soon as the last one is answered.
    pub(super) fn closed(&mut self, until: Until) -> anyhow::Result<Served> {
        let started = Instant::now();
        let (max_requests, deadline) = match until {
            Until::Requests(count) => (count, None),
            Until::Time(time) => (
                self.requests.remaining_from(self.sent),
                Some(started + time),
            ),
        };
        let (mut begun, mut answered) = (0, 0);
        for index in 0..self.connections.len() {
            if begun < max_requests {
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
                if begun < max_requests && deadline.is_none_or(|deadline| Instant::now() < deadline)
                {
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

    /// Sends `count` requests at a fixed rate, and returns their latencies in nanoseconds.
    pub(super) fn open(&mut self, count: u64, a_second: u64) -> anyhow::Result<Histogram<u64>> {
        let mut latencies = latencies()?;
        let schedule = Schedule::start(a_second, count)?;
        epoll::add(
            &self.epoll,
            schedule.timer(),
            EventData::new_u64(TIMER),
            EventFlags::IN,
        )?;
        let mut due = VecDeque::new();
        // A queue, so that all connections are used.
        let mut idle: VecDeque<usize> = (0..self.connections.len()).collect();
        let mut begun = 0;
        let mut events = Vec::with_capacity(EVENTS);
        while latencies.len() < count {
            self.wait(&mut events)?;
            for event in events.drain(..) {
                if event.data.u64() == TIMER {
                    schedule.acknowledge()?;
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

    /// Sends one request on each connection, `at_a_time` in parallel.
    pub(super) fn each_once(&mut self, at_a_time: usize) -> anyhow::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        for first in (0..self.connections.len()).step_by(at_a_time) {
            let last = self.connections.len().min(first + at_a_time);
            for index in first..last {
                self.send(index, Instant::now())?;
            }
            let mut in_flight = last - first;
            while in_flight > 0 {
                self.wait(&mut events)?;
                for event in events.drain(..) {
                    in_flight -= usize::from(self.read(connection_of(event))?.is_some());
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
            Ok(0) => bail!("{}: no answer within {TIMEOUT_SECONDS} s", self.address),
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

    /// Reads available bytes. Once the response is complete, returns the moment at which its request was sent or due.
    fn read(&mut self, index: usize) -> anyhow::Result<Option<Instant>> {
        let (connection, in_flight) = &mut self.connections[index];
        match connection.receive(&mut self.buffer)? {
            Received::Nothing | Received::Partial => Ok(None),
            Received::Closed => Ok(in_flight.take()),
            Received::Whole(response) => {
                check(self.requests, &response, self.address)?;
                // If the server closes, the response counts after that, so that no port stays in TIME_WAIT at this end.
                Ok((!response.closes).then(|| in_flight.take()).flatten())
            }
        }
    }
}

fn connection_of(event: Event) -> usize {
    usize::try_from(event.data.u64()).unwrap_or(usize::MAX)
}
