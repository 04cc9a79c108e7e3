//! A whole polling login: seven requests of client and browser, to gateway and provider.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use end_to_end::html::links;
use serde::{Deserialize, Serialize};

use super::caller::{Caller, get, unsigned_post};
use crate::load::client::{Client, Response};

/// People who log in: the client's connection, and the browser's to gateway and provider.
#[derive(Debug)]
pub struct Visitor {
    client: Client,
    browser: Client,
    at_provider: Client,
}

/// A person's login: what its next request needs.
#[derive(Debug, Default)]
pub struct Login {
    person: String,
    /// The token of `/check`.
    token: String,
    /// Where the browser goes next: path and query.
    target: String,
    cookie: String,
}

/// The requests of a whole login, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Step {
    /// The client begins.
    Begin,
    /// The browser opens the login's page.
    Page,
    /// It presses the page's button.
    Button,
    /// It opens the provider's page.
    Provider,
    /// It presses Allow there.
    Allow,
    /// It follows the provider's redirect.
    Callback,
    /// The client gets its credential.
    Check,
}

impl Step {
    /// All of them, in their order.
    pub const ALL: [Self; 7] = [
        Self::Begin,
        Self::Page,
        Self::Button,
        Self::Provider,
        Self::Allow,
        Self::Callback,
        Self::Check,
    ];

    /// Its title in the tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Begin => "`POST /login`",
            Self::Page => "the login's page",
            Self::Button => "its button",
            Self::Provider => "the provider's page",
            Self::Allow => "its Allow",
            Self::Callback => "the callback",
            Self::Check => "`POST /check`",
        }
    }
}

/// The response to `POST /login`.
#[derive(Deserialize)]
pub struct StartedLogin {
    /// The token that the client sends to `/check`.
    pub token: String,
    authorize_url: String,
}

/// The response to `/check`.
#[derive(Deserialize)]
struct Checked {
    status: String,
    login: Option<LoginResult>,
}

#[derive(Deserialize)]
struct LoginResult {
    authorization: String,
}

impl Login {
    /// A login of this person that has not begun.
    pub fn of(person: String) -> Self {
        Self {
            person,
            ..Self::default()
        }
    }
}

impl Visitor {
    /// A visitor without open connections.
    pub fn new(gateway: SocketAddr, provider: SocketAddr) -> Self {
        Self {
            client: Client::new(gateway),
            browser: Client::new(gateway),
            at_provider: Client::new(provider),
        }
    }

    /// Logs a person in, from the beginning to the credential.
    ///
    /// # Errors
    ///
    /// When a response is not as expected.
    pub fn log_in(&mut self, caller: &Caller, person: String) -> anyhow::Result<()> {
        let mut login = Login::of(person);
        Step::ALL
            .into_iter()
            .try_for_each(|step| self.take(step, caller, &mut login))
    }

    /// Sends one request of a login, which follows the one before.
    ///
    /// # Errors
    ///
    /// When its response is not as expected.
    pub fn take(&mut self, step: Step, caller: &Caller, login: &mut Login) -> anyhow::Result<()> {
        self.try_to_take(step, caller, login)
            .with_context(|| step.title())
    }

    fn try_to_take(
        &mut self,
        step: Step,
        caller: &Caller,
        login: &mut Login,
    ) -> anyhow::Result<()> {
        match step {
            Step::Begin => {
                let begun = begin(&mut self.client, caller)?;
                (login.token, login.target) =
                    (begun.token, target(&begun.authorize_url)?.to_owned());
            }
            Step::Page => {
                let request = get(&login.target, "");
                let page = self.browser.exchange(&request)?.expect(200)?;
                let links = links(&page.text());
                let button = links.iter().find(|link| link.contains("confirm="));
                let button = button.context("no button on the page")?;
                (login.target, login.cookie) =
                    (format!("/login{button}"), cookie(&page)?.to_owned());
            }
            Step::Button => {
                let request = get(&login.target, &login.cookie);
                let redirected = self.browser.exchange(&request)?.expect(302)?;
                login.cookie = cookie(&redirected)?.to_owned();
                login.target = target(location(&redirected)?)?.to_owned();
            }
            Step::Provider => {
                let request = get(&login.target, "");
                self.at_provider.exchange(&request)?.expect(200)?;
            }
            Step::Allow => {
                let (path, query) = login.target.split_once('?').context("no query")?;
                // The page's hidden fields are the query's parameters.
                let form = format!("{query}&other=any%3A{}&decision=allow", login.person);
                let request = unsigned_post(path, &form, "");
                let decided = self.at_provider.exchange(&request)?.expect(302)?;
                login.target = target(location(&decided)?)?.to_owned();
            }
            Step::Callback => {
                let request = get(&login.target, &login.cookie);
                self.browser.exchange(&request)?.expect(200)?;
            }
            Step::Check => {
                let checked = check(&mut self.client, caller, &login.token)?;
                ensure!(checked.status == "complete", "status {}", checked.status);
                let credential = checked.login.map(|login| login.authorization);
                ensure!(
                    credential.is_some_and(|credential| !credential.is_empty()),
                    "no credential"
                );
            }
        }
        Ok(())
    }
}

/// Starts a polling login.
///
/// # Errors
///
/// When it is rejected.
pub fn begin(client: &mut Client, caller: &Caller) -> anyhow::Result<StartedLogin> {
    let response = client.exchange(&caller.post("/login", "", ""))?.expect(200);
    Ok(serde_json::from_slice(
        &response.context("POST /login")?.body,
    )?)
}

/// Calls `/check` for a login that has not been confirmed.
///
/// # Errors
///
/// When it is not pending.
pub fn check_pending(client: &mut Client, caller: &Caller, token: &str) -> anyhow::Result<()> {
    let checked = check(client, caller, token)?;
    ensure!(checked.status == "pending", "status {}", checked.status);
    Ok(())
}

fn check(client: &mut Client, caller: &Caller, token: &str) -> anyhow::Result<Checked> {
    let request = caller.post("/check", &format!("token={token}"), "");
    let response = client.exchange(&request)?.expect(200).context("/check")?;
    Ok(serde_json::from_slice(&response.body)?)
}

/// Path and query of a URL.
fn target(url: &str) -> anyhow::Result<&str> {
    let after_scheme = url.split_once("://").context("not a URL")?.1;
    let slash = after_scheme.find('/').context("no path")?;
    Ok(&after_scheme[slash..])
}

fn location(response: &Response) -> anyhow::Result<&str> {
    response
        .header("location")
        .context("the redirect has no Location")
}

/// Name and value of the cookie that a response sets.
fn cookie(response: &Response) -> anyhow::Result<&str> {
    let line = response.header("set-cookie").context("no cookie")?;
    Ok(line.split(';').next().unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_path_and_query() {
        assert_eq!(
            target("http://127.0.0.1:1/login?a=b").unwrap(),
            "/login?a=b"
        );
        assert!(target("/login").is_err());
        assert!(target("http://127.0.0.1:1").is_err());
    }
}
