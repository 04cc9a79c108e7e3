//! The outcome of a request.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use signpost_protocol::{problem::ProblemCode, request_id::RequestId};

use crate::{directory::apps::App, phases::route::Route, request::rejection::Rejection};

/// The outcome of a request, for the access log and the error log.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// The request id: the gateway's, or a trusted proxy's.
    pub request_id: &'a RequestId,
    /// The client's address.
    pub client: IpAddr,
    /// The method as sent.
    pub method: &'a [u8],
    /// The path as sent, without the query.
    pub path: &'a str,
    /// The path in the form in which the configuration's paths are compared with it.
    pub compared: &'a str,
    /// The query as sent.
    pub query: &'a str,
    /// What the phases learnt of it.
    pub learnt: Learnt<'a>,
    /// What was sent to the client.
    pub sent: Sent,
    /// When it reached its steps.
    pub times: Times,
    /// Why the gateway rejected the request, or aborted its response.
    pub rejection: Option<&'a Rejection>,
}

/// What the phases learnt of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Learnt<'a> {
    /// The application that it claims, or whose signature was verified.
    pub app: Option<&'a Arc<App>>,
    /// Whether it was signed with the application's key: nobody else can have sent it.
    pub is_signed: bool,
    /// The route; `None` if the request was rejected before routing.
    pub route: Option<&'a Route>,
    /// The form of a request that is rejected by what its parameters are.
    pub form: &'a [u8],
}

/// The response of a request.
#[derive(Debug, Default)]
pub struct Sent {
    /// The backend address of the last attempt.
    pub backend: Option<SocketAddr>,
    /// Its status; 0 without a response.
    pub status: u16,
    /// Bytes of its body.
    pub size: u64,
    /// The problem code in the backend's `X-Gateway-Problem` header.
    pub problem: Option<Box<str>>,
}

/// When a request reached its steps. The clock is read only for what is switched on; otherwise the durations are 0.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Its head was complete.
    pub received: Instant,
    /// The wait for the client's form.
    pub form_wait: Duration,
    /// The gateway began to forward it; `None` if it was rejected before.
    pub forwarded: Option<Instant>,
    /// The head of the backend's response was complete; or, if the request was not forwarded, the gateway began a response
    /// of its own.
    pub responded: Option<Instant>,
    /// The response was sent, or aborted.
    pub ended: Instant,
}

impl Times {
    /// Those of a request that was received now.
    #[must_use]
    pub const fn beginning(now: Instant) -> Self {
        Self {
            received: now,
            form_wait: Duration::ZERO,
            forwarded: None,
            responded: None,
            ended: now,
        }
    }

    /// From the received head to the end of the response.
    #[must_use]
    pub fn whole(&self) -> Duration {
        self.ended.saturating_duration_since(self.received)
    }

    /// The gateway's own part, until it begins to forward the request, or to respond itself. The wait for the client's
    /// form is not in it, nor is a client that takes the response slowly.
    #[must_use]
    pub fn own(&self) -> Duration {
        let until = self.forwarded.or(self.responded).unwrap_or(self.ended);
        let own = until.saturating_duration_since(self.received);
        own.saturating_sub(self.form_wait)
    }

    /// From forwarding to the complete head of the backend's response; `None` without one.
    #[must_use]
    pub(crate) fn of_backend(&self) -> Option<Duration> {
        let (begun, ended) = (self.forwarded?, self.responded?);
        Some(ended.saturating_duration_since(begun))
    }
}

#[cfg(any(test, feature = "testing"))]
impl<'a> Outcome<'a> {
    /// A request without a route with the response 200, at once.
    pub fn unrouted(request_id: &'a RequestId) -> Self {
        Self {
            request_id,
            client: IpAddr::from([127, 0, 0, 1]),
            method: b"GET",
            path: "/",
            compared: "/",
            query: "",
            learnt: Learnt::default(),
            sent: Sent {
                status: 200,
                ..Sent::default()
            },
            times: Times::beginning(Instant::now()),
            rejection: None,
        }
    }
}

impl Outcome<'_> {
    /// Whether the client got an error, or no complete response.
    #[must_use]
    pub(crate) const fn is_failure(&self) -> bool {
        self.rejection.is_some() || self.sent.status == 0 || self.sent.status >= 400
    }

    /// The ident of the application that the request names, also of one that is unknown or disabled.
    #[must_use]
    pub(crate) fn app_ident(&self) -> Option<&str> {
        let known = self.learnt.app.and_then(|app| app.ident.as_ref());
        let claimed = || self.rejection.and_then(Rejection::app_ident);
        known.map(|ident| ident.as_str()).or_else(claimed)
    }

    /// The problem code of the response: the gateway's, or the backend's.
    #[must_use]
    pub(crate) fn problem_code(&self) -> Option<&str> {
        match self.rejection.and_then(Rejection::code) {
            Some(code) => Some(ProblemCode::as_str(code)),
            None => self.sent.problem.as_deref(),
        }
    }

    /// What failed, if the problem code does not say it.
    #[must_use]
    pub(crate) fn error(&self) -> Option<&Rejection> {
        self.rejection.filter(|rejection| {
            let is_server_error = |code| ProblemCode::status(code).is_server_error();
            rejection.code().is_none_or(is_server_error) || rejection.malformed().is_some()
        })
    }

    /// The method as text, `-` if it is not UTF-8.
    #[must_use]
    pub(crate) fn method_text(&self) -> &str {
        std::str::from_utf8(self.method).unwrap_or("-")
    }
}
