//! The one access line of a request. Never a query, a body, a sign, a token, a code or a credential.
//!
//! Lines are put into words by a thread of their own: that costs a fifth of what forwarding a request does. If that
//! thread falls behind by thousands of lines, further ones are dropped and counted: no request waits for the log.

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use gateway_protocol::{log_text, problem::ProblemCode, request_id::RequestId};
use signpost_process::log_writer::{FLUSH_TIMEOUT, LogWriter};

use super::route::Route;
use crate::{
    apps::App, balance::address::Address, rejection::Rejection, request_context::RequestContext,
};

/// The `target` of access lines, for filters.
pub const TARGET: &str = "signpost::access";

/// Lines that wait to be put into words. A fifth of a second of a busy gateway, in some megabytes.
const MAX_QUEUED_LINES: usize = 8192;

/// What the line says beside the context.
#[derive(Clone, Copy, Debug)]
pub struct Served<'a> {
    /// The method as sent.
    pub method: &'a str,
    /// The path as sent, without the query.
    pub path: &'a str,
    /// The answer's status; 0 where there was none.
    pub status: u16,
    /// Bytes of the answer's body.
    pub size: usize,
    /// From the head's arrival to the answer's end.
    pub duration: Duration,
}

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

/// A line, not yet in words.
#[derive(Debug)]
struct Line {
    request_id: RequestId,
    client: IpAddr,
    app: Option<Arc<App>>,
    route: Option<Route>,
    /// The address that served it, one of several.
    address: Option<Arc<Address>>,
    method: Cow<'static, str>,
    path: Box<str>,
    status: u16,
    /// Why it was refused; few are, so few lines carry it.
    problem: Option<Box<Problem>>,
    size: usize,
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
    fn new(context: &RequestContext, rejection: Option<&Rejection>) -> Option<Self> {
        let code = match rejection.and_then(Rejection::code) {
            Some(code) => Cow::Borrowed(ProblemCode::as_str(code)),
            None => Cow::Owned(context.backend_problem.clone()?),
        };
        Some(Self {
            code,
            hint: rejection.and_then(Rejection::hint),
            app_ident: rejection.and_then(Rejection::app_ident).map(Box::from),
        })
    }
}

impl AccessLog {
    /// Starts the thread that puts lines into words. `writer` is what the process logs to.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub fn start(writer: LogWriter) -> std::io::Result<Self> {
        let (entries, received) = sync_channel(MAX_QUEUED_LINES);
        thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || write(&received))?;
        Ok(Self { entries, writer })
    }

    fn write(&self, served: Served<'_>, context: &RequestContext, rejection: Option<&Rejection>) {
        let line = Line {
            request_id: context.request_id,
            client: context.client,
            app: context.app.clone(),
            route: context.route.clone(),
            address: context.attempts.last().cloned(),
            method: match served.method {
                "GET" => Cow::Borrowed("GET"),
                "POST" => Cow::Borrowed("POST"),
                other => Cow::Owned(log_text::method(other).into_owned()),
            },
            path: log_text::path(served.path).into(),
            status: served.status,
            problem: Problem::new(context, rejection).map(Box::new),
            size: served.size,
            duration: served.duration,
        };
        if self.entries.try_send(Entry::Line(line)).is_err() {
            self.writer.count_dropped(1);
        }
    }

    /// Waits until every line that was recorded before is in the log's queue, for [`FLUSH_TIMEOUT`] at most.
    pub fn flush(&self) {
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

/// Records a request in the access log, if there is one; and, whether there is or not, the cause of a failure
/// that is ours.
pub fn record(
    log: Option<&AccessLog>,
    served: Served<'_>,
    context: &RequestContext,
    rejection: Option<&Rejection>,
) {
    if let Some(log) = log {
        log.write(served, context, rejection);
    }
    let (method, path) = (log_text::method(served.method), log_text::path(served.path));
    match rejection {
        Some(rejection) if rejection.is_ours() => {
            let cause = std::error::Error::source(rejection).map(|cause| cause.to_string());
            tracing::error!(request.id = %context.request_id, cause, "{method} {path} failed: {rejection}");
        }
        Some(Rejection::NotHttp(why)) => {
            tracing::debug!(request.id = %context.request_id, "refused: {why}");
        }
        _ => {}
    }
}

fn write(entries: &Receiver<Entry>) {
    for entry in entries {
        match entry {
            Entry::Line(line) => line.write(),
            // Whoever waited may have given up.
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
        let place = self.address.as_ref().map(|address| address.socket());
        let place = place.or_else(|| route?.backend.upstream.fixed());
        tracing::info!(
            target: TARGET,
            {
            request.id = %self.request_id,
            client.addr = %self.client,
            app.ident = ident.map(tracing::field::display),
            version = route.map(|route| tracing::field::display(&route.backend.version)),
            version.source = route.map(|route| route.source.as_str()),
            backend.addr = place.map(tracing::field::display),
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
