//! The login flow of CONTRACT 8, step by step, without HTTP: each step is a function of the service.
//!
//! | step | function |
//! | --- | --- |
//! | a browser or a client begins | [`begin_redirect`], [`begin_polling`] |
//! | polling's page is shown, its button pressed | [`show_page`], [`confirm`] |
//! | the provider sends the browser back | [`finish_login`] |
//! | the outcome is asked for | [`check`], [`redeem_token`], [`redeem_ticket`] |

mod begin;
mod browser;
mod claim;
mod finish;
mod outcome;

use std::{net::IpAddr, sync::Arc};

use gateway_protocol::{app::AppId, version::Version};
use http::HeaderValue;
use signpost_kit::clock::Timestamp;
use url::Url;

pub(crate) use self::{
    begin::{Beginning, begin_polling, begin_redirect},
    browser::{Page, Shown, confirm, show_page},
    claim::{CheckedStatus, check, redeem_ticket, redeem_token},
    finish::{Callback, End, Grant, finish_login},
};
use crate::{
    accounts::Account,
    applications::Application,
    credentials::Credential,
    error::LoginError,
    logins::{Login, LoginState, Status},
    service::Service,
};

/// What somebody who logged in is given.
pub(crate) struct LoginResult {
    pub(crate) account: Account,
    pub(crate) credential: Credential,
    pub(crate) expires_at: Timestamp,
    pub(crate) created: bool,
}

/// A browser is sent on, with a cookie to come back with.
pub(crate) struct SentOn {
    pub(crate) url: Url,
    pub(crate) set_cookie: HeaderValue,
}

/// Which login a browser's address is about, and on whose behalf it was forwarded.
pub(crate) struct Visit<'a> {
    /// The version that serves the request.
    pub(crate) version: &'a Version,
    /// The `state` in the address, as it stands there.
    pub(crate) state: &'a str,
    /// The application that the gateway names, which it does unless the request is unsigned.
    pub(crate) application: Option<AppId>,
    /// The browser's address, for limits.
    pub(crate) client: IpAddr,
    /// The browser's cookies among others.
    pub(crate) headers: &'a http::HeaderMap,
}

impl Visit<'_> {
    /// The login's `state`. CONTRACT 5: one that no present version issued ends at the default route, as unknown.
    fn state(&self) -> Result<LoginState, LoginError> {
        let state: Option<LoginState> = self.state.parse().ok();
        state
            .filter(|state| state.version() == self.version)
            .ok_or(LoginError::LoginUnknown)
    }

    /// Whether the request may be about this application's login.
    fn is_of(&self, application: AppId) -> bool {
        self.application.is_none_or(|named| named == application)
    }
}

/// The stored login that a browser's address is about, and its application.
async fn locate(
    service: &Service,
    visit: &Visit<'_>,
) -> Result<(Login, Arc<Application>), LoginError> {
    let state = visit.state()?;
    let found = service.state.logins.store().find(state.hash()).await?;
    let is_theirs = |login: &Login| login.state == state && visit.is_of(login.application);
    let login = found.filter(is_theirs).ok_or(LoginError::LoginUnknown)?;
    let application = active_application(service, login.application).await?;
    Ok((login, application))
}

/// The application of a login, unless it was deleted or disabled meanwhile.
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

/// `Ok` while a browser may still move the login on.
fn must_be_open(login: &Login, now: Timestamp) -> Result<(), LoginError> {
    match login.status {
        Status::Exchanging(_) | Status::Complete(_) | Status::Failed { .. } => {
            Err(LoginError::LoginUsed)
        }
        Status::Pending if now >= login.expires_at => Err(LoginError::LoginExpired),
        Status::Pending => Ok(()),
    }
}
