//! Whole logins, for tests whose subject is what comes before, between or after.

use serde_json::Value;

use crate::{
    browser::{Browser, Decision, Page, param},
    signed_client::SignedClient,
};

/// A polling login as `POST /login` began it.
#[derive(Clone, Debug)]
pub struct Begun {
    /// What the client keeps.
    pub token: String,
    /// What the person opens.
    pub authorize_url: String,
    /// What the person compares.
    pub user_code: String,
    /// Seconds.
    pub expires_in: u64,
    /// Seconds.
    pub interval: u64,
}

impl Begun {
    /// Reads the answer to `POST /login`.
    ///
    /// # Panics
    ///
    /// When a member is missing.
    #[must_use]
    pub fn read(answer: &Value) -> Self {
        let text = |name: &str| {
            let value = answer[name].as_str();
            value
                .unwrap_or_else(|| panic!("no {name} in {answer}"))
                .to_owned()
        };
        let number = |name: &str| {
            answer[name]
                .as_u64()
                .unwrap_or_else(|| panic!("no number {name} in {answer}"))
        };
        Self {
            token: text("token"),
            authorize_url: text("authorize_url"),
            user_code: text("user_code"),
            expires_in: number("expires_in"),
            interval: number("interval"),
        }
    }

    /// The `state` in the address.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    pub fn state(&self) -> String {
        let url = self
            .authorize_url
            .parse()
            .expect("authorize_url is an address");
        param(&url, "state").expect("authorize_url carries the state")
    }
}

/// Begins a polling login.
///
/// # Panics
///
/// When it does not begin.
pub async fn begin_polling(client: &SignedClient) -> Begun {
    Begun::read(&client.post("/login").signed().send().await.ok())
}

/// Opens a polling login's page, confirms it, and stops at the provider's page.
///
/// # Panics
///
/// When the page has no button.
pub async fn confirm_polling(browser: &mut Browser, begun: &Begun) -> Page {
    let page = browser.open(&begun.authorize_url).await;
    browser.confirm(&page).await
}

/// Asks what became of a polling login.
pub async fn check(client: &SignedClient, token: &str) -> Value {
    client
        .post("/check")
        .param("token", token)
        .send()
        .await
        .ok()
}

/// A whole polling login of a user, in a browser of its own; the login result.
///
/// # Panics
///
/// When it does not complete.
pub async fn log_in_by_polling(client: &SignedClient, user: &str) -> Value {
    let mut browser = Browser::default();
    let begun = begin_polling(client).await;
    let provider = confirm_polling(&mut browser, &begun).await;
    let done = browser
        .decide_and_follow(&provider, user, Decision::Allow)
        .await;
    assert_eq!(done.answer.status, 200, "{}", done.text());
    let checked = check(client, &begun.token).await;
    assert_eq!(checked["status"], "complete", "{checked}");
    checked["login"].clone()
}

/// A whole redirect login of a user, in a browser of its own; the login result.
///
/// # Panics
///
/// When it does not complete.
pub async fn log_in_by_redirect(client: &SignedClient, user: &str) -> Value {
    let mut browser = Browser::default();
    let provider = browser.open(&client.login_url(&[])).await;
    browser
        .decide_and_follow(&provider, user, Decision::Allow)
        .await
        .answer
        .ok()
}

/// The credential in a login result.
///
/// # Panics
///
/// When there is none.
#[must_use]
pub fn credential(login: &Value) -> &str {
    login["authorization"]
        .as_str()
        .unwrap_or_else(|| panic!("no credential in {login}"))
}
