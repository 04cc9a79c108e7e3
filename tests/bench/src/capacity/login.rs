//! A whole polling login: what the client, the browser and the provider do, seven requests in all.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use end_to_end::html::links;
use serde::Deserialize;

use super::caller::{Caller, get, unsigned_post};
use crate::load::client::{Answer, Client};

/// Somebody who logs in: a client's connection, and a browser's to gateway and provider.
#[derive(Debug)]
pub struct Visitor {
    client: Client,
    browser: Client,
    at_provider: Client,
}

/// What `POST /login` answers.
#[derive(Deserialize)]
pub struct Begun {
    /// What the client keeps.
    pub token: String,
    authorize_url: String,
}

/// What `/check` answers.
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
    /// Nobody is connected yet.
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
    /// An answer on the way is not as it should be.
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

    /// Opens the login's page and presses its button; gives the way to the provider, and the login's cookie.
    fn confirm(&mut self, begun: &Begun) -> anyhow::Result<(String, String)> {
        let request = get(target(&begun.authorize_url)?, "");
        let page = self.browser.exchange(&request)?.expect(200)?;
        let links = links(&page.text());
        let button = links.iter().find(|link| link.contains("confirm="));
        let button = button.context("no button on the page")?;
        let request = get(&format!("/login{button}"), cookie(&page)?);
        let sent_on = self.browser.exchange(&request)?.expect(302)?;
        Ok((location(&sent_on)?.to_owned(), cookie(&sent_on)?.to_owned()))
    }

    /// Opens the provider's page and presses Allow; gives the way back.
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

/// Begins a polling login.
///
/// # Errors
///
/// It does not begin.
pub fn begin(client: &mut Client, caller: &Caller) -> anyhow::Result<Begun> {
    let answer = client.exchange(&caller.post("/login", "", ""))?.expect(200);
    Ok(serde_json::from_slice(
        &answer.context("POST /login")?.body,
    )?)
}

/// Asks how a login stands that nobody has confirmed.
///
/// # Errors
///
/// It is not pending.
pub fn check_pending(client: &mut Client, caller: &Caller, token: &str) -> anyhow::Result<()> {
    let checked = check(client, caller, token)?;
    ensure!(checked.status == "pending", "status {}", checked.status);
    Ok(())
}

fn check(client: &mut Client, caller: &Caller, token: &str) -> anyhow::Result<Checked> {
    let request = caller.post("/check", &format!("token={token}"), "");
    let answer = client.exchange(&request)?.expect(200).context("/check")?;
    Ok(serde_json::from_slice(&answer.body)?)
}

/// Path and query of an address.
fn target(url: &str) -> anyhow::Result<&str> {
    let behind_scheme = url.split_once("://").context("no address")?.1;
    let slash = behind_scheme.find('/').context("no path")?;
    Ok(&behind_scheme[slash..])
}

fn location(answer: &Answer) -> anyhow::Result<&str> {
    answer.header("location").context("a redirect to nowhere")
}

/// Name and value of the cookie that an answer sets.
fn cookie(answer: &Answer) -> anyhow::Result<&str> {
    let line = answer.header("set-cookie").context("no cookie")?;
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
