//! The access log: one line per request, without query, body, signature, token, code and credential.
//!
//! A dedicated thread formats the lines, since that is expensive compared with forwarding a request. If the queue is
//! full, further lines are dropped and counted: no request waits for the log.

use std::{
    borrow::Cow,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::Duration,
};

use signpost_kit::log::{
    ACCESS_TARGET,
    writer::{DroppedLines, FLUSH_TIMEOUT, LogWriter, flush_queue},
};
use signpost_protocol::{log_text, request_id::RequestId};

use super::outcome::Outcome;
use crate::{
    directory::apps::App,
    phases::route::Route,
    request::rejection::{Hint, Rejection},
};

/// Limit of queued lines: some megabytes, a fraction of a second of a busy gateway's lines.
const MAX_QUEUED_LINES: usize = 8192;

/// Sends access lines to the thread that formats them.
#[derive(Clone, Debug)]
pub struct AccessLog {
    entries: SyncSender<Entry>,
    /// Counts dropped lines.
    writer: LogWriter,
}

#[derive(Debug)]
enum Entry {
    Line(Line),
    /// A flush marker: the sender is notified when all lines before it are written.
    Flush(SyncSender<()>),
}

/// An unformatted line.
#[derive(Debug)]
struct Line {
    request_id: RequestId,
    client: IpAddr,
    app: Option<Arc<App>>,
    route: Option<Route>,
    /// The backend address of the last attempt.
    backend: Option<SocketAddr>,
    method: Cow<'static, str>,
    path: Box<str>,
    status: u16,
    /// Boxed, because few requests are rejected.
    problem: Option<Box<Problem>>,
    size: u64,
    duration: Duration,
}

/// The reason of a rejection.
#[derive(Debug)]
struct Problem {
    /// The problem code: the gateway's, or the backend's.
    code: Cow<'static, str>,
    /// The name of the response's hint.
    hint: Option<Cow<'static, str>>,
    /// The ident in the request, if its application is unknown or disabled.
    app_ident: Option<Box<str>>,
}

impl Problem {
    fn from_outcome(outcome: &Outcome<'_>) -> Option<Self> {
        let rejection = outcome.rejection;
        Some(Self {
            code: outcome.problem_code()?,
            hint: rejection.and_then(Rejection::hint).map(Hint::name),
            app_ident: rejection.and_then(Rejection::app_ident).map(Box::from),
        })
    }
}

impl AccessLog {
    /// Starts the thread that formats lines. `writer` is the process' log.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
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
            app: outcome.learnt.app.cloned(),
            route: outcome.learnt.route.cloned(),
            backend: outcome.sent.backend,
            method: match outcome.method_text() {
                "GET" => Cow::Borrowed("GET"),
                "POST" => Cow::Borrowed("POST"),
                other => Cow::Owned(log_text::method(other).into_owned()),
            },
            path: log_text::path(outcome.path).into(),
            status: outcome.sent.status,
            problem: Problem::from_outcome(outcome).map(Box::new),
            size: outcome.sent.size,
            duration: outcome.times.whole(),
        };
        if self.entries.try_send(Entry::Line(line)).is_err() {
            self.writer.count_dropped(1);
        }
    }

    /// The counters of the log's dropped lines.
    pub(crate) fn dropped_lines(&self) -> DroppedLines {
        self.writer.dropped_lines()
    }

    /// Waits until all earlier lines are in the log's queue, for at most [`FLUSH_TIMEOUT`].
    pub(crate) fn flush(&self) {
        flush_queue(FLUSH_TIMEOUT, |done| {
            let queued = self.entries.try_send(Entry::Flush(done));
            !matches!(queued, Err(TrySendError::Full(_)))
        });
    }
}

fn write(entries: &Receiver<Entry>) {
    for entry in entries {
        match entry {
            Entry::Line(line) => line.write(),
            // The waiting flush may have timed out.
            Entry::Flush(done) => drop(done.send(())),
        }
    }
}

impl Line {
    fn write(&self) {
        let status = self.status;
        // Whole microseconds: more digits say nothing.
        let duration_ms = (self.duration.as_secs_f64() * 1e6).round() / 1e3;
        let ident = self.app.as_ref().and_then(|app| app.ident.as_ref());
        let ident = ident.map(|ident| ident.as_str());
        let problem = self.problem.as_deref();
        let ident = ident.or_else(|| problem?.app_ident.as_deref());
        let hint = problem.and_then(|problem| problem.hint.as_deref());
        let route = self.route.as_ref();
        tracing::info!(
            target: ACCESS_TARGET,
            {
            request.id = %self.request_id,
            client.addr = %self.client,
            app.ident = ident.map(tracing::field::display),
            version = route.map(|route| tracing::field::display(&route.backend.name.version)),
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
            "answered",
        );
    }
}
