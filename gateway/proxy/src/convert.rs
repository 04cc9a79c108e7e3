//! Converters: servers of the operator's that change requests and responses between two versions. CONTRACT 5.
//!
//! | module | subject |
//! | --- | --- |
//! | [`document`] | what a converter gets, and what it returns |

mod document;

use std::{net::IpAddr, sync::Arc, time::Duration};

use serde_json::value::RawValue;
use signpost_protocol::{header::HeaderNames, request_id::RequestId};
use tokio::time::timeout;

use self::document::{RequestDocument, ResponseDocument};
use crate::{
    config::{Backend, ServedVersion, may_change},
    directory::apps::App,
    phases::bridge::response::{MAX_CHANGED, forget_body, set_status},
    request::{
        HeadLimits, Headers as _, Method, RawHeaders, client::Client, recorder::WholeResponse,
        rejection::Rejection,
    },
    upstream::{
        backend::{exchange::BackendRequest, upstream::BackendClient},
        routing::destination::{Callee, Destination},
    },
    wire::syntax::{
        field::{NameAndValue, write_line},
        path::canonical_path,
    },
};

/// Limit of a call: a converter may call the other version itself.
const MAX_TIME: Duration = Duration::from_secs(30);

/// What a converter does for one request.
pub struct Conversion {
    /// The change that names the converter.
    pub change: Box<str>,
    /// Where the converter listens.
    pub converter: Callee,
    /// The backend of the other version.
    pub backend: Arc<Backend>,
    /// The other version.
    pub other: Arc<ServedVersion>,
    /// The version of the client, whose fixed headers stay.
    pub version: Arc<ServedVersion>,
    /// The names of the convention headers.
    pub names: Arc<HeaderNames>,
    /// The request's id.
    pub id: RequestId,
    /// Its application and its client.
    pub from: (Option<Arc<App>>, IpAddr),
    /// Its method.
    pub method: Method,
    /// Whether it has no verified signature: backends rely on what such a request is.
    pub is_unsigned: bool,
    /// Whether it is a copy: then nothing is noted of the converter's addresses.
    pub is_copy: bool,
    /// What the converter got of the request.
    pub sent: Option<Box<RawValue>>,
}

/// A request as a converter returned it.
pub(crate) struct Converted {
    /// The head, without its closing empty line.
    pub head: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
    /// The method.
    pub method: Method,
}

// Print no content, which includes credentials.
signpost_protocol::hide_in_debug!(Conversion);
signpost_protocol::hide_in_debug!(Converted);

impl Conversion {
    /// Has a request changed, by its head for the backend without the closing empty line.
    ///
    /// # Errors
    ///
    /// The converter is down, slow, or returns what no backend may get; or the client left.
    pub(crate) async fn request<C: Client>(
        &mut self,
        backends: &BackendClient,
        (head, body): (&[u8], &[u8]),
        client: &mut C,
    ) -> Result<Converted, Rejection> {
        let headers = RawHeaders(head);
        let fields: Vec<_> = headers.each().collect();
        let (path, query) = target(head);
        let failed = |why| self.failed(why);
        let sent = RequestDocument::write(self, (path, query), &fields, body).map_err(failed)?;
        let bytes = self.call(backends, "/request", &sent, client).await?;
        let returned: RequestDocument<'_> = document::read(&bytes).map_err(failed)?;
        let new_body = document::body(&returned.headers, returned.body).map_err(failed)?;
        let method = Method::from_bytes(returned.method.as_bytes());
        let is_same_kind =
            |method: &Method| (*method == Method::Head) == (self.method == Method::Head);
        let method = method.filter(is_same_kind);
        let method = method.ok_or_else(|| failed("it returned no method".into()))?;
        self.check_path(path, &returned.path)?;
        let is_more = method != self.method
            || returned.path != path
            || !returned.query.is_empty()
            || (body.is_empty() && !new_body.is_empty());
        // Backends rely on it: what has parameters, and what a rule asks a signature for, has a verified one.
        if self.is_unsigned && is_more {
            return Err(Rejection::SignMissing(None));
        }
        let head = self.head(method, &returned, &fields, new_body.len());
        let head = head.map_err(failed)?;
        self.sent = Some(sent);
        Ok(Converted {
            head,
            body: new_body,
            method,
        })
    }

    /// The head of a returned request, without its closing empty line.
    fn head(
        &self,
        method: Method,
        returned: &RequestDocument<'_>,
        fields: &[NameAndValue<'_>],
        length: usize,
    ) -> Result<Vec<u8>, String> {
        let (path, query) = (&returned.path, &returned.query);
        let query_byte = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
        if !query.bytes().all(query_byte) {
            return Err("it returned a malformed query".into());
        }
        let mark = if query.is_empty() { "" } else { "?" };
        let line = format!("{} {path}{mark}{query} HTTP/1.1\r\n", method.as_str());
        let mut head = line.into_bytes();
        for (name, value) in fields {
            if !self.is_shown((name, value)) && !name.eq_ignore_ascii_case(b"content-length") {
                write_line(&mut head, name, value);
            }
        }
        for (name, value) in document::fields(self, &returned.headers)? {
            write_line(&mut head, &name, &value);
        }
        if length > 0 || method.anticipates_body() {
            write_line(&mut head, b"Content-Length", length.to_string().as_bytes());
        }
        match head.len() <= HeadLimits::MAX_BYTES {
            true => Ok(head),
            false => Err("it returned too large a head".into()),
        }
    }

    /// Has a response changed.
    ///
    /// # Errors
    ///
    /// As of [`Self::request`].
    pub(crate) async fn response<C: Client>(
        &self,
        backends: &BackendClient,
        mut response: WholeResponse,
        client: &mut C,
    ) -> Result<WholeResponse, Rejection> {
        let encoding = response.value("content-encoding");
        if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
            return Err(self.failed("the body has a Content-Encoding".into()));
        }
        let failed = |why| self.failed(why);
        let document = ResponseDocument::write(self, &response).map_err(failed)?;
        let bytes = self.call(backends, "/response", &document, client).await?;
        let changed: ResponseDocument<'_> = document::read(&bytes).map_err(failed)?;
        if !(200..=599).contains(&changed.status) {
            return Err(failed("it returned no status from 200 to 599".into()));
        }
        let body = document::body(&changed.headers, changed.body).map_err(failed)?;
        let fields = document::fields(self, &changed.headers).map_err(failed)?;
        response
            .fields
            .retain(|(name, value)| !self.is_shown((name, value)));
        response.fields.extend(fields);
        if changed.status != response.status {
            set_status(&mut response, changed.status);
        }
        let has_body = response.has_body && self.method != Method::Head;
        response.body = if has_body { body } else { Vec::new() };
        forget_body(&mut response);
        Ok(response)
    }

    /// Whether the converter sees a field, and may change it.
    fn is_shown(&self, (name, value): NameAndValue<'_>) -> bool {
        self.may_change(name) && std::str::from_utf8(value).is_ok()
    }

    fn may_change(&self, name: &[u8]) -> bool {
        may_change(&self.names, name) && !self.version.response_headers().replaces(name)
    }

    /// Checks a path that the converter returned: readers must understand it alike, and the other version's route for it is
    /// the one that was chosen.
    fn check_path(&self, before: &str, path: &str) -> Result<(), Rejection> {
        if path == before {
            return Ok(());
        }
        if canonical_path(path).is_none_or(|canonical| canonical != path) {
            return Err(self.failed("it returned no canonical path".into()));
        }
        let before = canonical_path(before);
        let before = before.and_then(|before| self.other.routed(&before));
        match self.other.routed(path) == before {
            true => Ok(()),
            false => Err(self.failed("it returned a path of another route".into())),
        }
    }

    async fn call<C: Client>(
        &self,
        backends: &BackendClient,
        path: &str,
        document: &RawValue,
        client: &mut C,
    ) -> Result<Vec<u8>, Rejection> {
        let backend = &self.converter.backend;
        let (mut addresses, id) = (backend.upstream.addresses.iter(), self.id.as_bytes());
        let host = addresses
            .next()
            .map(|address| address.host_port.to_string());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nX-Request-Id: {}\r\n\
             Content-Length: {}\r\n\r\n",
            host.unwrap_or_default(),
            String::from_utf8_lossy(id),
            document.get().len()
        );
        let (app, from) = (self.from.0.as_deref(), self.from.1);
        let destination = Destination::new(&self.converter, app, from)?;
        let mut destination = match self.is_copy {
            true => destination.of_copy(),
            false => destination,
        };
        let request = BackendRequest {
            head: head.as_bytes(),
            body: document.get().as_bytes(),
            spooled: None,
            method: Method::Post,
            response: Some(MAX_TIME),
        };
        let called = backends.fetch(request, &mut destination, &self.id, MAX_CHANGED, client);
        match timeout(MAX_TIME, Box::pin(called)).await {
            Ok(Ok(response)) => self.taken(response),
            Ok(Err(own @ (Rejection::ClientDisconnected | Rejection::GatewayStopping))) => Err(own),
            Ok(Err(rejection)) => Err(self.failed(rejection.to_string())),
            Err(_) => Err(self.failed(format!("it took more than {} s", MAX_TIME.as_secs()))),
        }
    }

    /// The document in a converter's response.
    fn taken(&self, response: WholeResponse) -> Result<Vec<u8>, Rejection> {
        match (
            response.status,
            response.is_complete && !response.is_too_large,
        ) {
            (200, true) => Ok(response.body),
            (200, false) => Err(self.failed(format!(
                "it broke off, or returned more than {MAX_CHANGED} bytes"
            ))),
            (status, _) => Err(self.failed(format!("its status was {status}"))),
        }
    }

    /// The cause has nothing of the request or the response.
    pub(crate) fn failed(&self, why: String) -> Rejection {
        let change = self.change.clone();
        let why = format!("the converter: {why}");
        Rejection::BridgeFailed { change, why }
    }
}

/// Path and query in the first line of a head that the gateway wrote.
fn target(head: &[u8]) -> (&str, &str) {
    let target = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let target = std::str::from_utf8(target).unwrap_or_default();
    target.split_once('?').unwrap_or((target, ""))
}
