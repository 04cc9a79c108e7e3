//! A connection's life: a head is read and checked, pingora serves the request, the next head is read.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bytes::{Buf, BytesMut};
use pingora::{
    apps::{HttpServerApp, ServerApp},
    protocols::{Stream, http::ServerSession},
    proxy::HttpProxy,
    server::ShutdownWatch,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{
    head::{self, Framing, HeadFault, HeadLimits, HeadScanner},
    request_stream::{RequestStream, shut_down_heard_out},
};
use crate::{
    drain::Drain,
    gateway::Gateway,
    phases::{
        address::{Addressing, address},
        record::{Served, record},
        reject::{Addressee, Answer, reject},
    },
    rejection::Rejection,
    request::RawHeaders,
    request_context::RequestContext,
    request_ids::RequestIds,
};

/// Room for most heads, so that the buffer grows once at the most.
const USUAL_HEAD: usize = 2048;

/// Serves HTTP/1 connections: strictly framed here, and proxied by pingora.
pub struct Http1Connections {
    /// pingora's proxy, whose phases the gateway is.
    pub proxy: Arc<HttpProxy<Gateway>>,
    /// How large a head may be.
    pub limits: HeadLimits,
    /// How long a head may take, from its first byte on.
    pub head_patience: Duration,
    /// How long a connection may be silent.
    pub idle_patience: Duration,
    /// Counts requests, and tells when the end has come.
    pub drain: Arc<Drain>,
    /// Makes request ids.
    pub ids: Arc<RequestIds>,
    /// What answers to heads that are refused go by.
    pub addressing: Arc<Addressing>,
    /// Whether a refused head leaves an access line.
    pub records: bool,
}

#[async_trait]
impl ServerApp for Http1Connections {
    async fn process_new(
        self: &Arc<Self>,
        mut stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        let mut buffer = BytesMut::with_capacity(USUAL_HEAD);
        let mut patience = self.head_patience;
        loop {
            match self.read_head(&mut stream, &mut buffer, patience).await {
                Head::Complete { length, framing } => {
                    let behind_head = buffer.split_off(length);
                    let head = std::mem::take(&mut buffer);
                    (stream, buffer) = self
                        .serve(stream, head, framing, behind_head, shutdown)
                        .await?;
                    patience = self.idle_patience;
                }
                Head::Refused(rejection) => {
                    self.refuse(stream, &buffer, rejection).await;
                    return None;
                }
                Head::Ended => return None,
            }
        }
    }

    async fn cleanup(&self) {
        self.proxy.http_cleanup().await;
    }
}

/// What became of the wait for a head.
enum Head {
    Complete {
        length: usize,
        framing: Framing,
    },
    Refused(Rejection),
    /// The client left, or was silent for too long, or the gateway is going down.
    Ended,
}

impl Http1Connections {
    /// Reads until a head is whole, which may be at once: `buffer` may hold what came behind the last request.
    async fn read_head(
        &self,
        stream: &mut Stream,
        buffer: &mut BytesMut,
        first_byte_patience: Duration,
    ) -> Head {
        let mut scanner = HeadScanner::default();
        if buffer.is_empty() {
            let first_bytes = tokio::time::timeout(first_byte_patience, read(stream, buffer));
            let came = tokio::select! {
                biased;
                came = first_bytes => came.unwrap_or(false),
                // Between two requests is the time to go.
                () = self.drain.started() => false,
            };
            if !came {
                return Head::Ended;
            }
        }
        let deadline = tokio::time::Instant::now() + self.head_patience;
        let mut may_skip_line = true;
        loop {
            // An empty line before a request line does not count (RFC 9112 section 2.2). One.
            if may_skip_line && buffer.starts_with(b"\r\n") {
                buffer.advance(2);
                scanner = HeadScanner::default();
                may_skip_line = false;
            }
            match scanner.scan(buffer, &self.limits) {
                Ok(Some(length)) => {
                    return match head::check(&buffer[..length], &self.limits) {
                        Ok(framing) => Head::Complete { length, framing },
                        Err(fault) => Head::Refused(self.rejection(fault)),
                    };
                }
                Ok(None) => {}
                Err(fault) => return Head::Refused(self.rejection(fault)),
            }
            match tokio::time::timeout_at(deadline, read(stream, buffer)).await {
                Ok(true) => {}
                Ok(false) => return Head::Ended,
                Err(_) => {
                    return Head::Refused(Rejection::RequestTimeout {
                        limit: self.head_patience,
                    });
                }
            }
        }
    }

    /// Lets pingora serve one request; gives the connection back if it goes on.
    async fn serve(
        &self,
        stream: Stream,
        mut head: BytesMut,
        framing: Framing,
        behind_head: BytesMut,
        shutdown: &ShutdownWatch,
    ) -> Option<(Stream, BytesMut)> {
        let (request, body) = match RequestStream::new(stream, framing, behind_head) {
            Ok(parts) => parts,
            Err(stream) => {
                self.refuse(stream, &head, Rejection::NotHttp("malformed chunks"))
                    .await;
                return None;
            }
        };
        head.unsplit(body);
        let mut session = ServerSession::new_http1(Box::new(request));
        session.set_pipelined_prefix(head);
        let under_way = self.drain.begin();
        let reused = self.proxy.process_new_http(session, shutdown).await;
        drop(under_way);
        let (stream, _) = reused?.consume();
        let request = stream.into_any().downcast::<RequestStream>().ok()?;
        Some(request.into_parts())
    }

    fn rejection(&self, fault: HeadFault) -> Rejection {
        match fault {
            HeadFault::NotHttp(why) => Rejection::NotHttp(why),
            HeadFault::Target => Rejection::TargetInvalid,
            HeadFault::Query => Rejection::ParamsMalformed,
            HeadFault::QueryTooLong => Rejection::QueryTooLong {
                limit: self.limits.query,
            },
            HeadFault::TooLarge => Rejection::HeadTooLarge {
                bytes: self.limits.bytes,
                headers: self.limits.headers,
            },
        }
    }

    /// Answers a head that pingora never sees, and closes.
    async fn refuse(&self, mut stream: Stream, head: &[u8], rejection: Rejection) {
        let started = Instant::now();
        let mut context = RequestContext::new(self.ids.next());
        let peer = stream
            .get_socket_digest()
            .and_then(|digest| digest.peer_addr().cloned());
        context.peer = peer.and_then(|peer| peer.as_inet().map(SocketAddr::ip));
        let line = head::peek_request_line(head);
        let method = line.map_or(&b"-"[..], |line| line.method);
        let path = line.and_then(|line| path_of(line.target)).unwrap_or("-");
        let to = Addressee {
            request_id: &context.request_id,
            manner: address(method, path, &RawHeaders(head), &self.addressing),
        };
        let answer = reject(&rejection, to, None, &self.addressing.names);
        let wire = on_the_wire(&answer);
        let written = tokio::time::timeout(self.head_patience, stream.write_all(&wire));
        // Whoever does not take the answer has gone, which is as good.
        let _ = written.await;
        if self.records {
            let served = Served {
                method: std::str::from_utf8(method).unwrap_or("-"),
                path,
                status: answer.status.as_u16(),
                size: answer.body.len(),
                duration: started.elapsed(),
            };
            record(served, &context, Some(&rejection));
        }
        shut_down_heard_out(&mut stream).await;
    }
}

/// The path of a target that may be none: up to its query, if that much is fit for a log.
fn path_of(target: &[u8]) -> Option<&str> {
    let path = target.split(|&byte| byte == b'?').next()?;
    std::str::from_utf8(path)
        .ok()
        .filter(|path| path.is_ascii())
}

/// Reads what there is; `false` when the client has closed, or the connection broke.
async fn read(stream: &mut Stream, buffer: &mut BytesMut) -> bool {
    buffer.reserve(USUAL_HEAD);
    matches!(stream.read_buf(buffer).await, Ok(length) if length > 0)
}

/// An answer in bytes, that closes the connection.
fn on_the_wire(answer: &Answer) -> Vec<u8> {
    let reason = answer.status.canonical_reason().unwrap_or_default();
    let mut wire = format!(
        "HTTP/1.1 {} {reason}\r\nconnection: close\r\n",
        answer.status.as_u16()
    )
    .into_bytes();
    for (name, value) in &answer.headers {
        wire.extend_from_slice(name.as_str().as_bytes());
        wire.extend_from_slice(b": ");
        wire.extend_from_slice(value.as_bytes());
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(b"\r\n");
    wire.extend_from_slice(&answer.body);
    wire
}
