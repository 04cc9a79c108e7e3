//! The HTTP client for providers: no redirects, responses of a limited size.

use http::{HeaderMap, Request, Response, StatusCode, header::CONTENT_TYPE};
use signpost_kit::config::shared_keys::Outgoing;

use super::ProviderFault;

/// Larger than any token or user's record. CONTRACT 8.
pub(super) const MAX_BODY_BYTES: usize = 1024 * 1024;

/// An HTTP client. Cheap to clone; clones share the connection pool.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient {
    client: reqwest::Client,
    outgoing: Outgoing,
}

impl HttpClient {
    /// Creates the client. A TLS crypto provider must be installed before.
    ///
    /// # Errors
    ///
    /// The client cannot be created, for example because the system has no usable TLS roots.
    pub(crate) fn new(outgoing: &Outgoing) -> Result<Self, reqwest::Error> {
        let (client, outgoing) = (outgoing.client()?.build()?, outgoing.clone());
        Ok(Self { client, outgoing })
    }

    /// Sends a request and reads the whole response, of at most `limit` bytes.
    pub(super) async fn send(
        &self,
        request: Request<Vec<u8>>,
        limit: usize,
    ) -> Result<Response<Vec<u8>>, ProviderFault> {
        let way = self.outgoing.shown(request.uri());
        let unreachable = |cause: reqwest::Error| ProviderFault::Unreachable {
            way: way.clone(),
            cause: cause.without_url(),
        };
        let request = reqwest::Request::try_from(request).map_err(unreachable)?;
        let mut received = self.client.execute(request).await.map_err(unreachable)?;
        if received.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
            received = received.error_for_status().map_err(unreachable)?;
        }
        let mut body = Vec::new();
        while let Some(chunk) = received.chunk().await.map_err(unreachable)? {
            // Counted as it arrives: a response need not declare its length, or keep to it.
            if body.len() + chunk.len() > limit {
                return Err(ProviderFault::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        let mut response = Response::new(body);
        *response.status_mut() = received.status();
        *response.headers_mut() = std::mem::take(received.headers_mut());
        Ok(response)
    }
}

/// Whether a response says that it is JSON: `application/json`, or a type that ends in `+json` (RFC 6839).
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| {
        let essence = essence.trim().to_ascii_lowercase();
        essence == "application/json"
            || (essence.starts_with("application/") && essence.ends_with("+json"))
    })
}
