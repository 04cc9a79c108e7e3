//! The management listener: `/healthz` and `/readyz`. CONTRACT 10.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use http::{Response, StatusCode, header};
use pingora::{apps::http_app::ServeHttp, protocols::http::ServerSession};

use tokio::net::TcpStream;

use crate::{apps::store::AppStore, balance::Balancer, secret_refusals::SecretRefusals};

/// Connecting to ourselves takes no time, unless nobody listens.
const PATIENCE: Duration = Duration::from_secs(1);

/// Answers whether the gateway is alive, and whether it can serve.
pub struct Management {
    /// The address that clients call.
    pub listen: SocketAddr,
    /// The store that serving needs; none in single-application mode.
    pub store: Option<Arc<dyn AppStore>>,
    /// Backends that do not accept the gateway's secret.
    pub refusals: Arc<SecretRefusals>,
    /// The addresses of versions that have more than one.
    pub balancers: Vec<Arc<Balancer>>,
}

#[async_trait]
impl ServeHttp for Management {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        let request = session.req_header();
        let is_get = request.method == http::Method::GET;
        match (is_get, request.uri.path()) {
            (true, "/healthz") => text(StatusCode::OK, "alive\n"),
            (true, "/readyz") => self.readiness().await,
            (false, "/healthz" | "/readyz") => text(StatusCode::METHOD_NOT_ALLOWED, "use GET\n"),
            _ => text(StatusCode::NOT_FOUND, "there are /healthz and /readyz\n"),
        }
    }
}

impl Management {
    async fn readiness(&self) -> Response<Vec<u8>> {
        // pingora starts its listeners one by one: this one may be up before the clients' is.
        let accepts = tokio::time::timeout(PATIENCE, TcpStream::connect(self.listen)).await;
        if !matches!(accepts, Ok(Ok(_))) {
            return text(StatusCode::SERVICE_UNAVAILABLE, "not listening yet\n");
        }
        if let Some(store) = &self.store
            && store.check().await.is_err()
        {
            return text(
                StatusCode::SERVICE_UNAVAILABLE,
                "the store does not answer\n",
            );
        }
        let addresses = |version: &str| {
            let of_version = |balancer: &&Arc<Balancer>| balancer.version().as_str() == version;
            let balancer = self.balancers.iter().find(of_version);
            balancer.map_or(1, |balancer| balancer.len())
        };
        match self.refusals.report(Instant::now(), addresses) {
            None => text(StatusCode::OK, "ready\n"),
            Some(report) if report.is_down => text(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{}\n", report.text),
            ),
            Some(report) => text(StatusCode::OK, format!("ready, but {}\n", report.text)),
        }
    }
}

fn text(status: StatusCode, body: impl Into<String>) -> Response<Vec<u8>> {
    let body = body.into();
    let mut response = Response::new(body.clone().into_bytes());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(header::CONTENT_LENGTH, body.len().into());
    headers.insert(
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-store"),
    );
    response
}
