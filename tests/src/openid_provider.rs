//! The certified provider `oidc-provider`, as the other side of logins by OpenID Connect: `tests/openid/server.mjs`.

use std::{
    collections::BTreeMap,
    env,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::{
    browser::{Browser, Decision, Page},
    documents::root,
    response::Response,
    signed_client::http_client,
};

/// The client's identifier there.
pub const CLIENT_ID: &str = "signpost at the company";

/// Its secret. With characters that HTTP Basic and forms must escape (RFC 6749 section 2.3.1).
pub const CLIENT_SECRET: &str = "kept:secret+/%26=for the company";

/// How it authenticates the client and signs ID tokens.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// `basic` or `post`.
    pub client_auth: &'static str,
    /// `RS256`, `ES256` or `EdDSA`.
    pub algorithm: &'static str,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            client_auth: "basic",
            algorithm: "RS256",
        }
    }
}

/// A running provider. When dropped, it is killed.
#[derive(Debug)]
pub struct OpenIdProvider {
    child: Child,
    issuer: String,
    http: Client,
}

impl OpenIdProvider {
    /// Starts it, and waits until it listens. `None` if `scripts/test` has reported that it cannot be installed here.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn start(options: Options) -> Option<Self> {
        if env::var_os("SIGNPOST_TEST_WITHOUT_FRAMEWORKS").is_some() {
            return None;
        }
        let modules = root().join("target/examples/openid/node_modules");
        let modules = modules.canonicalize();
        let mut child = Command::new("node")
            .arg(root().join("tests/openid/server.mjs"))
            .arg(modules.expect("run scripts/prerequisites examples"))
            .args([CLIENT_ID, CLIENT_SECRET])
            .args([options.client_auth, options.algorithm])
            // It ends with its input, so also when the test is killed.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node is installed: run scripts/prerequisites examples");
        let output = child.stdout.take().expect("a pipe");
        let first_line = spawn_blocking(|| BufReader::new(output).lines().next());
        let mut provider = Self {
            child,
            issuer: String::new(),
            http: http_client(),
        };
        let line = first_line.await.expect("the thread only reads");
        let line = line.expect("it prints its issuer before it exits");
        provider.issuer = line.expect("text");
        Some(provider)
    }

    /// Its issuer, without a slash at its end.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The table of a login service's file that configures it under this name.
    #[must_use]
    pub fn table(&self, name: &str) -> String {
        self.table_of(name, &self.issuer)
    }

    /// The same, with the issuer `ISSUER/NAME`, whose documents have their own addresses.
    #[must_use]
    pub fn table_of_own(&self, name: &str) -> String {
        self.table_of(name, &format!("{}/{name}", self.issuer))
    }

    /// The same, with this issuer.
    #[must_use]
    pub fn table_of(&self, name: &str, issuer: &str) -> String {
        format!(
            "[providers.{name}]\nkind = \"oidc\"\nissuer = \"{issuer}\"\nclient_id = \"{CLIENT_ID}\"\n\
             client_secret = \"{CLIENT_SECRET}\"\n"
        )
    }

    /// Changes its settings, which `server.mjs` lists.
    ///
    /// # Panics
    ///
    /// When it has ended.
    pub async fn control(&self, settings: Value) {
        let url = format!("{}/control", self.issuer);
        let sent = self.http.post(url).body(settings.to_string()).send().await;
        let response = sent.expect("the provider answers");
        assert!(response.status().is_success(), "{settings}: {response:?}");
    }

    /// Registers the client's callback. Before, it has none.
    ///
    /// # Panics
    ///
    /// See [`Self::control`].
    pub async fn register(&self, callback: &str) {
        self.control(json!({ "redirect_uri": callback })).await;
    }

    /// How often each path was requested. Pages are `/interaction/*`.
    ///
    /// # Panics
    ///
    /// When it has ended.
    pub async fn counts(&self) -> BTreeMap<String, u64> {
        let url = format!("{}/control", self.issuer);
        let sent = self.http.get(url).send().await;
        let response = Response::read(sent.expect("the provider answers")).await;
        serde_json::from_value(response.ok()).expect("numbers")
    }

    /// How often a path was requested.
    ///
    /// # Panics
    ///
    /// When it has ended.
    pub async fn count(&self, path: &str) -> u64 {
        self.counts().await.get(path).copied().unwrap_or(0)
    }
}

impl Drop for OpenIdProvider {
    fn drop(&mut self) {
        // Fails only if it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The `sub` of the person who enters this name.
#[must_use]
pub fn subject_of(name: &str) -> String {
    format!("sub-{}", hex::encode(name))
}

/// On its page: enters a name, presses a button, and stops at the redirect to the callback.
///
/// # Panics
///
/// When this is not its page.
pub async fn decide(browser: &mut Browser, page: &Page, name: &str, decision: Decision) -> Page {
    let form = page.forms().into_iter().next();
    let form = form.unwrap_or_else(|| panic!("no form: {}", page.response.summary()));
    let pressed = match decision {
        Decision::Allow => "allow",
        Decision::Deny => "deny",
    };
    let fields = [("name", name), ("decision", pressed)];
    let resume = browser.submit(page, &form, &fields).await;
    let resume = resume.redirect().expect("back to the authorization");
    browser.step(resume.as_str()).await
}
