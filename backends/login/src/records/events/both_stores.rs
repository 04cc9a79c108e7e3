//! The same tests run on both stores.

use std::collections::BTreeSet;

use signpost_store::Store;

use super::*;
use crate::testing::TestStore;

const APP: AppId = AppId::new(3);

fn event(account: AccountId, application: AppId, name: &str) -> NewEvent {
    NewEvent {
        account,
        application,
        name: name.parse().unwrap(),
        data: None,
        idempotency_key: None,
        received_at: Timestamp::from_millis(1),
    }
}

fn query(account: AccountId, before: Option<EventCursor>, limit: u64) -> EventQuery {
    EventQuery {
        account,
        application: APP,
        before,
        limit,
    }
}

fn names(page: &EventPage) -> Vec<&str> {
    page.events
        .iter()
        .map(|event| event.name.as_str())
        .collect()
}

#[test]
fn a_name_is_1_to_64_allowed_characters() {
    for good in ["a", "level.up_2", &"x".repeat(64)] {
        assert!(good.parse::<EventName>().is_ok(), "{good}");
    }
    for bad in ["", "A", "a b", "a-b", "é", &"x".repeat(65)] {
        assert!(bad.parse::<EventName>().is_err(), "{bad}");
    }
}

#[tokio::test]
async fn pages_have_the_newest_events_first_while_new_ones_arrive() {
    let store = TestStore::new().await;
    let events = store.stores().events;
    let me = store.account("me").await.id;
    for name in ["a", "b", "c", "d", "e"] {
        events.insert(&event(me, APP, name)).await.unwrap();
    }
    let page = async |before, limit| {
        EventPage::read(&events, query(me, before, limit))
            .await
            .unwrap()
    };
    let first = page(None, 2).await;
    assert_eq!(names(&first), ["e", "d"]);
    events.insert(&event(me, APP, "f")).await.unwrap();
    let second = page(first.next, 2).await;
    assert_eq!(names(&second), ["c", "b"]);
    let last = page(second.next, 2).await;
    assert_eq!((names(&last), last.next), (vec!["a"], None));
    // A page that ends with the oldest event has no next one, either.
    let exact = page(second.next, 1).await;
    assert_eq!((names(&exact), exact.next), (vec!["a"], None));
    assert_eq!(names(&page(None, 1).await), ["f"]);
    let all = page(None, u64::MAX).await;
    assert_eq!(names(&all), ["f", "e", "d", "c", "b", "a"]);
}

#[tokio::test]
async fn a_page_has_a_largest_size() {
    let store = TestStore::new().await;
    let events = store.stores().events;
    let me = store.account("me").await.id;
    for _ in 0..=EventPage::MAX_EVENTS {
        events.insert(&event(me, APP, "a")).await.unwrap();
    }
    let page = EventPage::read(&events, query(me, None, u64::MAX))
        .await
        .unwrap();
    assert_eq!(page.events.len() as u64, EventPage::MAX_EVENTS);
    assert!(page.next.is_some());
    let least = EventPage::read(&events, query(me, None, 0)).await.unwrap();
    assert_eq!(least.events.len(), 1);
}

#[tokio::test]
async fn a_page_has_the_events_of_one_account_and_one_application() {
    let store = TestStore::new().await;
    let events = store.stores().events;
    let (me, other) = (
        store.account("me").await.id,
        store.account("other").await.id,
    );
    let with_data = NewEvent {
        data: Some("{\"a\":\"首页\"}".to_owned()),
        received_at: Timestamp::from_millis(77),
        ..event(me, APP, "mine")
    };
    let id = events.insert(&with_data).await.unwrap().id;
    events.insert(&event(other, APP, "others")).await.unwrap();
    events
        .insert(&event(me, AppId::new(4), "elsewhere"))
        .await
        .unwrap();
    let page = EventPage::read(&events, query(me, None, 9)).await.unwrap();
    let [mine] = &page.events[..] else {
        panic!("{page:?}")
    };
    assert_eq!((mine.id, mine.name.as_str()), (id, "mine"));
    assert_eq!(mine.data.as_deref(), Some("{\"a\":\"首页\"}"));
    assert_eq!(mine.received_at, Timestamp::from_millis(77));
    let third = store.account("third").await.id;
    let none = EventPage::read(&events, query(third, None, 9))
        .await
        .unwrap();
    assert!(none.events.is_empty() && none.next.is_none(), "{none:?}");
    // Another account's cursor is a position, and gives access to nothing.
    let behind = Some(EventCursor::behind(i64::MAX));
    let same = EventPage::read(&events, query(me, behind, 9))
        .await
        .unwrap();
    assert_eq!(names(&same), ["mine"]);
}

/// Without this, an account with many events in one application would slow down its lists in all others.
#[tokio::test]
async fn a_page_is_read_by_its_index_alone() {
    let store = TestStore::new().await;
    let me = store.account("me").await.id;
    match store.store() {
        Store::Sqlite(database) => {
            let explain = format!("EXPLAIN QUERY PLAN {}", LIST);
            let read = database.call(move |connection| {
                let mut explain = connection.prepare(&explain)?;
                let values = rusqlite::params![1, 2, 3, 4];
                let lines = explain.query_map(values, |row| row.get::<_, String>("detail"))?;
                lines.collect::<Result<Vec<_>, _>>()
            });
            let expected = "SEARCH events USING INDEX events_by_owner (account_id=? AND application_id=? AND rowid<?)";
            assert_eq!(read.await.unwrap(), [expected]);
        }
        Store::Postgres(database) => {
            // Most events are one account's.
            let fill = format!(
                "INSERT INTO accounts (provider, username, created_at) \
                 SELECT 'sandbox', number::text, 1 FROM generate_series(1, 2000) AS number; \
                 INSERT INTO events (account_id, application_id, event, received_at) \
                 SELECT id, 3, 'a', 1 FROM accounts; \
                 INSERT INTO events (account_id, application_id, event, received_at) \
                 SELECT {0}, 4 - number % 2, 'a', 1 FROM generate_series(1, 40000) AS number; ANALYZE events",
                me.get()
            );
            store.execute(&fill).await;
            let session = database.session().await.unwrap();
            let run = async |sql: &str| session.query(sql, &[]).await.unwrap();
            for mode in ["force_generic_plan", "force_custom_plan"] {
                run(&format!("SET plan_cache_mode = {mode}")).await;
                run(&format!("PREPARE tried AS {}", LIST_IN_POSTGRES)).await;
                for values in [
                    format!("{}, 3, 9223372036854775807, 21", me.get()),
                    "17, 3, 9223372036854775807, 101".to_owned(),
                ] {
                    let lines = run(&format!("EXPLAIN EXECUTE tried ({values})")).await;
                    let lines = lines.iter().map(|line| line.get::<_, String>(0));
                    let plan = lines.collect::<Vec<_>>().join("\n");
                    let expected = "Index Scan Backward using events_by_owner";
                    assert!(plan.contains(expected), "{mode} {values}: {plan}");
                    assert!(!plan.contains("Sort"), "{mode} {values}: {plan}");
                }
                run("DEALLOCATE tried").await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_concurrent_inserts_with_one_key_store_one_event() {
    let store = TestStore::new().await;
    let me = store.account("me").await.id;
    let handles = [
        store.stores().events,
        store.of_another_process().await.events,
    ];
    let tasks: Vec<_> = (0..50_i64)
        .map(|index| {
            let events = handles[usize::from(index % 2 == 0)].clone();
            let event = NewEvent {
                idempotency_key: Some("key".parse().unwrap()),
                received_at: Timestamp::from_millis(index),
                ..event(me, APP, "a")
            };
            tokio::spawn(async move { events.insert(&event).await.unwrap() })
        })
        .collect();
    let mut found = BTreeSet::new();
    for task in tasks {
        let event = task.await.unwrap();
        found.insert((event.id, event.received_at));
    }
    assert_eq!((found.len(), store.count("events").await), (1, 1));
}

#[tokio::test]
async fn a_key_is_one_accounts_and_one_applications() {
    let store = TestStore::new().await;
    let events = store.stores().events;
    let (me, other) = (
        store.account("me").await.id,
        store.account("other").await.id,
    );
    let keyed = |account, application, key: &str| NewEvent {
        idempotency_key: Some(key.parse().unwrap()),
        ..event(account, application, "a")
    };
    let first = events.insert(&keyed(me, APP, "k")).await.unwrap();
    for another in [
        keyed(me, APP, "K"),
        keyed(other, APP, "k"),
        keyed(me, AppId::new(4), "k"),
        event(me, APP, "a"),
    ] {
        assert_ne!(events.insert(&another).await.unwrap().id, first.id);
    }
    let changed = NewEvent {
        data: Some("new".to_owned()),
        ..keyed(me, APP, "k")
    };
    let found = events.insert(&changed).await.unwrap();
    assert_eq!((found.id, found.data), (first.id, None));
    assert_eq!(store.count("events").await, 5);
    // A key is kept as long as its event.
    assert_eq!(events.sweep(Timestamp::from_millis(2), 9).await.unwrap(), 5);
    assert!(events.insert(&changed).await.unwrap().data.is_some());
    for bad in ["", "a b", "é", "a\n", &"x".repeat(65)] {
        assert!(bad.parse::<IdempotencyKey>().is_err(), "{bad}");
    }
}

#[tokio::test]
async fn old_events_are_swept_oldest_first() {
    let store = TestStore::new().await;
    let events = store.stores().events;
    let account = store.account("user").await;
    for millis in [1, 2, 3, 4] {
        let event = NewEvent {
            account: account.id,
            application: AppId::SINGLE,
            name: "a".parse().unwrap(),
            data: None,
            idempotency_key: None,
            received_at: Timestamp::from_millis(millis),
        };
        events.insert(&event).await.unwrap();
    }
    let sweep = |before, limit| events.sweep(Timestamp::from_millis(before), limit);
    assert_eq!(sweep(1, 10).await.unwrap(), 0);
    assert_eq!(sweep(4, 2).await.unwrap(), 2);
    assert_eq!(sweep(4, 2).await.unwrap(), 1);
    assert_eq!(sweep(4, 2).await.unwrap(), 0);
    assert_eq!(store.count("events").await, 1);
}
