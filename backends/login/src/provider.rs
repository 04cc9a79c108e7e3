//! Calls to providers: where browsers are redirected to, and which user logged in. CONTRACT 8.
//!
//! | module | subject |
//! | --- | --- |
//! | `token` | exchanges a code (RFC 6749 section 4.1) |
//! | `user` | the user's record of a provider that speaks OAuth 2.0, or the user info of an OpenID provider |
//! | `issuer` | what an OpenID provider publishes: fetched and kept up to date |
//! | `probe` | asks a provider what would fail at the first login |
//! | `http_client` | the HTTP client for providers |
//! | `fault` | faults of providers, for the log |
//!
//! What ID tokens must be is in the crate `signpost-openid`.

mod fault;
mod http_client;
mod issuer;
mod probe;
mod token;
mod user;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use signpost_kit::clock::Timestamp;
use signpost_openid::{Expected, IdToken, TokenFault};
use tokio::time::{Instant, timeout_at};
use url::Url;

pub(crate) use self::{fault::ProviderFault, http_client::HttpClient, probe::probe};
use self::{
    issuer::{Issuer, Metadata},
    token::Tokens,
    user::Profile,
};
use crate::{
    config::{
        ClientAuth, OAuthSettings, PassedOn, Protocol, ProviderConfig, ProviderName, Providers,
        PublicUrl,
    },
    metrics::providers::{CallKind, ProviderMetrics, Providers as ProviderCounters},
    records::{
        accounts::User,
        logins::{Hints, LoginCookie, LoginState},
    },
    secret,
    trace::recorded,
};

/// Timeout of all calls of a callback together, connecting included. It leaves some of the 10 s of CONTRACT 8 for the
/// work before and after the calls.
const PROVIDER_TIMEOUT: Duration = Duration::from_millis(9_500);

/// A user info must answer this long before the deadline: without its name there is then time to go on.
const NAME_MARGIN: Duration = Duration::from_millis(250);

/// When the calls of a callback that begins now must have ended.
pub(crate) fn deadline() -> Instant {
    Instant::now() + PROVIDER_TIMEOUT
}

/// A client of one provider.
pub(crate) struct Provider {
    pub(crate) config: ProviderConfig,
    /// What an OpenID provider publishes.
    issuer: Option<Arc<Issuer>>,
    callback: Url,
    http: HttpClient,
    /// The counters of its logins.
    pub(crate) metrics: Arc<ProviderMetrics>,
}

/// Where a provider is called, and how the client authenticates there.
struct Endpoints<'a> {
    authorize: &'a Url,
    token: &'a Url,
    client_auth: ClientAuth,
}

impl Provider {
    /// Whether a callback's `provider` is this one, or absent from the callback that providers share. With a callback of its
    /// own, a code of this provider reaches no other one: RFC 9700 section 4.4.2.
    pub(crate) fn is_own_callback(&self, provider: Option<&str>) -> bool {
        match provider {
            Some(name) => name == self.name(),
            None => !self.config.own_callback,
        }
    }

    /// Whether a callback's `iss` is this provider's (RFC 9207: compared byte by byte), or absent from a callback that
    /// need not have it.
    ///
    /// # Errors
    ///
    /// An OpenID provider has published nothing yet.
    pub(crate) async fn accepts_issuer(
        &self,
        iss: Option<&str>,
        deadline: Instant,
    ) -> Result<bool, ProviderFault> {
        if let Some(iss) = iss {
            return Ok(iss == self.issuer_name());
        }
        let published = timeout_at(deadline, self.published()).await;
        let published = published.map_err(|_| ProviderFault::TooSlow)??;
        Ok(!published.is_some_and(|metadata| metadata.discovery.sends_iss))
    }

    /// The URL that the browser with `cookie` is redirected to for the login of `state`.
    ///
    /// # Errors
    ///
    /// An OpenID provider has published nothing yet.
    pub(crate) async fn authorize_url(
        &self,
        state: &LoginState,
        cookie: &LoginCookie,
        hints: &Hints,
    ) -> Result<Url, ProviderFault> {
        let published = self.published().await?;
        let endpoints = endpoints(&self.config, published.as_deref())?;
        let mut url = endpoints.authorize.clone();
        let mut query = url.query_pairs_mut();
        query.append_pair("response_type", "code");
        query.append_pair("client_id", &self.config.client_id);
        query.append_pair("state", &state.encode());
        if let Some(verifier) = self.code_verifier(cookie) {
            let challenge = secret::encode(&secret::sha256(verifier.as_bytes()));
            query.append_pair("code_challenge", &challenge);
            query.append_pair("code_challenge_method", "S256");
        }
        if self.config.sends_redirect_uri {
            query.append_pair("redirect_uri", self.callback.as_str());
        }
        if !self.config.scopes.is_empty() {
            query.append_pair("scope", &self.config.scopes.join(" "));
        }
        if published.is_some() {
            query.append_pair("nonce", &self.nonce(cookie));
        }
        let passed = |parameter: PassedOn| {
            let value = hints.get(parameter)?;
            self.config.pass_on.contains(&parameter).then_some(value)
        };
        if let Some(prompt) = passed(PassedOn::Prompt).or(self.config.prompt.as_deref()) {
            query.append_pair("prompt", prompt);
        }
        if let Some(hint) = passed(PassedOn::LoginHint) {
            query.append_pair("login_hint", hint);
        }
        drop(query);
        Ok(url)
    }

    /// Returns the user who logged in: exchanges `code`, then asks who that is, until the deadline.
    ///
    /// # Errors
    ///
    /// The provider is unavailable, times out, or sends an invalid response.
    pub(crate) async fn identify(
        &self,
        code: String,
        cookie: &LoginCookie,
        now: Timestamp,
        deadline: Instant,
    ) -> Result<User, ProviderFault> {
        let calls = async {
            let published = self.published().await?;
            let tokens = self.exchange(code, cookie, published.as_deref()).await?;
            match (&self.config.protocol, published) {
                (Protocol::OAuth(settings), _) => self.user_by_record(settings, &tokens).await,
                (Protocol::OpenId { .. }, Some(metadata)) => {
                    let named = self.user_of(&tokens.id()?, &metadata, cookie, now).await?;
                    let until = deadline - NAME_MARGIN;
                    let user = self.user_by_id_token(named, &tokens, &metadata, until);
                    user.await
                }
                (Protocol::OpenId { .. }, None) => Err(ProviderFault::NothingPublished),
            }
        };
        let calls = timeout_at(deadline, calls).await;
        calls.map_err(|_| ProviderFault::TooSlow)?
    }

    async fn exchange(
        &self,
        code: String,
        cookie: &LoginCookie,
        published: Option<&Metadata>,
    ) -> Result<Tokens, ProviderFault> {
        let endpoints = endpoints(&self.config, published)?;
        let (config, callback) = (&self.config, &self.callback);
        let verifier = self.code_verifier(cookie);
        let request = token::request(config, &endpoints, callback, &code, verifier.as_deref());
        let exchange = token::exchange(&self.http, request);
        let exchange = recorded("token", self.name(), endpoints.token, exchange);
        self.metrics.measure(CallKind::Token, exchange).await
    }

    async fn user_by_record(
        &self,
        settings: &OAuthSettings,
        tokens: &Tokens,
    ) -> Result<User, ProviderFault> {
        let record = user::by_record(&self.http, settings, tokens);
        let record = recorded("user", self.name(), &settings.user_url, record);
        self.metrics.measure(CallKind::User, record).await
    }

    /// Checks an ID token. If no known key made its signature, fetches the keys once more: the provider may have new ones,
    /// and names none or the same.
    async fn user_of(
        &self,
        id_token: &str,
        metadata: &Arc<Metadata>,
        cookie: &LoginCookie,
        now: Timestamp,
    ) -> Result<signpost_openid::User, ProviderFault> {
        let token = IdToken::parse(id_token).map_err(ProviderFault::IdToken)?;
        let nonce = self.nonce(cookie);
        let check = |metadata: &Metadata| {
            let expected = Expected {
                issuer: self.issuer_name(),
                client_id: &self.config.client_id,
                nonce: &nonce,
                now: u64::try_from(now.as_millis() / 1000).unwrap_or(0),
            };
            token.verify(&metadata.keys)?.check(&expected)
        };
        let named = match (check(metadata), &self.issuer) {
            (Err(TokenFault::UnknownKey | TokenFault::BadSignature), Some(issuer)) => {
                check(&*issuer.newer_than(metadata).await?)
            }
            (named, _) => named,
        };
        named.map_err(ProviderFault::IdToken)
    }

    /// Returns the user of an ID token, which need not have name and e-mail address (OpenID Connect Core 1.0 section 5.4). A
    /// user info that does not have them, either, or not in time, fails no login.
    async fn user_by_id_token(
        &self,
        named: signpost_openid::User,
        tokens: &Tokens,
        metadata: &Metadata,
        until: Instant,
    ) -> Result<User, ProviderFault> {
        let signpost_openid::User {
            subject,
            name,
            email,
        } = named;
        let asks_email = self.config.scopes.iter().any(|scope| scope == "email");
        let is_complete = name.is_some() && (email.is_some() || !asks_email);
        let mut profile = Profile { name, email };
        if let (false, Some(url)) = (is_complete, &metadata.discovery.userinfo_endpoint) {
            let info = user::profile_by_info(&self.http, &subject, url, tokens);
            let info = timeout_at(until, info);
            let info = async { info.await.unwrap_or(Err(ProviderFault::TooSlow)) };
            let info = recorded("user", self.name(), url, info);
            match self.metrics.measure(CallKind::User, info).await {
                // Not a missing name: the token may be another user's (OpenID Connect Core 1.0 section 5.3.2).
                Err(fault @ ProviderFault::OtherUser) => return Err(fault),
                Err(fault) => self.log_nameless(&fault),
                Ok(info) => {
                    profile.name = profile.name.or(info.name);
                    profile.email = profile.email.or(info.email);
                }
            }
        }
        user::by_id_token(subject, profile)
    }

    fn log_nameless(&self, fault: &ProviderFault) {
        if let Some(logins) = self.metrics.nameless.count(std::time::Instant::now()) {
            let (provider, fault) = (self.name(), fault.line());
            tracing::warn!(
                logins,
                provider,
                fault,
                "users logged in without their user info"
            );
        }
    }

    /// What an OpenID provider publishes; `None` for another one.
    async fn published(&self) -> Result<Option<Arc<Metadata>>, ProviderFault> {
        match &self.issuer {
            Some(issuer) => issuer.metadata().await.map(Some),
            None => Ok(None),
        }
    }

    fn issuer_name(&self) -> &str {
        match &self.config.protocol {
            Protocol::OAuth(settings) => &settings.issuer,
            Protocol::OpenId { issuer } => issuer,
        }
    }

    fn name(&self) -> &str {
        self.config.name.as_str()
    }

    /// Another one for each provider.
    fn code_verifier(&self, cookie: &LoginCookie) -> Option<String> {
        let verifier = || cookie.code_verifier(&self.config.name);
        self.config.pkce.then(verifier)
    }

    fn nonce(&self, cookie: &LoginCookie) -> String {
        cookie.nonce(&self.config.name)
    }
}

/// Where a provider sends the browser back to.
fn callback(config: &ProviderConfig, public_url: &PublicUrl) -> Url {
    let mut callback = public_url.callback();
    if config.own_callback {
        let mut query = callback.query_pairs_mut();
        query.append_pair("provider", config.name.as_str());
    }
    callback
}

fn endpoints<'a>(
    config: &'a ProviderConfig,
    published: Option<&'a Metadata>,
) -> Result<Endpoints<'a>, ProviderFault> {
    let (authorize, token, by_default) = match (&config.protocol, published) {
        (Protocol::OAuth(settings), _) => (
            &settings.authorize_url,
            &settings.token_url,
            ClientAuth::Basic,
        ),
        (Protocol::OpenId { .. }, Some(Metadata { discovery, .. })) => (
            &discovery.authorization_endpoint,
            &discovery.token_endpoint,
            match discovery.takes_basic {
                true => ClientAuth::Basic,
                false => ClientAuth::Post,
            },
        ),
        (Protocol::OpenId { .. }, None) => {
            return Err(ProviderFault::NothingPublished);
        }
    };
    Ok(Endpoints {
        authorize,
        token,
        client_auth: config.client_auth.unwrap_or(by_default),
    })
}

/// Clients of all configured providers, by name.
pub(crate) struct ProviderClients {
    pub(crate) http: HttpClient,
    /// In the order of their names.
    all: BTreeMap<ProviderName, Provider>,
    default: Option<ProviderName>,
}

impl ProviderClients {
    /// Creates the clients; all use `http`. What the same issuers have published `before` stays known.
    pub(crate) fn new(
        http: HttpClient,
        providers: &Providers,
        public_url: &PublicUrl,
        counters: &ProviderCounters,
        before: Option<&Self>,
    ) -> Self {
        let before: Vec<_> = before.into_iter().flat_map(Self::all).collect();
        let known = |issuer: &str| {
            let mut before = before.iter();
            before.find_map(|provider| match &provider.config.protocol {
                Protocol::OpenId { issuer: same } if same == issuer => provider.issuer.clone(),
                _ => None,
            })
        };
        // Two providers can be clients of one issuer: they share what it publishes.
        let mut issuers = BTreeMap::new();
        let mut issuer = |name: &String| {
            let start = || Arc::new(Issuer::start(name.clone(), http.clone()));
            let issuer = issuers.entry(name.clone());
            Arc::clone(issuer.or_insert_with(|| known(name).unwrap_or_else(start)))
        };
        let mut client = |config: &ProviderConfig| {
            let provider = Provider {
                config: config.clone(),
                issuer: match &config.protocol {
                    Protocol::OAuth(_) => None,
                    Protocol::OpenId { issuer: name } => Some(issuer(name)),
                },
                callback: callback(config, public_url),
                http: http.clone(),
                metrics: counters.register(&config.name),
            };
            (config.name.clone(), provider)
        };
        Self {
            all: providers.all.iter().map(&mut client).collect(),
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

    /// All of them, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Provider> {
        self.all.values()
    }

    /// Whether this parameter of `/login` goes on to the named provider, to the default one, or to one that the user can
    /// choose.
    pub(crate) fn pass_on(&self, named: Option<&str>, parameter: PassedOn) -> bool {
        let is_passed = |provider: &Provider| provider.config.pass_on.contains(&parameter);
        let named = named.map(|name| name.parse().ok().and_then(|name| self.find(&name)));
        match named.unwrap_or_else(|| self.default()) {
            Some(provider) => is_passed(provider),
            None => self.all.values().any(is_passed),
        }
    }

    /// Returns all names, for the error about an unknown one.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.all.keys().map(ProviderName::as_str).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests;
