//! Active health checks: pingora's HTTP check, or one through TLS, with one timeout for the whole check.

mod https;

use std::{sync::Arc, time::Duration};

use http::{HeaderName, Uri, header, uri::PathAndQuery};
use pingora::{
    Error, ErrorType,
    http::{RequestHeader, ResponseHeader},
};
use pingora_load_balancing::health_check::{HealthCheck, HttpHealthCheck};
use tokio::time::timeout;

use super::address::Address;
use crate::config::{BackendName, HealthChecks};

/// The `Host` of checks: a backend has no name of its own.
const HOST: &str = "localhost";

/// The health check of one version.
pub(super) struct Check {
    name: BackendName,
    http: HttpHealthCheck,
    path: PathAndQuery,
    timeout: Duration,
    unhealthy_after: usize,
}

impl Check {
    pub(super) fn new(name: &BackendName, checks: &HealthChecks) -> Self {
        let mut http = HttpHealthCheck::new(HOST, false);
        let options = &mut http.peer_template.options;
        for limit in [
            &mut options.connection_timeout,
            &mut options.total_connection_timeout,
            &mut options.read_timeout,
            &mut options.write_timeout,
        ] {
            *limit = Some(checks.timeout);
        }
        prepare(&mut http.req, &checks.path);
        http.validator = Some(Box::new(is_ok));
        Self {
            name: name.clone(),
            http,
            path: checks.path.clone(),
            timeout: checks.timeout,
            unhealthy_after: checks.unhealthy_after,
        }
    }

    /// Checks an address once. Only a change is logged. Returns whether the check passed.
    pub(super) async fn run(&self, address: &Arc<Address>) -> bool {
        // pingora's timeouts are for each step; a response that trickles would never end.
        let checked = timeout(self.timeout, self.check(address)).await;
        let checked = checked.unwrap_or_else(|_| Err(ErrorType::ReadTimedout.as_str().to_owned()));
        let (name, socket) = (&self.name, address.socket());
        let health = &address.state.health;
        let has_passed = checked.is_ok();
        match checked {
            Ok(()) => {
                address.restore(name);
                if health.note(true, 1) {
                    tracing::info!(
                        backend = %name, version = %name.version, backend.addr = %socket,
                        "the backend passes its checks again"
                    );
                }
            }
            Err(why) => {
                if health.note(false, self.unhealthy_after) {
                    tracing::warn!(
                        backend = %name, version = %name.version, backend.addr = %socket, why,
                        "the backend fails its checks and is unhealthy"
                    );
                }
            }
        }
        has_passed
    }
}

impl Check {
    /// Sends one check. An error says why it failed.
    async fn check(&self, address: &Address) -> Result<(), String> {
        match &address.endpoint.tls {
            Some(tls) => https::check(address.socket(), tls, &self.path).await,
            None => {
                let checked = self.http.check(&address.backend).await;
                checked.map_err(|error| error_summary(&error))
            }
        }
    }
}

fn prepare(request: &mut RequestHeader, path: &PathAndQuery) {
    request.set_uri(Uri::from(path.clone()));
    let lines: [(HeaderName, &str); 2] = [
        (header::USER_AGENT, "signpost"),
        (header::CONNECTION, "close"),
    ];
    for (name, value) in lines {
        // Cannot fail: both values are valid and short.
        let _ = request.insert_header(name, value);
    }
}

fn is_ok(response: &ResponseHeader) -> pingora::Result<()> {
    if response.status == http::StatusCode::OK {
        return Ok(());
    }
    Error::e_explain(ErrorType::HTTPStatus(response.status.as_u16()), "")
}

/// A short text for a connection's error. Not the error's own text: its context may hold bytes of a response.
#[must_use]
pub(crate) fn error_summary(error: &Error) -> String {
    let root = error.root_cause();
    match error.etype() {
        ErrorType::HTTPStatus(status) => format!("answered {status}"),
        kind if root.is::<Error>() => kind.as_str().to_owned(),
        kind => format!("{} ({root})", kind.as_str()),
    }
}
