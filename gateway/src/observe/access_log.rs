//! The one access line of a request. Never a query, a body, a sign, a token, a code or a credential.
//!
//! A thread of its own formats the lines, since that is expensive beside forwarding a request. If the thread falls behind
//! by thousands of lines, further ones are dropped and counted: no request waits for the log.

use std::{
    borrow::Cow,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use gateway_protocol::{log_text, request_id::RequestId};
use signpost_kit::log_writer::{FLUSH_TIMEOUT, LogWriter};

use super::outcome::Outcome;
use crate::{apps::App, phases::route::Route, rejection::Rejection};

/// The `target` of access lines, for filters.
pub(crate) const TARGET: &str = "signpost::access";

/// Limit of lines that wait to be formatted: a fraction of a second of a busy gateway, in some megabytes.
const MAX_QUEUED_LINES: usize = 8192;

/// Where access lines go.
#[derive(Clone, Debug)]
pub struct AccessLog {
    entries: SyncSender<Entry>,
    /// Where the lines go in the end, and dropped ones are counted.
    writer: LogWriter,
}

#[derive(Debug)]
enum Entry {
    Line(Line),
    /// Everything before this is written: say so.
    Mark(SyncSender<()>),
}

/// A line that is not formatted yet.
#[derive(Debug)]
struct Line {
    request_id: RequestId,
    client: IpAddr,
    app: Option<Arc<App>>,
    route: Option<Route>,
    /// The address that it was sent to last.
    backend: Option<SocketAddr>,
    method: Cow<'static, str>,
    path: Box<str>,
    status: u16,
    /// Why it was refused; few are, so few lines carry it.
    problem: Option<Box<Problem>>,
    size: u64,
    duration: Duration,
}

/// Why a request was refused.
#[derive(Debug)]
struct Problem {
    /// The code that was answered: the gateway's, or the backend's.
    code: Cow<'static, str>,
    /// The name of the hint that stood beside it.
    hint: Option<Cow<'static, str>>,
    /// The ident that the request named, of an application that cannot be used.
    app_ident: Option<Box<str>>,
}

impl Problem {
    fn of(outcome: &Outcome<'_>) -> Option<Self> {
        let rejection = outcome.rejection;
        Some(Self {
            code: outcome.problem_code()?,
            hint: rejection.and_then(Rejection::hint),
            app_ident: rejection.and_then(Rejection::app_ident).map(Box::from),
        })
    }
}

impl AccessLog {
    /// Starts the thread that formats lines. `writer` is what the process logs to.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub(crate) fn start(writer: LogWriter) -> std::io::Result<Self> {
        let (entries, received) = sync_channel(MAX_QUEUED_LINES);
        thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || write(&received))?;
        Ok(Self { entries, writer })
    }

    /// Queues the line of a request, or drops and counts it if the queue is full.
    pub(crate) fn write(&self, outcome: &Outcome<'_>) {
        let line = Line {
            request_id: *outcome.request_id,
            client: outcome.client,
            app: outcome.app.cloned(),
            route: outcome.route.cloned(),
            backend: outcome.backend,
            method: match outcome.method_text() {
                "GET" => Cow::Borrowed("GET"),
                "POST" => Cow::Borrowed("POST"),
                other => Cow::Owned(log_text::method(other).into_owned()),
            },
            path: log_text::path(outcome.path).into(),
            status: outcome.status,
            problem: Problem::of(outcome).map(Box::new),
            size: outcome.size,
            duration: outcome.duration,
        };
        if self.entries.try_send(Entry::Line(line)).is_err() {
            self.writer.count_dropped(1);
        }
    }

    /// Waits until every line that was recorded before is in the log's queue, for [`FLUSH_TIMEOUT`] at most.
    pub(crate) fn flush(&self) {
        let (mark, written) = sync_channel(1);
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        let mut entry = Entry::Mark(mark);
        while let Err(TrySendError::Full(unsent)) = self.entries.try_send(entry) {
            if Instant::now() > deadline {
                return;
            }
            entry = unsent;
            thread::sleep(Duration::from_millis(5));
        }
        let _ = written.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}

fn write(entries: &Receiver<Entry>) {
    for entry in entries {
        match entry {
            Entry::Line(line) => line.write(),
            // The waiting flush may have timed out.
            Entry::Mark(mark) => drop(mark.send(())),
        }
    }
}

impl Line {
    fn write(&self) {
        let status = self.status;
        let duration_ms = self.duration.as_secs_f64() * 1000.0;
        let ident = self.app.as_ref().and_then(|app| app.ident.as_ref());
        let ident = ident.map(|ident| ident.as_str());
        let problem = self.problem.as_deref();
        let ident = ident.or_else(|| problem?.app_ident.as_deref());
        let hint = problem.and_then(|problem| problem.hint.as_deref());
        let route = self.route.as_ref();
        tracing::info!(
            target: TARGET,
            {
            request.id = %self.request_id,
            client.addr = %self.client,
            app.ident = ident.map(tracing::field::display),
            version = route.map(|route| tracing::field::display(&route.backend.version)),
            version.source = route.map(|route| route.source.as_str()),
            backend.addr = self.backend.map(tracing::field::display),
            http.method = %self.method,
            http.path = %self.path,
            http.status_code = status,
            problem.code = problem.map(|problem| tracing::field::display(&problem.code)),
            problem.hint = hint.map(tracing::field::display),
            size_bytes = self.size,
            duration_ms
            },
            "answered {status} in {duration_ms:.1} ms",
        );
    }
}
