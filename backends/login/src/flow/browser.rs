//! A login's page in the browser, its buttons, and the choice of a provider.

use std::sync::Arc;

use super::{
    BrowserRequest, BrowserStep, Button, Page, PollingPage, Redirect,
    begin::{authorize_url, named_provider, send_to},
    find::{Found, StoredLogin},
    finish::Grant,
    outcome::CallbackLogin,
    refusal::Refusal,
};
use crate::{
    config::{ProviderName, SameNetwork},
    error::LoginError,
    metrics::providers::LoginMode,
    provider::Provider,
    records::logins::{Begun, Choice, Login, LoginCookie, Mode, SealedRedirect, UserCode},
};

impl BrowserRequest<'_> {
    /// Shows the page of a login. A redirect login has one only until its provider is known: then the browser goes on to it.
    ///
    /// Writes nothing to the store, so that a link preview does not disturb a browser that is already at the provider. Each
    /// browser that has the page of a polling login can confirm; only the browser that confirmed last can complete the login.
    pub(crate) async fn show_page(&self) -> Result<BrowserStep, LoginError> {
        let stored = match self.find().await? {
            Found::Redirect(login) => return self.redirect_page(&login).await,
            Found::Finished(outcome) => return Ok(outcome.into()),
            Found::Polling(stored) => *stored,
        };
        let Mode::Polling { user_code, begun } = &stored.login.mode else {
            return Err(LoginError::LoginUnknown);
        };
        if let Some(outcome) = stored.outcome(self)? {
            return Ok(outcome.into());
        }
        let (user_code, begun) = (user_code.clone(), begun.clone());
        self.polling_page(stored, user_code, begun).await
    }

    async fn polling_page(
        &self,
        stored: StoredLogin,
        user_code: UserCode,
        begun: Begun,
    ) -> Result<BrowserStep, LoginError> {
        let (config, now) = (&self.service.config, self.service.now());
        let login = &stored.login;
        // A browser that has a cookie keeps it, so that the links of its other tabs stay valid.
        let cookie = stored.sent.unwrap_or_else(LoginCookie::generate);
        let fixed = match &login.provider {
            Choice::Fixed(name) => Some(name),
            Choice::Users(_) => None,
        };
        let providers = self.buttons(fixed)?;
        // Only the page warns.
        let is_elsewhere = begun.is_near(self.client) == Some(false);
        let confirm =
            config.polling.confirm || (is_elsewhere && config.same_network == SameNetwork::Warn);
        if let (Some(name), false) = (fixed, confirm) {
            let provider = self.configured_provider(name)?;
            return self.redirect_to_provider(login, provider, &cookie).await;
        }
        // The mark keeps this cookie if the browser has too many.
        let value = match login.is_bound_to(&cookie) {
            true => cookie.encode_confirmed(),
            false => cookie.encode(),
        };
        let remaining = login.expires_at.seconds_from(now);
        Ok(BrowserStep::Page(Page {
            application: stored.application,
            providers,
            state: login.state.encode(),
            polling: Some(PollingPage {
                user_code,
                age_minutes: now.seconds_from(begun.at) / 60,
                network: begun.network,
                is_elsewhere,
                confirm: cookie.confirm(),
                cancel: cookie.cancel(),
                set_cookie: self.cookie_of(&login.state).set(&value, remaining),
                user_chooses: fixed.is_none(),
            }),
        }))
    }

    /// The page of a redirect login, where the user chooses a provider. If there is one already, it was unavailable before,
    /// and the browser is sent to it again.
    async fn redirect_page(
        &self,
        CallbackLogin {
            login,
            application,
            cookie,
            ..
        }: &CallbackLogin,
    ) -> Result<BrowserStep, LoginError> {
        let Some(name) = login.provider.provider() else {
            return Ok(BrowserStep::Page(Page {
                application: Arc::clone(application),
                providers: self.buttons(None)?,
                state: login.state.encode(),
                polling: None,
            }));
        };
        let provider = self.configured_provider(name)?;
        let url = authorize_url(provider, (&login.state, cookie, &login.hints)).await?;
        Ok(BrowserStep::Again(url))
    }

    /// Sends the browser of a redirect login to the provider that the user has chosen on the page. The login goes on under a
    /// state of its own, which has the choice: the user can go back to the page, and choose again.
    pub(crate) async fn choose(&self, name: &str) -> Result<BrowserStep, LoginError> {
        let CallbackLogin {
            login, challenge, ..
        } = match self.find().await? {
            Found::Redirect(login) => *login,
            Found::Finished(outcome) => return Ok(outcome.into()),
            // The page of a polling login sends `confirm`, too.
            Found::Polling(_) => return Err(LoginError::LoginMismatch),
        };
        let provider = named_provider(self.service, name)?;
        let (Choice::Users(None), Mode::Redirect { return_to }) = (&login.provider, login.mode)
        else {
            return Err(LoginError::LoginMismatch);
        };
        let chosen = SealedRedirect {
            application: login.application,
            provider: Some(provider.config.name.clone()),
            hints: login.hints,
            return_to,
            challenge,
            cookie: LoginCookie::generate(),
        };
        // The end stays: otherwise the user's browser could prolong a login by choosing again and again.
        let (version, expires_at) = (login.state.version(), login.expires_at);
        let redirect = send_to(self.service, Some(provider), version, &chosen, expires_at);
        Ok(BrowserStep::Redirect(redirect.await?))
    }

    /// Handles a button of the page, and its link that cancels the login. All work only in the browser that has the page,
    /// since `confirm` must match the cookie.
    pub(crate) async fn confirm(
        &self,
        confirm: &str,
        chosen: Option<&str>,
    ) -> Result<BrowserStep, LoginError> {
        if let Some(seen) = self.seen().await? {
            match self.confirm_found(seen, confirm, chosen).await {
                // Changed since, by another process.
                Err(LoginError::LoginMismatch | LoginError::LoginUsed) => {}
                confirmed => return confirmed,
            }
        }
        match self.find().await? {
            // Its page has no such link.
            Found::Redirect(_) => Err(LoginError::LoginMismatch),
            Found::Finished(outcome) => Ok(outcome.into()),
            Found::Polling(stored) => self.confirm_found(*stored, confirm, chosen).await,
        }
    }

    async fn confirm_found(
        &self,
        stored: StoredLogin,
        confirm: &str,
        chosen: Option<&str>,
    ) -> Result<BrowserStep, LoginError> {
        let sent = stored.sent.as_ref();
        let is_cancel = sent.is_some_and(|sent| sent.is_cancelled_by(confirm));
        if let Some(outcome) = stored.outcome(self)? {
            return Ok(outcome.of_link(is_cancel).into());
        }
        let cookie = stored.sent.ok_or(LoginError::LoginMismatch)?;
        if cookie.is_confirmed_by(confirm) {
            let login = &stored.login;
            let provider = match (&login.provider, chosen) {
                (Choice::Fixed(name), _) => self.configured_provider(name)?,
                (Choice::Users(_), Some(name)) => named_provider(self.service, name)?,
                (Choice::Users(_), None) => return Err(LoginError::NO_PROVIDER),
            };
            return self.redirect_to_provider(login, provider, &cookie).await;
        }
        if !is_cancel {
            return Err(LoginError::LoginMismatch);
        }
        // As if this browser had been at the provider, and the user had denied access there.
        let denied = Grant::Refused(Refusal::Denied);
        let cancelled = CallbackLogin {
            login: stored.login,
            application: stored.application,
            challenge: None,
            cookie,
        };
        // Bound first: the claim needs this browser's cookie in the row, as after a visit to the provider.
        let ended = match self.bind(&cancelled.login, &cancelled.cookie, None).await {
            Ok(()) => self.finish_or_find(&cancelled, denied).await?,
            Err(LoginError::LoginUsed) => self.find_outcome(&cancelled).await?,
            Err(error) => return Err(error),
        };
        Ok(ended.outcome.of_link(true).into())
    }

    /// The buttons of a page: of the one provider, or of all.
    fn buttons(&self, only: Option<&ProviderName>) -> Result<Vec<Button>, LoginError> {
        let button = |provider: &Provider| Button {
            name: provider.config.name.clone(),
            label: provider.config.label.clone(),
        };
        Ok(match only {
            Some(name) => vec![button(self.configured_provider(name)?)],
            None => self.service.providers.all().map(button).collect(),
        })
    }

    /// Binds the login to the browser with this cookie; fails if a callback has claimed the login.
    async fn bind(
        &self,
        login: &Login,
        cookie: &LoginCookie,
        chosen: Option<&ProviderName>,
    ) -> Result<(), LoginError> {
        let (logins, now) = (&self.service.state.logins, self.service.now());
        let (state, cookie) = (login.state.hash(), cookie.hash());
        let is_bound = logins.bind(state, &cookie, chosen, now).await?;
        is_bound.then_some(()).ok_or(LoginError::LoginUsed)
    }

    /// Binds a polling login to the browser with this cookie, and redirects the browser to the provider.
    async fn redirect_to_provider(
        &self,
        login: &Login,
        provider: &Provider,
        cookie: &LoginCookie,
    ) -> Result<BrowserStep, LoginError> {
        // What cannot be compared is refused, too: who begins a login chooses between IPv4 and IPv6.
        if let Mode::Polling { begun, .. } = &login.mode
            && self.service.config.same_network == SameNetwork::Require
            && begun.is_near(self.client) != Some(true)
        {
            return Err(LoginError::NetworkMismatch);
        }
        // Before the binding: if the provider is unavailable, the row still belongs to the browser that confirmed
        // before.
        let url = authorize_url(provider, (&login.state, cookie, &login.hints)).await?;
        let name = &provider.config.name;
        // A fixed provider is in the row already. Written before the browser leaves: its callback must find the choice.
        let chosen = matches!(login.provider, Choice::Users(_)).then_some(name);
        self.bind(login, cookie, chosen).await?;
        if let Choice::Users(before) = &login.provider
            && before.as_ref() != Some(name)
        {
            provider.metrics.count_begun(LoginMode::Polling);
        }
        let remaining = login.expires_at.seconds_from(self.service.now());
        let cookie = cookie.encode_confirmed();
        Ok(BrowserStep::Redirect(Redirect {
            url,
            set_cookie: self.cookie_of(&login.state).set(&cookie, remaining),
        }))
    }

    fn configured_provider(&self, name: &ProviderName) -> Result<&Provider, LoginError> {
        let missing = LoginError::Internal {
            what: "the login's provider is no longer configured",
        };
        self.service.providers.find(name).ok_or(missing)
    }
}
