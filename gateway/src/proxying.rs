//! What pingora does with a verified request: it forwards it, and brings the answer back.

mod reason;

use std::{
    any::Any,
    net::{Ipv4Addr, SocketAddr},
    os::fd::RawFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use gateway_protocol::{
    header::{REFUSED_SECRET, X_GATEWAY_PROBLEM, X_GATEWAY_REFUSED},
    log_text,
    version::Version,
};
use http::header;
use pingora::{
    Error,
    http::ResponseHeader,
    modules::http::HttpModules,
    protocols::{Digest, TcpKeepalive, l4::socket},
    proxy::{FailToProxy, ProxyHttp, ProxyWarnLogContext, Session},
    upstreams::peer::{HttpPeer, HttpUpstreamRequestPolicy},
};

use self::reason::{Reason, broke, had_ended, is_theirs};
use crate::{
    balance::{Balancer, attempts::Attempts, key::Key},
    config::Backend,
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
    request_context::{Exchange, RequestContext},
    upstream::{self, Sending, in_short},
};

/// Idle connections to a backend are kept so long.
const UPSTREAM_IDLE: Duration = Duration::from_secs(90);

/// What the kernel may hold of a backend's answer that was not passed on, in bytes, for the reason that
/// `server::SEND_BUFFER` has: Linux lets it grow to 6 MiB or more. Backends are near: with 1 ms it is 256 MB/s.
const BACKEND_RECEIVE_BUFFER: usize = 256 * 1024;

/// The longest code of a backend's problem that is logged, in bytes.
const MAX_CODE_BYTES: usize = 64;

/// The gateway's part in pingora's proxy: the phases behind the route.
pub struct Proxying {
    gateway: Arc<Gateway>,
    /// Any backend, but for its address.
    peer: HttpPeer,
    /// Connections made anew though others were kept.
    new_connections: AtomicU64,
}

/// Where a request goes next.
struct Next {
    address: SocketAddr,
    /// Whether no kept connection will do.
    is_new: bool,
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
        let Next { address, is_new } = self.next(exchange)?;
        let mut peer = Box::new(self.peer.clone());
        peer._address = socket::SocketAddr::Inet(address);
        if is_new {
            // pingora finds kept connections by this, among other things, and keeps this one under it, too. Nobody asks
            // for the same again: so it is closed rather than kept.
            peer.group_key = 1 + self.new_connections.fetch_add(1, Ordering::Relaxed);
            peer.options.idle_timeout = Some(Duration::ZERO);
        }
        Ok(peer)
    }

    /// Without a connection nothing was sent: whatever it is goes to the next address. CONTRACT 5.
    fn fail_to_connect(
        &self,
        _session: &mut Session,
        _peer: &HttpPeer,
        exchange: &mut Self::CTX,
        mut error: Box<Error>,
    ) -> Box<Error> {
        if let Some((balancer, attempts)) = self.balanced(exchange) {
            // What went wrong on this side is not held against the address.
            if is_theirs(error.etype()) {
                balancer.take_out(attempts, &in_short(&error));
            }
            error.set_retry(balancer.has_another(attempts));
        }
        error
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
        if let Some((balancer, attempts)) = self.balanced(exchange) {
            balancer.bring_back(attempts);
        }
        Ok(())
    }

    /// A GET is sent again, as long as no byte of an answer has come: to another address, if there is one; to the same,
    /// once, if it was a kept connection that turned out to have ended. CONTRACT 5.
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
        let is_sent_again = session.req_header().method == http::Method::GET
            && !is_answered
            && !self.gateway.drain.is_giving_up()
            && (broke(&error) && self.has_another(exchange)
                || is_reused && had_ended(&error) && stay(exchange));
        error.set_retry(is_sent_again);
        error
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        exchange: &mut Self::CTX,
    ) -> pingora::Result<()> {
        self.note_secret_refused(response, exchange)?;
        if let Some(exchange) = exchange {
            exchange.context.backend_problem = backend_problem(response);
        }
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
            let path = log_text::path(exchange.head.target().path);
            format!("{path}, request.id={}", exchange.context.request_id)
        })
    }

    /// An address that is out was told of once; that a request goes to another is no news.
    fn suppress_proxy_warn_log(
        &self,
        _: &Session,
        _: &Self::CTX,
        _: &Error,
        _: ProxyWarnLogContext,
    ) -> bool {
        true
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
        peer.options.tcp_recv_buf = Some(BACKEND_RECEIVE_BUFFER);
        // It gets no headers but those it needs; `forward` strips by the contract's rules.
        peer.options.http_upstream_request_policy = HttpUpstreamRequestPolicy::preserve();
        peer.options.tcp_keepalive = Some(TcpKeepalive {
            idle: Duration::from_secs(60),
            interval: Duration::from_secs(5),
            count: 5,
            #[cfg(target_os = "linux")]
            user_timeout: Duration::ZERO,
        });
        Self {
            gateway,
            peer,
            new_connections: AtomicU64::new(0),
        }
    }

    /// Where the request goes next.
    fn next(&self, exchange: &mut Option<Box<Exchange>>) -> Result<Next, Box<Error>> {
        let context = exchange
            .as_deref_mut()
            .map(|exchange| &mut exchange.context);
        let Some(RequestContext {
            route: Some(Route { backend, .. }),
            attempts,
            app,
            client,
            ..
        }) = context
        else {
            return Err(unrouted());
        };
        let is_new = attempts.stays();
        let last = attempts.last().filter(|_| is_new);
        let same = last.map(|address| address.socket());
        if let Some(address) = backend.upstream.fixed().or(same) {
            return Ok(Next { address, is_new });
        }
        let balancer = self.gateway.balancers[backend.number].as_ref();
        let balancer = balancer.ok_or_else(unrouted)?;
        let key = Key::of(balancer.balance(), app.as_deref(), *client);
        let address = balancer
            .choose(key.as_bytes(), attempts)
            .ok_or_else(|| none_left(&backend.version, attempts))?;
        Ok(Next { address, is_new })
    }

    /// A backend that refuses the gateway's secret refuses the gateway, not its client. CONTRACT 9.
    fn note_secret_refused(
        &self,
        response: &ResponseHeader,
        exchange: &Option<Box<Exchange>>,
    ) -> Result<(), Box<Error>> {
        let refusals = &self.gateway.refusals;
        let is_refused = refuses_secret(response);
        if !is_refused && refusals.is_empty() {
            return Ok(());
        }
        let Some((backend, address)) = served_by(exchange) else {
            return Ok(());
        };
        if !is_refused {
            refusals.forget(&backend.version, address);
            return Ok(());
        }
        refusals.note(&backend.version, address, Instant::now());
        Err(Rejection::SecretRefused.into())
    }

    /// Who chooses among addresses for this request, and those that it was sent to; `None` where there is no choice.
    fn balanced<'e>(
        &self,
        exchange: &'e Option<Box<Exchange>>,
    ) -> Option<(&Balancer, &'e Attempts)> {
        let context = &exchange.as_deref()?.context;
        let number = context.route.as_ref()?.backend.number;
        let balancer = self.gateway.balancers[number].as_deref()?;
        Some((balancer, &context.attempts))
    }

    fn has_another(&self, exchange: &Option<Box<Exchange>>) -> bool {
        self.balanced(exchange)
            .is_some_and(|(balancer, attempts)| balancer.has_another(attempts))
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

/// Whether the request may go to the same address once more; if so, it does.
fn stay(exchange: &mut Option<Box<Exchange>>) -> bool {
    exchange
        .as_mut()
        .is_some_and(|exchange| exchange.context.attempts.stay())
}

/// The request that pingora was handed, and where it goes.
fn verified(exchange: &Option<Box<Exchange>>) -> Result<(&Exchange, &Route), Box<Error>> {
    exchange
        .as_deref()
        .and_then(|exchange| Some((exchange, exchange.context.route.as_ref()?)))
        .ok_or_else(unrouted)
}

/// The version and the address that a request was sent to.
fn served_by(exchange: &Option<Box<Exchange>>) -> Option<(&Backend, SocketAddr)> {
    let context = &exchange.as_deref()?.context;
    let backend = &context.route.as_ref()?.backend;
    let balanced = || context.attempts.last().map(|address| address.socket());
    Some((backend, backend.upstream.fixed().or_else(balanced)?))
}

/// Whether the backend says in its answer that it does not accept the gateway's secret.
fn refuses_secret(response: &ResponseHeader) -> bool {
    response.status == http::StatusCode::FORBIDDEN
        && response
            .headers
            .get(X_GATEWAY_REFUSED)
            .is_some_and(|why| why == REFUSED_SECRET)
}

/// The code of the problem in a backend's answer: a word of `[a-z0-9_]`, [`MAX_CODE_BYTES`] at most.
fn backend_problem(response: &ResponseHeader) -> Option<String> {
    let is_of_code = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    let code = response.headers.get(X_GATEWAY_PROBLEM)?.to_str().ok()?;
    let is_code = code.len() <= MAX_CODE_BYTES && code.as_bytes().iter().all(is_of_code);
    is_code.then(|| code.to_owned())
}

/// Why there is no address for a request.
fn none_left(version: &Version, attempts: &Attempts) -> Rejection {
    match attempts.last() {
        None => Rejection::NoHealthyBackend {
            version: version.clone(),
        },
        // There was another when the last one failed.
        Some(_) => Rejection::BackendUnreachable {
            why: "no other address is left".to_owned(),
        },
    }
}

fn unrouted() -> Box<Error> {
    Rejection::Internal("a request went on without a route".into()).into()
}
