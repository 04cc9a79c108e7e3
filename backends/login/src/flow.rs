//! The login flow of CONTRACT 8 without routes and responses: one function for each step.
//!
//! | step | function |
//! | --- | --- |
//! | a browser or a client begins a login | [`begin_redirect`], [`begin_polling`] |
//! | the user opens a login's page, and chooses a provider | [`BrowserRequest::show_page`], [`BrowserRequest::choose`] |
//! | the user presses a button of a polling login's page | [`BrowserRequest::confirm`] |
//! | the provider sends the browser back | [`BrowserRequest::finish`] |
//! | the outcome is stored, and a redirect login gets its ticket | `outcome::store_completion`, `outcome::store_failure` |
//! | the client asks for the outcome | [`check`], [`redeem_token`], [`redeem_ticket`] |

mod begin;
mod browser;
mod find;
mod finish;
mod outcome;
mod redeem;
mod refusal;
pub(crate) mod return_to;

use std::{net::IpAddr, sync::Arc, time::Duration};

use http::HeaderValue;
use signpost_protocol::{app::AppId, version::Version};
use signpost_store::StoreError;
use tokio::time::Instant;
use url::Url;

pub use self::{
    begin::PollingLogin,
    redeem::{Check, CheckStatus, LoginResult},
};
pub(crate) use self::{
    begin::{LoginRequest, begin_polling, begin_redirect},
    finish::{Callback, Grant},
    outcome::BrowserOutcome,
    redeem::{check, redeem_ticket, redeem_token},
    refusal::Refusal,
};
use crate::{
    config::{Label, ProviderName},
    records::{applications::Application, logins::UserCode},
    service::Service,
};

/// A redirect to the provider, or to the login's page, with the cookie that binds the login to the browser.
pub(crate) struct Redirect {
    pub(crate) url: Url,
    pub(crate) set_cookie: HeaderValue,
}

/// What a browser gets next.
pub(crate) enum BrowserStep {
    /// The page that asks the user to confirm, or to choose a provider.
    Page(Page),
    /// The browser continues at the provider.
    Redirect(Redirect),
    /// The same, in a browser that has the cookie.
    Again(Url),
    /// This browser is finishing the login, or has finished it; with the `Set-Cookie` that makes its cookie short.
    Finished(BrowserOutcome, Option<HeaderValue>),
}

impl From<BrowserOutcome> for BrowserStep {
    fn from(outcome: BrowserOutcome) -> Self {
        Self::Finished(outcome, None)
    }
}

/// The contents of the page.
pub(crate) struct Page {
    pub(crate) application: Arc<Application>,
    /// One button for each.
    pub(crate) providers: Vec<Button>,
    /// The `state` of all links.
    pub(crate) state: String,
    /// Of a polling login.
    pub(crate) polling: Option<PollingPage>,
}

/// A provider on the page.
pub(crate) struct Button {
    pub(crate) name: ProviderName,
    pub(crate) label: Label,
}

/// What the page of a polling login has besides.
pub(crate) struct PollingPage {
    pub(crate) user_code: UserCode,
    /// When the login was begun, in minutes before now, and in which network.
    pub(crate) age_minutes: u64,
    pub(crate) network: String,
    /// Whether the browser is in another one.
    pub(crate) is_elsewhere: bool,
    /// The `confirm` of the buttons, and of the link that cancels.
    pub(crate) confirm: String,
    pub(crate) cancel: String,
    pub(crate) set_cookie: HeaderValue,
    /// Whether the user chooses the provider.
    pub(crate) user_chooses: bool,
}

/// A browser's request that names a login by its `state`.
pub(crate) struct BrowserRequest<'a> {
    pub(crate) service: &'a Arc<Service>,
    /// The version that serves the request.
    pub(crate) version: &'a Version,
    /// The `state` parameter, not yet parsed.
    pub(crate) state: &'a str,
    /// The application that the gateway names; `None` for an unsigned request.
    pub(crate) application: Option<AppId>,
    /// The client's address, for limits.
    pub(crate) client: IpAddr,
    /// Whether the client shows pages: its `Accept` has `text/html`.
    pub(crate) wants_page: bool,
    /// The request's headers, with the browser's cookies.
    pub(crate) headers: &'a http::HeaderMap,
}

/// How long an unavailable store is retried: a restart of the store takes about a second. In unit tests, a busy machine
/// may delay the tries.
const RETRY_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 8 } else { 2 });
/// Pause between two tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(400);

/// Runs an idempotent call to the store, and retries it if it fails: by now the user has been at the provider, and
/// would have to start over. A call that takes about as long as the retry timeout is not retried.
async fn retry_store<T, A>(service: &Service, mut call: impl FnMut() -> A) -> Result<T, StoreError>
where
    A: Future<Output = Result<T, StoreError>>,
{
    let last_try = Instant::now() + RETRY_TIMEOUT;
    loop {
        match try_store(service, call()).await {
            Err(_) if Instant::now() + RETRY_INTERVAL <= last_try => {
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            result => return result,
        }
    }
}

/// Runs a call to the store that a client or [`retry_store`] repeats.
#[cfg(not(test))]
async fn try_store<T>(
    _: &Service,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    call.await
}

#[cfg(test)]
use self::faults::try_store;

#[cfg(test)]
mod faults {
    // Here tests let the store fail.
    pub(super) use crate::testing::try_store;
}
