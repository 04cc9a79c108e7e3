//! Writing a request to a backend, and reading until the head of its answer is whole.

use std::{
    fmt,
    future::poll_fn,
    io,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    answer_head::{AnswerHead, AnswerScanner, MalformedAnswer},
    failure::Failure,
};
use crate::{
    client::Client,
    drain::Drain,
    io::{PartsWriter, Stream, poll_receive},
};

/// Limit of interim answers (1xx) to one request.
const MAX_INTERIM: usize = 32;
/// How often a request that waits for its backend checks whether a stop is about to cut it off.
const GIVE_UP_INTERVAL: Duration = Duration::from_millis(500);

/// Timeouts of an exchange with a backend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeTimeouts {
    /// Each wait until the backend takes bytes of the request.
    pub send: Duration,
    /// The head of the answer, and each interim answer before it.
    pub receive: Duration,
}

/// A request as it goes to a backend: its head, and its form, in one write.
#[derive(Clone, Copy)]
pub(crate) struct BackendRequest<'r> {
    /// The head, its empty line included.
    pub head: &'r [u8],
    /// The form; empty where there is none.
    pub form: &'r [u8],
    /// Whether it is a GET.
    pub is_get: bool,
}

/// The head of an answer, and what arrived with it.
pub(crate) struct ReceivedHead {
    /// Where its parts are in `bytes`.
    pub head: AnswerHead,
    /// How many of `bytes` are the head's; the beginning of the body follows.
    pub length: usize,
    /// What arrived.
    pub bytes: Vec<u8>,
    /// Whether the connection could serve another request behind the body: the request was sent whole, and the answer
    /// does not say otherwise.
    pub keeps_alive: bool,
}

/// An exchange without an answer.
#[derive(Debug)]
pub(crate) struct NoAnswer {
    /// Why.
    pub failure: Failure,
    /// Whether any byte of an answer arrived.
    pub is_answered: bool,
}

/// Silent: an answer may hold credentials.
impl fmt::Debug for ReceivedHead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ReceivedHead(…)")
    }
}

/// Sends a request and reads the head of its answer. Interim answers are skipped; 101 is none that was asked for.
///
/// The answer may arrive before the request was taken whole, and is then what counts. A client that leaves ends it.
///
/// # Errors
///
/// The connection ended, was silent for too long, or what arrived is no answer; or the client left.
pub(crate) async fn exchange<S: Stream, C: Client>(
    stream: &mut S,
    request: BackendRequest<'_>,
    client: &mut C,
    timeouts: ExchangeTimeouts,
    drain: &Drain,
) -> Result<ReceivedHead, NoAnswer> {
    let mut exchange = Exchange {
        stream,
        client,
        writer: PartsWriter::new([request.head, request.form]),
        sending: SendState::InFlight,
        received: Vec::new(),
        timeouts,
        drain,
        deadline: None,
        next_check: None,
    };
    let head = exchange.until_head().await;
    let Exchange {
        received, sending, ..
    } = exchange;
    match head {
        Ok((head, length)) => Ok(ReceivedHead {
            keeps_alive: head.keeps_alive && matches!(sending, SendState::Done),
            head,
            length,
            bytes: received,
        }),
        Err(failure) => Err(NoAnswer {
            failure: failure.0,
            is_answered: failure.1,
        }),
    }
}

struct Exchange<'e, S, C> {
    stream: &'e mut S,
    client: &'e mut C,
    writer: PartsWriter<'e, 2>,
    sending: SendState,
    received: Vec<u8>,
    timeouts: ExchangeTimeouts,
    drain: &'e Drain,
    /// Of what is waited for: that the backend takes bytes, or an answer's head.
    deadline: Option<Instant>,
    /// When the stop's phase is checked next.
    next_check: Option<Instant>,
}

enum SendState {
    InFlight,
    Done,
    /// The backend takes no more. It may have answered before.
    Failed(io::Error),
}

impl<S: Stream, C: Client> Exchange<'_, S, C> {
    /// Waits for the head of the answer; the failure, and whether any byte of an answer arrived.
    async fn until_head(&mut self) -> Result<(AnswerHead, usize), (Failure, bool)> {
        let mut is_answered = false;
        let mut interim = 0;
        let mut scanner = AnswerScanner::default();
        loop {
            let received = poll_fn(|context| self.poll_receive(context, is_answered)).await;
            received.map_err(|failure| (failure, is_answered))?;
            is_answered = true;
            let malformed = |MalformedAnswer(why)| (Failure::Malformed(why), true);
            while let Some(length) = scanner.scan(&self.received).map_err(malformed)? {
                let head = AnswerHead::read(&self.received[..length]).map_err(malformed)?;
                if head.status == 101 {
                    // `Upgrade` ends at the gateway, so no backend was asked to switch.
                    let why = "a 101 that was not asked for";
                    return Err((Failure::Malformed(why), true));
                }
                if head.is_interim() && !head.keeps_alive {
                    return Err((Failure::Malformed("an interim answer with a body"), true));
                }
                if !head.is_interim() {
                    return Ok((head, length));
                }
                interim += 1;
                if interim > MAX_INTERIM {
                    return Err((Failure::Malformed("too many interim answers"), true));
                }
                self.received.drain(..length);
                scanner = AnswerScanner::default();
                self.deadline = None;
            }
        }
    }

    /// Sends as much as the backend takes, until bytes of an answer arrive.
    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        is_answered: bool,
    ) -> Poll<Result<(), Failure>> {
        while matches!(self.sending, SendState::InFlight) {
            match self.writer.poll_write(self.stream, context) {
                Poll::Ready(Ok(0)) => (self.sending, self.deadline) = (SendState::Done, None),
                Poll::Ready(Ok(_)) => self.deadline = None,
                Poll::Ready(Err(error)) => {
                    (self.sending, self.deadline) = (SendState::Failed(error), None);
                }
                Poll::Pending => break,
            }
        }
        match poll_receive(self.stream, context, &mut self.received) {
            Poll::Ready(Ok(1..)) => return Poll::Ready(Ok(())),
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(self.ended())),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
            Poll::Pending => {}
        }
        if self.client.poll_gone(context).is_ready() {
            return Poll::Ready(Err(Failure::ClientGone));
        }
        self.poll_timeout(context, is_answered)
    }

    fn ended(&self) -> Failure {
        match &self.sending {
            SendState::Failed(error) => Failure::ended(&error.to_string()),
            SendState::InFlight | SendState::Done => Failure::ended("closed without an answer"),
        }
    }

    fn poll_timeout(
        &mut self,
        context: &mut Context<'_>,
        is_answered: bool,
    ) -> Poll<Result<(), Failure>> {
        let timeout = match self.sending {
            SendState::InFlight => self.timeouts.send,
            SendState::Done | SendState::Failed(_) => self.timeouts.receive,
        };
        let deadline = *self
            .deadline
            .get_or_insert_with(|| Instant::now() + timeout);
        loop {
            let check = *self
                .next_check
                .get_or_insert_with(|| Instant::now() + GIVE_UP_INTERVAL);
            if self
                .client
                .poll_deadline(context, deadline.min(check))
                .is_pending()
            {
                return Poll::Pending;
            }
            let gives_up = !is_answered && self.drain.is_giving_up();
            if gives_up || Instant::now() >= deadline {
                return Poll::Ready(Err(Failure::TimedOut));
            }
            self.next_check = None;
        }
    }
}

#[cfg(test)]
mod tests;
