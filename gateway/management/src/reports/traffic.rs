//! The requests of the last hour, by version and by problem, minute by minute. Each gateway reads its counters when it
//! writes its row, and has the hour in it; the management API adds up the hours of all gateways.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, VecDeque},
    mem,
};

use serde::{Deserialize, Serialize};
use signpost_kit::clock::Timestamp;
use signpost_proxy::{RequestMetrics, SeenRequest, Watch, rfc3339};
use utoipa::ToSchema;

/// Minutes that are kept.
const MINUTES: i64 = 60;
const MINUTE_MS: i64 = 60_000;
/// Applications whose rejected requests are counted in a minute, and shown of an hour.
const MAX_APPS: usize = 10;

/// Requests that were answered, rejected and failed.
type Counts = [u64; 3];

/// The hour of a gateway: a column of its row, as JSON. Minutes without a request are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Hour(VecDeque<Minute>);

/// A minute, of the clock of its gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
struct Minute {
    /// Minutes since 1970.
    at: i64,
    counted: Counted,
}

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
struct Counted {
    /// By version; the empty name counts requests that were rejected before they had a version.
    versions: BTreeMap<Box<str>, Counts>,
    /// By the code of the problem.
    problems: BTreeMap<Box<str>, u64>,
    /// Rejected requests by the application that they name, of [`MAX_APPS`] applications.
    #[serde(default)]
    apps: BTreeMap<Box<str>, u64>,
}

/// Keeps the hour of this gateway.
#[derive(Debug)]
pub struct Recorder {
    /// What the counters of the process had at the last look.
    seen: Counted,
    /// When that was.
    seen_at: Timestamp,
    hour: Hour,
}

impl Recorder {
    /// Begins with what is counted from now on.
    pub fn new(metrics: &RequestMetrics, now: Timestamp) -> Self {
        Self {
            seen: Counted::of(metrics),
            seen_at: now,
            hour: Hour::default(),
        }
    }

    /// Adds what was counted since the last look to the minute of `now`, and returns the hour as JSON. Rejected requests are
    /// counted by application as far as `watch` still has them.
    pub fn record(
        &mut self,
        metrics: &RequestMetrics,
        watch: Option<&Watch>,
        now: Timestamp,
    ) -> String {
        let total = Counted::of(metrics);
        let mut new = total.since(&self.seen);
        if let Some(watch) = watch {
            new.apps = rejected_apps(watch, self.seen_at);
        }
        (self.seen, self.seen_at) = (total, now);
        let at = minute(now);
        let minutes = &mut self.hour.0;
        // The clock may have been set back.
        for minute in minutes.iter_mut() {
            minute.at = minute.at.min(at);
        }
        if !new.versions.is_empty() {
            match minutes.back_mut() {
                Some(last) if last.at == at => last.counted.add(&new),
                _ => minutes.push_back(Minute { at, counted: new }),
            }
        }
        if let Some(last) = minutes.back_mut() {
            last.counted.keep_most_rejected();
        }
        minutes.retain(|minute| minute.at > at - MINUTES);
        serde_json::to_string(&self.hour).unwrap_or_default()
    }
}

impl Counted {
    fn of(metrics: &RequestMetrics) -> Self {
        let mut counted = Self::default();
        let Ok(()) = metrics.for_requests(|[version, _, class, problem], count| {
            let kind = match class {
                "1xx" | "2xx" | "3xx" => 0,
                "4xx" => 1,
                _ => 2,
            };
            counted.versions.entry(version.into()).or_default()[kind] += count;
            if !problem.is_empty() {
                *counted.problems.entry(problem.into()).or_default() += count;
            }
            Ok::<_, std::convert::Infallible>(())
        });
        counted
    }

    /// What was counted since `earlier`. A counter that is smaller now is a new one.
    fn since(&self, earlier: &Self) -> Self {
        let before = |name: &str| earlier.versions.get(name).copied().unwrap_or_default();
        let versions = self.versions.iter().map(|(name, counts)| {
            let (before, mut new) = (before(name), *counts);
            if new.iter().zip(&before).all(|(new, before)| new >= before) {
                new.iter_mut()
                    .zip(before)
                    .for_each(|(new, before)| *new -= before);
            }
            (name.clone(), new)
        });
        let problems = self.problems.iter().map(|(code, count)| {
            let before = earlier.problems.get(code).copied().unwrap_or_default();
            (code.clone(), count.checked_sub(before).unwrap_or(*count))
        });
        Self {
            versions: versions
                .filter(|(_, new)| new.iter().any(|count| *count > 0))
                .collect(),
            problems: problems.filter(|(_, new)| *new > 0).collect(),
            apps: BTreeMap::new(),
        }
    }

    fn keep_most_rejected(&mut self) {
        self.apps = by_number(mem::take(&mut self.apps))
            .take(MAX_APPS)
            .collect();
    }

    fn add(&mut self, other: &Self) {
        for (name, counts) in &other.versions {
            let own = self.versions.entry(name.clone()).or_default();
            own.iter_mut()
                .zip(counts)
                .for_each(|(own, count)| *own += count);
        }
        for (sums, counts) in [
            (&mut self.problems, &other.problems),
            (&mut self.apps, &other.apps),
        ] {
            for (name, count) in counts {
                *sums.entry(name.clone()).or_default() += count;
            }
        }
    }
}

/// The applications whose requests were rejected since then, as far as their idents are known.
fn rejected_apps(watch: &Watch, since: Timestamp) -> BTreeMap<Box<str>, u64> {
    // Of an unknown ident, anyone can send any number; what a backend fails is no fault of the application.
    let is_known = |seen: &SeenRequest| seen.code.as_deref() != Some("app_not_found");
    let is_counted = |seen: &SeenRequest| seen.app.is_some() && seen.status < 500 && is_known(seen);
    let is_new = |seen: &SeenRequest| seen.at >= since && is_counted(seen);
    let mut apps = BTreeMap::new();
    for seen in watch.last_rejected(is_new, usize::MAX) {
        *apps.entry(seen.app.unwrap_or_default().into()).or_default() += 1;
    }
    apps
}

/// The requests of the last hour, of all gateways of the store.
#[derive(Debug, Serialize, ToSchema)]
pub struct Traffic {
    /// When the first minute begins.
    #[schema(format = DateTime)]
    pub begins_at: String,
    /// The versions with requests.
    pub versions: Vec<VersionTraffic>,
    /// Why requests were rejected or failed, the most frequent first.
    pub problems: Vec<ProblemTraffic>,
    /// The applications that the most rejected requests named, the first ones of each minute. Of more than some hundred in five
    /// seconds, the last are counted.
    pub rejected_apps: Vec<AppTraffic>,
}

/// Rejected requests that named an application; unless they were signed with its key, anyone may have sent them.
#[derive(Debug, Serialize, ToSchema)]
pub struct AppTraffic {
    /// Its ident.
    pub app: Box<str>,
    /// Number of requests.
    pub requests: u64,
}

/// The requests of a version, minute by minute: 60 numbers each, of which the last is of the minute that runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct VersionTraffic {
    /// Its name; null for requests that were rejected before they had a version.
    #[schema(required)]
    pub version: Option<Box<str>>,
    /// Responses below 400.
    pub answered: Vec<u64>,
    /// Responses from 400 to 499.
    pub rejected: Vec<u64>,
    /// Other responses, and those that were cut off.
    pub failed: Vec<u64>,
}

/// The requests with a problem.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemTraffic {
    /// The problem's code; `other` are those that only a backend uses.
    pub code: Box<str>,
    /// Number of requests.
    pub requests: u64,
}

impl Traffic {
    /// The last hour of these gateways.
    pub(super) fn of(hours: impl IntoIterator<Item = Hour>, now: Timestamp) -> Self {
        let first = minute(now) - MINUTES + 1;
        let mut versions: BTreeMap<Box<str>, VersionTraffic> = BTreeMap::new();
        let mut sums = Counted::default();
        for Minute { at, counted } in hours.into_iter().flat_map(|hour| hour.0) {
            // The clock of a gateway may be ahead.
            let place = usize::try_from(at - first).map(|place| place.min(MINUTES as usize - 1));
            let Ok(place) = place else { continue };
            sums.add(&counted);
            for (name, counts) in counted.versions {
                let version = versions.entry(name);
                let version = version.or_insert_with_key(|name| VersionTraffic::new(name));
                let rows = [
                    &mut version.answered,
                    &mut version.rejected,
                    &mut version.failed,
                ];
                for (row, count) in rows.into_iter().zip(counts) {
                    row[place] += count;
                }
            }
        }
        let problem = |(code, requests)| ProblemTraffic { code, requests };
        let app = |(app, requests)| AppTraffic { app, requests };
        Self {
            begins_at: rfc3339(Timestamp::from_millis(first * MINUTE_MS)),
            versions: versions.into_values().collect(),
            problems: by_number(sums.problems).map(problem).collect(),
            rejected_apps: by_number(sums.apps).map(app).take(MAX_APPS).collect(),
        }
    }
}

impl VersionTraffic {
    fn new(name: &str) -> Self {
        let none = || vec![0; MINUTES as usize];
        Self {
            version: (!name.is_empty()).then(|| name.into()),
            answered: none(),
            rejected: none(),
            failed: none(),
        }
    }
}

/// The largest number first.
fn by_number(counts: BTreeMap<Box<str>, u64>) -> impl Iterator<Item = (Box<str>, u64)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts.into_iter()
}

fn minute(at: Timestamp) -> i64 {
    at.as_millis() / MINUTE_MS
}

#[cfg(test)]
mod tests {
    use signpost_protocol::request_id::RequestId;

    use super::*;
    use signpost_proxy::{
        Outcome,
        testing::{MINIMAL, load},
    };

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_millis(minutes * MINUTE_MS + 1)
    }

    /// Counts requests without a version that got this status.
    fn count(metrics: &RequestMetrics, status: u16, number: usize) {
        let cells = metrics.configure(&load(MINIMAL).unwrap().versions);
        let id: RequestId = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let mut outcome = Outcome::unrouted(&id);
        outcome.sent.status = status;
        (0..number).for_each(|_| metrics.count(&outcome, &cells));
    }

    fn hour(text: &str) -> Hour {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn an_hour_has_what_was_counted_in_each_minute_and_no_older_one() {
        let metrics = RequestMetrics::default();
        count(&metrics, 200, 9);
        let mut recorder = Recorder::new(&metrics, at(100));
        assert_eq!(recorder.record(&metrics, None, at(100)), "[]");
        count(&metrics, 200, 2);
        count(&metrics, 404, 1);
        recorder.record(&metrics, None, at(101));
        count(&metrics, 502, 3);
        count(&metrics, 0, 1);
        recorder.record(&metrics, None, at(101));
        // A clock that was set back loses nothing, and keeps nothing for long.
        count(&metrics, 200, 1);
        recorder.record(&metrics, None, at(130));
        let text = recorder.record(&metrics, None, at(101));
        let traffic = Traffic::of(vec![hour(&text)], at(101));
        let [version] = &*traffic.versions else {
            panic!("{traffic:?}");
        };
        assert_eq!(version.version, None);
        let last = |row: &[u64]| (row.len(), row[58], row[59]);
        assert_eq!(last(&version.answered), (60, 0, 3));
        assert_eq!(last(&version.rejected), (60, 0, 1));
        assert_eq!(last(&version.failed), (60, 0, 4));
        assert_eq!(recorder.record(&metrics, None, at(101 + 60)), "[]");
    }

    #[test]
    fn the_hours_of_all_gateways_are_added_up() {
        let one = r#"[{"at":40,"counted":{"versions":{"v1":[1,0,0]},"problems":{}}},
            {"at":100,"counted":{"versions":{"v1":[5,1,0],"v2":[0,0,2]},"problems":{"sign_mismatch":1,"backend_timeout":2},"apps":{"shop":1}}}]"#;
        let ahead = r#"[{"at":102,"counted":{"versions":{"v1":[10,0,0]},"problems":{"backend_timeout":3}}}]"#;
        let traffic = Traffic::of(vec![hour(one), hour(ahead)], at(100));
        assert_eq!(traffic.begins_at, "1970-01-01T00:41:00Z");
        let rows: Vec<_> = traffic.versions.iter().collect();
        assert_eq!((rows[0].answered[59], rows[0].rejected[59]), (15, 1));
        assert_eq!(
            rows[0].answered.iter().sum::<u64>(),
            15,
            "the first minute is over"
        );
        assert_eq!(rows[1].failed[59], 2);
        let problems = traffic.problems.iter();
        let problems: Vec<_> = problems.map(|one| (&*one.code, one.requests)).collect();
        assert_eq!(problems, [("backend_timeout", 5), ("sign_mismatch", 1)]);
        let apps = traffic.rejected_apps.iter();
        let apps: Vec<_> = apps.map(|one| (&*one.app, one.requests)).collect();
        assert_eq!(apps, [("shop", 1)]);
    }
}
