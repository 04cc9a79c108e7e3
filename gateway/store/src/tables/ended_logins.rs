//! Ends logins before their time, for operators: of an account, or of an application. CONTRACT 8.
//!
//! A login is a credential, or an outcome that its client has yet to collect, by which it would get a credential. What an
//! operator ends stays ended, in all processes within 1 s.

use std::time::{Duration, Instant};

use signpost_protocol::app::AppId;
use tokio::time::sleep;

use super::accounts::AccountId;
use crate::{Batch, Changed, Store, StoreError, Timestamp, Value, from_row, value::GIVEN, values};

/// Rows of one transaction: few enough that no lock is held for long.
const BATCH: usize = 1_000;

/// A login service's clock may be behind by this much, and would still hand over an outcome.
const CLOCK_DIFFERENCE: Duration = Duration::from_secs(60);

/// Whose logins are ended.
#[derive(Clone, Copy, Debug)]
pub enum Whose {
    /// The logins of an account. If an application is given, only its logins to that application.
    Account(AccountId, Option<AppId>),
    /// All logins to an application.
    Application(AppId),
}

/// Ends the logins that are valid now, and returns the number of their credentials. A login that completes meanwhile may
/// end, too.
///
/// It can be interrupted and called again: what it has ended stays ended.
///
/// # Errors
///
/// The store is unavailable. Some of the logins may have ended.
pub async fn end(store: &Store, whose: Whose, now: Timestamp) -> Result<usize, StoreError> {
    // Outcomes first: one that is collected before it ends has left a credential, which is found afterwards.
    let outcomes = Kind {
        table: "logins",
        key: "state_hash",
        is_open: "status = 'complete' AND (claimable_until > $1 OR ticket_until > $1)",
        // Some clock may not have reached the present time, but no clock shows 0.
        end: "UPDATE logins SET claimable_until = 0, ticket_until = CASE WHEN ticket_until IS NULL THEN NULL ELSE 0 END \
              FROM {given} WHERE state_hash = given_key AND status = 'complete'",
        changed_key: "state_hash",
        by_account: None,
        changed: || Changed::Login,
    };
    let since = now.minus(CLOCK_DIFFERENCE);
    end_kind(store, whose, &outcomes, (since, now)).await?;
    let credentials = Kind {
        table: "credentials",
        // A renewal changes the primary key, so that a row could get behind the place that a batch has reached.
        key: "login_hash",
        is_open: "revoked_at IS NULL AND expires_at > $1",
        end: "UPDATE credentials SET revoked_at = given_now FROM {given} \
              WHERE login_hash = given_key AND revoked_at IS NULL",
        changed_key: "hash || coalesce(previous_hash, '')",
        by_account: Some("account_id = $3 AND revoked_at IS NULL"),
        changed: || Changed::Credential,
    };
    end_kind(store, whose, &credentials, (now, now)).await
}

/// A table whose rows are ended.
struct Kind {
    table: &'static str,
    /// The column by which the batches follow each other: unique, and it never changes.
    key: &'static str,
    /// Whether a row has not ended at `$1`.
    is_open: &'static str,
    /// The condition for an account's rows, if an index finds them.
    by_account: Option<&'static str>,
    end: &'static str,
    /// The key of an ended row in the feed.
    changed_key: &'static str,
    changed: fn() -> Changed,
}

/// Reads the table, or the account's part of it, batch by batch: without an index for applications, and however few rows
/// are to be ended, no statement takes long.
async fn end_kind(
    store: &Store,
    whose: Whose,
    kind: &Kind,
    (open_at, now): (Timestamp, Timestamp),
) -> Result<usize, StoreError> {
    let (is_whose, ids) = whose.condition();
    let within = match (whose, kind.by_account) {
        (Whose::Account(..), Some(within)) => within,
        _ => "TRUE",
    };
    let (table, key, is_open) = (kind.table, kind.key, kind.is_open);
    let find = format!(
        "SELECT {key} AS key, {is_whose} AND {is_open} AS is_open FROM {table} WHERE {within} AND {key} > $2 \
         ORDER BY {key} LIMIT {BATCH}"
    );
    let given = store.given_for_update(table, key, "given_key");
    let (mut after, mut number) = (Vec::new(), 0);
    loop {
        let begun = Instant::now();
        let mut values = values![open_at, after];
        values.extend(ids.clone());
        // Without a lock: of the rows that change meanwhile, the statement that ends them decides again.
        let page: Vec<LoginRow> = store.rows(&find, values).await?;
        let is_last = page.len() < BATCH;
        after = page.last().map(|row| row.key.clone()).unwrap_or_default();
        let open = page.into_iter().filter(|row| row.is_open == Some(true));
        let rows: Vec<_> = open.map(|row| values![row.key, now]).collect();
        let ends_some = !rows.is_empty();
        if ends_some {
            let batch = Batch {
                sql: kind.end.replace(GIVEN, &given),
                columns: "given_key bytea, given_now bigint",
                rows,
            };
            number += store
                .change_batch((kind.changed)(), batch, Some(kind.changed_key))
                .await?;
        }
        if is_last {
            return Ok(number);
        }
        if ends_some {
            // Half of the time, other writers find the database free.
            sleep(begun.elapsed()).await;
        }
    }
}

struct LoginRow {
    key: Vec<u8>,
    /// Null if a time that is compared is null.
    is_open: Option<bool>,
}

from_row!(LoginRow { key, is_open });

impl Whose {
    /// The condition for their rows, and its values from `$3` on.
    fn condition(self) -> (&'static str, Vec<Value>) {
        match self {
            Self::Account(account, None) => ("account_id = $3", values![account.get()]),
            Self::Account(account, Some(application)) => (
                "account_id = $3 AND application_id = $4",
                values![account.get(), application.get()],
            ),
            Self::Application(application) => ("application_id = $3", values![application.get()]),
        }
    }
}

#[cfg(test)]
mod both_stores;
