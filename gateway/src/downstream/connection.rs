//! A connection's life: a head is read and checked, the gateway decides, pingora forwards; the next head is read.

use std::{sync::Arc, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderName, header};
use pingora::{
    apps::HttpServerApp,
    protocols::{
        Stream,
        http::{ServerSession, date::get_cached_date},
    },
    proxy::HttpProxy,
    server::ShutdownWatch,
    time::fast_timeout::fast_timeout as timeout,
};

use super::{
    client::Client,
    form::Form,
    head::{Framing, Head, HeadFault, HeadScanner, peek_request_line},
};
use crate::{
    gateway::Gateway,
    phases::{
        address::address,
        answer::announcement,
        origin::{Peer, client as client_of},
        record::{Served, record},
        reject::{Addressee, Answer, reject},
    },
    proxying::Proxying,
    rejection::Rejection,
    request::{Headers, RawHeaders, write_line},
    request_context::{Exchange, RequestContext},
    upstream::BackendConnector,
};

/// Serves HTTP/1 connections.
pub struct Http1Connections {
    /// The phases that a request goes through.
    pub gateway: Arc<Gateway>,
}

/// pingora's proxy, for requests that came through the phases.
pub type Proxy = Arc<HttpProxy<Proxying, BackendConnector>>;

impl Http1Connections {
    /// Serves a connection until it ends.
    pub async fn serve(&self, stream: Stream, proxy: Proxy, shutdown: ShutdownWatch) {
        let mut client = Box::new(Client::new(stream, self.gateway.timeouts.send));
        let Some(address) = client.address() else {
            return;
        };
        let peer = Peer::new(address, &self.gateway.admission.trusted_proxies);
        let mut patience = self.gateway.timeouts.head;
        loop {
            let head = match self.read_head(&mut client, patience).await {
                Ok(Some(head)) => head,
                Ok(None) => return,
                Err(refused) => return Box::pin(self.refuse(client, &peer, refused)).await,
            };
            let goes_on = self.exchange(client, head, &peer, &proxy, &shutdown);
            match goes_on.await {
                Some(going_on) => client = going_on,
                None => return,
            }
            patience = self.gateway.timeouts.idle;
        }
    }
}

/// A head that is none, and what came of it.
struct Refused {
    rejection: Rejection,
    came: Bytes,
}

impl Http1Connections {
    /// Reads until a head is whole, which may be at once: some of it may have come behind the last request.
    /// `None` when the client left, or was silent for too long.
    async fn read_head(
        &self,
        client: &mut Client,
        first_byte_patience: Duration,
    ) -> Result<Option<Head>, Refused> {
        let mut reading = HeadReading::default();
        loop {
            if client.ahead().is_empty() {
                let first_bytes = timeout(first_byte_patience, client.receive());
                let has_come = tokio::select! {
                    biased;
                    has_come = first_bytes => has_come.unwrap_or(false),
                    () = self.gateway.drain.closing() => false,
                };
                if !has_come {
                    return Ok(None);
                }
            }
            if let Some(head) = self.take_head(client, &mut reading)? {
                return Ok(Some(head));
            }
            // An empty line that was skipped is no beginning of a head.
            if !client.ahead().is_empty() {
                break;
            }
        }
        let limit = self.gateway.timeouts.head;
        let rest = async {
            while client.receive().await {
                if let Some(head) = self.take_head(client, &mut reading)? {
                    return Ok(Some(head));
                }
            }
            Ok(None)
        };
        match timeout(limit, rest).await {
            Ok(read) => read,
            Err(_) if client.ahead().is_empty() => Ok(None),
            Err(_) => Err(Refused {
                rejection: Rejection::RequestTimeout { limit },
                came: client.take(client.ahead().len()),
            }),
        }
    }

    /// The head, if all of it has come.
    fn take_head(
        &self,
        client: &mut Client,
        reading: &mut HeadReading,
    ) -> Result<Option<Head>, Refused> {
        // An empty line before a request line does not count (RFC 9112 section 2.2). One.
        if !reading.skipped_line && client.ahead().starts_with(b"\r\n") {
            client.skip(2);
            *reading = HeadReading {
                skipped_line: true,
                ..HeadReading::default()
            };
        }
        let refused = |fault, came| Refused {
            rejection: self.rejection(fault),
            came,
        };
        match reading
            .scanner
            .scan(client.ahead(), &self.gateway.limits.head)
        {
            Ok(None) => Ok(None),
            Ok(Some(length)) => {
                let bytes = client.take(length);
                Head::parse(bytes.clone(), &self.gateway.limits.head)
                    .map(Some)
                    .map_err(|fault| refused(fault, bytes))
            }
            Err(fault) => Err(refused(fault, client.take(client.ahead().len()))),
        }
    }

    /// Serves one request; gives the connection back if it goes on.
    async fn exchange(
        &self,
        mut client: Box<Client>,
        head: Head,
        peer: &Peer,
        proxy: &Proxy,
        shutdown: &ShutdownWatch,
    ) -> Option<Box<Client>> {
        let _under_way = self.gateway.drain.begin();
        let context = self.gateway.context(peer);
        let mut exchange = Box::new(Exchange { head, context });
        let mut form = Form::new(&mut client, exchange.head.framing());
        let Exchange { head, context } = &mut *exchange;
        match self.gateway.receive(head, peer, &mut form, context).await {
            Ok(()) => {
                let request = request_for_pingora(head, form.bytes());
                form.finish();
                client.announce(announcement(context, &self.gateway.addressing.names));
                self.forward(client, exchange, request, proxy, shutdown)
                    .await
            }
            Err(rejection) => {
                let is_whole = form.is_whole();
                form.finish();
                Box::pin(self.reject(client, exchange, rejection, is_whole)).await
            }
        }
    }

    /// Lets pingora forward a request that is whole and verified.
    async fn forward(
        &self,
        client: Box<Client>,
        exchange: Box<Exchange>,
        request: BytesMut,
        proxy: &Proxy,
        shutdown: &ShutdownWatch,
    ) -> Option<Box<Client>> {
        let mut session = ServerSession::new_http1(client);
        session.set_pipelined_prefix(request);
        session.set_connection_user_context(Some(exchange));
        // Early hints and the like are between the backend and us.
        session.set_ignore_info_resp(true);
        let reused = proxy.process_new_http(session, shutdown).await;
        let (stream, _) = reused?.consume();
        stream.into_any().downcast().ok()
    }

    fn rejection(&self, fault: HeadFault) -> Rejection {
        match fault {
            HeadFault::NotHttp(why) => Rejection::NotHttp(why),
            HeadFault::Target => Rejection::TargetInvalid,
            HeadFault::Query => Rejection::ParamsMalformed,
            HeadFault::QueryTooLong => Rejection::QueryTooLong {
                limit: self.gateway.limits.head.query,
            },
            HeadFault::TooLarge => Rejection::HeadTooLarge {
                bytes: self.gateway.limits.head.bytes,
                headers: self.gateway.limits.head.headers,
            },
        }
    }

    /// Answers a request that is not forwarded; gives the connection back if it goes on.
    async fn reject(
        &self,
        mut client: Box<Client>,
        exchange: Box<Exchange>,
        rejection: Rejection,
        is_whole: bool,
    ) -> Option<Box<Client>> {
        let Exchange { head, context } = &*exchange;
        let goes_on = is_whole && !context.is_last;
        let rejected = Rejected {
            method: head.method(),
            path: head.target().path,
            headers: head,
            context,
            goes_on,
        };
        if matches!(rejection, Rejection::ClientGone) {
            self.record(&rejected, 0, 0, &rejection);
            return None;
        }
        let sent = self.answer(&mut client, &rejected, &rejection).await;
        if sent && goes_on {
            return Some(client);
        }
        if sent && is_whole {
            client.close().await;
        } else {
            client.close_heard_out().await;
        }
        None
    }

    /// Answers a head that is none, and closes.
    async fn refuse(&self, mut client: Box<Client>, peer: &Peer, refused: Refused) {
        let Refused { rejection, came } = refused;
        let headers = RawHeaders(&came);
        let mut context = self.gateway.context(peer);
        context.client = client_of(peer, &headers, &self.gateway.admission.trusted_proxies);
        let line = peek_request_line(&came);
        let rejected = Rejected {
            method: line.map_or(&b"-"[..], |line| line.method),
            path: line.and_then(|line| path_of(line.target)).unwrap_or("-"),
            headers: &headers,
            context: &context,
            goes_on: false,
        };
        self.answer(&mut client, &rejected, &rejection).await;
        client.close_heard_out().await;
    }

    /// Writes the answer and the access line; tells whether the client took the answer.
    async fn answer(
        &self,
        client: &mut Client,
        rejected: &Rejected<'_, impl Headers>,
        rejection: &Rejection,
    ) -> bool {
        let Gateway {
            addressing,
            timeouts,
            ..
        } = &*self.gateway;
        let Rejected {
            method,
            path,
            headers,
            context,
            goes_on,
        } = *rejected;
        let to = Addressee {
            request_id: &context.request_id,
            manner: address(method, path, headers, addressing),
        };
        let answer = reject(rejection, to);
        // What is not HTTP gets a bare 400.
        let announcement = match rejection.code() {
            Some(_) => announcement(context, &addressing.names),
            None => Vec::new(),
        };
        let wire = on_the_wire(&answer, &announcement, method == b"HEAD", goes_on);
        let sent = timeout(timeouts.head, client.send(&wire)).await;
        let (status, size) = (answer.status.as_u16(), answer.body.len());
        self.record(rejected, status, size, rejection);
        matches!(sent, Ok(Ok(())))
    }

    fn record<H>(
        &self,
        rejected: &Rejected<'_, H>,
        status: u16,
        size: usize,
        rejection: &Rejection,
    ) {
        let context = rejected.context;
        let served = Served {
            method: std::str::from_utf8(rejected.method).unwrap_or("-"),
            path: rejected.path,
            status,
            size,
            duration: context.duration(),
        };
        let log = self.gateway.access_log.as_ref();
        record(log, served, context, Some(rejection));
    }
}

/// How far the reading of a head got.
#[derive(Default)]
struct HeadReading {
    scanner: HeadScanner,
    skipped_line: bool,
}

/// What the answer to a request that is not forwarded goes by.
struct Rejected<'a, H> {
    method: &'a [u8],
    path: &'a str,
    headers: &'a H,
    context: &'a RequestContext,
    /// Whether the connection goes on behind it.
    goes_on: bool,
}

/// The request as pingora needs it: where it goes and where it ends. The other headers that a backend gets are
/// written by `forward`, of the head as it was sent.
fn request_for_pingora(head: &Head, form: &[u8]) -> BytesMut {
    let (line, host) = (head.request_line(), head.host());
    let mut request = BytesMut::with_capacity(line.len() + host.len() + form.len() + 64);
    request.put_slice(line);
    request.put_slice(b"\r\nHost: ");
    request.put_slice(host);
    if head.says_length() || head.framing() != Framing::None {
        request.put_slice(b"\r\nContent-Length: ");
        request.put_slice(form.len().to_string().as_bytes());
    }
    request.put_slice(b"\r\n\r\n");
    request.put_slice(form);
    request
}

/// The path of a target that may be none: up to its query, if that much is fit for a log.
fn path_of(target: &[u8]) -> Option<&str> {
    let path = target.split(|&byte| byte == b'?').next()?;
    std::str::from_utf8(path)
        .ok()
        .filter(|path| path.is_ascii())
}

/// An answer in bytes.
fn on_the_wire(answer: &Answer, announcement: &[u8], is_head: bool, goes_on: bool) -> Vec<u8> {
    let mut wire = Vec::with_capacity(512 + answer.body.len());
    let reason = answer.status.canonical_reason().unwrap_or_default();
    wire.extend_from_slice(b"HTTP/1.1 ");
    wire.extend_from_slice(answer.status.as_str().as_bytes());
    wire.extend_from_slice(b" ");
    wire.extend_from_slice(reason.as_bytes());
    wire.extend_from_slice(b"\r\n");
    wire.extend_from_slice(announcement);
    let mut line = |name: &HeaderName, value: &[u8]| {
        write_line(&mut wire, name.as_str().as_bytes(), value);
    };
    for (name, value) in &answer.headers {
        line(name, value.as_bytes());
    }
    line(&header::DATE, get_cached_date().as_bytes());
    let connection: &[u8] = if goes_on { b"keep-alive" } else { b"close" };
    line(&header::CONNECTION, connection);
    wire.extend_from_slice(b"\r\n");
    if !is_head {
        wire.extend_from_slice(&answer.body);
    }
    wire
}
