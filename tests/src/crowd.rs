//! People who log in and call, over and over, while a test does damage; and a record of all that became of it.
//!
//! Each goes to one of the gateways, and to the next one when nobody listens there, as a balancer would send them.

mod books;
mod person;
mod record;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::task::JoinSet;

use self::person::Person;
pub use self::record::{Damage, Interrupted, Login, Outcome, Record, Sent};
use crate::{
    stack::{Application, Stack},
    waiting::until,
};

/// A crowd at work.
#[derive(Debug)]
pub struct Crowd {
    people: JoinSet<Record>,
    completed: Vec<Arc<AtomicU64>>,
    is_over: Arc<AtomicBool>,
}

impl Crowd {
    /// Sends so many to a stack's gateways, by turns, and half of them to each version; as clients of the one
    /// application, or of this one of many.
    #[must_use]
    pub fn gather(stack: &Stack, size: usize, application: Option<&Application>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut crowd = Self {
            people: JoinSet::new(),
            completed: Vec::new(),
            is_over: Arc::clone(&is_over),
        };
        for number in 0..size {
            let person = Person::new(stack, number, application);
            let is_over = Arc::clone(&is_over);
            crowd.completed.push(Arc::clone(&person.completed));
            crowd
                .people
                .spawn(person.live(move || is_over.load(Ordering::Relaxed)));
        }
        crowd
    }

    /// Waits until each has completed a login that it began after this was asked.
    ///
    /// # Panics
    ///
    /// When one does not.
    pub async fn goes_on(&self) {
        // The one under way may have begun before.
        let wanted: Vec<u64> = self.counts().map(|count| count + 2).collect();
        until("everybody to log in once more", || async {
            let is_done = self
                .counts()
                .zip(&wanted)
                .all(|(count, wanted)| count >= *wanted);
            is_done.then_some(())
        })
        .await;
    }

    /// Lets each finish what it is at.
    ///
    /// # Panics
    ///
    /// When one of them has.
    pub async fn disperse(mut self) -> Record {
        self.is_over.store(true, Ordering::Relaxed);
        let mut whole = Record::default();
        while let Some(record) = self.people.join_next().await {
            whole.add(record.expect("nobody panics"));
        }
        whole
    }

    fn counts(&self) -> impl Iterator<Item = u64> {
        self.completed
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
    }
}
