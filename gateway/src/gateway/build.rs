//! A gateway made from its configuration.

use std::{sync::Arc, time::Instant};

use http::HeaderValue;
use signpost_kit::{rate_limit::NetworkLimiter, secret::Secret};

use super::Gateway;
use crate::{
    apps::directory::AppDirectory,
    backend::upstream::BackendClient,
    clock::SystemClock,
    config::Config,
    drain::Drain,
    observe::access_log::AccessLog,
    phases::{
        admit::Admission, backend_headers::BackendHeaderRules, error_format::ErrorFormatRules,
        verify::Verifier,
    },
    request_ids::RequestIds,
    routing::Balancer,
    secret_refusals::SecretRefusals,
};

impl Gateway {
    /// What `config` says, with these applications.
    ///
    /// # Errors
    ///
    /// The gateway's secret cannot stand in a header.
    pub fn new(
        config: Config,
        apps: AppDirectory,
        drain: Arc<Drain>,
        access_log: Option<AccessLog>,
    ) -> anyhow::Result<Self> {
        let names = Arc::new(config.headers);
        let secret = config
            .gateway_secret
            .as_ref()
            .map(secret_header)
            .transpose()?;
        let scheme = if config.public_url.scheme() == "https" {
            "https"
        } else {
            "http"
        };
        let browser_paths = [
            config.sign.browser_paths.clone(),
            config.sign.callback_paths.clone(),
        ]
        .concat();
        Ok(Self {
            error_format: ErrorFormatRules {
                names: Arc::clone(&names),
                browser_paths,
            },
            admission: Admission {
                names: Arc::clone(&names),
                trusted_proxies: config.trusted_proxies,
                scheme,
                largest_body: config.limits.body,
                limits: config.limits.head,
            },
            limiter: config
                .limits
                .unsigned
                .map(|limits| NetworkLimiter::new(limits.network, limits.site, Instant::now())),
            apps,
            verifier: Verifier::new(config.sign),
            balancers: config
                .versions
                .iter()
                .map(|backend| Balancer::of(backend))
                .collect(),
            versions: config.versions,
            backend_headers: BackendHeaderRules { names, secret },
            backends: BackendClient::new(&config.timeouts, Arc::clone(&drain)),
            refusals: Arc::new(SecretRefusals::default()),
            limits: config.limits,
            timeouts: config.timeouts,
            ids: RequestIds::default(),
            clock: Arc::new(SystemClock),
            drain,
            access_log,
        })
    }
}

fn secret_header(secret: &Secret) -> anyhow::Result<HeaderValue> {
    let mut value = HeaderValue::from_str(secret.expose())
        .map_err(|_| anyhow::anyhow!("gateway_secret has characters that no header can have"))?;
    value.set_sensitive(true);
    Ok(value)
}
