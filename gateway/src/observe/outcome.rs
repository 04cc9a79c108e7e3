//! How a request ended.

use std::{
    borrow::Cow,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use gateway_protocol::{problem::ProblemCode, request_id::RequestId};

use crate::{apps::App, phases::route::Route, rejection::Rejection};

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome<'a> {
    /// Its id: the gateway's, or a trusted proxy's.
    pub request_id: &'a RequestId,
    /// The client's address.
    pub client: IpAddr,
    /// The method as sent.
    pub method: &'a [u8],
    /// The path as sent, without the query.
    pub path: &'a str,
    /// The application that it named, or that it was verified to be of.
    pub app: Option<&'a Arc<App>>,
    /// Where it was routed to; `None` if it was rejected before.
    pub route: Option<&'a Route>,
    /// The address that it was sent to last.
    pub backend: Option<SocketAddr>,
    /// The answer's status; 0 if there was none.
    pub status: u16,
    /// Bytes of the answer's body.
    pub size: u64,
    /// From the arrival of the head to the end of the answer.
    pub duration: Duration,
    /// Why the gateway rejected it, or broke its answer off.
    pub rejection: Option<&'a Rejection>,
    /// The code of the problem that the backend answered, as it says in `X-Gateway-Problem`.
    pub backend_problem: Option<&'a str>,
}

impl Outcome<'_> {
    /// The code of the problem that was answered: the gateway's, or the backend's.
    #[must_use]
    pub(crate) fn problem_code(&self) -> Option<Cow<'static, str>> {
        match self.rejection.and_then(Rejection::code) {
            Some(code) => Some(Cow::Borrowed(ProblemCode::as_str(code))),
            None => self.backend_problem.map(|code| Cow::Owned(code.to_owned())),
        }
    }

    /// The method, for a log.
    #[must_use]
    pub(crate) fn method_text(&self) -> &str {
        std::str::from_utf8(self.method).unwrap_or("-")
    }
}
