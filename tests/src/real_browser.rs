//! A real browser: headless Chromium, driven through `ChromeDriver` by the W3C `WebDriver` protocol.
//!
//! For what an imitation cannot prove: that a browser keeps our cookies, follows our redirects, and shows
//! our pages under their own Content-Security-Policy. Both programs are Debian's; `scripts/prerequisites`
//! installs them.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use reqwest::Client;
use serde_json::{Value, json};

use crate::{
    folder::Folder,
    port::free_address,
    waiting::{PATIENCE, until},
};

/// One browser with one empty profile. It ends when this is dropped.
#[derive(Debug)]
pub struct RealBrowser {
    driver: Child,
    address: SocketAddr,
    http: Client,
    session: String,
    // The profile goes after the driver has ended.
    profile: Folder,
}

impl RealBrowser {
    /// Starts a browser whose person reads `language` (`Accept-Language`).
    ///
    /// # Panics
    ///
    /// When Chromium or its driver is missing, or does not start.
    pub async fn start(language: &str) -> Self {
        let address = free_address();
        let profile = Folder::create();
        let driver = Command::new("chromedriver")
            .arg(format!("--port={}", address.port()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is installed: run scripts/prerequisites test");
        let http = Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(60))
            .build()
            .expect("a client without TLS of its own needs nothing");
        let mut browser = Self {
            driver,
            address,
            http,
            session: String::new(),
            profile,
        };
        until("chromedriver to be ready", || async {
            let status = browser.http.get(browser.url("/status")).send().await.ok()?;
            let status: Value = status.json().await.ok()?;
            (status["value"]["ready"] == true).then_some(())
        })
        .await;
        let arguments = [
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
            format!("--user-data-dir={}", browser.profile.path().display()),
            format!("--accept-lang={language}"),
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {
                "args": arguments,
                "prefs": {"intl.accept_languages": language},
            },
        }}});
        let created = browser.command("/session", &wanted).await;
        browser.session = created["sessionId"]
            .as_str()
            .expect("a session has an id")
            .to_owned();
        browser
    }

    /// Opens an address.
    pub async fn open(&self, url: &str) {
        self.command(&self.in_session("/url"), &json!({ "url": url }))
            .await;
    }

    /// The address that is shown.
    pub async fn address(&self) -> String {
        text(&self.read("/url").await)
    }

    /// What a person can read on the page.
    pub async fn text(&self) -> String {
        self.evaluate("document.body?.innerText ?? ''").await
    }

    /// The document's language.
    pub async fn language(&self) -> String {
        self.evaluate("document.documentElement.lang").await
    }

    /// Clicks the element of a CSS selector, once it is there.
    pub async fn click(&self, selector: &str) {
        until(selector, || async {
            let element = self.find(selector).await?;
            let click = self.url(&self.in_session(&format!("/element/{element}/click")));
            let clicked: Value = self
                .http
                .post(click)
                .json(&json!({}))
                .send()
                .await
                .ok()?
                .json()
                .await
                .ok()?;
            // The page may have changed since the element was found.
            clicked["value"].get("error").is_none().then_some(())
        })
        .await;
    }

    /// Waits until the page has a text.
    pub async fn awaits(&self, words: &str) -> String {
        until(words, || async {
            let text = self.text().await;
            text.contains(words).then_some(text)
        })
        .await
    }

    /// A picture of the page, in PNG's bytes, base64.
    pub async fn picture(&self) -> String {
        text(&self.read("/screenshot").await)
    }

    /// What the page's console complained of: a policy that was broken, say. Browsers ask every site for an
    /// icon by themselves; that there is none is no complaint.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self
            .command(&self.in_session("/se/log"), &json!({"type": "browser"}))
            .await;
        let lines = log.as_array().cloned().unwrap_or_default();
        let complaints = lines.iter().map(|line| text(&line["message"]));
        complaints
            .filter(|line| !line.contains("/favicon.ico"))
            .collect()
    }

    /// In one step, so that no other page can come in between.
    async fn evaluate(&self, expression: &str) -> String {
        let script = json!({"script": format!("return {expression}"), "args": []});
        text(
            &self
                .command(&self.in_session("/execute/sync"), &script)
                .await,
        )
    }

    async fn find(&self, selector: &str) -> Option<String> {
        let wanted = json!({"using": "css selector", "value": selector});
        let sent = self
            .http
            .post(self.url(&self.in_session("/element")))
            .json(&wanted)
            .send();
        let found: Value = sent.await.ok()?.json().await.ok()?;
        let reference = found["value"].as_object()?.values().next()?;
        found["value"]
            .get("error")
            .is_none()
            .then(|| text(reference))
    }

    async fn read(&self, path: &str) -> Value {
        let sent = self.http.get(self.url(&self.in_session(path))).send().await;
        value(sent.expect("chromedriver answers")).await
    }

    async fn command(&self, path: &str, body: &Value) -> Value {
        let sent = self.http.post(self.url(path)).json(body).send().await;
        value(sent.expect("chromedriver answers")).await
    }

    /// Without async, since it is for the drop.
    fn end_session(&self) -> std::io::Result<()> {
        let mut connection = TcpStream::connect(self.address)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        let (path, host) = (self.in_session(""), self.address);
        write!(
            connection,
            "DELETE {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )?;
        // The driver answers when the session has ended, and then keeps the connection.
        connection.read(&mut [0; 1024]).map(drop)
    }

    fn in_session(&self, path: &str) -> String {
        format!("/session/{}{path}", self.session)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for RealBrowser {
    fn drop(&mut self) {
        // Chromium writes to its profile until its last process has ended, and only then can that go.
        let _ = self.end_session();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        let profile = self.profile.path().display().to_string();
        let deadline = Instant::now() + PATIENCE;
        while is_on_a_command_line(&profile) && Instant::now() < deadline {
            thread::yield_now();
        }
    }
}

/// Whether a process was started with this text among its arguments.
fn is_on_a_command_line(text: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .any(|arguments| String::from_utf8_lossy(&arguments).contains(text))
}

async fn value(response: reqwest::Response) -> Value {
    let mut answer: Value = response.json().await.expect("chromedriver speaks JSON");
    let value = answer["value"].take();
    assert!(value.get("error").is_none(), "the browser says: {value}");
    value
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
