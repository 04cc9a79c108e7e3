//! Finds the login that a browser's request names by its `state`, and checks that the browser may continue it.

use std::{ops::ControlFlow, sync::Arc};

use signpost_kit::clock::Timestamp;
use signpost_protocol::app::AppId;

use super::{
    BrowserOutcome, BrowserRequest,
    outcome::{CallbackLogin, outcome_again},
};
use crate::{
    error::LoginError,
    records::{
        applications::Application,
        logins::{BrowserCookie, Choice, Login, LoginCookie, LoginState, Mode, Status},
    },
};

/// The login that a request names.
pub(super) enum Found {
    /// A redirect login, in the browser's cookie.
    Redirect(Box<CallbackLogin>),
    /// A redirect login that this browser is finishing, or has finished.
    Finished(BrowserOutcome),
    /// A polling login, in the store.
    Polling(Box<StoredLogin>),
}

/// A polling login, and the cookie that the browser sent for it.
pub(super) struct StoredLogin {
    pub(super) login: Login,
    pub(super) application: Arc<Application>,
    pub(super) sent: Option<LoginCookie>,
}

impl StoredLogin {
    /// The login for its callback, if the browser is the one that confirmed last.
    pub(super) fn of_callback(self) -> Result<CallbackLogin, LoginError> {
        let cookie = self.sent.filter(|cookie| self.login.is_bound_to(cookie));
        Ok(CallbackLogin {
            cookie: cookie.ok_or(LoginError::LoginMismatch)?,
            login: self.login,
            application: self.application,
            challenge: None,
        })
    }

    /// Checks that the browser can continue the login; the outcome, if this browser is finishing it, or has finished it.
    pub(super) fn outcome(
        &self,
        request: &BrowserRequest<'_>,
    ) -> Result<Option<BrowserOutcome>, LoginError> {
        let (cookie, now) = (self.sent.as_ref(), request.service.now());
        let outcome = outcome_again(request, &self.login, cookie, &self.application, now);
        if outcome.is_none() {
            ensure_pending(&self.login, now)?;
        }
        Ok(outcome)
    }
}

impl BrowserRequest<'_> {
    /// The state that the request has. CONTRACT 5: one of an unknown version arrives at the default route, which rejects it.
    fn state(&self) -> Result<LoginState, LoginError> {
        LoginState::decode(self.state)
            .filter(|state| state.version() == self.version)
            .ok_or(LoginError::LoginUnknown)
    }

    /// The pending polling login that the request names, as this process has last seen it. What follows of it must be found
    /// once more if it ends in [`LoginError::LoginMismatch`] or [`LoginError::LoginUsed`].
    pub(super) async fn seen(&self) -> Result<Option<StoredLogin>, LoginError> {
        let state = self.state()?;
        let seen = self.service.state.logins.seen(state.hash());
        let is_open = |login: &Arc<Login>| {
            login.state == state && ensure_pending(login, self.service.now()).is_ok()
        };
        match seen.filter(is_open) {
            Some(login) => self.stored(Arc::unwrap_or_clone(login)).await.map(Some),
            None => Ok(None),
        }
    }

    /// Finds the login that the request names.
    pub(super) async fn find(&self) -> Result<Found, LoginError> {
        let state = self.state()?;
        if let Some(expires_at) = self.service.state.seal().await?.expiry_of(&state) {
            return self.open_redirect_login(state, expires_at).await;
        }
        let login = self.service.state.logins.find_and_see(state.hash()).await?;
        // The key is the hash alone, and anyone can write another version before it: that one did not begin the login.
        let login = login.filter(|login| login.state == state);
        let login = self.stored(login.ok_or(LoginError::LoginUnknown)?);
        Ok(Found::Polling(Box::new(login.await?)))
    }

    async fn stored(&self, login: Login) -> Result<StoredLogin, LoginError> {
        let sent = self.cookie_of(&login.state).value(self.headers);
        Ok(StoredLogin {
            application: self.application_of(login.application).await?,
            login,
            sent: sent.and_then(LoginCookie::decode),
        })
    }

    /// Finds the login of a callback; breaks with its outcome, if this browser is finishing it, or has finished it.
    pub(super) async fn find_callback_login(
        &self,
    ) -> Result<ControlFlow<BrowserOutcome, Box<CallbackLogin>>, LoginError> {
        let stored = match self.find().await? {
            Found::Redirect(login) => return Ok(ControlFlow::Continue(login)),
            Found::Finished(outcome) => return Ok(ControlFlow::Break(outcome)),
            Found::Polling(stored) => *stored,
        };
        if let Some(outcome) = stored.outcome(self)? {
            return Ok(ControlFlow::Break(outcome));
        }
        Ok(ControlFlow::Continue(Box::new(stored.of_callback()?)))
    }

    async fn open_redirect_login(
        &self,
        state: LoginState,
        expires_at: Timestamp,
    ) -> Result<Found, LoginError> {
        let service = self.service;
        let sent = self.cookie_of(&state);
        let now = service.now();
        let has_expired = now >= expires_at;
        let seal = service.state.seal().await?;
        let value = sent.value(self.headers);
        let Some(sealed) = value.and_then(|value| seal.open(&state, value)) else {
            // This browser has finished the login, or it is another browser.
            let Some(stored) = service.state.logins.find(state.hash()).await? else {
                return Err(match has_expired {
                    true => LoginError::LoginExpired,
                    false => LoginError::LoginMismatch,
                });
            };
            let application = self.application_of(stored.application).await?;
            let sent = value.and_then(LoginCookie::decode);
            let outcome = outcome_again(self, &stored, sent.as_ref(), &application, now);
            return outcome.map(Found::Finished).ok_or(LoginError::LoginUsed);
        };
        // Before the expiry: a login of another application is unknown to a signed request, expired or not.
        let application = self.application_of(sealed.application).await?;
        if has_expired {
            return Err(LoginError::LoginExpired);
        }
        let login = Login {
            state,
            application: sealed.application,
            mode: Mode::Redirect {
                return_to: sealed.return_to,
            },
            provider: sealed.provider.map_or(Choice::Users(None), Choice::Fixed),
            hints: sealed.hints,
            cookie: Some(sealed.cookie.hash()),
            expires_at,
            status: Status::Pending,
        };
        Ok(Found::Redirect(Box::new(CallbackLogin {
            login,
            application,
            challenge: sealed.challenge,
            cookie: sealed.cookie,
        })))
    }

    /// The cookie of a login.
    pub(super) fn cookie_of(&self, state: &LoginState) -> BrowserCookie {
        BrowserCookie::of(state, &self.service.config.public_url)
    }

    /// The application of a login. A signed request finds only logins of its own application.
    async fn application_of(&self, id: AppId) -> Result<Arc<Application>, LoginError> {
        let application = match self.application {
            Some(named) if named != id => None,
            _ => self.service.active_application(id).await?,
        };
        application.ok_or(LoginError::LoginUnknown)
    }
}

/// Checks that the login is pending, so that the browser can continue it.
pub(super) fn ensure_pending(login: &Login, now: Timestamp) -> Result<(), LoginError> {
    match login.status {
        Status::Exchanging(_) | Status::Complete(_) | Status::Failed { .. } => {
            Err(LoginError::LoginUsed)
        }
        Status::Pending if now >= login.expires_at => Err(LoginError::LoginExpired),
        Status::Pending => Ok(()),
    }
}
