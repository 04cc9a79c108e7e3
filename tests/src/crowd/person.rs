//! One simulated user: logs in by polling, calls with the credential, and starts over.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;
use url::Url;

use super::{Interrupted, Login, Outcome, Record, Sent};
use crate::{
    browser::{Browser, Decision, Page},
    logins::{PollingLogin, credential},
    response::Response,
    signed_client::{Call, SignedClient},
    stack::{Application, Stack},
};

/// Provider users that one simulated user logs in as, in turn.
const USERS: u64 = 3;
/// Pause before a retry after a failure, as a client would make.
const PAUSE: Duration = Duration::from_millis(20);
/// Timeout of a login's result, damage included.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(60);

/// A request failed; the record says how.
struct Failed;

#[derive(Debug)]
pub(super) struct Person {
    number: usize,
    /// One client for each gateway.
    clients: Vec<SignedClient>,
    /// The gateways' origins; the first is the public one.
    origins: Vec<String>,
    version: &'static str,
    /// Index of the current gateway, modulo their number.
    gateway: AtomicUsize,
    /// Number of completed logins.
    pub(super) completed: Arc<AtomicU64>,
    record: Mutex<Record>,
}

impl Person {
    pub(super) fn new(stack: &Stack, number: usize, application: Option<&Application>) -> Self {
        let client = |gateway| {
            let client = match application {
                Some(application) => stack.client_of_at(application, gateway),
                None => stack.client_at(gateway),
            };
            client.without_keep_alive()
        };
        let gateways = 0..stack.gateways();
        Self {
            number,
            clients: gateways.clone().map(client).collect(),
            origins: gateways.map(|gateway| stack.origin_of(gateway)).collect(),
            version: ["v1", "v2"][number / 2 % 2],
            gateway: AtomicUsize::new(number),
            completed: Arc::default(),
            record: Mutex::default(),
        }
    }

    pub(super) async fn run(self, is_stopping: impl Fn() -> bool) -> Record {
        let mut browser = Browser::without_keep_alive();
        while !is_stopping() {
            let turn = self.completed.load(Ordering::Relaxed) % USERS;
            let user = format!("any:{}-{turn}", self.number);
            browser.clear_cookies();
            if let Ok(login) = self.log_in(&mut browser, &user).await {
                let credential = credential(&login).to_owned();
                self.call_with(&credential).await;
                self.note(|record| {
                    record.logins.push(Login {
                        user,
                        is_new: login["created"] == true,
                        credential,
                    });
                });
                self.completed.fetch_add(1, Ordering::Relaxed);
            } else {
                tokio::time::sleep(PAUSE).await;
            }
        }
        self.record.into_inner().expect("no user panics")
    }

    /// Logs in once, and returns the login result.
    async fn log_in(&self, browser: &mut Browser, user: &str) -> Result<Value, Failed> {
        let mut token = None;
        let outcome = async {
            let begin = self.send("begin", |client| {
                client.post("/login").version(self.version).signed()
            });
            let begun = PollingLogin::from_response(&begin.await?.ok());
            token = Some(begun.token.clone());
            let walk = self.confirm_in_browser(browser, &begun, user);
            let (_, login) = tokio::try_join!(walk, self.poll_result(&begun.token))?;
            Ok(login)
        }
        .await;
        if outcome.is_err() {
            let user = user.to_owned();
            self.note(|record| record.interrupted.push(Interrupted { user, token }));
        }
        outcome
    }

    /// The browser's part of a login.
    async fn confirm_in_browser(
        &self,
        browser: &mut Browser,
        begun: &PollingLogin,
        user: &str,
    ) -> Result<(), Failed> {
        let page = self.step("page", browser, &begun.authorize_url).await?;
        let confirmation = page.confirmation().expect("the page has a button");
        let confirmed = self.step("confirm", browser, confirmation.as_str()).await?;
        let provider = browser.open(target(&confirmed).as_str()).await;
        let decided = browser.decide(&provider, user, Decision::Allow).await;
        self.step("callback", browser, target(&decided).as_str())
            .await?;
        Ok(())
    }

    /// The client's part of a login: polls `/check` until the login has ended, and returns its result.
    async fn poll_result(&self, token: &str) -> Result<Value, Failed> {
        let start = Instant::now();
        let mut checked = Value::Null;
        while start.elapsed() < LOGIN_TIMEOUT {
            let check = self.send("check", |client| {
                let call = client.post("/check").version(self.version);
                call.param("token", token).param("wait", "5")
            });
            let Ok(response) = check.await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            checked = response.ok();
            match checked["status"].as_str() {
                Some("pending") => {}
                Some("complete") => return Ok(checked["login"].clone()),
                _ => break,
            }
        }
        // No single request failed. The failure is recorded with the present time, so that damage at this time explains
        // it.
        let outcome = Outcome::Rejected(200, checked.to_string());
        self.record_sent("outcome", Instant::now(), outcome);
        Err(Failed)
    }

    /// Reads the account, and sends an event. Failures are in the record.
    async fn call_with(&self, credential: &str) {
        let user = self.send("user", |client| {
            let call = client.get("/user").version(self.version);
            call.authorization(credential)
        });
        let _ = user.await;
        let event = self.send("event", |client| {
            let call = client.post("/event/send").version(self.version);
            call.authorization(credential).param("event", "crowd")
        });
        let _ = event.await;
    }

    /// Sends a signed call, and records its outcome.
    async fn send(
        &self,
        what: &'static str,
        call: impl Fn(&SignedClient) -> Call<'_>,
    ) -> Result<Response, Failed> {
        let mut gateways_left = self.clients.len();
        loop {
            let turn = self.turn();
            let client = &self.clients[turn % self.clients.len()];
            let start = Instant::now();
            let response = call(client).try_send().await;
            gateways_left -= 1;
            if gateways_left == 0 || !self.moves_on(turn, &response) {
                return self.record_outcome(what, start, response, |response| response);
            }
        }
    }

    /// Opens one page of the gateway in the browser, and records the outcome.
    async fn step(
        &self,
        what: &'static str,
        browser: &mut Browser,
        url: &str,
    ) -> Result<Page, Failed> {
        let mut gateways_left = self.origins.len();
        loop {
            let turn = self.turn();
            browser.route_through(&self.origins[0], &self.origins[turn % self.origins.len()]);
            let start = Instant::now();
            let page = browser.try_step(url).await;
            gateways_left -= 1;
            if gateways_left == 0 || !self.moves_on(turn, &page) {
                return self.record_outcome(what, start, page, |page| &page.response);
            }
        }
    }

    /// The current value of `gateway`.
    fn turn(&self) -> usize {
        self.gateway.load(Ordering::Relaxed)
    }

    /// Moves on to the next gateway if this one refused the connection: then the request was not sent. If browser and
    /// client detect the same failure, only one of them advances the index.
    fn moves_on<T>(&self, turn: usize, sent: &reqwest::Result<T>) -> bool {
        let is_refused = sent.as_ref().is_err_and(reqwest::Error::is_connect);
        if is_refused {
            let order = Ordering::Relaxed;
            let _ = self.gateway.compare_exchange(turn, turn + 1, order, order);
        }
        is_refused
    }

    fn record_outcome<T>(
        &self,
        what: &'static str,
        start: Instant,
        sent: reqwest::Result<T>,
        response: impl Fn(&T) -> &Response,
    ) -> Result<T, Failed> {
        let outcome = match sent.as_ref().map(response) {
            // The page that reloads itself: an earlier try of the gateway has claimed the login, and was interrupted.
            Ok(response) if response.header("refresh").is_some() => {
                Outcome::Rejected(response.status.as_u16(), "being completed".to_owned())
            }
            Ok(response) if response.status.is_success() || response.status.is_redirection() => {
                Outcome::Done
            }
            Ok(response) => Outcome::Rejected(response.status.as_u16(), response.text()),
            Err(cause) => Outcome::NoResponse(format!("{cause:?}")),
        };
        let is_done = outcome == Outcome::Done;
        self.record_sent(what, start, outcome);
        sent.ok().filter(|_| is_done).ok_or(Failed)
    }

    fn record_sent(&self, what: &'static str, start: Instant, outcome: Outcome) {
        let end = Instant::now();
        self.note(|record| {
            record.sent.push(Sent {
                what,
                start,
                end,
                outcome,
            });
        });
    }

    fn note(&self, note: impl FnOnce(&mut Record)) {
        note(&mut self.record.lock().expect("no user panics"));
    }
}

/// The target of a redirect.
fn target(page: &Page) -> Url {
    page.redirect()
        .unwrap_or_else(|| panic!("no redirect: {}", page.response.summary()))
}
