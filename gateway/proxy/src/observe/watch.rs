//! Requests that operators watch as they come, and the last ones that were rejected. Of a request, what its line in the
//! access log has, and of a rejected one the names of its parameters: no value of a parameter, and no secret.
//!
//! | what | limit |
//! | --- | --- |
//! | requests that a watcher gets in a second; further ones are counted | 50 |
//! | requests that a watcher can be behind; further ones are counted | 100 |
//! | rejected requests that are kept: for each thread, in each of its two values | 200 |
//! | parameters of one: their names, up to 64 bytes each, and lengths | 24 |
//!
//! Without a watcher, a request that is not rejected costs one load.

use std::{
    borrow::Cow,
    collections::VecDeque,
    error::Error as _,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use serde::{Deserialize, Deserializer, Serialize, de};
use signpost_kit::clock::Timestamp;
use signpost_protocol::{
    header::HeaderNames,
    language::Language,
    log_text,
    problem::{Problem, ProblemCode},
    text::text,
};
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    time::{Instant, timeout_at},
};

use super::{access_log::milliseconds, outcome::Outcome, per_thread::PerThread};
use crate::{
    config::{as_rfc3339, parse_since},
    phases::error_response::arguments,
    request::rejection::{Arguments, Hint, Rejection, pairs},
};

/// Requests that a watcher gets in a second.
const MAX_IN_SECOND: u32 = 50;
/// Requests that a watcher can be behind.
const MAX_BEHIND: usize = 100;
/// Limit of a name that is kept.
const MAX_NAME_BYTES: usize = 64;
/// Parameters of a rejected request that are kept.
const MAX_PARAMS: usize = 24;
/// Rejected requests that each of a thread's two values keeps.
const MAX_REJECTED: usize = 200;
const SECOND: Duration = Duration::from_secs(1);

/// A request that has ended.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SeenRequest {
    /// When it ended.
    #[serde(serialize_with = "as_rfc3339", deserialize_with = "of_rfc3339")]
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// Its id, as `X-Request-Id` of its response has it.
    pub request_id: String,
    /// The client's address.
    pub client: String,
    /// The method.
    pub method: String,
    /// The path, without the query; a long one is cut.
    pub path: String,
    /// The ident of the application that it names; null without one.
    #[cfg_attr(feature = "schema", schema(required))]
    pub app: Option<String>,
    /// The version that it was routed to; null if it was rejected before.
    #[cfg_attr(feature = "schema", schema(required))]
    pub version: Option<String>,
    /// The status of its response; 0 without a complete one.
    pub status: u16,
    /// From its head to the end of its response, in ms.
    pub duration_ms: f64,
    /// The problem's code; null without a problem.
    #[cfg_attr(feature = "schema", schema(required))]
    pub code: Option<String>,
    /// The name of the mistake that explains `time_invalid`, `time_out_of_window` or `sign_mismatch`; null if none was found.
    #[cfg_attr(feature = "schema", schema(required))]
    pub hint: Option<String>,
    /// The title of the gateway's problem, in the reader's language; null without one.
    #[cfg_attr(feature = "schema", schema(required))]
    pub title: Option<String>,
    /// Its detail.
    #[cfg_attr(feature = "schema", schema(required))]
    pub detail: Option<String>,
    /// Its hint.
    #[cfg_attr(feature = "schema", schema(required))]
    pub hint_text: Option<String>,
    /// The address of the backend that it was sent to last; null if it was not forwarded.
    #[cfg_attr(feature = "schema", schema(required))]
    pub backend: Option<String>,
    /// What failed, as the access log has it: the fault of a backend or of the store, the change that does not apply and its
    /// place; null if the problem says everything.
    #[cfg_attr(feature = "schema", schema(required))]
    pub error: Option<String>,
    /// What the texts are made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(ignore))]
    said: Option<Said>,
    /// The first 24 parameters of a rejected request, in the order in which they were sent; those of the form only if the
    /// parameters are why it was rejected.
    pub params: Vec<SeenParam>,
}

/// What a response said, in no language: the arguments of the detail, and the sentences of the hint with theirs.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Said {
    detail: Arguments<Cow<'static, str>>,
    hint: Vec<(Cow<'static, str>, Arguments<Cow<'static, str>>)>,
}

impl Said {
    fn new(rejection: &Rejection, names: &HeaderNames) -> Self {
        let kept = |arguments: Arguments| {
            let arguments = arguments.into_iter();
            arguments
                .map(|(name, value)| (name.into(), value))
                .collect()
        };
        let hint = rejection.hint().map_or_else(Vec::new, Hint::sentences);
        let hint = hint.into_iter();
        Self {
            detail: kept(arguments(rejection, names)),
            hint: hint
                .map(|(key, arguments)| (key.into(), kept(arguments)))
                .collect(),
        }
    }
}

/// A parameter as it was sent, without its value.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SeenParam {
    /// The name, if it has letters, digits and `_.[]-` only, 64 at most: anything else can be a part of a value. One that looks like
    /// a key is cut.
    #[cfg_attr(feature = "schema", schema(required))]
    pub name: Option<String>,
    /// Bytes of the value.
    pub length: usize,
    /// Whether it is in the form.
    pub in_form: bool,
}

/// Reads the time of a request that another gateway has seen.
fn of_rfc3339<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_since(&text, Timestamp::from_millis(0)).map_err(de::Error::custom)
}

impl SeenRequest {
    fn new(outcome: &Outcome<'_>, at: Timestamp, names: &HeaderNames) -> Self {
        let (learnt, rejection) = (&outcome.learnt, outcome.rejection);
        Self {
            at,
            request_id: outcome.request_id.as_str().to_owned(),
            client: outcome.client.to_string(),
            method: log_text::method(outcome.method_text()).into_owned(),
            path: log_text::path(outcome.path).into_owned(),
            app: outcome.app_ident().map(str::to_owned),
            version: learnt.route.map(|route| route.version.name().to_string()),
            status: outcome.sent.status,
            duration_ms: milliseconds(outcome.times.whole()),
            code: outcome.problem_code().map(str::to_owned),
            hint: rejection
                .and_then(Rejection::hint)
                .map(|hint| Hint::name(hint).into_owned()),
            title: None,
            detail: None,
            hint_text: None,
            backend: outcome.sent.backend.map(|address| address.to_string()),
            error: outcome.error().map(|error| match error.source() {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            }),
            said: rejection.map(|rejection| Said::new(rejection, names)),
            params: rejection.map_or_else(Vec::new, |_| seen_params(outcome)),
        }
    }

    /// The same, with what the response said in this language.
    #[must_use]
    pub fn in_language(mut self, language: Language) -> Self {
        let code = self.code.as_deref().and_then(ProblemCode::of_word);
        if let (Some(said), Some(code)) = (self.said.take(), code) {
            let problem = Problem::new(code, language, &self.request_id);
            let problem = problem.detail_args(&pairs(&said.detail));
            let hint = said.hint.iter();
            let hint = hint.map(|(key, arguments)| text(language, key, &pairs(arguments)));
            let hint = hint.collect::<Vec<_>>().join(" ");
            (self.title, self.detail) = (Some(problem.title), Some(problem.detail));
            self.hint_text = Some(hint).filter(|hint| !hint.is_empty());
        }
        self
    }
}

/// A name that can be shown. Where a value was not encoded, its pieces look like pairs.
fn seen_name(name: &[u8]) -> Option<String> {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.[]-".contains(byte);
    let is_name = (1..=MAX_NAME_BYTES).contains(&name.len()) && name.iter().all(is_of_name);
    is_name.then(|| log_text::ident(name))
}

/// The first parameters of query and form.
fn seen_params(outcome: &Outcome<'_>) -> Vec<SeenParam> {
    let is_end = |byte: &u8| *byte == b'&';
    let (query, form) = (outcome.query.as_bytes(), outcome.learnt.form);
    let query = query.split(is_end).map(|pair| (pair, false));
    let form = form.split(is_end).map(|pair| (pair, true));
    let all = query.chain(form).filter(|(pair, _)| !pair.is_empty());
    let seen = all.map(|(pair, in_form)| {
        let end = memchr::memchr(b'=', pair);
        SeenParam {
            name: end.and_then(|end| seen_name(&pair[..end])),
            length: pair.len() - end.map_or(0, |end| end + 1),
            in_form,
        }
    });
    seen.take(MAX_PARAMS).collect()
}

/// Which requests a watcher gets.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Only those that were routed to this version.
    pub version: Option<String>,
    /// Only those that name this application.
    pub app: Option<String>,
    /// Only those with this status; 4 and 5 stand for all that begin with them.
    #[cfg_attr(feature = "schema", param(minimum = 1, maximum = 599))]
    pub status: Option<u16>,
}

impl Filter {
    fn takes(&self, outcome: &Outcome<'_>) -> bool {
        let status = outcome.sent.status;
        let is_status = |wanted| status == wanted || status / 100 == wanted;
        let version = || {
            outcome
                .learnt
                .route
                .map(|route| route.version.name().as_str())
        };
        self.status.is_none_or(is_status)
            && self
                .version
                .as_deref()
                .is_none_or(|wanted| version() == Some(wanted))
            && self
                .app
                .as_deref()
                .is_none_or(|wanted| outcome.app_ident() == Some(wanted))
    }
}

/// What operators see of the requests of this gateway.
#[derive(Default)]
pub struct Watch {
    /// The number of watchers: read for each request.
    number: AtomicUsize,
    watchers: ArcSwap<Vec<Arc<Watcher>>>,
    rejected: PerThread<VecDeque<SeenRequest>>,
}

struct Watcher {
    filter: Filter,
    sender: Sender<Arc<SeenRequest>>,
    /// How many it gets until the second ends.
    room: AtomicU32,
    /// How many it did not get.
    missed: AtomicU64,
}

impl Watch {
    /// Shows a request to those who watch, and keeps it if it was rejected.
    #[inline]
    pub fn see(&self, outcome: &Outcome<'_>, names: &HeaderNames, now: impl Fn() -> Timestamp) {
        // Relaxed: a request that ends just when a watcher begins may be missed.
        if self.number.load(Ordering::Relaxed) > 0 {
            self.show(outcome, names, &now);
        }
        if outcome.rejection.is_some() {
            let seen = SeenRequest::new(outcome, now(), names);
            let mut kept = self.rejected.own();
            let oldest = (kept.len() == MAX_REJECTED).then(|| kept.pop_front());
            kept.push_back(seen);
            // The oldest is freed after the lock: whoever collects need not wait for it.
            drop(kept);
            drop(oldest);
        }
    }

    #[cold]
    fn show(&self, outcome: &Outcome<'_>, names: &HeaderNames, now: impl Fn() -> Timestamp) {
        let mut seen = None;
        for watcher in self.watchers.load().iter() {
            if !watcher.filter.takes(outcome) {
                continue;
            }
            // Before the request is described: in a flood, a watcher costs each request a load and an addition.
            if !watcher.has_room() {
                watcher.missed.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let seen =
                seen.get_or_insert_with(|| Arc::new(SeenRequest::new(outcome, now(), names)));
            if watcher.sender.try_send(Arc::clone(seen)).is_err() {
                watcher.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Begins to watch.
    pub fn begin(self: &Arc<Self>, filter: Filter) -> Watching {
        let (sender, receiver) = channel(MAX_BEHIND);
        let watcher = Arc::new(Watcher {
            filter,
            sender,
            room: AtomicU32::new(MAX_IN_SECOND),
            missed: AtomicU64::new(0),
        });
        self.watchers.rcu(|watchers| {
            let others = watchers.iter().cloned();
            others.chain([Arc::clone(&watcher)]).collect::<Vec<_>>()
        });
        self.number.fetch_add(1, Ordering::Relaxed);
        Watching {
            watch: Arc::clone(self),
            watcher,
            receiver,
            second_ends: Instant::now() + SECOND,
        }
    }

    /// A rejected request by its id, if it is among the last ones.
    pub fn rejected(&self, request_id: &str) -> Option<SeenRequest> {
        let mut all = self.rejected.all();
        all.find_map(|kept| {
            kept.iter()
                .find(|request| request.request_id == request_id)
                .cloned()
        })
    }

    /// The last rejected requests that are like this, newest first.
    pub fn last_rejected(
        &self,
        is_wanted: impl Fn(&SeenRequest) -> bool,
        limit: usize,
    ) -> Vec<SeenRequest> {
        let mut requests = Vec::new();
        for kept in self.rejected.all() {
            requests.extend(kept.iter().filter(|request| is_wanted(request)).cloned());
        }
        requests.sort_by_key(|request| std::cmp::Reverse(request.at));
        requests.truncate(limit);
        requests
    }
}

impl Watcher {
    fn has_room(&self) -> bool {
        // Only looked at if there is none: then no processor waits for another one.
        if self.room.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let one_less = |room: u32| room.checked_sub(1);
        let room = &self.room;
        // Not `fetch_sub`: several threads could take the last place, and 0 would wrap around.
        let updated = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        updated.is_ok()
    }
}

/// Watches until it is dropped.
pub struct Watching {
    watch: Arc<Watch>,
    watcher: Arc<Watcher>,
    receiver: Receiver<Arc<SeenRequest>>,
    second_ends: Instant,
}

/// What a watcher gets.
#[derive(Debug)]
pub enum Watched {
    /// A request.
    Request(Arc<SeenRequest>),
    /// The number of requests in the last second that it did not get.
    Missed(u64),
    /// Nothing for a second.
    Nothing,
}

impl Watching {
    /// What comes next, after a second at most.
    pub async fn next(&mut self) -> Watched {
        if let Ok(Some(seen)) = timeout_at(self.second_ends, self.receiver.recv()).await {
            return Watched::Request(seen);
        }
        self.second_ends = Instant::now() + SECOND;
        self.watcher.room.store(MAX_IN_SECOND, Ordering::Relaxed);
        match self.watcher.missed.swap(0, Ordering::Relaxed) {
            0 => Watched::Nothing,
            missed => Watched::Missed(missed),
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.watch.number.fetch_sub(1, Ordering::Relaxed);
        self.watch.watchers.rcu(|watchers| {
            let others = watchers
                .iter()
                .filter(|watcher| !Arc::ptr_eq(watcher, &self.watcher));
            others.cloned().collect::<Vec<_>>()
        });
    }
}

#[cfg(test)]
mod tests {
    use signpost_protocol::request_id::RequestId;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1);

    fn names() -> HeaderNames {
        HeaderNames::new(&"Acme".parse().unwrap(), &Default::default()).unwrap()
    }

    fn id(number: usize) -> RequestId {
        format!("{number:032x}").parse().unwrap()
    }

    /// Lets a request with this number and status end.
    fn end(watch: &Watch, number: usize, status: u16) {
        let (id, rejection) = (id(number), Rejection::RequestReplayed);
        let mut outcome = Outcome::unrouted(&id);
        outcome.sent.status = status;
        outcome.rejection = (status == 400).then_some(&rejection);
        watch.see(&outcome, &names(), || NOW);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watcher_gets_so_many_in_a_second_and_the_number_of_the_others() {
        let watch = Arc::new(Watch::default());
        let filter = Filter {
            status: Some(4),
            ..Filter::default()
        };
        let mut watching = watch.begin(filter);
        for number in 0..200 {
            end(&watch, number, if number % 2 == 0 { 200 } else { 404 });
        }
        for number in 0..MAX_IN_SECOND as usize {
            let Watched::Request(seen) = watching.next().await else {
                panic!("{number}");
            };
            assert_eq!(seen.request_id, id(2 * number + 1).as_str());
            assert_eq!((seen.status, &*seen.path), (404, "/"));
        }
        assert!(matches!(watching.next().await, Watched::Missed(50)));
        end(&watch, 201, 499);
        assert!(matches!(watching.next().await, Watched::Request(_)));
        assert!(matches!(watching.next().await, Watched::Nothing));
        drop(watching);
        assert_eq!(watch.number.load(Ordering::Relaxed), 0);
        assert!(watch.watchers.load().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_read_is_behind_by_a_limit() {
        let watch = Arc::new(Watch::default());
        let mut watching = watch.begin(Filter::default());
        for second in 0..5 {
            (0..1000).for_each(|number| end(&watch, number, 200));
            watching
                .watcher
                .room
                .store(MAX_IN_SECOND, Ordering::Relaxed);
            assert!(watching.receiver.len() <= MAX_BEHIND, "{second}");
        }
        let mut requests = 0;
        while let Watched::Request(_) = watching.next().await {
            requests += 1;
        }
        assert_eq!(requests, MAX_BEHIND);
    }

    #[test]
    fn the_last_rejected_requests_are_found_by_their_ids() {
        let watch = Watch::default();
        end(&watch, 1, 200);
        (0..=MAX_REJECTED).for_each(|number| end(&watch, 1000 + number, 400));
        let found = |number| watch.rejected(id(number).as_str());
        assert!(found(1).is_none(), "it was not rejected");
        assert!(found(1000).is_none(), "too old");
        let last = found(1000 + MAX_REJECTED).unwrap();
        assert_eq!(last.code.as_deref(), Some("request_replayed"));
        assert_eq!(watch.last_rejected(|_| true, 3).len(), 3);
    }
}
