//! What ends a connection: its budget, its deadlines, a stop.

use std::task::Context;

use h2::Reason;
use tokio::time::Instant;

use super::{Served, Serving};
use crate::{
    downstream::http2::{
        bounds::{GOAWAY_TIMEOUT, LINGER_TIMEOUT},
        meter::UnfinishedHead,
    },
    wire::io::{Stream, arrival_deadline},
};

/// The times at which something ends.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// The idle connection; `None` while it has streams.
    pub(super) idle: Option<Instant>,
    /// The head that is being received.
    pub(super) head: Option<Instant>,
    /// The client's time to accept bytes, and the bytes written when it began; `None` if it accepts them.
    pub(super) blocked: Option<(Instant, u64)>,
    /// The lingering close.
    pub(super) linger: Option<Instant>,
}

impl Deadlines {
    pub(super) fn idle_until(first_request: Instant) -> Self {
        Self {
            idle: Some(first_request),
            ..Self::default()
        }
    }

    fn next(&self) -> Option<Instant> {
        let blocked = self.blocked.map(|(deadline, _)| deadline);
        // A connection that receives a head is not idle.
        let idle = self.idle.filter(|_| self.head.is_none());
        [idle, self.head, blocked, self.linger]
            .into_iter()
            .flatten()
            .min()
    }
}

impl<'d, S: Stream, F: Future<Output = Served<'d>>> Serving<'d, S, F> {
    /// Checks the budget, the deadlines, and whether a stop closes idle connections. Returns whether the connection must
    /// be advanced again.
    pub(super) fn check(&mut self, context: &mut Context<'_>) -> bool {
        if self.deadlines.linger.is_none() {
            if let Some(reason) = self.meter.failure() {
                self.end_now(reason);
                return true;
            }
            let was_paused = self.meter.take_pause();
            // Refilled only once it is used up: a connection within its budget costs no look at the clock.
            if self.meter.is_over() && !self.meter.is_closing() {
                self.meter.refill(&mut self.refilled);
                if self.meter.is_over() {
                    self.meter.close();
                }
                return true;
            }
            if was_paused && !self.meter.is_closing() {
                // What was sent meanwhile has returned a part of the budget.
                return true;
            }
            if self.meter.is_closing() && !self.is_going_away {
                self.go_away();
                return true;
            }
        }
        if !self.is_going_away && self.closing.poll(context).is_ready() {
            self.go_away();
            return true;
        }
        // The client may have sent a request before it received a GOAWAY of the drain delay.
        if self.is_going_away && self.going_away.is_none() && self.drain.is_closing() {
            self.going_away = Some(self.drain.begin());
        }
        self.check_progress();
        // All that was in flight is with the socket.
        let is_done = self.streams.is_empty() && self.served.is_empty();
        // Only now: behind a proxy, the requests that were in flight belong to clients that did nothing wrong.
        if self.meter.is_closing() && is_done && self.deadlines.linger.is_none() {
            self.end_now(Reason::ENHANCE_YOUR_CALM);
            return true;
        }
        let Some(deadline) = self.deadlines.next() else {
            return false;
        };
        self.timer.poll(context, deadline).is_ready() && self.expire(deadline)
    }

    /// Notes whether the client accepts bytes, and whether the lingering close has begun.
    fn check_progress(&mut self) {
        match (self.meter.blocked_at(), self.deadlines.blocked) {
            (None, _) => {
                self.deadlines.blocked = None;
                for (id, _) in self.served.drain(..) {
                    // Left if the stream was reset: the `h2` crate has written no head.
                    self.meter.take_sent(id);
                }
                debug_assert!(!self.streams.is_empty() || self.meter.waiting_responses() == 0);
                self.open_streams.release(self.streams.len());
            }
            // The client has taken nothing since, so the deadline stays. Each byte that it takes begins a new wait.
            (Some(written), Some((_, before))) if written == before => {}
            (Some(written), _) => {
                self.deadlines.blocked = Some((Instant::now() + self.timeouts.send, written));
            }
        }
        self.deadlines.head = self.meter.unfinished_head().map(|head| {
            let UnfinishedHead { since, received } = head;
            arrival_deadline(since, self.timeouts.head, received, self.limits.min_rate)
        });
        if self.deadlines.linger.is_none() && self.meter.is_shutting_down() {
            self.deadlines.linger = Some(Instant::now() + LINGER_TIMEOUT);
        }
    }

    /// A deadline has passed. Returns true: the connection or its end must be advanced.
    fn expire(&mut self, deadline: Instant) -> bool {
        if self.deadlines.head == Some(deadline) {
            self.meter.expire_head();
        } else if self.deadlines.idle == Some(deadline) && !self.is_going_away {
            self.go_away();
        } else {
            // The client accepts no bytes, or does not close its side.
            self.connection = None;
        }
        true
    }

    /// Sends GOAWAY. The connection ends after its streams, once the client has received it.
    pub(super) fn go_away(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if self.is_going_away {
            return;
        }
        self.is_going_away = true;
        connection.graceful_shutdown();
        if self.drain.is_closing() {
            self.going_away = Some(self.drain.begin());
        }
        if self.streams.is_empty() {
            self.deadlines.idle = Some(Instant::now() + GOAWAY_TIMEOUT);
        }
    }

    /// Ends the connection. Its streams are reset.
    pub(super) fn end_now(&mut self, reason: Reason) {
        if self.deadlines.linger.is_some() {
            return;
        }
        if let Some(connection) = &mut self.connection {
            connection.abrupt_shutdown(reason);
        }
        self.is_going_away = true;
        self.deadlines.linger = Some(Instant::now() + LINGER_TIMEOUT);
    }
}
