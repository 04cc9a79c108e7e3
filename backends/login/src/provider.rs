//! Calls to providers: where browsers are redirected to, and which user logged in. CONTRACT 8.
//!
//! Providers differ in their configuration only (see [`ProviderConfig`]). The protocol is RFC 6749 section 4.1,
//! implemented by the `oauth2` crate.

mod fault;
mod http_client;
mod profile;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use oauth2::{
    AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet, EndpointSet,
    PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, TokenResponse, TokenUrl,
    basic::{BasicClient, BasicErrorResponseType},
};
use url::Url;

pub(crate) use self::{fault::ProviderFault, http_client::HttpClient};
use crate::{
    config::{ProviderConfig, ProviderName, Providers, PublicUrl},
    metrics::providers::{CallKind, ProviderMetrics, Providers as ProviderCounters},
    records::{
        accounts::User,
        logins::{LoginCookie, LoginState},
    },
    trace::recorded,
};

/// Timeout of token and profile together, connecting included. It leaves some of the 10 s of CONTRACT 8 for the work
/// before and after the calls.
const PROVIDER_TIMEOUT: Duration = Duration::from_millis(9_500);

type Client = BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// A client of one provider.
pub(crate) struct Provider {
    pub(crate) config: ProviderConfig,
    client: Client,
    http: HttpClient,
    timeout: Duration,
    /// The counters of its logins.
    pub(crate) metrics: Arc<ProviderMetrics>,
}

impl Provider {
    fn new(
        config: &ProviderConfig,
        public_url: &PublicUrl,
        http: HttpClient,
        metrics: Arc<ProviderMetrics>,
    ) -> Self {
        let client = BasicClient::new(ClientId::new(config.client_id.clone()))
            .set_client_secret(ClientSecret::new(config.client_secret.expose().to_owned()))
            .set_auth_uri(AuthUrl::from_url(config.authorize_url.clone()))
            .set_token_uri(TokenUrl::from_url(config.token_url.clone()));
        // If set, the crate sends it in both calls.
        let client = if config.sends_redirect_uri {
            client.set_redirect_uri(RedirectUrl::from_url(public_url.callback()))
        } else {
            client
        };
        Self {
            config: config.clone(),
            client,
            http,
            timeout: PROVIDER_TIMEOUT,
            metrics,
        }
    }

    /// Whether a callback's `iss` is this provider's (RFC 9207: compared byte by byte).
    pub(crate) fn is_issuer(&self, iss: &str) -> bool {
        self.config.issuer == iss
    }

    /// The URL that the browser with `cookie` is redirected to for the login of `state`.
    pub(crate) fn authorize_url(&self, state: &LoginState, cookie: &LoginCookie) -> Url {
        let mut request = self.client.authorize_url(|| CsrfToken::new(state.encode()));
        if self.config.pkce {
            let verifier = PkceCodeVerifier::new(cookie.code_verifier());
            request =
                request.set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        }
        request.url().0
    }

    /// Returns the user who logged in: exchanges `code`, then requests the profile, within 9.5 s.
    ///
    /// # Errors
    ///
    /// The provider is unavailable, times out, or sends an invalid response.
    pub(crate) async fn identify(
        &self,
        code: String,
        cookie: &LoginCookie,
    ) -> Result<User, ProviderFault> {
        let calls = async {
            let (name, urls) = (
                self.config.name.as_str(),
                [&self.config.token_url, &self.config.user_url],
            );
            let exchange = recorded("token", name, urls[0], self.exchange(code, cookie));
            let access_token = self.metrics.measure(CallKind::Token, exchange).await?;
            let profile = profile::user(&self.http, &self.config, &access_token);
            let profile = recorded("user", name, urls[1], profile);
            self.metrics.measure(CallKind::User, profile).await
        };
        tokio::time::timeout(self.timeout, calls)
            .await
            .map_err(|_| ProviderFault::TooSlow)?
    }

    async fn exchange(
        &self,
        code: String,
        cookie: &LoginCookie,
    ) -> Result<oauth2::AccessToken, ProviderFault> {
        let mut request = self.client.exchange_code(AuthorizationCode::new(code));
        if self.config.pkce {
            request = request.set_pkce_verifier(PkceCodeVerifier::new(cookie.code_verifier()));
        }
        let http = self.http.clone();
        let send = move |request| {
            let http = http.clone();
            async move { http.send(request).await }
        };
        match request.request_async(&send).await {
            Ok(response) => Ok(response.access_token().clone()),
            Err(RequestTokenError::Request(fault)) => Err(fault),
            Err(RequestTokenError::ServerResponse(refusal)) => Err(ProviderFault::CodeRejected {
                error: error_code(refusal.error()),
            }),
            // The causes are dropped: they quote the response, which may contain a token.
            Err(RequestTokenError::Parse(..) | RequestTokenError::Other(_)) => {
                Err(ProviderFault::TokenMalformed)
            }
        }
    }
}

/// Returns the error code if it is one of RFC 6749 section 5.2. Any other text must not be logged: it may be long,
/// contain line breaks, and quote the code or the client secret.
fn error_code(error: &BasicErrorResponseType) -> String {
    match error {
        BasicErrorResponseType::Extension(_) => "another error".to_owned(),
        known => known.to_string(),
    }
}

/// Clients of all configured providers, by name.
pub(crate) struct ProviderClients {
    /// For another configuration, too: no setting affects it and its connections.
    pub(crate) http: HttpClient,
    all: BTreeMap<ProviderName, Provider>,
    default: Option<ProviderName>,
}

impl ProviderClients {
    /// Creates the clients; all use `http`.
    pub(crate) fn new(
        http: HttpClient,
        providers: &Providers,
        public_url: &PublicUrl,
        counters: &ProviderCounters,
    ) -> Self {
        let client = |config: &ProviderConfig| {
            let metrics = counters.register(&config.name);
            let provider = Provider::new(config, public_url, http.clone(), metrics);
            (config.name.clone(), provider)
        };
        Self {
            all: providers.all.iter().map(client).collect(),
            default: providers.default.clone(),
            http,
        }
    }

    /// Returns the provider with this name.
    pub(crate) fn find(&self, name: &ProviderName) -> Option<&Provider> {
        self.all.get(name)
    }

    /// Returns the provider for a login that names none.
    pub(crate) fn default(&self) -> Option<&Provider> {
        self.default.as_ref().and_then(|name| self.find(name))
    }

    /// Returns all names, for the error about an unknown one.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.all.keys().map(ProviderName::as_str).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests;
