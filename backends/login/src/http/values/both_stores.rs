//! The same tests run on both stores.

use super::*;
use crate::testing::TestStore;

static NOTES: Collection = Collection::new("v3.notes").max_values(3).max_bytes(10);
static OTHERS: Collection = Collection::new("v3.others").keep(Duration::from_secs(60));

struct Test {
    store: TestStore,
    me: AccountId,
}

impl Test {
    async fn new() -> Self {
        let store = TestStore::new().await;
        let me = store.account("me").await.id;
        Self { store, me }
    }

    fn values<'a>(&'a self, collection: &'a Collection, now: i64) -> Values<'a> {
        Values {
            collection,
            store: self.store.store(),
            account: self.me,
            application: AppId::new(3),
            now: Timestamp::from_millis(now),
        }
    }
}

fn code(error: &LoginError) -> String {
    error.to_string()
}

#[tokio::test]
async fn a_value_is_stored_replaced_and_removed() {
    let test = Test::new().await;
    let notes = test.values(&NOTES, 5);
    assert_eq!(notes.get("a").await.unwrap(), None);
    notes.put("a", "one").await.unwrap();
    test.values(&NOTES, 6).put("a", "zwölf ☃").await.unwrap();
    let stored = StoredValue {
        key: "a".to_owned(),
        value: "zwölf ☃".to_owned(),
        updated_at: Timestamp::from_millis(6),
    };
    assert_eq!(notes.get("a").await.unwrap(), Some(stored));
    assert!(notes.remove("a").await.unwrap());
    assert!(!notes.remove("a").await.unwrap());
}

#[tokio::test]
async fn others_see_and_remove_nothing() {
    let test = Test::new().await;
    test.values(&NOTES, 1).put("a", "one").await.unwrap();
    let other_application = Values {
        application: AppId::new(4),
        ..test.values(&NOTES, 1)
    };
    let other_account = Values {
        account: test.store.account("you").await.id,
        ..test.values(&NOTES, 1)
    };
    for other in [other_application, other_account, test.values(&OTHERS, 1)] {
        assert_eq!(other.get("a").await.unwrap(), None);
        assert!(!other.remove("a").await.unwrap());
        assert!(other.page(None, 9).await.unwrap().values.is_empty());
        other.put("a", "mine").await.unwrap();
    }
    let mine = test.values(&NOTES, 1).get("a").await.unwrap().unwrap();
    assert_eq!(mine.value, "one");
}

#[tokio::test]
async fn a_full_collection_takes_replacements_only() {
    let test = Test::new().await;
    let notes = test.values(&NOTES, 1);
    for key in ["a", "b", "c"] {
        notes.put(key, "x").await.unwrap();
    }
    let error = notes.put("d", "x").await.unwrap_err();
    assert_eq!(code(&error), "values_full");
    notes.put("c", "y").await.unwrap();
    notes.remove("b").await.unwrap();
    notes.put("d", "x").await.unwrap();
}

#[tokio::test]
async fn a_flood_stores_little_more_than_is_allowed() {
    let test = std::sync::Arc::new(Test::new().await);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..100 {
        let test = std::sync::Arc::clone(&test);
        calls.spawn(async move {
            let notes = test.values(&NOTES, 1);
            // Every second caller leaves.
            let key = format!("key {number}");
            let put = notes.put(&key, "x");
            let wait = Duration::from_millis(if number % 2 == 0 { 0 } else { 60_000 });
            let _ = tokio::time::timeout(wait, put).await;
        });
    }
    calls.join_all().await;
    let store = test.store.store();
    let concurrent = match store {
        Store::Sqlite(_) => 0,
        Store::Postgres(_) => store.max_calls(),
    };
    let stored = test.store.count("account_values").await;
    assert!(
        (3..=3 + i64::try_from(concurrent).unwrap()).contains(&stored),
        "{stored}"
    );
    let error = test.values(&NOTES, 1).put("more", "x").await.unwrap_err();
    assert_eq!(code(&error), "values_full");
}

#[tokio::test]
async fn keys_and_values_have_limits() {
    let test = Test::new().await;
    let notes = test.values(&NOTES, 1);
    notes.put(&"k".repeat(128), &"v".repeat(10)).await.unwrap();
    for (key, value, named) in [
        ("", "x", "key"),
        (&*"k".repeat(129), "x", "key"),
        ("a\0", "x", "key"),
        ("a", &*"v".repeat(11), "value"),
        ("a", "\0", "value"),
    ] {
        let error = notes.put(key, value).await.unwrap_err();
        assert_eq!(code(&error), format!("the parameter {named} is invalid"));
    }
    static NAMED: Collection = Collection::new("v3.named").parameters("id", "text");
    let error = test.values(&NAMED, 1).get("").await.unwrap_err();
    assert_eq!(code(&error), "the parameter id is invalid");
}

#[tokio::test]
async fn pages_are_in_the_order_of_the_bytes_of_keys() {
    let test = Test::new().await;
    let others = test.values(&OTHERS, 1);
    // A database's collation would order these otherwise.
    let keys = ["-", "B", "Z", "a", "a-b", "ab", "é", "☃"];
    for key in keys.iter().rev() {
        others.put(key, "x").await.unwrap();
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = others.page(after.as_deref(), 3).await.unwrap();
        assert!(page.values.len() <= 3);
        seen.extend(page.values.into_iter().map(|value| value.key));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, keys);
}

#[tokio::test]
async fn an_expired_value_is_gone_and_then_deleted() {
    let test = Test::new().await;
    let others = test.values(&OTHERS, 1_000);
    others.put("a", "one").await.unwrap();
    test.values(&NOTES, 1_000).put("a", "kept").await.unwrap();
    let later = test.values(&OTHERS, 61_000);
    assert_eq!(later.get("a").await.unwrap(), None);
    assert!(later.page(None, 9).await.unwrap().values.is_empty());
    let store = test.store.store();
    let swept = async |now| {
        let swept = EXPIRED.run(store, Timestamp::from_millis(now), 10).await;
        swept.unwrap()
    };
    assert_eq!((swept(60_999).await, swept(61_000).await), (0, 1));
    assert_eq!(test.store.count("account_values").await, 1);
}
