//! The outcome of a request.

use std::{
    borrow::Cow,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use gateway_protocol::{problem::ProblemCode, request_id::RequestId};

use crate::{apps::App, phases::route::Route, rejection::Rejection};

/// The outcome of a request, for the access log and the error log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome<'a> {
    /// The request id: the gateway's, or a trusted proxy's.
    pub request_id: &'a RequestId,
    /// The client's address.
    pub client: IpAddr,
    /// The method as sent.
    pub method: &'a [u8],
    /// The path as sent, without the query.
    pub path: &'a str,
    /// The application that it named, or whose signature was verified.
    pub app: Option<&'a Arc<App>>,
    /// Whether it was signed with the application's key: nobody else can have sent it.
    pub is_signed: bool,
    /// The route; `None` if the request was rejected before routing.
    pub route: Option<&'a Route>,
    /// The backend address of the last attempt.
    pub backend: Option<SocketAddr>,
    /// The answer's status; 0 without an answer.
    pub status: u16,
    /// Bytes of the answer's body.
    pub size: u64,
    /// From the arrival of the head to the end of the answer.
    pub duration: Duration,
    /// Why the gateway rejected the request, or aborted its answer.
    pub rejection: Option<&'a Rejection>,
    /// The problem code in the backend's `X-Gateway-Problem` header.
    pub backend_problem: Option<&'a str>,
}

impl Outcome<'_> {
    /// The problem code of the answer: the gateway's, or the backend's.
    #[must_use]
    pub(crate) fn problem_code(&self) -> Option<Cow<'static, str>> {
        match self.rejection.and_then(Rejection::code) {
            Some(code) => Some(Cow::Borrowed(ProblemCode::as_str(code))),
            None => self.backend_problem.map(|code| Cow::Owned(code.to_owned())),
        }
    }

    /// The method as text, `-` if it is not UTF-8.
    #[must_use]
    pub(crate) fn method_text(&self) -> &str {
        std::str::from_utf8(self.method).unwrap_or("-")
    }
}
