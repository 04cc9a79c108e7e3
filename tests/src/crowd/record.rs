//! What a crowd did, and every outcome.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::{Duration, Instant},
};

/// Everything that a crowd did.
#[derive(Debug, Default)]
pub struct Record {
    /// Every request, in no particular order.
    pub sent: Vec<Sent>,
    /// The logins whose result the client received.
    pub logins: Vec<Login>,
    /// The logins in which a request failed.
    pub interrupted: Vec<Interrupted>,
}

/// A request and its outcome.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The kind of request, for example `event`.
    pub what: &'static str,
    /// When it was sent.
    pub start: Instant,
    /// When it was answered, or failed.
    pub end: Instant,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A success or a redirect.
    Done,
    /// Another response: its status and body.
    Rejected(u16, String),
    /// No response, or an incomplete one: the error.
    NoResponse(String),
}

/// A completed login whose result the client received.
#[derive(Clone, Debug)]
pub struct Login {
    /// The user's name at the provider.
    pub user: String,
    /// Whether the response says that the account is new.
    pub is_new: bool,
    /// Credential that the login issued.
    pub credential: String,
}

/// A login in which a request failed.
#[derive(Clone, Debug)]
pub struct Interrupted {
    /// The user's name at the provider.
    pub user: String,
    /// The token for `/check`, if the login was started.
    pub token: Option<String>,
}

/// An interval of damage: any request in flight during it may fail.
#[derive(Clone, Copy, Debug)]
pub struct Damage {
    /// Beginning of the damage.
    pub from: Instant,
    /// When everything works again.
    pub until: Instant,
}

impl Damage {
    /// The interval in which `work` runs.
    pub fn during(work: impl FnOnce()) -> Self {
        let from = Instant::now();
        work();
        let until = Instant::now();
        Self { from, until }
    }
}

impl Sent {
    /// Whether it was in flight at any time of the damage.
    #[must_use]
    pub fn overlaps(&self, damage: &Damage) -> bool {
        self.start <= damage.until && self.end >= damage.from
    }

    /// How long it took.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.end - self.start
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?}", self.what, self.duration(), self.outcome)
    }
}

impl Record {
    pub(super) fn add(&mut self, other: Self) {
        self.sent.extend(other.sent);
        self.logins.extend(other.logins);
        self.interrupted.extend(other.interrupted);
    }

    /// The requests with another outcome than [`Outcome::Done`].
    pub fn failed(&self) -> impl Iterator<Item = &Sent> {
        self.sent
            .iter()
            .filter(|sent| sent.outcome != Outcome::Done)
    }

    /// The failed requests that no damage explains, as text.
    #[must_use]
    pub fn failed_outside(&self, damage: &[Damage]) -> Vec<String> {
        let is_explained = |sent: &&Sent| damage.iter().any(|damage| sent.overlaps(damage));
        self.failed()
            .filter(|sent| !is_explained(sent))
            .map(ToString::to_string)
            .collect()
    }

    /// Number of successful requests of a kind.
    #[must_use]
    pub fn done(&self, what: &str) -> usize {
        let is_done = |sent: &&Sent| sent.what == what && sent.outcome == Outcome::Done;
        self.sent.iter().filter(is_done).count()
    }

    /// The users who completed a login.
    #[must_use]
    pub fn users(&self) -> BTreeSet<&str> {
        self.logins
            .iter()
            .map(|login| login.user.as_str())
            .collect()
    }

    /// The users who completed or tried a login.
    #[must_use]
    pub fn users_who_tried(&self) -> BTreeSet<&str> {
        let interrupted = self.interrupted.iter().map(|login| login.user.as_str());
        self.users().into_iter().chain(interrupted).collect()
    }

    /// For each user, how many answers called the account new.
    #[must_use]
    pub fn new_accounts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for login in &self.logins {
            *counts.entry(login.user.as_str()).or_default() += usize::from(login.is_new);
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(start: Instant, outcome: Outcome) -> Record {
        let sent = Sent {
            what: "user",
            start,
            end: start + Duration::from_millis(10),
            outcome,
        };
        Record {
            sent: vec![sent],
            ..Record::default()
        }
    }

    #[test]
    fn damage_explains_only_failures_at_the_same_time() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let damage = |from, until| Damage {
            from: at(from),
            until: at(until),
        };
        let failed = record(at(100), Outcome::Rejected(502, String::new()));
        for (damage, is_explained) in [
            (damage(100, 110), true),
            (damage(90, 100), true),
            (damage(110, 120), true),
            (damage(0, 99), false),
            (damage(111, 200), false),
        ] {
            let left = failed.failed_outside(&[damage]);
            assert_eq!(left.is_empty(), is_explained, "{damage:?}");
        }
        assert_eq!(failed.done("user"), 0);
        let unanswered = record(start, Outcome::NoResponse(String::new()));
        assert_eq!(unanswered.failed_outside(&[]).len(), 1);
        let done = record(start, Outcome::Done);
        assert_eq!((done.failed().count(), done.done("user")), (0, 1));
    }
}
