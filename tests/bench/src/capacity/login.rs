//! A whole polling login: seven requests of client and browser, to gateway and provider.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use end_to_end::html::links;
use serde::Deserialize;

use super::caller::{Caller, get, unsigned_post};
use crate::load::client::{Client, Response};

/// A person who logs in: the client's connection, and the browser's to gateway and provider.
#[derive(Debug)]
pub struct Visitor {
    client: Client,
    browser: Client,
    at_provider: Client,
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
    pub fn log_in(&mut self, caller: &Caller, person: &str) -> anyhow::Result<()> {
        let begun = begin(&mut self.client, caller)?;
        let (authorization, cookie) = self.confirm(&begun).context("the login's page")?;
        let callback = self
            .decide(&authorization, person)
            .context("the provider's page")?;
        let request = get(target(&callback)?, &cookie);
        let called_back = self.browser.exchange(&request)?;
        called_back.expect(200).context("the callback")?;
        let checked = check(&mut self.client, caller, &begun.token)?;
        ensure!(checked.status == "complete", "status {}", checked.status);
        let credential = checked.login.map(|login| login.authorization);
        ensure!(
            credential.is_some_and(|credential| !credential.is_empty()),
            "no credential"
        );
        Ok(())
    }

    /// Opens the login's page and presses its button; returns the provider's URL and the login's cookie.
    fn confirm(&mut self, begun: &StartedLogin) -> anyhow::Result<(String, String)> {
        let request = get(target(&begun.authorize_url)?, "");
        let page = self.browser.exchange(&request)?.expect(200)?;
        let links = links(&page.text());
        let button = links.iter().find(|link| link.contains("confirm="));
        let button = button.context("no button on the page")?;
        let request = get(&format!("/login{button}"), cookie(&page)?);
        let redirected = self.browser.exchange(&request)?.expect(302)?;
        Ok((
            location(&redirected)?.to_owned(),
            cookie(&redirected)?.to_owned(),
        ))
    }

    /// Opens the provider's page and presses Allow; returns the callback's URL.
    fn decide(&mut self, authorization: &str, person: &str) -> anyhow::Result<String> {
        let target = target(authorization)?;
        let (path, query) = target.split_once('?').context("no query")?;
        self.at_provider.exchange(&get(target, ""))?.expect(200)?;
        // The page's hidden fields are the query's parameters.
        let form = format!("{query}&other=any%3A{person}&decision=allow");
        let request = unsigned_post(path, &form, "");
        let decided = self.at_provider.exchange(&request)?.expect(302)?;
        Ok(location(&decided)?.to_owned())
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
