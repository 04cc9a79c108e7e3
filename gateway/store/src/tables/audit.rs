//! The table of the [audit](crate::audit). Only an operator's retention deletes rows.

use std::net::SocketAddr;

pub use crate::audit::{Action, Audit, Author, Entry};
use crate::{Store, StoreError, Timestamp, from_row, values};

/// Maximum number of rows that one call of [`delete_before`] deletes.
pub const MAX_DELETED: usize = 10_000;

/// Rows of drained addresses: their subject is the backend and the address, which follows here.
const OF_DRAINS: &str = "SELECT id FROM audit WHERE action IN ('backend.drain', 'backend.undrain') AND subject LIKE '% ' ||";

const COLUMNS: &str = "id, at, actor, origin, reason, action, subject, revision, changes";

/// One change of one subject, as stored.
#[derive(Debug)]
pub struct AuditRow {
    /// Its number; a later row has a higher one.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub author: Author,
    /// What: an [`Action`] of this or another release.
    pub action: String,
    /// To what.
    pub entry: Entry,
}

from_row!(AuditRow { id, at, action; author, entry });
from_row!(Author {
    actor,
    origin,
    reason
});
from_row!(Entry {
    subject,
    revision,
    changes
});

/// Which rows are read.
#[derive(Debug, Default)]
pub struct Filter {
    /// Rows of this actor.
    pub actor: Option<String>,
    /// Rows of this subject; if it is a socket address, also rows of backends' addresses.
    pub subject: Option<String>,
    /// Rows of this action. No index has it, so add another condition.
    pub action: Option<Action>,
    /// Rows from this time on.
    pub since: Option<Timestamp>,
    /// The page after the row with this id; nothing if there is no such row.
    pub before: Option<i64>,
}

/// Up to `limit` rows, newest first.
///
/// # Errors
///
/// The store is unavailable; the same holds for the other functions.
pub async fn page(
    store: &Store,
    filter: Filter,
    limit: usize,
) -> Result<Vec<AuditRow>, StoreError> {
    let mut conditions = vec!["at >= $1".to_owned()];
    let mut values = values![filter.since.unwrap_or(Timestamp::from_millis(i64::MIN))];
    let action = filter.action.map(|action| action.as_str().to_owned());
    let subject = filter.subject;
    let address: Option<SocketAddr> = subject.as_ref().and_then(|text| text.parse().ok());
    for (column, value) in [
        ("actor", filter.actor),
        ("subject", subject.filter(|_| address.is_none())),
        ("action", action),
    ] {
        if let Some(value) = value {
            values.push(value.into());
            conditions.push(format!("{column} = ${}", values.len()));
        }
    }
    if let Some(address) = address {
        values.push(address.to_string().into());
        let subject = format!("${}", values.len());
        conditions.push(format!(
            // An IPv6 address with a scope has a percent sign.
            "id IN (SELECT id FROM audit WHERE subject = {subject} \
             UNION ALL {OF_DRAINS} replace({subject}, '%', '\\%') ESCAPE '\\')"
        ));
    }
    if let Some(before) = filter.before {
        values.push(before.into());
        let id = format!("${}", values.len());
        conditions.push(format!(
            // By both: several rows can have one time, and a page must neither repeat nor skip one of them.
            "(at, id) < ((SELECT at FROM audit WHERE id = {id}), {id})"
        ));
    }
    let query = format!(
        "SELECT {COLUMNS} FROM audit WHERE {} ORDER BY at DESC, id DESC LIMIT {limit}",
        conditions.join(" AND ")
    );
    store.rows(&query, values).await
}

/// The highest id; 0 without a row.
pub async fn newest_id(store: &Store) -> Result<i64, StoreError> {
    let query = "SELECT id FROM audit ORDER BY id DESC LIMIT 1";
    let row: Option<(i64,)> = store.row(query, Vec::new()).await?;
    Ok(row.map_or(0, |(id,)| id))
}

/// Adds what happens outside of the store.
pub async fn add(store: &Store, audit: Audit) -> Result<(), StoreError> {
    let log = audit.log_line();
    store.write_batch::<()>(audit.into_batch()).await?;
    log();
    Ok(())
}

/// Deletes the oldest rows before a time, [`MAX_DELETED`] at most. Returns their number.
pub async fn delete_before(store: &Store, before: Timestamp) -> Result<usize, StoreError> {
    let old = ("at < $1 ORDER BY at", values![before]);
    store.delete_some(("audit", "id"), old, MAX_DELETED).await
}

#[cfg(test)]
mod both_stores {
    use super::*;
    use crate::testing::TestStore;

    async fn ids(store: &Store, filter: Filter) -> Vec<i64> {
        let rows = page(store, filter, 2).await.unwrap();
        rows.into_iter().map(|row| row.id).collect()
    }

    #[tokio::test]
    async fn an_address_with_a_scope_is_found_at_its_backends_and_no_other_one() {
        let test = TestStore::chosen();
        let store = test.open().await;
        for subject in [
            "[fe80::1%2]:7001",
            "v3 [fe80::1%2]:7001",
            "v3 [fe80::1:2]:7001",
        ] {
            let insert = "INSERT INTO audit (at, actor, origin, action, subject, revision, changes) \
                          VALUES (1, 'ada', 'test', 'backend.drain', $1, 0, '{}')";
            store.execute(insert, values![subject]).await.unwrap();
        }
        let filter = Filter {
            subject: Some("[fe80::1%2]:7001".to_owned()),
            ..Filter::default()
        };
        assert_eq!(ids(&store, filter).await, [2, 1]);
    }

    #[tokio::test]
    async fn rows_are_read_newest_first_by_pages_and_old_ones_are_deleted() {
        let test = TestStore::chosen();
        let store = test.open().await;
        // The clock of who wrote the third row is late.
        for (id, at, actor, subject) in [
            (1, 10, "ada", "a"),
            (2, 30, "bob", "a"),
            (3, 20, "ada", "b"),
            (4, 30, "ada", "a"),
        ] {
            let insert = "INSERT INTO audit (id, at, actor, origin, action, subject, revision, changes) \
                          VALUES ($1, $2, $3, 'test', 'app.update', $4, 1, '{}')";
            let values = values![i64::from(id), i64::from(at), actor, subject];
            store.execute(insert, values).await.unwrap();
        }
        for (since, actor, subject, before, expected) in [
            (None, None, None, None, &[4, 2][..]),
            (None, None, None, Some(2), &[3, 1]),
            (None, None, None, Some(1), &[]),
            (None, None, None, Some(9), &[]),
            (Some(20), None, None, Some(2), &[3]),
            (None, Some("ada"), None, None, &[4, 3]),
            (None, Some("ada"), Some("a"), None, &[4, 1]),
        ] {
            let filter = Filter {
                actor: actor.map(str::to_owned),
                subject: subject.map(str::to_owned),
                since: since.map(Timestamp::from_millis),
                before,
                action: None,
            };
            let case = format!("{filter:?}");
            assert_eq!(ids(&store, filter).await, expected, "{case}");
        }
        let deleted = delete_before(&store, Timestamp::from_millis(20)).await;
        assert_eq!(deleted.unwrap(), 1);
        let filter = Filter {
            before: Some(2),
            ..Filter::default()
        };
        assert_eq!(ids(&store, filter).await, [3]);
    }

    #[tokio::test]
    async fn an_address_is_found_at_each_backend() {
        let test = TestStore::chosen();
        let store = test.open().await;
        for (id, action, subject) in [
            (1, "backend.drain", "v1 127.0.0.1:7001"),
            (2, "backend.undrain", "v2 (canary next) 127.0.0.1:7001"),
            (3, "backend.drain", "v1 127.0.0.1:70011"),
            (4, "backend.drain", "v1 [2001:db8::1]:7001"),
            (5, "token.create", "127.0.0.1:7001"),
            (6, "token.create", "a 127.0.0.1:7001"),
        ] {
            let insert = "INSERT INTO audit (id, at, actor, origin, action, subject, revision, changes) \
                          VALUES ($1, 1, 'ada', 'test', $2, $3, 0, '{}')";
            let values = values![i64::from(id), action, subject];
            store.execute(insert, values).await.unwrap();
        }
        for (subject, expected) in [
            ("127.0.0.1:7001", &[5, 2, 1][..]),
            ("[2001:DB8:0::1]:7001", &[4]),
            ("v1 127.0.0.1:7001", &[1]),
            ("127.0.0.1:700", &[]),
            ("127.0.0.1", &[]),
        ] {
            let filter = Filter {
                subject: Some(subject.to_owned()),
                ..Filter::default()
            };
            let rows = page(&store, filter, 9).await.unwrap();
            let ids: Vec<_> = rows.into_iter().map(|row| row.id).collect();
            assert_eq!(ids, expected, "{subject}");
        }
    }

    #[tokio::test]
    async fn what_happens_outside_of_the_store_is_added() {
        let test = TestStore::chosen();
        let store = test.open().await;
        assert_eq!(newest_id(&store).await.unwrap(), 0);
        for subject in ["a", "b", "c"] {
            let author = Author {
                actor: "ada".to_owned(),
                origin: "test".to_owned(),
                reason: None,
            };
            let entry = Entry {
                subject: subject.to_owned(),
                revision: 1,
                changes: "{}".to_owned(),
            };
            let at = Timestamp::from_millis(1);
            let audit = Audit::of_one(at, author, Action::ReloadConfig, entry);
            add(&store, audit).await.unwrap();
        }
        assert_eq!(newest_id(&store).await.unwrap(), 3);
        let rows = page(&store, Filter::default(), 9).await.unwrap();
        let subjects: Vec<_> = rows.iter().map(|row| &*row.entry.subject).collect();
        assert_eq!(subjects, ["c", "b", "a"]);
        assert!(rows.iter().all(|row| row.action == "config.reload"));
    }
}
