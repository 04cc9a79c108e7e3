//! The HTTP client for providers: no redirects, no proxies, responses of at most 1 MiB.

use http::{Request, Response};

use super::ProviderFault;

/// Larger than any token or profile. CONTRACT 8.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// An HTTP client. Cheap to clone; clones share the connection pool.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient(reqwest::Client);

impl HttpClient {
    /// Creates the client. A TLS crypto provider must be installed before.
    ///
    /// # Errors
    ///
    /// The client cannot be created, for example because the system has no usable TLS roots.
    pub(crate) fn new() -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            // A token must be sent to the configured URL only.
            .redirect(reqwest::redirect::Policy::none())
            // Proxies set by environment variables must not see tokens.
            .no_proxy()
            .user_agent(concat!("signpost/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self(client))
    }

    /// Sends a request and reads the whole response.
    pub(super) async fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, ProviderFault> {
        let unreachable = |cause: reqwest::Error| ProviderFault::Unreachable(cause.without_url());
        let request = reqwest::Request::try_from(request).map_err(unreachable)?;
        let mut received = self.0.execute(request).await.map_err(unreachable)?;
        let mut body = Vec::new();
        while let Some(chunk) = received.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > MAX_BODY_BYTES {
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
