//! What a crowd did, and what became of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::{Duration, Instant},
};

/// All that a crowd did.
#[derive(Debug, Default)]
pub struct Record {
    /// Every request, in no order.
    pub sent: Vec<Sent>,
    /// The logins whose result was told.
    pub logins: Vec<Login>,
    /// The logins in which something went wrong.
    pub interrupted: Vec<Interrupted>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Sent {
    /// What was asked for.
    pub what: &'static str,
    /// When it went out.
    pub start: Instant,
    /// When it was answered, or broke off.
    pub end: Instant,
    /// What came back.
    pub outcome: Outcome,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// What was asked for.
    Done,
    /// Another answer: its status and its body.
    Refused(u16, String),
    /// No answer, or not a whole one.
    Cut(String),
}

/// A login that was completed and told.
#[derive(Clone, Debug)]
pub struct Login {
    /// Who, as the provider names them.
    pub user: String,
    /// Whether the answer says that the account is new.
    pub is_new: bool,
    /// What was given out.
    pub credential: String,
}

/// A login in which a request failed.
#[derive(Clone, Debug)]
pub struct Interrupted {
    /// Who, as the provider names them.
    pub user: String,
    /// What its outcome is asked for with, if it began.
    pub token: Option<String>,
}

/// When damage was done: what was under way at some time between these two may fail.
#[derive(Clone, Copy, Debug)]
pub struct Damage {
    /// Nothing was wrong before.
    pub from: Instant,
    /// All is well again.
    pub until: Instant,
}

impl Damage {
    /// Does damage that is done when this returns.
    pub fn by(work: impl FnOnce()) -> Self {
        let from = Instant::now();
        work();
        let until = Instant::now();
        Self { from, until }
    }
}

impl Sent {
    /// Whether it was under way meanwhile.
    #[must_use]
    pub fn is_within(&self, damage: &Damage) -> bool {
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

    /// The requests that were not answered as they should be.
    pub fn failed(&self) -> impl Iterator<Item = &Sent> {
        self.sent
            .iter()
            .filter(|sent| sent.outcome != Outcome::Done)
    }

    /// Those of them that no damage explains, in words.
    #[must_use]
    pub fn failed_beyond(&self, damage: &[Damage]) -> Vec<String> {
        let is_explained = |sent: &&Sent| damage.iter().any(|damage| sent.is_within(damage));
        self.failed()
            .filter(|sent| !is_explained(sent))
            .map(ToString::to_string)
            .collect()
    }

    /// How many requests of a kind were done.
    #[must_use]
    pub fn done(&self, what: &str) -> usize {
        let is_done = |sent: &&Sent| sent.what == what && sent.outcome == Outcome::Done;
        self.sent.iter().filter(is_done).count()
    }

    /// Those who completed a login.
    #[must_use]
    pub fn users(&self) -> BTreeSet<&str> {
        self.logins
            .iter()
            .map(|login| login.user.as_str())
            .collect()
    }

    /// Those who completed or tried one.
    #[must_use]
    pub fn users_who_tried(&self) -> BTreeSet<&str> {
        let interrupted = self.interrupted.iter().map(|login| login.user.as_str());
        self.users().into_iter().chain(interrupted).collect()
    }

    /// How often each was told that its account is new.
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
    fn a_failure_is_explained_by_what_was_wrong_meanwhile_only() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let damage = |from, until| Damage {
            from: at(from),
            until: at(until),
        };
        let failed = record(at(100), Outcome::Refused(502, String::new()));
        for (damage, is_explained) in [
            (damage(100, 110), true),
            (damage(90, 100), true),
            (damage(110, 120), true),
            (damage(0, 99), false),
            (damage(111, 200), false),
        ] {
            let left = failed.failed_beyond(&[damage]);
            assert_eq!(left.is_empty(), is_explained, "{damage:?}");
        }
        assert_eq!(failed.done("user"), 0);
        let cut = record(start, Outcome::Cut(String::new()));
        assert_eq!(cut.failed_beyond(&[]).len(), 1);
        let done = record(start, Outcome::Done);
        assert_eq!((done.failed().count(), done.done("user")), (0, 1));
    }
}
