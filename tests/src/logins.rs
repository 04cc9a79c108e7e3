//! Whole logins, for tests whose subject is something else.

use serde_json::Value;
use signpost_protocol::credential::Credential;

use crate::{
    browser::{Browser, Decision, Page, param},
    signed_client::SignedClient,
    waiting::until,
};

/// A started polling login: the response to `POST /login`.
#[derive(Clone, Debug)]
pub struct PollingLogin {
    /// The token that the client sends to `/check`.
    pub token: String,
    /// The URL that the user opens.
    pub authorize_url: String,
    /// The code that the user compares.
    pub user_code: String,
    /// Lifetime of the login, in seconds.
    pub expires_in: u64,
    /// Pause between two calls of `/check`, in seconds.
    pub interval: u64,
}

impl PollingLogin {
    /// Reads the response to `POST /login`.
    ///
    /// # Panics
    ///
    /// When a member is missing.
    #[must_use]
    pub fn from_response(response: &Value) -> Self {
        let text = |name: &str| {
            let value = response[name].as_str();
            value
                .unwrap_or_else(|| panic!("no {name} in {response}"))
                .to_owned()
        };
        let number = |name: &str| {
            response[name]
                .as_u64()
                .unwrap_or_else(|| panic!("no number {name} in {response}"))
        };
        Self {
            token: text("token"),
            authorize_url: text("authorize_url"),
            user_code: text("user_code"),
            expires_in: number("expires_in"),
            interval: number("interval"),
        }
    }

    /// The `state` in `authorize_url`.
    ///
    /// # Panics
    ///
    /// When it is missing.
    #[must_use]
    pub fn state(&self) -> String {
        let url = self.authorize_url.parse().expect("authorize_url is a URL");
        param(&url, "state").expect("authorize_url carries the state")
    }
}

/// Starts a polling login.
///
/// # Panics
///
/// When it is rejected.
pub async fn begin_polling(client: &SignedClient) -> PollingLogin {
    PollingLogin::from_response(&client.post("/login").signed().send().await.ok())
}

/// Opens a polling login's page, confirms it, and stops at the provider's page.
///
/// # Panics
///
/// When the page has no button.
pub async fn confirm_polling(browser: &mut Browser, begun: &PollingLogin) -> Page {
    let page = browser.open(&begun.authorize_url).await;
    browser.confirm(&page).await
}

/// Calls `/check` for a polling login.
pub async fn check(client: &SignedClient, token: &str) -> Value {
    client
        .post("/check")
        .param("token", token)
        .send()
        .await
        .ok()
}

/// Logs a user in by polling, in a new browser, and returns the login result.
///
/// # Panics
///
/// When it does not complete.
pub async fn log_in_by_polling(client: &SignedClient, user: &str) -> Value {
    let begun = begin_polling(client).await;
    complete_polling(client, &begun, user).await
}

/// Completes a polling login as a user, in a new browser, and returns the login result.
///
/// # Panics
///
/// When it does not complete.
pub async fn complete_polling(client: &SignedClient, begun: &PollingLogin, user: &str) -> Value {
    let mut browser = Browser::default();
    let provider = confirm_polling(&mut browser, begun).await;
    let done = browser
        .decide_and_follow(&provider, user, Decision::Allow)
        .await;
    assert_eq!(done.response.status, 200, "{}", done.text());
    let checked = check(client, &begun.token).await;
    assert_eq!(checked["status"], "complete", "{checked}");
    checked["login"].clone()
}

/// Logs a user in by redirect, with a new client that takes data, and returns the login result.
///
/// # Panics
///
/// When it does not complete.
pub async fn log_in_by_redirect(client: &SignedClient, user: &str) -> Value {
    let mut browser = Browser::for_data();
    let provider = browser.open(&client.login_url(&[])).await;
    browser
        .decide_and_follow(&provider, user, Decision::Allow)
        .await
        .response
        .ok()
}

/// Waits until logins of an OpenID provider begin: on a busy machine, the login service's first fetch can time out.
///
/// # Panics
///
/// When none begins.
pub async fn until_well(client: &SignedClient, provider: &str) {
    let url = client.login_url(&[("provider", provider)]);
    until(&format!("{provider} to be well"), || async {
        let page = Browser::for_data().step(&url).await;
        (page.response.status == 302).then_some(())
    })
    .await;
}

/// The problem code for a value that is not a valid credential: by its form, whether it could be one.
#[must_use]
pub fn rejection_of(wrong: &str) -> &'static str {
    match wrong.parse::<Credential>() {
        Ok(_) => "authorization_invalid",
        Err(_) => "authorization_malformed",
    }
}

/// The credential in a login result.
///
/// # Panics
///
/// When it is missing.
#[must_use]
pub fn credential(login: &Value) -> &str {
    login["authorization"]
        .as_str()
        .unwrap_or_else(|| panic!("no credential in {login}"))
}
