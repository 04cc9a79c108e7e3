//! Asks an address whether it is well: pingora's HTTP check, within a time for all of it.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use gateway_protocol::version::Version;
use http::{HeaderName, Uri, header, uri::PathAndQuery};
use pingora::{
    Error, ErrorType,
    http::{RequestHeader, ResponseHeader},
    lb::{
        Backend,
        health_check::{HealthCheck, HttpHealthCheck},
    },
};
use tokio::time::timeout;

use super::selection::Addresses;
use crate::config::HealthChecks;

/// What is asked in the name of. A backend asked directly has no name of its own.
const HOST: &str = "localhost";

/// Checks addresses of one version.
pub(super) struct Check {
    version: Version,
    http: HttpHealthCheck,
    patience: Duration,
    addresses: Arc<ArcSwap<Addresses>>,
}

impl Check {
    /// Checks those of `addresses` that pingora asks for.
    pub(super) fn new(
        version: &Version,
        checks: &HealthChecks,
        addresses: Arc<ArcSwap<Addresses>>,
    ) -> Self {
        let mut http = HttpHealthCheck::new(HOST, false);
        http.consecutive_failure = checks.unhealthy_after;
        http.consecutive_success = checks.healthy_after;
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
        http.validator = Some(Box::new(is_well));
        Self {
            version: version.clone(),
            http,
            patience: checks.timeout,
            addresses,
        }
    }
}

#[async_trait]
impl HealthCheck for Check {
    async fn check(&self, target: &Backend) -> pingora::Result<()> {
        // pingora limits each of its steps; an answer that trickles would never end.
        let checked = timeout(self.patience, self.http.check(target)).await;
        let checked = checked.unwrap_or_else(|_| Error::e_explain(ErrorType::ReadTimedout, ""));
        if let Some(address) = self.addresses.load().of(target) {
            match &checked {
                Ok(()) => address.bring_back(&self.version),
                Err(error) => address.complain(in_short(error)),
            }
        }
        checked
    }

    async fn health_status_change(&self, target: &Backend, healthy: bool) {
        let addresses = self.addresses.load();
        let why = addresses.of(target).map(|address| address.complaint());
        let why = why.unwrap_or_default();
        let (version, place) = (&self.version, &target.addr);
        if healthy {
            tracing::info!(%version, backend.addr = %place, "{version} at {place} passes its checks again");
        } else {
            tracing::warn!(%version, backend.addr = %place, why, "{version} at {place} fails its checks and is out: {why}");
        }
    }

    fn backend_summary(&self, target: &Backend) -> String {
        format!("{} at {}", self.version, target.addr)
    }

    fn health_threshold(&self, success: bool) -> usize {
        self.http.health_threshold(success)
    }
}

fn prepare(request: &mut RequestHeader, path: &PathAndQuery) {
    request.set_uri(Uri::from(path.clone()));
    let lines: [(HeaderName, &str); 2] = [
        (header::USER_AGENT, "signpost"),
        (header::CONNECTION, "close"),
    ];
    for (name, value) in lines {
        // Neither is too long, nor has it characters that no header can have.
        let _ = request.insert_header(name, value);
    }
}

fn is_well(answer: &ResponseHeader) -> pingora::Result<()> {
    if answer.status == http::StatusCode::OK {
        return Ok(());
    }
    Error::e_explain(ErrorType::HTTPStatus(answer.status.as_u16()), "")
}
/// What went wrong with a connection, in few words. Not in the error's own: its context may hold an answer's bytes.
#[must_use]
pub fn in_short(error: &Error) -> String {
    let root = error.root_cause();
    match error.etype() {
        ErrorType::HTTPStatus(status) => format!("answered {status}"),
        kind if root.is::<Error>() => kind.as_str().to_owned(),
        kind => format!("{} ({root})", kind.as_str()),
    }
}
