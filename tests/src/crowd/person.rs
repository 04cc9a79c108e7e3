//! One of a crowd: logs in by polling, calls with what it was given, and begins again.

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
    answer::Answer,
    browser::{Browser, Decision, Page},
    logins::{Begun, credential},
    signed_client::{Call, SignedClient},
    stack::{Application, Stack},
};

/// So many people come from one place, one after the other and again.
const USERS: u64 = 3;
/// Asked for again after so long when it went wrong, as a client would.
const PAUSE: Duration = Duration::from_millis(20);
/// A whole login takes less, whatever goes on meanwhile.
const LONGEST: Duration = Duration::from_secs(15);

/// Something went wrong; what it was is in the record.
struct Trouble;

#[derive(Debug)]
pub(super) struct Person {
    number: usize,
    /// One for each gateway.
    clients: Vec<SignedClient>,
    /// The gateways' origins; the first is the public one.
    origins: Vec<String>,
    version: &'static str,
    /// Which of them it goes to, once divided by how many there are.
    gateway: AtomicUsize,
    /// Logins.
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
            client.without_kept_connections()
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

    pub(super) async fn live(self, is_over: impl Fn() -> bool) -> Record {
        let mut browser = Browser::without_kept_connections();
        while !is_over() {
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
        self.record.into_inner().expect("nobody panics")
    }

    /// The login result.
    async fn log_in(&self, browser: &mut Browser, user: &str) -> Result<Value, Trouble> {
        let mut token = None;
        let outcome = async {
            let begin = self.ask("begin", |client| {
                client.post("/login").version(self.version).signed()
            });
            let begun = Begun::read(&begin.await?.ok());
            token = Some(begun.token.clone());
            let walk = self.walk(browser, &begun, user);
            let (_, login) = tokio::try_join!(walk, self.hear_of(&begun.token))?;
            Ok(login)
        }
        .await;
        if outcome.is_err() {
            let user = user.to_owned();
            self.note(|record| record.interrupted.push(Interrupted { user, token }));
        }
        outcome
    }

    /// The browser's way.
    async fn walk(&self, browser: &mut Browser, begun: &Begun, user: &str) -> Result<(), Trouble> {
        let page = self.step("page", browser, &begun.authorize_url).await?;
        let confirmation = page.confirmation().expect("the page has a button");
        let confirmed = self.step("confirm", browser, confirmation.as_str()).await?;
        let provider = browser.open(target(&confirmed).as_str()).await;
        let decided = browser.decide(&provider, user, Decision::Allow).await;
        self.step("callback", browser, target(&decided).as_str())
            .await?;
        Ok(())
    }

    /// The client's way: asks until it is told how the login went.
    async fn hear_of(&self, token: &str) -> Result<Value, Trouble> {
        let start = Instant::now();
        let mut heard = Value::Null;
        while start.elapsed() < LONGEST {
            let check = self.ask("check", |client| {
                let call = client.post("/check").version(self.version);
                call.param("token", token).param("wait", "5")
            });
            let Ok(answer) = check.await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            heard = answer.ok();
            match heard["status"].as_str() {
                Some("pending") => {}
                Some("complete") => return Ok(heard["login"].clone()),
                _ => break,
            }
        }
        // No request is to blame for this: it is held against the moment.
        let outcome = Outcome::Refused(200, heard.to_string());
        self.settle("outcome", Instant::now(), outcome);
        Err(Trouble)
    }

    /// Reads the account, and sends an event.
    async fn call_with(&self, credential: &str) {
        let user = self.ask("user", |client| {
            let call = client.get("/user").version(self.version);
            call.authorization(credential)
        });
        let _ = user.await;
        let event = self.ask("event", |client| {
            let call = client.post("/event/send").version(self.version);
            call.authorization(credential).param("event", "crowd")
        });
        let _ = event.await;
    }

    /// A signed call.
    async fn ask(
        &self,
        what: &'static str,
        call: impl Fn(&SignedClient) -> Call<'_>,
    ) -> Result<Answer, Trouble> {
        let mut gateways_left = self.clients.len();
        loop {
            let turn = self.turn();
            let client = &self.clients[turn % self.clients.len()];
            let start = Instant::now();
            let answer = call(client).try_send().await;
            gateways_left -= 1;
            if gateways_left == 0 || !self.moves_on(turn, &answer) {
                return self.take(what, start, answer, |answer| answer);
            }
        }
    }

    /// A step of the browser, at the gateway.
    async fn step(
        &self,
        what: &'static str,
        browser: &mut Browser,
        url: &str,
    ) -> Result<Page, Trouble> {
        let mut gateways_left = self.origins.len();
        loop {
            let turn = self.turn();
            browser.reach(&self.origins[0], &self.origins[turn % self.origins.len()]);
            let start = Instant::now();
            let page = browser.try_step(url).await;
            gateways_left -= 1;
            if gateways_left == 0 || !self.moves_on(turn, &page) {
                return self.take(what, start, page, |page| &page.answer);
            }
        }
    }

    /// Whose turn it is.
    fn turn(&self) -> usize {
        self.gateway.load(Ordering::Relaxed)
    }

    /// Nobody listens at the gateway of that turn: the request has not been sent, and goes to the next one. Browser and
    /// client may find that out at once, and go on to the same.
    fn moves_on<T>(&self, turn: usize, sent: &reqwest::Result<T>) -> bool {
        let is_refused = sent.as_ref().is_err_and(reqwest::Error::is_connect);
        if is_refused {
            let order = Ordering::Relaxed;
            let _ = self.gateway.compare_exchange(turn, turn + 1, order, order);
        }
        is_refused
    }

    fn take<T>(
        &self,
        what: &'static str,
        start: Instant,
        sent: reqwest::Result<T>,
        answer: impl Fn(&T) -> &Answer,
    ) -> Result<T, Trouble> {
        let outcome = match sent.as_ref().map(answer) {
            Ok(answer) if answer.status.is_success() || answer.status.is_redirection() => {
                Outcome::Done
            }
            Ok(answer) => Outcome::Refused(answer.status.as_u16(), answer.text()),
            Err(cause) => Outcome::Cut(format!("{cause:?}")),
        };
        let is_done = outcome == Outcome::Done;
        self.settle(what, start, outcome);
        sent.ok().filter(|_| is_done).ok_or(Trouble)
    }

    fn settle(&self, what: &'static str, start: Instant, outcome: Outcome) {
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
        note(&mut self.record.lock().expect("nobody panics"));
    }
}

/// Where a redirect leads.
fn target(page: &Page) -> Url {
    page.redirect()
        .unwrap_or_else(|| panic!("no redirect: {}", page.answer.summary()))
}
