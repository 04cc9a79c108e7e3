//! HTTP towards providers: no redirects, no proxies, answers of at most 1 MiB.

use http::{Request, Response};

use super::ProviderFault;

/// Larger than any token or profile. CONTRACT 8.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Cheap to clone; every clone shares the connections.
#[derive(Clone, Debug)]
pub(super) struct HttpClient(reqwest::Client);

impl HttpClient {
    pub(super) fn new() -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            // A token must go to the configured address and to no other.
            .redirect(reqwest::redirect::Policy::none())
            // Nothing in the environment may put somebody in between.
            .no_proxy()
            .user_agent(concat!("signpost/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self(client))
    }

    /// Sends a request and reads the answer whole.
    pub(super) async fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, ProviderFault> {
        let unreachable = |cause: reqwest::Error| ProviderFault::Unreachable(cause.without_url());
        let request = reqwest::Request::try_from(request).map_err(unreachable)?;
        let mut answer = self.0.execute(request).await.map_err(unreachable)?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > MAX_BODY_BYTES {
                return Err(ProviderFault::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        let mut response = Response::new(body);
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        Ok(response)
    }
}
