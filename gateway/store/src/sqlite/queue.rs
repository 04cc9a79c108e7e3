//! The writes that wait for their turn.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use rusqlite::Transaction;

use crate::StoreError;

/// Tells the caller of a write whether it was committed.
pub(super) type Tell = Box<dyn FnOnce(Result<(), StoreError>)>;

/// Runs a write in the transaction, or ends it with an error; with SQLite's error, if it had one.
pub(super) type Run = Box<
    dyn FnOnce(Result<&mut Transaction<'_>, StoreError>) -> (Tell, Option<rusqlite::Error>) + Send,
>;

/// The writes that wait.
#[derive(Default)]
pub(super) struct Queue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    writes: VecDeque<Write>,
    next_id: u64,
    has_leader: bool,
}

/// A write that waits.
pub(super) struct Write {
    id: u64,
    pub(super) deadline: Instant,
    pub(super) run: Run,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of writes that wait.
    pub(super) fn len(&self) -> usize {
        self.lock().writes.len()
    }

    /// Whether a leader works, with a connection.
    pub(super) fn has_leader(&self) -> bool {
        self.lock().has_leader
    }

    /// Adds a write; returns its id, and whether it needs a leader.
    pub(super) fn push(&self, deadline: Instant, run: Run) -> (u64, bool) {
        let mut waiting = self.lock();
        let id = waiting.next_id;
        waiting.next_id += 1;
        waiting.writes.push_back(Write { id, deadline, run });
        (id, !std::mem::replace(&mut waiting.has_leader, true))
    }

    pub(super) fn pop(&self) -> Option<Write> {
        self.lock().writes.pop_front()
    }

    /// Removes a write that has not begun; whether it was one.
    pub(super) fn remove(&self, id: u64) -> bool {
        let writes = &mut self.lock().writes;
        let position = writes.iter().position(|write| write.id == id);
        position.and_then(|at| writes.remove(at)).is_some()
    }

    /// Ends the leader's work, unless writes wait.
    pub(super) fn rest(&self) -> bool {
        let mut waiting = self.lock();
        waiting.has_leader = !waiting.writes.is_empty();
        !waiting.has_leader
    }

    /// The leader has ended without work: the next write needs another one.
    pub(super) fn leader_left(&self) {
        self.lock().has_leader = false;
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Queue({})", self.len())
    }
}
