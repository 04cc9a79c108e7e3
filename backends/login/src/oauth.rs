//! The provider's side of a login: where browsers are sent, and who came back. CONTRACT 8.
//!
//! Providers differ in data only (see [`ProviderConfig`]); the protocol is RFC 6749 section 4.1, by the
//! `oauth2` crate.

mod fault;
mod http_client;
mod profile;

use std::{collections::BTreeMap, time::Duration};

use oauth2::{
    AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet, EndpointSet,
    PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, TokenResponse, TokenUrl,
    basic::{BasicClient, BasicErrorResponseType},
};
use url::Url;

pub use self::fault::ProviderFault;
use self::http_client::HttpClient;
use crate::{
    accounts::Username,
    config::{ProviderConfig, ProviderName, Providers, PublicUrl},
    logins::{LoginCookie, LoginState},
};

/// For token and profile together, connecting included. CONTRACT 8: nothing takes longer than 10 s, so a
/// little is left for what comes before and after.
const TIME: Duration = Duration::from_millis(9_500);

type Client = BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// One provider, ready to be asked.
pub struct Provider {
    config: ProviderConfig,
    client: Client,
    http: HttpClient,
    time: Duration,
}

impl Provider {
    fn new(config: &ProviderConfig, public_url: &PublicUrl, http: HttpClient) -> Self {
        let client = BasicClient::new(ClientId::new(config.client_id.clone()))
            .set_client_secret(ClientSecret::new(config.client_secret.expose().to_owned()))
            .set_auth_uri(AuthUrl::from_url(config.authorize_url.clone()))
            .set_token_uri(TokenUrl::from_url(config.token_url.clone()));
        // Set once, it is sent in both calls; unset, in neither.
        let client = if config.sends_redirect_uri {
            client.set_redirect_uri(RedirectUrl::from_url(public_url.callback()))
        } else {
            client
        };
        Self {
            config: config.clone(),
            client,
            http,
            time: TIME,
        }
    }

    /// What was configured.
    #[must_use]
    pub fn config(&self) -> &ProviderConfig {
        &self.config
    }

    /// Where the browser that holds `cookie` is sent for the login of `state`.
    #[must_use]
    pub fn authorize_url(&self, state: &LoginState, cookie: &LoginCookie) -> Url {
        let mut request = self.client.authorize_url(|| CsrfToken::new(state.encode()));
        if self.config.pkce {
            let verifier = PkceCodeVerifier::new(cookie.code_verifier());
            request =
                request.set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        }
        request.url().0
    }

    /// Whether `iss` of a callback names this provider (RFC 9207: compared as it stands).
    #[must_use]
    pub fn is_issuer(&self, iss: &str) -> bool {
        self.config.issuer == iss
    }

    /// Who allowed the login: exchanges `code`, then asks for the profile, within 10 s.
    ///
    /// # Errors
    ///
    /// The provider is away, too slow, or answers anything else than it should.
    pub async fn identify(
        &self,
        code: String,
        cookie: &LoginCookie,
    ) -> Result<Username, ProviderFault> {
        let ask = async {
            let access_token = self.exchange(code, cookie).await?;
            profile::username(&self.http, &self.config, &access_token).await
        };
        tokio::time::timeout(self.time, ask)
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
            Ok(answer) => Ok(answer.access_token().clone()),
            Err(RequestTokenError::Request(fault)) => Err(fault),
            Err(RequestTokenError::ServerResponse(refusal)) => Err(ProviderFault::CodeRefused {
                error: known_word(refusal.error()),
            }),
            // The causes quote the answer, which may hold a token.
            Err(RequestTokenError::Parse(..) | RequestTokenError::Other(_)) => {
                Err(ProviderFault::TokenMalformed)
            }
        }
    }
}

/// The error's word if it is one of RFC 6749 section 5.2. Anything else is the provider's own text, of any
/// length and with line breaks if it likes; it could quote the code or our secret.
fn known_word(error: &BasicErrorResponseType) -> String {
    match error {
        BasicErrorResponseType::Extension(_) => "another error".to_owned(),
        known => known.to_string(),
    }
}

/// All configured providers, by name.
pub struct ProviderClients {
    http: HttpClient,
    all: BTreeMap<ProviderName, Provider>,
    default: Option<ProviderName>,
}

impl ProviderClients {
    /// Makes one HTTP client for all. Only after the process has its TLS provider.
    ///
    /// # Errors
    ///
    /// The HTTP client cannot be made: for example, the system has no usable TLS roots.
    pub fn new(providers: &Providers, public_url: &PublicUrl) -> Result<Self, reqwest::Error> {
        HttpClient::new().map(|http| Self::over(http, providers, public_url))
    }

    /// Those of another configuration. The HTTP client and its connections stay: no setting is about them.
    #[must_use]
    pub fn reloaded(&self, providers: &Providers, public_url: &PublicUrl) -> Self {
        Self::over(self.http.clone(), providers, public_url)
    }

    fn over(http: HttpClient, providers: &Providers, public_url: &PublicUrl) -> Self {
        let client = |config: &ProviderConfig| {
            (
                config.name.clone(),
                Provider::new(config, public_url, http.clone()),
            )
        };
        Self {
            all: providers.iter().map(client).collect(),
            default: providers.default_name().cloned(),
            http,
        }
    }

    /// The provider of this name.
    #[must_use]
    pub fn find(&self, name: &ProviderName) -> Option<&Provider> {
        self.all.get(name)
    }

    /// The provider for a login that names none.
    #[must_use]
    pub fn default(&self) -> Option<&Provider> {
        self.default.as_ref().and_then(|name| self.find(name))
    }

    /// All names, for the answer to a wrong one.
    #[must_use]
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.all.keys().map(ProviderName::as_str).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests;
