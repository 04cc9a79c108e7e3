//! The login flow of CONTRACT 8 without HTTP: one function for each step.
//!
//! | step | function |
//! | --- | --- |
//! | a browser or a client begins a login | [`begin_redirect`], [`begin_polling`] |
//! | the user opens a polling login's page, and presses its button | [`show_page`], [`confirm`] |
//! | the provider sends the browser back | [`finish_login`] |
//! | the client asks for the outcome | [`check`], [`redeem_token`], [`redeem_ticket`] |

mod begin;
mod browser;
mod collect;
mod finish;
mod outcome;
pub(crate) mod return_to;

use std::{net::IpAddr, sync::Arc};

use http::HeaderValue;
use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::AppId, version::Version};
use url::Url;

pub(crate) use self::{
    begin::{LoginRequest, begin_polling, begin_redirect},
    browser::{Page, PageOrRedirect, confirm, show_page},
    collect::{CheckedStatus, check, redeem_ticket, redeem_token},
    finish::{BrowserOutcome, Callback, Grant, finish_login},
};
use crate::{
    error::LoginError,
    records::{
        accounts::Account,
        applications::Application,
        credentials::Credential,
        logins::{Login, LoginState, Status},
    },
    service::Service,
};

/// What the client receives for a completed login.
pub(crate) struct LoginResult {
    pub(crate) account: Account,
    pub(crate) credential: Credential,
    pub(crate) expires_at: Timestamp,
    pub(crate) created: bool,
}

/// A redirect to the provider, with the cookie that binds the login to the browser.
pub(crate) struct ProviderRedirect {
    pub(crate) url: Url,
    pub(crate) set_cookie: HeaderValue,
}

/// A browser's request that names a login by its `state`.
pub(crate) struct BrowserRequest<'a> {
    /// The version that serves the request.
    pub(crate) version: &'a Version,
    /// The `state` parameter, not yet parsed.
    pub(crate) state: &'a str,
    /// The application that the gateway names; `None` for an unsigned request.
    pub(crate) application: Option<AppId>,
    /// The client's address, for limits.
    pub(crate) client: IpAddr,
    /// The request's headers, with the browser's cookies.
    pub(crate) headers: &'a http::HeaderMap,
}

impl BrowserRequest<'_> {
    /// Parses `state`. CONTRACT 5: a state of an unknown version arrives at the default route, which rejects it.
    fn parse_state(&self) -> Result<LoginState, LoginError> {
        let state: Option<LoginState> = self.state.parse().ok();
        state
            .filter(|state| state.version() == self.version)
            .ok_or(LoginError::LoginUnknown)
    }

    /// Whether the request can access logins of this application. An unsigned request can access all.
    fn can_access(&self, application: AppId) -> bool {
        self.application.is_none_or(|named| named == application)
    }
}

/// Finds the stored login that a browser's request names, and its application.
async fn find_login(
    service: &Service,
    request: &BrowserRequest<'_>,
) -> Result<(Login, Arc<Application>), LoginError> {
    let state = request.parse_state()?;
    let found = service.state.logins.store().find(state.hash()).await?;
    let is_match = |login: &Login| login.state == state && request.can_access(login.application);
    let login = found.filter(is_match).ok_or(LoginError::LoginUnknown)?;
    let application = active_application(service, login.application).await?;
    Ok((login, application))
}

/// Returns the application of a login, unless it was deleted or disabled since the login began.
async fn active_application(
    service: &Service,
    application: AppId,
) -> Result<Arc<Application>, LoginError> {
    let application = service
        .application(application)
        .await?
        .ok_or(LoginError::LoginUnknown)?;
    if application.is_active {
        Ok(application)
    } else {
        Err(LoginError::AppDisabled)
    }
}

/// Checks that the login is pending, so that the browser can continue it.
fn ensure_pending(login: &Login, now: Timestamp) -> Result<(), LoginError> {
    match login.status {
        Status::Exchanging(_) | Status::Complete(_) | Status::Failed { .. } => {
            Err(LoginError::LoginUsed)
        }
        Status::Pending if now >= login.expires_at => Err(LoginError::LoginExpired),
        Status::Pending => Ok(()),
    }
}
