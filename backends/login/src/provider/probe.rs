//! Asks a provider what would fail at the first login, for `check --online`.

use std::time::Duration;

use signpost_openid::Algorithm;
use tokio::time::timeout;

use super::{HttpClient, ProviderFault, callback, endpoints, issuer, token};
use crate::config::{Protocol, ProviderConfig, PublicUrl};

/// Timeout of a provider's calls together.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A code that no provider has issued.
const NO_CODE: &str = "signpost-check";

/// Returns what a provider is like, in a line.
///
/// Fetches what an OpenID provider publishes, and has the token endpoint reject a code that it has not issued: a wrong
/// client is told apart from a wrong code.
///
/// # Errors
///
/// The first login would fail; the text says why.
pub(crate) async fn probe(
    config: &ProviderConfig,
    public_url: &PublicUrl,
    http: &HttpClient,
) -> Result<String, String> {
    let calls = async {
        let published = match &config.protocol {
            Protocol::OAuth(_) => None,
            Protocol::OpenId { issuer } => Some(issuer::fetch(issuer, http).await?),
        };
        let endpoints = endpoints(config, published.as_ref())?;
        let callback = callback(config, public_url);
        let request = token::request(config, &endpoints, &callback, NO_CODE, None);
        match token::exchange(http, request).await {
            // As it should: there is no such code.
            Ok(_) | Err(ProviderFault::CodeRejected { .. }) => {}
            Err(ProviderFault::ClientRejected { error })
                if config.kind == "gitea" && error == "unauthorized_client" =>
            {
                let unknown = ": reachable; whether the secret is right shows at the first login";
                return Ok(unknown.to_owned());
            }
            Err(fault) => return Err(fault),
        }
        Ok(published.map_or_else(String::new, |published| {
            let algorithms = &published.discovery.algorithms;
            let algorithms: Vec<_> = algorithms.iter().copied().map(Algorithm::name).collect();
            let algorithms = algorithms.join(", ");
            format!(": {} keys, {algorithms}", published.keys.count())
        }))
    };
    let probed = timeout(TIMEOUT, calls).await;
    let probed = probed.unwrap_or(Err(ProviderFault::TooSlow));
    match probed {
        Ok(details) => Ok(format!("providers.{}: OK{details}", config.name)),
        Err(fault) => Err(format!("providers.{}: {}", config.name, fault.line())),
    }
}
