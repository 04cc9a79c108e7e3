//! Simulated users who log in and call again and again while a test does damage, and a record of every outcome.
//!
//! Each user calls one of the gateways. If it refuses connections, the user moves on to the next one, like a load
//! balancer.

mod person;
mod record;
mod store_check;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::task::JoinSet;

use self::person::Person;
pub use self::record::{Damage, Interrupted, Login, Outcome, Record, Sent};
use crate::{
    stack::{Application, Stack},
    waiting::until_within,
};

/// How long users may take for a login each, after damage that logins may have waited for.
const NEW_LOGINS_TIMEOUT: Duration = Duration::from_secs(90);

/// A running crowd.
#[derive(Debug)]
pub struct Crowd {
    people: JoinSet<Record>,
    completed: Vec<Arc<AtomicU64>>,
    is_stopping: Arc<AtomicBool>,
}

impl Crowd {
    /// Starts `size` users, spread over a stack's gateways, half of them on each version. They are clients of
    /// `application`, or in single-application mode of the only one.
    #[must_use]
    pub fn start(stack: &Stack, size: usize, application: Option<&Application>) -> Self {
        let is_stopping = Arc::new(AtomicBool::new(false));
        let mut crowd = Self {
            people: JoinSet::new(),
            completed: Vec::new(),
            is_stopping: Arc::clone(&is_stopping),
        };
        for number in 0..size {
            let person = Person::new(stack, number, application);
            let is_stopping = Arc::clone(&is_stopping);
            crowd.completed.push(Arc::clone(&person.completed));
            crowd
                .people
                .spawn(person.run(move || is_stopping.load(Ordering::Relaxed)));
        }
        crowd
    }

    /// Waits until each user has completed a login that was started after this call.
    ///
    /// # Panics
    ///
    /// When a user does not in time.
    pub async fn wait_for_new_logins(&self) {
        // Two, because the login in flight may have been started before.
        let wanted: Vec<u64> = self.counts().map(|count| count + 2).collect();
        until_within(NEW_LOGINS_TIMEOUT, "a login of each user", || async {
            let is_done = self
                .counts()
                .zip(&wanted)
                .all(|(count, wanted)| count >= *wanted);
            is_done.then_some(())
        })
        .await;
    }

    /// Stops all users after their current login, and returns the combined record.
    ///
    /// # Panics
    ///
    /// When a user has panicked.
    pub async fn finish(mut self) -> Record {
        self.is_stopping.store(true, Ordering::Relaxed);
        let mut whole = Record::default();
        while let Some(record) = self.people.join_next().await {
            whole.add(record.expect("no user panics"));
        }
        whole
    }

    fn counts(&self) -> impl Iterator<Item = u64> {
        self.completed
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
    }
}
