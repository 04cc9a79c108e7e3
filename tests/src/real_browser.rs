//! A real browser: headless Chromium, driven through `ChromeDriver` by the W3C `WebDriver` protocol.
//!
//! It proves what an imitation cannot: that a browser keeps our cookies, follows our redirects, and shows
//! our pages under their own Content-Security-Policy. Both programs are Debian's; `scripts/prerequisites`
//! installs them. This module starts and stops them; `fantoccini` implements the protocol.

mod driver;

use std::time::Duration;

pub use fantoccini::key::Key;
use fantoccini::{
    Client, ClientBuilder, Locator,
    actions::{InputSource, KeyAction, KeyActions},
    error::CmdError,
    wd::{Capabilities, WebDriverCompatibleCommand},
};
use http::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use url::{ParseError, Url};

use self::driver::Driver;
use crate::waiting::until;

/// Timeout of a page load, and of a script.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A browser with an empty profile. It is stopped when this is dropped.
#[derive(Debug)]
pub struct RealBrowser {
    client: Client,
    _driver: Driver,
}

impl RealBrowser {
    /// Starts a browser whose user prefers `language` (`Accept-Language`).
    ///
    /// # Panics
    ///
    /// When Chromium or its driver is missing, or does not start.
    pub async fn start(language: &str) -> Self {
        Self::start_with(language, &[]).await
    }

    /// The same; the browser also trusts a certificate whose key has this fingerprint.
    ///
    /// # Panics
    ///
    /// As [`Self::start`].
    pub async fn start_trusting(language: &str, fingerprint: &str) -> Self {
        let trust = format!("--ignore-certificate-errors-spki-list={fingerprint}");
        Self::start_with(language, &[trust]).await
    }

    async fn start_with(language: &str, further: &[String]) -> Self {
        let mut driver = Driver::start().await;
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities(language, &driver, further))
            .connect(&driver.url())
            .await
            .expect("chromedriver starts Chromium");
        let session = client.session_id().await.expect("the session lives");
        driver.session = session;
        // The driver ends the session: a drop cannot wait for the client to do so.
        client.persist().await.expect("the session lives");
        Self {
            client,
            _driver: driver,
        }
    }

    /// Opens a URL.
    ///
    /// # Panics
    ///
    /// When the browser cannot, for example because the connection is refused.
    pub async fn open(&self, url: &str) {
        self.client.goto(url).await.expect("the URL opens");
    }

    /// Reloads the page, as its button of the browser does.
    ///
    /// # Panics
    ///
    /// When the browser has ended.
    pub async fn reload(&self) {
        self.client.refresh().await.expect("the page reloads");
    }

    /// Goes back, as the browser's button does.
    ///
    /// # Panics
    ///
    /// When the browser has ended.
    pub async fn back(&self) {
        self.client.back().await.expect("the browser goes back");
    }

    /// The URL of the shown page.
    ///
    /// # Panics
    ///
    /// When the browser has ended.
    pub async fn address(&self) -> String {
        let url = self.client.current_url().await;
        url.expect("the browser has a URL").into()
    }

    /// The visible text of the page.
    pub async fn text(&self) -> String {
        self.evaluate("document.body?.innerText ?? ''").await
    }

    /// The document's language.
    pub async fn language(&self) -> String {
        self.evaluate("document.documentElement.lang").await
    }

    /// Clicks the element of a CSS selector, once it exists.
    pub async fn click(&self, selector: &str) {
        until(selector, || async {
            // The page may change between find and click: then both are repeated.
            let element = self.client.find(Locator::Css(selector)).await.ok()?;
            element.click().await.ok()
        })
        .await;
    }

    /// Waits until the page contains `words`, and returns its text.
    pub async fn wait_for_text(&self, words: &str) -> String {
        until(words, || async {
            let text = self.text().await;
            text.contains(words).then_some(text)
        })
        .await
    }

    /// Shows pages as on a screen of this width in CSS pixels, and in the dark colour scheme or the light one.
    ///
    /// # Panics
    ///
    /// When the browser has ended.
    pub async fn show_as(&self, width: u32, is_dark: bool) {
        let metrics =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        let value = if is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.command("Emulation.setDeviceMetricsOverride", metrics)
            .await;
        self.command("Emulation.setEmulatedMedia", media).await;
    }

    /// Makes the screen as high as the shown page.
    ///
    /// # Panics
    ///
    /// When the browser has ended.
    pub async fn show_whole(&self) {
        let size = "const page = document.documentElement; return [innerWidth, page.scrollHeight]";
        let size = self.run(size).await;
        let metrics =
            json!({ "width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": false });
        self.command("Emulation.setDeviceMetricsOverride", metrics)
            .await;
    }

    /// A screenshot of the page, as PNG.
    ///
    /// # Panics
    ///
    /// When the browser has ended.
    pub async fn picture(&self) -> Vec<u8> {
        let picture = self.client.screenshot().await;
        picture.expect("the browser shows a page")
    }

    /// Prefers this language from now on (`Accept-Language`).
    ///
    /// # Panics
    ///
    /// When the browser has ended.
    pub async fn prefer(&self, language: &str) {
        let agent = self.evaluate("navigator.userAgent").await;
        let params = json!({ "userAgent": agent, "acceptLanguage": language });
        self.command("Emulation.setUserAgentOverride", params).await;
    }

    /// Presses keys, one after the other, in what has the focus.
    ///
    /// # Panics
    ///
    /// When the browser has ended.
    pub async fn press(&self, keys: &[Key]) {
        let mut actions = KeyActions::new("keyboard".to_owned());
        for key in keys {
            let value = char::from(*key);
            actions = actions
                .then(KeyAction::Down { value })
                .then(KeyAction::Up { value });
        }
        let pressed = self.client.perform_actions(actions).await;
        pressed.expect("the browser has a keyboard");
    }

    /// Types a text into what has the focus.
    ///
    /// # Panics
    ///
    /// When the browser has ended.
    pub async fn enter(&self, text: &str) {
        let mut actions = KeyActions::new("keyboard".to_owned());
        for value in text.chars() {
            actions = actions
                .then(KeyAction::Down { value })
                .then(KeyAction::Up { value });
        }
        let entered = self.client.perform_actions(actions).await;
        entered.expect("the browser has a keyboard");
    }

    /// The errors and warnings of the page's console, for example a violated policy.
    ///
    /// # Panics
    ///
    /// When the browser has ended.
    pub async fn console_errors(&self) -> Vec<String> {
        let log = self.client.issue_cmd(ReadConsole).await;
        let log = log.expect("chromedriver returns the console's lines");
        let lines = log.as_array().into_iter().flatten();
        lines
            .map(|line| line["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Runs the body of an asynchronous function in the page, and returns its result; of an error, its text.
    ///
    /// # Panics
    ///
    /// When the browser has ended, or the script takes longer than a minute.
    pub async fn run(&self, body: &str) -> Value {
        self.try_run(body).await.expect("the script runs")
    }

    /// As [`Self::run`].
    ///
    /// # Errors
    ///
    /// The page was replaced meanwhile, among others.
    pub async fn try_run(&self, body: &str) -> Result<Value, CmdError> {
        let script = format!(
            "const done = arguments[arguments.length - 1];\
             (async () => {{ {body} }})().then(done, error => done(String(error)));"
        );
        self.client.execute_async(&script, Vec::new()).await
    }

    /// Runs a command of the `DevTools` protocol.
    async fn command(&self, name: &str, params: Value) {
        let command = DevTools(json!({ "cmd": name, "params": params }));
        let result = self.client.issue_cmd(command).await;
        result.expect("chromedriver passes the command on");
    }

    /// Evaluates an expression in one step, so that the page cannot change in between.
    async fn evaluate(&self, expression: &str) -> String {
        let script = format!("return {expression}");
        let value = self.client.execute(&script, Vec::new()).await;
        let value = value.expect("the script runs");
        value.as_str().unwrap_or_default().to_owned()
    }
}

/// The browser that chromedriver shall start.
fn capabilities(language: &str, driver: &Driver, further: &[String]) -> Capabilities {
    let mut arguments = vec![
        "--headless=new".to_owned(),
        // The tests may run as root, where Chromium has no sandbox.
        "--no-sandbox".to_owned(),
        "--disable-gpu".to_owned(),
        "--disable-dev-shm-usage".to_owned(),
        "--no-first-run".to_owned(),
        "--disable-background-networking".to_owned(),
        "--disable-component-update".to_owned(),
        "--disable-sync".to_owned(),
        "--disable-quic".to_owned(),
        "--window-size=900,700".to_owned(),
        format!("--user-data-dir={}", driver.profile().display()),
        format!("--accept-lang={language}"),
    ];
    arguments.extend_from_slice(further);
    let options = json!({
        "args": arguments,
        "prefs": { "intl.accept_languages": language },
    });
    let timeout = TIMEOUT.as_millis();
    Capabilities::from_iter([
        ("browserName".to_owned(), json!("chrome")),
        ("goog:chromeOptions".to_owned(), options),
        (
            "timeouts".to_owned(),
            json!({ "pageLoad": timeout, "script": timeout }),
        ),
    ])
}

/// Chromedriver's own command that passes a command of the `DevTools` protocol on.
#[derive(Debug)]
struct DevTools(Value);

impl WebDriverCompatibleCommand for DevTools {
    fn endpoint(&self, base_url: &Url, session_id: Option<&str>) -> Result<Url, ParseError> {
        let session = session_id.unwrap_or_default();
        base_url.join(&format!("session/{session}/goog/cdp/execute"))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.0.to_string()))
    }
}

/// Chromedriver's own command that reads and empties the console's log.
#[derive(Debug)]
struct ReadConsole;

impl WebDriverCompatibleCommand for ReadConsole {
    fn endpoint(&self, base_url: &Url, session_id: Option<&str>) -> Result<Url, ParseError> {
        let session = session_id.unwrap_or_default();
        base_url.join(&format!("session/{session}/se/log"))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        let body = json!({ "type": "browser" }).to_string();
        (Method::POST, Some(body))
    }
}
