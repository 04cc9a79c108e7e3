//! Reads accounts from rows.

use signpost_kit::clock::StoredTime;
use signpost_store::StoredRow;

use super::{Account, AccountId, Username};

/// The columns for [`account_from_row`], of `accounts` alone.
pub(super) const COLUMNS: &str =
    "id AS account_id, username, kind, created_at AS account_created_at";

/// Reads the columns `account_id`, `username`, `kind` and `account_created_at`.
pub(crate) fn account_from_row<R: StoredRow>(row: &R) -> Result<Account, R::Error> {
    let username = Username::new(row.text("username")?.to_owned());
    Ok(Account {
        id: AccountId::new(row.number("account_id")?),
        username: username.ok_or_else(|| R::unknown("username"))?,
        kind: row.text("kind")?.to_owned(),
        created_at: row.time("account_created_at")?,
    })
}
