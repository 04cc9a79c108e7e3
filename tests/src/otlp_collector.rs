//! Stands in for a collector of traces: takes OTLP over HTTP, decodes every span, and keeps every byte.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};
use prost::Message;
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    listener::Listener,
    recording_backend::{Reading, RecordedRequest, read_request},
    waiting::until,
};

/// A collector. When dropped, it is gone: its port is closed, and its connections are reset.
#[derive(Debug)]
pub struct OtlpCollector {
    listener: Listener,
    scheme: &'static str,
    state: Arc<Mutex<State>>,
}

/// Any free port of loopback.
const FREE_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// How the collector answers an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reply {
    /// With 200: it has the spans.
    #[default]
    Taken,
    /// With 503: it does not keep the spans.
    Refused,
    /// Not at all; the connection stays open.
    Never,
}

#[derive(Debug, Default)]
struct State {
    reply: Reply,
    connections: usize,
    exports: usize,
    bytes: Vec<u8>,
    spans: Vec<CollectedSpan>,
}

/// A span that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedSpan {
    /// `service.name`.
    pub service: String,
    /// Its name.
    pub name: String,
    /// Whether it is of a server, of a client, or internal.
    pub kind: SpanKind,
    /// The trace id, as hex digits.
    pub trace: String,
    /// The id, as hex digits.
    pub id: String,
    /// The parent's id, as hex digits; empty without one.
    pub parent: String,
    /// When it began and ended, in nanoseconds since the epoch.
    pub times: (u64, u64),
    /// The attributes, as text.
    pub attributes: BTreeMap<String, String>,
    /// Whether its status is an error.
    pub is_error: bool,
}

impl CollectedSpan {
    /// The value of an attribute, as text.
    #[must_use]
    pub fn attribute(&self, key: &str) -> Option<&str> {
        self.attributes.get(key).map(String::as_str)
    }
}

impl OtlpCollector {
    /// Starts a collector on a free port.
    pub async fn start() -> Self {
        Self::start_at(FREE_PORT).await
    }

    /// Starts a collector that speaks TLS on a free port.
    pub async fn start_with_tls(tls: ServerConfig) -> Self {
        Self::start_as(FREE_PORT, Some(TlsAcceptor::from(Arc::new(tls)))).await
    }

    /// Starts a collector at this address.
    ///
    /// # Panics
    ///
    /// When the address is in use.
    pub async fn start_at(address: SocketAddr) -> Self {
        Self::start_as(address, None).await
    }

    async fn start_as(address: SocketAddr, tls: Option<TlsAcceptor>) -> Self {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let socket = TcpListener::bind(address).await;
        let state = Arc::new(Mutex::new(State::default()));
        let of_server = Arc::clone(&state);
        let serve = move |stream| {
            lock(&of_server).connections += 1;
            let (tls, state) = (tls.clone(), Arc::clone(&of_server));
            async move {
                match tls {
                    None => serve(stream, state).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            serve(stream, state).await;
                        }
                    }
                }
            }
        };
        Self {
            scheme,
            listener: Listener::start(socket.expect("the address is free"), serve),
            state,
        }
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// The part of a configuration file that exports to it. `further` are further keys of `[tracing]`.
    #[must_use]
    pub fn tracing(&self, sampled_per_million: u32, further: &str) -> String {
        let (scheme, address) = (self.scheme, self.address());
        format!(
            "[tracing]\nendpoint = \"{scheme}://{address}/v1/traces\"\nsampled_per_million = {sampled_per_million}\n{further}\n"
        )
    }

    /// Changes how exports are answered from now on.
    pub fn reply(&self, reply: Reply) {
        lock(&self.state).reply = reply;
    }

    /// The spans that it has taken.
    #[must_use]
    pub fn spans(&self) -> Vec<CollectedSpan> {
        lock(&self.state).spans.clone()
    }

    /// Everything that it has received, heads and bodies.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        lock(&self.state).bytes.clone()
    }

    /// Connections that it has accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        lock(&self.state).connections
    }

    /// Exports that it has received, whatever it answered.
    #[must_use]
    pub fn exports(&self) -> usize {
        lock(&self.state).exports
    }

    /// The spans, once these have arrived.
    ///
    /// # Panics
    ///
    /// When they do not arrive in time.
    pub async fn spans_when(
        &self,
        what: &str,
        have_arrived: impl Fn(&[CollectedSpan]) -> bool,
    ) -> Vec<CollectedSpan> {
        until(what, || async {
            let spans = self.spans();
            have_arrived(&spans).then_some(spans)
        })
        .await
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<Mutex<State>>) {
    let mut received = Vec::new();
    while let Some(request) = next_request(&mut stream, &mut received).await {
        let reply = take(&request, &state);
        let response: &[u8] = match reply {
            Reply::Taken => {
                b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n"
            }
            Reply::Refused => b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
            Reply::Never => std::future::pending().await,
        };
        if stream.write_all(response).await.is_err() {
            return;
        }
    }
}

/// Reads a request; `None` at the end of the connection.
async fn next_request(
    stream: &mut (impl AsyncRead + Unpin),
    received: &mut Vec<u8>,
) -> Option<RecordedRequest> {
    loop {
        match read_request(received) {
            Reading::Whole(request) => {
                received.drain(..request.raw.len());
                return Some(request);
            }
            Reading::Partial => {}
            Reading::Unreadable => panic!("no request: {}", received.escape_ascii()),
        }
        let read = stream.read_buf(received).await.ok()?;
        if read == 0 {
            return None;
        }
    }
}

fn take(request: &RecordedRequest, state: &Mutex<State>) -> Reply {
    assert_eq!(request.target, "/v1/traces");
    assert_eq!(
        request.value("content-type"),
        Some("application/x-protobuf")
    );
    let export = ExportTraceServiceRequest::decode(&request.body[..]).expect("it is OTLP");
    let mut state = lock(state);
    state.exports += 1;
    state.bytes.extend_from_slice(&request.raw);
    if state.reply == Reply::Taken {
        state.spans.extend(spans(export));
    }
    state.reply
}

fn spans(export: ExportTraceServiceRequest) -> Vec<CollectedSpan> {
    let mut spans = Vec::new();
    for of_resource in export.resource_spans {
        let resource = of_resource.resource.unwrap_or_default();
        let resource = texts(resource.attributes);
        let service = resource.get("service.name").cloned().unwrap_or_default();
        let all = of_resource
            .scope_spans
            .into_iter()
            .flat_map(|of_scope| of_scope.spans);
        spans.extend(all.map(|span| collected(&service, span)));
    }
    spans
}

fn collected(service: &str, span: Span) -> CollectedSpan {
    let is_error =
        |status: &opentelemetry_proto::tonic::trace::v1::Status| status.code() == StatusCode::Error;
    CollectedSpan {
        service: service.to_owned(),
        kind: span.kind(),
        is_error: span.status.as_ref().is_some_and(is_error),
        name: span.name,
        trace: hex::encode(span.trace_id),
        id: hex::encode(span.span_id),
        parent: hex::encode(span.parent_span_id),
        times: (span.start_time_unix_nano, span.end_time_unix_nano),
        attributes: texts(span.attributes),
    }
}

fn texts(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    let each = attributes.into_iter();
    each.map(|attribute| (attribute.key, text(attribute.value)))
        .collect()
}
