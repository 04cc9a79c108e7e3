//! The HTTP client of the exporter. The library reports each failed call as "network error"; this client keeps the cause.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Request, Response, header::AUTHORIZATION};
use opentelemetry_http::{Bytes, HttpClient, HttpError};

use crate::{config::shared_keys::Collector, log::with_causes};

/// Calls a collector. Clones share the cause of the last failure.
#[derive(Clone, Debug)]
pub(super) struct Client {
    client: reqwest::Client,
    failure: Arc<Mutex<Option<String>>>,
}

impl Client {
    /// A client with the collector's timeout, authorities and authorization.
    ///
    /// # Errors
    ///
    /// The authorities of the file or of the system cannot be used.
    pub(super) fn new(collector: &Collector) -> anyhow::Result<Self> {
        Ok(Self {
            client: client(collector)?,
            failure: Arc::default(),
        })
    }

    /// Takes the cause of the last call's failure; `None` if the collector answered, with any status.
    pub(super) fn take_failure(&self) -> Option<String> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let response = self.client.send_bytes(request).await;
        // An error's own text is little more than the URL.
        let cause = |error: &HttpError| {
            let cause = error.source();
            cause.map_or_else(|| error.to_string(), with_causes)
        };
        let failure = response.as_ref().err().map(cause);
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        response
    }
}

fn client(collector: &Collector) -> anyhow::Result<reqwest::Client> {
    let mut headers = HeaderMap::new();
    if let Some(secret) = &collector.authorization {
        let mut value = HeaderValue::from_str(secret.expose()).context("tracing.authorization")?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    // An error means that the program has installed one already. Without one, reqwest panics.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        // The secret must be sent to the configured URL only.
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .timeout(collector.timeout)
        .default_headers(headers)
        .user_agent(concat!("signpost/", env!("CARGO_PKG_VERSION")));
    let client = match &collector.ca {
        Some(pem) => client.tls_certs_only(reqwest::Certificate::from_pem_bundle(pem)?),
        // A machine without authorities can still export in clear text.
        None if collector.endpoint.scheme() == "http" => client.tls_certs_only([]),
        None => client,
    };
    Ok(client.build()?)
}
