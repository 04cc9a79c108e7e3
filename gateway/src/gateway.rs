//! The phases of a request in order: pingora's methods, each a call or two into `phases`.

use std::{net::SocketAddr, ops::Deref, sync::Arc, time::Duration};

use async_trait::async_trait;
use http::header;
use pingora::{
    Error, ErrorSource, ErrorType,
    http::{RequestHeader, ResponseHeader},
    modules::http::HttpModules,
    protocols::TcpKeepalive,
    proxy::{FailToProxy, ProxyHttp, Session},
    upstreams::peer::{HttpPeer, HttpUpstreamRequestPolicy},
};

use crate::{
    apps::directory::AppDirectory,
    clock::Clock,
    config::{Limits, Timeouts, Versions},
    downstream::head::Framing,
    drain::Drain,
    phases::{
        address::{Addressing, address},
        admit::{Admission, Admitted, admit},
        answer::answer,
        forward::{Forwarding, forward},
        identify_app::identify_app,
        read_params::{read_body, read_params},
        record::{Served, record},
        reject::{Addressee, reject},
        route::route,
        verify::{VerifiedRequest, Verifier},
        way_in::callback,
    },
    rejection::Rejection,
    request::Target,
    request_context::RequestContext,
    request_ids::RequestIds,
};

/// Idle connections to a backend are kept so long.
const UPSTREAM_IDLE: Duration = Duration::from_secs(90);

/// Everything that a request meets on its way.
pub struct Gateway {
    /// What addressing errors goes by.
    pub addressing: Arc<Addressing>,
    /// What admission goes by.
    pub admission: Admission,
    /// Where applications are looked up.
    pub apps: AppDirectory,
    /// What verification goes by, and remembers.
    pub verifier: Verifier,
    /// The versions and their backends.
    pub versions: Versions,
    /// What forwarding goes by.
    pub forwarding: Forwarding,
    /// How large requests may be.
    pub limits: Limits,
    /// How long anything may take.
    pub timeouts: Timeouts,
    /// Makes request ids.
    pub ids: Arc<RequestIds>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Tells when the end has come.
    pub drain: Arc<Drain>,
    /// Whether each request leaves an access line.
    pub records: bool,
}

#[async_trait]
impl ProxyHttp for Gateway {
    type CTX = RequestContext;

    fn new_ctx(&self) -> RequestContext {
        RequestContext::new(self.ids.next())
    }

    /// None: answers pass as they are, and pingora's compression would cost every request.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn request_filter(
        &self,
        session: &mut Session,
        context: &mut RequestContext,
    ) -> pingora::Result<bool> {
        session.set_write_timeout(Some(self.timeouts.send));
        // Early hints and the like are between the backend and us; our own 100 is sent all the same.
        session.set_ignore_info_resp(true);
        // `read_body` limits the whole body's time.
        session.set_read_timeout(None);
        let admitted = self.admit(session, context)?;
        let verified = self.verify(session, context, &admitted).await?;
        context.route = Some(route(&verified, &admitted.version, &self.versions)?);
        Ok(false)
    }

    async fn upstream_peer(
        &self,
        _session: &mut Session,
        context: &mut RequestContext,
    ) -> pingora::Result<Box<HttpPeer>> {
        let route = context.route.as_ref().ok_or_else(no_route)?;
        Ok(Box::new(self.peer(route.backend.address)))
    }

    async fn upstream_request_filter(
        &self,
        _session: &mut Session,
        upstream: &mut RequestHeader,
        context: &mut RequestContext,
    ) -> pingora::Result<()> {
        let route = context.route.as_ref().ok_or_else(no_route)?;
        forward(
            upstream,
            context,
            route,
            context.app(),
            &self.forwarding,
            &self.ids,
        )
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        context: &mut RequestContext,
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
        let route = context.route.as_ref().ok_or_else(no_route)?;
        answer(response, context, route, &self.forwarding.names)
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        context: &mut RequestContext,
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
        self.write_rejection(session, &reason, context).await
    }

    async fn logging(
        &self,
        session: &mut Session,
        error: Option<&Error>,
        context: &mut RequestContext,
    ) {
        if !self.records {
            return;
        }
        let reason = error.map(Reason::of);
        let request = session.req_header();
        let served = Served {
            method: request.method.as_str(),
            path: path(request),
            status: session
                .response_written()
                .map_or(0, |sent| sent.status.as_u16()),
            size: session.body_bytes_sent(),
            duration: context.started.elapsed(),
        };
        record(served, context, reason.as_deref());
    }

    /// pingora's own would log the query.
    fn request_summary(&self, session: &Session, context: &RequestContext) -> String {
        let request = session.req_header();
        let (method, path) = (&request.method, path(request));
        format!("{method} {path}, request.id={}", context.request_id)
    }

    /// `record` has it, whoever is at fault.
    fn suppress_error_log(&self, _: &Session, _: &RequestContext, _: &Error) -> bool {
        true
    }
}

impl Gateway {
    /// Admits the request, and leaves who it is from in the context.
    fn admit(
        &self,
        session: &mut Session,
        context: &mut RequestContext,
    ) -> Result<Admitted, Rejection> {
        let peer = session
            .client_addr()
            .and_then(|address| address.as_inet())
            .map(SocketAddr::ip);
        context.peer = peer;
        let request = session.req_header();
        if request.version == http::Version::HTTP_10 || self.drain.is_draining() {
            session.set_keepalive(None);
        }
        let request = session.req_header();
        let method = request.method.as_str().as_bytes();
        let peer = peer.unwrap_or_else(|| context.client());
        let mut admitted = admit(
            method,
            &request.headers,
            framing(request),
            peer,
            &self.admission,
        )?;
        // RFC 9110 section 10.1.1: an HTTP/1.0 client does not know what a 100 is.
        admitted.expects_continue &= request.version == http::Version::HTTP_11;
        if let Some(id) = admitted.request_id.take() {
            context.request_id = id;
        }
        context.traceparent = admitted.traceparent.take();
        context.origin = admitted.origin.take();
        Ok(admitted)
    }

    /// Finds the application, reads the parameters, and verifies; or takes the unsigned way in.
    async fn verify(
        &self,
        session: &mut Session,
        context: &mut RequestContext,
        admitted: &Admitted,
    ) -> Result<VerifiedRequest, Rejection> {
        let config = self.verifier.config();
        let target = target(session)?;
        if let Some(callback) = callback(admitted.method, admitted.framing, target, config) {
            return Ok(self.verifier.pass_callback(callback));
        }
        let names = &self.admission.names;
        let app = identify_app(
            admitted.app,
            target,
            &config.browser_paths,
            names,
            &self.apps,
        )
        .await?;
        context.app = Some(Arc::clone(&app));
        let body = read_body(session, admitted, &self.limits, self.timeouts.body).await?;
        context.body_length = (admitted.framing != Framing::None).then_some(body.len());
        let target = self::target(session)?;
        let params = read_params(target, &body, &self.limits)?;
        self.verifier
            .verify(app, admitted.method, target, &params, self.clock.now())
    }

    fn peer(&self, backend: SocketAddr) -> HttpPeer {
        let mut peer = HttpPeer::new(backend, false, String::new());
        peer.options.connection_timeout = Some(self.timeouts.connect);
        peer.options.total_connection_timeout = Some(self.timeouts.connect);
        peer.options.read_timeout = Some(self.timeouts.answer);
        peer.options.write_timeout = Some(self.timeouts.answer);
        peer.options.idle_timeout = Some(UPSTREAM_IDLE);
        // `forward` strips by the contract's rules, which pingora's would refuse half of.
        peer.options.http_upstream_request_policy = HttpUpstreamRequestPolicy::preserve();
        peer.options.tcp_keepalive = Some(TcpKeepalive {
            idle: Duration::from_secs(60),
            interval: Duration::from_secs(5),
            count: 5,
            #[cfg(target_os = "linux")]
            user_timeout: Duration::ZERO,
        });
        peer
    }

    async fn write_rejection(
        &self,
        session: &mut Session,
        rejection: &Rejection,
        context: &RequestContext,
    ) -> FailToProxy {
        let request = session.req_header();
        let method = request.method.as_str().as_bytes();
        let to = Addressee {
            request_id: &context.request_id,
            manner: address(method, path(request), &request.headers, &self.addressing),
        };
        let answer = reject(rejection, to, context.route.as_ref(), &self.admission.names);
        let is_mid_request = matches!(
            rejection,
            Rejection::NotHttp(_) | Rejection::RequestTimeout { .. }
        );
        // Behind a route, pingora closes the connection whatever it is told: so say it in the answer.
        if is_mid_request || context.route.is_some() {
            session.set_keepalive(None);
        }
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

fn target(session: &Session) -> Result<Target<'_>, Rejection> {
    Target::parse(session.req_header().raw_path()).ok_or(Rejection::TargetInvalid)
}

/// The path alone: what may be logged of a target.
fn path(request: &RequestHeader) -> &str {
    Target::parse(request.raw_path()).map_or("", |target| target.path)
}

/// How the body is framed, of a head that was checked to frame it one way.
fn framing(request: &RequestHeader) -> Framing {
    if request.headers.contains_key(header::TRANSFER_ENCODING) {
        return Framing::Chunked;
    }
    let length = request
        .headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    match length.and_then(|length| length.parse().ok()) {
        None | Some(0) => Framing::None,
        Some(length) => Framing::Length(length),
    }
}

fn no_route() -> Box<Error> {
    Rejection::Internal("a request went on without a route".into()).into()
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
