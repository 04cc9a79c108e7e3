//! A library's `run-vectors`, which obeys a command of JSON in each line: `gateway/clients` has one for each language.

use std::{process::Stdio, time::Duration};

use end_to_end::{
    browser::{Browser, Decision},
    client_library::library,
    recording_backend::RecordingBackend,
    stack::{APP_KEY, Application, Stack},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
    time::timeout,
};

/// How long an answer may take: some languages compile first.
const MAX_ANSWER: Duration = Duration::from_secs(120);

/// A library's program that calls a gateway.
pub(super) struct Driver {
    pub(super) language: &'static str,
    child: Child,
    input: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Driver {
    pub(super) fn start(language: &'static str) -> Self {
        Self::start_with(language, Stdio::inherit())
    }

    pub(super) fn start_with(language: &'static str, errors: Stdio) -> Self {
        let mut command = tokio::process::Command::new(library(language).join("run-vectors"));
        command.kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(errors).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            language,
            input: child.stdin.take().unwrap(),
            answers,
            child,
        }
    }

    /// Ends it, and returns what it wrote to standard error, which is a pipe.
    pub(super) async fn end(self) -> String {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        let mut errors = Vec::new();
        let mut pipe = child.stderr.take().unwrap();
        let read = timeout(MAX_ANSWER, pipe.read_to_end(&mut errors)).await;
        read.unwrap_or_else(|_| panic!("{}: it does not end", self.language))
            .unwrap();
        String::from_utf8_lossy(&errors).into_owned()
    }

    pub(super) async fn send(&mut self, command: &Value) {
        let line = format!("{command}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
    }

    pub(super) async fn answer(&mut self) -> Value {
        let line = timeout(MAX_ANSWER, self.answers.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("{}: no answer", self.language));
        let line = line
            .unwrap()
            .unwrap_or_else(|| panic!("{}: it ended", self.language));
        serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("{}: {error}: {line}", self.language))
    }

    pub(super) async fn ask(&mut self, command: Value) -> Value {
        self.send(&command).await;
        self.answer().await
    }

    /// A new client of an application, with further settings.
    pub(super) async fn client(&mut self, stack: &Stack, app: &Application, further: Value) {
        self.client_at(&stack.origin(), app, further).await;
    }

    async fn client_at(&mut self, url: &str, app: &Application, further: Value) {
        let mut settings = json!({ "url": url, "key": app.key, "app": app.ident });
        let members = further.as_object().unwrap().clone();
        settings.as_object_mut().unwrap().extend(members);
        let made = self.ask(json!({ "new": settings })).await;
        assert_eq!(made["ok"], true, "{}: {made}", self.language);
    }

    /// A new client of a server without a gateway.
    pub(super) async fn client_of(&mut self, server: &RecordingBackend, further: Value) {
        let url = format!("http://{}", server.address());
        self.client_by(&url, further).await;
    }

    /// The same, by its address.
    pub(super) async fn client_by(&mut self, url: &str, further: Value) {
        let app = Application {
            ident: "demo".to_owned(),
            key: APP_KEY.to_owned(),
        };
        self.client_at(url, &app, further).await;
    }

    /// Calls, which begins a login and needs no account.
    pub(super) async fn begin(&mut self) -> Value {
        let pairs = json!([
            ["provider", "bitbucket"],
            ["q", "it's a/b+c ~*()! 张 \u{1f600}"],
            ["empty", ""],
            ["10", "x"],
            ["9", "0"]
        ]);
        self.ask(json!({ "call": { "method": "POST", "path": "/login", "pairs": pairs } }))
            .await
    }

    /// As the person who opens the address and allows the login.
    pub(super) async fn log_in(&mut self) -> Value {
        let begun = self
            .ask(json!({ "login": { "provider": "bitbucket" } }))
            .await;
        let (address, code) = (begun["open"].as_str(), begun["user_code"].as_str());
        let mut browser = Browser::default();
        let page = browser
            .open(address.unwrap_or_else(|| panic!("{}: {begun}", self.language)))
            .await;
        assert!(
            page.text().contains(code.unwrap()),
            "{}: {begun}",
            self.language
        );
        let provider = browser.confirm(&page).await;
        browser
            .decide_and_follow(&provider, "ada", Decision::Allow)
            .await;
        self.answer().await
    }
}
