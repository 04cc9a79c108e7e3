//! Follows the audit for all streams of this gateway: one reader, which runs while there are any.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use signpost_store::{
    Store, StoreError,
    tables::audit::{self, AuditRow},
};
use tokio::{
    sync::{
        Mutex,
        broadcast::{Receiver, Sender},
    },
    time::sleep,
};

use super::position::Position;
use crate::administration::{audit::AuditItem, printable::printable_json};

/// Time from one look at the audit to the next.
const INTERVAL: Duration = Duration::from_millis(250);
/// The same while more rows are known: streams take them meanwhile.
const SHORT_INTERVAL: Duration = Duration::from_millis(50);
/// Rows that are read at once.
const PAGE: usize = 500;
/// Events that a stream can be behind before it is cut off.
const MAX_BEHIND: usize = 2 * PAGE;
/// Time for which a missing row delays those behind it: a commit usually takes milliseconds.
const HOLD: Duration = Duration::from_secs(2);
/// Time after which a missing row no longer appears: longer than the longest configurable statement.
const SETTLED: Duration = Duration::from_secs(70);
/// Limit on gaps that do not delay the rows behind them; the ids of events contain them.
const MAX_GAPS: usize = 64;
/// Ids among which a new reader looks for missing rows.
const KNOWN_AT_START: usize = 1000;

/// A new row of the audit.
#[derive(Debug)]
pub(super) struct Event {
    /// The row's id.
    pub id: i64,
    /// The row as JSON.
    pub data: String,
    /// What was seen with it.
    pub position: Position,
}

/// A row as JSON.
pub(super) fn json_of(row: AuditRow) -> String {
    printable_json(&json!(AuditItem::from(row)).to_string())
}

/// The events of a store.
pub(crate) struct Events {
    store: Store,
    running: Arc<Mutex<Option<Running>>>,
}

/// The running reader.
struct Running {
    events: Sender<Arc<Event>>,
    /// What was sent so far.
    position: Position,
}

impl Events {
    /// The events of this store. Nothing is read before the first subscription.
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            running: Arc::default(),
        }
    }

    /// The events from now on, and the position after which they begin.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub(super) async fn subscribe(&self) -> Result<(Receiver<Arc<Event>>, Position), StoreError> {
        let mut running = self.running.lock().await;
        let running = match &mut *running {
            Some(running) => running,
            none => {
                let reader = Reader::begin(self.store.clone()).await?;
                let position = reader.order.position.clone();
                let running = none.insert(Running {
                    events: Sender::new(MAX_BEHIND),
                    position,
                });
                tokio::spawn(follow(reader, Arc::clone(&self.running)));
                running
            }
        };
        Ok((running.events.subscribe(), running.position.clone()))
    }
}

/// Sends what the reader finds, while there are streams.
async fn follow(mut reader: Reader, running: Arc<Mutex<Option<Running>>>) {
    let mut wait = INTERVAL;
    loop {
        sleep(wait).await;
        let found = reader.poll().await;
        let mut shared = running.lock().await;
        let Some(running) = shared
            .as_mut()
            .filter(|one| one.events.receiver_count() > 0)
        else {
            *shared = None;
            return;
        };
        running.position = reader.order.position.clone();
        wait = INTERVAL;
        match found {
            Ok((events, has_more)) => {
                for event in events {
                    // A failure means that the last stream has just ended.
                    drop(running.events.send(Arc::new(event)));
                }
                if has_more {
                    wait = SHORT_INTERVAL;
                }
            }
            Err(error) => {
                tracing::debug!(cause = %error.in_short(), "the audit cannot be followed now");
            }
        }
    }
}

/// Finds each row once.
struct Reader {
    store: Store,
    order: Order,
}

impl Reader {
    /// A reader of what is not visible yet.
    async fn begin(store: Store) -> Result<Self, StoreError> {
        let mut ids = audit::newest_ids(&store, KNOWN_AT_START).await?;
        ids.reverse();
        let order = Order::after(&ids, Instant::now());
        Ok(Self { store, order })
    }

    /// The rows that were not found before, and whether there may be more.
    async fn poll(&mut self) -> Result<(Vec<Event>, bool), StoreError> {
        let mut rows = Vec::new();
        for (first, last) in self.order.position.gaps() {
            rows.extend(audit::between(&self.store, *first..=*last, PAGE).await?);
        }
        let after = self.order.position.last() + 1;
        let newer = audit::between(&self.store, after..=i64::MAX, PAGE).await?;
        let is_page = newer.len() == PAGE;
        rows.extend(newer);
        let events = self.order.take(rows, Instant::now());
        Ok((events, is_page))
    }
}

/// Orders rows by their ids, as far as these are committed in order.
struct Order {
    position: Position,
    /// The highest known id, and since when it is known; both rise.
    known: VecDeque<(i64, Instant)>,
}

impl Order {
    /// What follows the newest rows.
    fn after(ids: &[i64], now: Instant) -> Self {
        let begin = match ids {
            // What is below is older than any statement.
            [first, ..] if ids.len() == KNOWN_AT_START => first - 1,
            _ => 0,
        };
        let mut position = Position::up_to(begin);
        for id in ids {
            position.add(*id, *id);
        }
        let newest = position.gaps().iter().rev();
        let superfluous = newest.map(|(_, last)| *last).nth(MAX_GAPS);
        if let Some(last) = superfluous {
            position.add(1, last);
        }
        let known = [(position.last(), now)].into();
        Self { position, known }
    }

    /// Takes rows that are not in the position, in the order of their ids, up to one that has to wait.
    fn take(&mut self, rows: Vec<AuditRow>, now: Instant) -> Vec<Event> {
        let last = rows.last().map(|row| row.id);
        if let Some(last) = last.filter(|last| self.known.back().is_none_or(|(id, _)| id < last)) {
            self.known.push_back((last, now));
        }
        let mut events = Vec::new();
        for row in rows {
            let is_next = row.id <= self.position.last() + 1;
            if !is_next && !self.may_pass(row.id, now) {
                break;
            }
            self.position.add(row.id, row.id);
            events.push(Event {
                id: row.id,
                data: json_of(row),
                position: self.position.clone(),
            });
        }
        for (first, last) in self.position.gaps().to_vec() {
            if self.age(last + 1, now) >= SETTLED {
                self.position.add(first, last);
            }
        }
        let is_settled = |(_, at): &(i64, Instant)| now.duration_since(*at) >= SETTLED;
        while self.known.get(1).is_some_and(is_settled) {
            self.known.pop_front();
        }
        events
    }

    /// Whether a row need not wait for the missing ones before it.
    fn may_pass(&self, id: i64, now: Instant) -> bool {
        let age = self.age(id, now);
        age >= SETTLED || (age >= HOLD && self.position.gaps().len() < MAX_GAPS)
    }

    /// For how long an id at least this high has been known: lower ones were given before.
    fn age(&self, id: i64, now: Instant) -> Duration {
        let mut known = self.known.iter();
        let since = known.find(|(known, _)| *known >= id);
        since.map_or(Duration::ZERO, |(_, at)| now.duration_since(*at))
    }
}

#[cfg(test)]
mod tests {
    use signpost_kit::clock::Timestamp;
    use signpost_store::tables::audit::{Author, Entry};

    use super::*;

    fn row(id: i64) -> AuditRow {
        AuditRow {
            id,
            at: Timestamp::from_millis(0),
            author: Author {
                actor: String::new(),
                origin: String::new(),
                reason: None,
            },
            action: String::new(),
            entry: Entry {
                subject: String::new(),
                revision: 1,
                changes: String::new(),
            },
        }
    }

    const NONE: [i64; 0] = [];

    /// The ids of the events that visible rows become after so many milliseconds.
    fn take(order: &mut Order, start: Instant, millis: u64, visible: &[i64]) -> Vec<i64> {
        let rows = visible.iter().filter(|id| !order.position.has(**id));
        let rows = rows.map(|id| row(*id)).collect();
        let events = order.take(rows, start + Duration::from_millis(millis));
        events.iter().map(|event| event.id).collect()
    }

    #[test]
    fn a_missing_row_is_waited_for_and_found_even_later() {
        let start = Instant::now();
        let mut order = Order::after(&[1, 2, 3], start);
        let mut take = |millis, visible: &[i64]| take(&mut order, start, millis, visible);
        assert_eq!(take(0, &[4, 5]), [4, 5]);
        // The others come soon.
        assert_eq!(take(100, &[8]), NONE);
        assert_eq!(take(200, &[6, 8]), [6]);
        assert_eq!(take(300, &[6, 7, 8]), [7, 8]);
        // They come late.
        assert_eq!(take(1000, &[10, 12]), NONE);
        assert_eq!(take(2900, &[10, 12, 13]), NONE);
        assert_eq!(take(3000, &[10, 12, 13]), [10, 12, 13]);
        assert_eq!(take(70_900, &[9]), [9]);
        // One never comes.
        assert_eq!(take(71_000, &[]), NONE);
        assert_eq!(order.position.to_string(), "13");
        assert_eq!(order.known.len(), 2);
    }

    #[test]
    fn many_missing_rows_are_waited_for_longer() {
        let start = Instant::now();
        let mut order = Order::after(&[], start);
        let visible: Vec<_> = (1..100).map(|number| number * 2).collect();
        let mut take = |millis| take(&mut order, start, millis, &visible).len();
        assert_eq!(take(0), 0);
        assert_eq!(take(2000), MAX_GAPS);
        assert_eq!(take(69_999), 0);
        assert_eq!(take(70_000), 99 - MAX_GAPS);
        assert_eq!(order.position.to_string(), "198");
    }

    #[test]
    fn rows_that_are_not_committed_at_the_start_are_found() {
        let start = Instant::now();
        for (ids, expected) in [
            (Vec::new(), "0"),
            (vec![3, 4, 7], "7,1-2,5-6"),
            ((5000..5000 + KNOWN_AT_START as i64).collect(), "5999"),
        ] {
            let order = Order::after(&ids, start);
            assert_eq!(order.position.to_string(), expected);
        }
        let ids: Vec<_> = (1..=400).map(|number| number * 2).collect();
        let order = Order::after(&ids, start);
        assert_eq!(order.position.gaps().len(), MAX_GAPS);
        assert!(!order.position.has(799) && order.position.has(1));
    }
}
