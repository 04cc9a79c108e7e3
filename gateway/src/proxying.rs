//! What pingora does with a verified request: it forwards it, and brings the answer back.

use std::{any::Any, net::Ipv4Addr, ops::Deref, os::fd::RawFd, sync::Arc, time::Duration};

use async_trait::async_trait;
use http::header;
use pingora::{
    Error, ErrorSource, ErrorType,
    http::ResponseHeader,
    modules::http::HttpModules,
    protocols::{Digest, TcpKeepalive, l4::socket::SocketAddr},
    proxy::{FailToProxy, ProxyHttp, Session},
    upstreams::peer::{HttpPeer, HttpUpstreamRequestPolicy},
};

use crate::{
    gateway::Gateway,
    phases::{
        address::address,
        answer::answer,
        forward::forward,
        record::{Served, record},
        reject::{Addressee, reject},
        route::Route,
    },
    rejection::Rejection,
    request_context::Exchange,
    upstream::{self, Sending},
};

/// Idle connections to a backend are kept so long.
const UPSTREAM_IDLE: Duration = Duration::from_secs(90);

/// The gateway's part in pingora's proxy: the phases behind the route.
pub struct Proxying {
    gateway: Arc<Gateway>,
    /// Any backend, but for its address.
    peer: HttpPeer,
}

#[async_trait]
impl ProxyHttp for Proxying {
    /// Handed over with each request; none is served without.
    type CTX = Option<Box<Exchange>>;

    fn new_ctx(&self) -> Self::CTX {
        None
    }

    /// None: answers pass as they are, and pingora's compression would cost every request.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    /// pingora's way to hand something over with a connection; here with each of its requests.
    fn on_connection_reuse(
        &self,
        session: &mut Session,
        exchange: &mut Self::CTX,
        handed_over: Box<dyn Any + Send + Sync>,
    ) {
        *exchange = handed_over.downcast().ok();
        if exchange
            .as_ref()
            .is_some_and(|exchange| exchange.context.is_last)
        {
            session.set_keepalive(None);
        }
    }

    async fn upstream_peer(
        &self,
        _session: &mut Session,
        exchange: &mut Self::CTX,
    ) -> pingora::Result<Box<HttpPeer>> {
        let (_, route) = verified(exchange)?;
        let mut peer = Box::new(self.peer.clone());
        peer._address = SocketAddr::Inet(route.backend.address);
        Ok(peer)
    }

    /// The connection gets the lines that go into the head which pingora writes next.
    async fn connected_to_upstream(
        &self,
        _session: &mut Session,
        _is_reused: bool,
        _peer: &HttpPeer,
        _fd: RawFd,
        digest: Option<&Digest>,
        exchange: &mut Self::CTX,
    ) -> pingora::Result<()> {
        let sending = digest.and_then(Sending::of).ok_or_else(|| {
            Rejection::Internal("a connection to a backend is not one of ours".into())
        })?;
        let (request, route) = verified(exchange)?;
        let Gateway {
            forwarding, ids, ..
        } = &*self.gateway;
        sending.begin(|lines| forward(request, route, forwarding, ids, lines));
        if let Some(exchange) = exchange {
            exchange.context.sending = Some(Arc::clone(sending));
        }
        Ok(())
    }

    /// A kept connection may turn out to have ended: then a GET is sent again, as long as no byte of an answer has
    /// come. CONTRACT 5.
    fn error_while_proxy(
        &self,
        peer: &HttpPeer,
        session: &mut Session,
        error: Box<Error>,
        exchange: &mut Self::CTX,
        is_reused: bool,
    ) -> Box<Error> {
        let sending = exchange
            .as_ref()
            .and_then(|exchange| exchange.context.sending.as_ref());
        let is_answered = sending.is_none_or(|sending| sending.is_answered());
        let mut error = error.more_context(format!("Peer: {peer}"));
        if session.req_header().method == http::Method::GET && !is_answered {
            error.retry.decide_reuse(is_reused);
        } else {
            error.set_retry(false);
        }
        error
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        _exchange: &mut Self::CTX,
    ) -> pingora::Result<()> {
        if response.status == http::StatusCode::SWITCHING_PROTOCOLS {
            // Nobody asked for it: `Upgrade` ends here.
            let why = "a 101 that was not asked for".to_owned();
            return Err(Rejection::BackendUnreachable { why }.into());
        }
        if session.req_header().version == http::Version::HTTP_10 {
            // It knows no chunks: the answer ends where the connection does (RFC 9112 section 6.1).
            response.remove_header(&header::TRANSFER_ENCODING);
        }
        answer(response, &self.gateway.forwarding.names);
        Ok(())
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        exchange: &mut Self::CTX,
    ) -> FailToProxy {
        let reason = Reason::of(error);
        let is_answered = session
            .response_written()
            .is_some_and(|sent| !sent.status.is_informational());
        if is_answered || matches!(*reason, Rejection::ClientGone) {
            return FailToProxy {
                error_code: 0,
                can_reuse_downstream: false,
            };
        }
        match exchange {
            Some(exchange) => self.write_rejection(session, &reason, exchange).await,
            None => FailToProxy {
                error_code: 500,
                can_reuse_downstream: false,
            },
        }
    }

    async fn logging(
        &self,
        session: &mut Session,
        error: Option<&Error>,
        exchange: &mut Self::CTX,
    ) {
        let access_log = self.gateway.access_log.as_ref();
        let Some(Exchange { head, context }) = exchange.as_deref() else {
            return;
        };
        if access_log.is_none() && error.is_none() {
            return;
        }
        let reason = error.map(Reason::of);
        let served = Served {
            method: std::str::from_utf8(head.method()).unwrap_or("-"),
            path: head.target().path,
            status: session
                .response_written()
                .map_or(0, |sent| sent.status.as_u16()),
            size: session.body_bytes_sent(),
            duration: context.duration(),
        };
        record(access_log, served, context, reason.as_deref());
    }

    /// pingora's own would log the query.
    fn request_summary(&self, _session: &Session, exchange: &Self::CTX) -> String {
        exchange.as_ref().map_or_else(String::new, |exchange| {
            let path = exchange.head.target().path;
            format!("{path}, request.id={}", exchange.context.request_id)
        })
    }

    /// `record` has it, whoever is at fault.
    fn suppress_error_log(&self, _: &Session, _: &Self::CTX, _: &Error) -> bool {
        true
    }
}

impl Proxying {
    /// Forwards what `gateway` let through.
    #[must_use]
    pub fn new(gateway: Arc<Gateway>) -> Self {
        let timeouts = &gateway.timeouts;
        let mut peer = HttpPeer::new((Ipv4Addr::UNSPECIFIED, 0), false, String::new());
        peer.options.alpn = upstream::protocol();
        peer.options.connection_timeout = Some(timeouts.connect);
        peer.options.total_connection_timeout = Some(timeouts.connect);
        peer.options.read_timeout = Some(timeouts.answer);
        peer.options.idle_timeout = Some(UPSTREAM_IDLE);
        // It gets no headers but those it needs; `forward` strips by the contract's rules.
        peer.options.http_upstream_request_policy = HttpUpstreamRequestPolicy::preserve();
        peer.options.tcp_keepalive = Some(TcpKeepalive {
            idle: Duration::from_secs(60),
            interval: Duration::from_secs(5),
            count: 5,
            #[cfg(target_os = "linux")]
            user_timeout: Duration::ZERO,
        });
        Self { gateway, peer }
    }

    async fn write_rejection(
        &self,
        session: &mut Session,
        rejection: &Rejection,
        exchange: &Exchange,
    ) -> FailToProxy {
        let Exchange { head, context } = exchange;
        let to = Addressee {
            request_id: &context.request_id,
            manner: address(
                head.method(),
                head.target().path,
                head,
                &self.gateway.addressing,
            ),
        };
        let answer = reject(rejection, to);
        // pingora closes the connection whatever it is told: so say it in the answer.
        session.set_keepalive(None);
        let status = answer.status.as_u16();
        let written = async {
            let mut header = ResponseHeader::build(answer.status, Some(answer.headers.len() + 2))?;
            for (name, value) in answer.headers {
                header.insert_header(name, value)?;
            }
            let is_last = answer.body.is_empty();
            session
                .write_response_header(Box::new(header), is_last)
                .await?;
            if !is_last {
                session.write_response_body(Some(answer.body), true).await?;
            }
            // pingora holds bytes back until told that there are no more.
            session.as_mut().finish_body().await
        };
        let is_written = written.await.is_ok();
        FailToProxy {
            error_code: status,
            can_reuse_downstream: is_written,
        }
    }
}

/// The request that pingora was handed, and where it goes.
fn verified(exchange: &Option<Box<Exchange>>) -> Result<(&Exchange, &Route), Box<Error>> {
    exchange
        .as_deref()
        .and_then(|exchange| Some((exchange, exchange.context.route.as_ref()?)))
        .ok_or_else(|| Rejection::Internal("a request went on without a route".into()).into())
}

/// Why a request failed, out of pingora's error.
enum Reason<'e> {
    /// A rejection of ours, that the error carries.
    Carried(&'e Rejection),
    /// What an error of pingora's own amounts to.
    Made(Rejection),
}

impl<'e> Reason<'e> {
    fn of(error: &'e Error) -> Self {
        // However often the error was wrapped on its way.
        match error.root_cause().downcast_ref() {
            Some(carried) => Self::Carried(carried),
            None => Self::Made(rejection_of(error)),
        }
    }
}

impl Deref for Reason<'_> {
    type Target = Rejection;

    fn deref(&self) -> &Rejection {
        match self {
            Self::Carried(rejection) => rejection,
            Self::Made(rejection) => rejection,
        }
    }
}

/// The rejection that an error of pingora's own amounts to.
fn rejection_of(error: &Error) -> Rejection {
    match (error.esource(), error.etype()) {
        (ErrorSource::Downstream, _) => Rejection::ClientGone,
        (_, ErrorType::ReadTimedout | ErrorType::WriteTimedout) => Rejection::BackendTimeout,
        (ErrorSource::Upstream, ErrorType::WriteError) if is_stalled(error) => {
            Rejection::BackendTimeout
        }
        // A client's head was checked before, so what is no HTTP is the backend's.
        (ErrorSource::Upstream, kind)
        | (_, kind @ (ErrorType::ConnectTimedout | ErrorType::InvalidHTTPHeader)) => {
            // Not the error's own words: its context may hold a request's target, or an answer's bytes.
            let root = error.root_cause();
            let cause = if root.is::<Error>() {
                String::new()
            } else {
                format!(" ({root})")
            };
            Rejection::BackendUnreachable {
                why: format!("{}{cause}", kind.as_str()),
            }
        }
        // Only the kind: the context may hold a request's target.
        (_, kind) => Rejection::Internal(kind.as_str().to_owned().into()),
    }
}

impl From<Rejection> for Box<Error> {
    fn from(rejection: Rejection) -> Self {
        let status = rejection.code().map_or(400, |code| code.status().as_u16());
        Error::because(ErrorType::HTTPStatus(status), "rejected", rejection)
    }
}

/// Whether the connection took nothing for too long.
fn is_stalled(error: &Error) -> bool {
    let cause = error.root_cause().downcast_ref::<std::io::Error>();
    cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::TimedOut)
}
