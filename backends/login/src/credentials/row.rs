//! A credential's row, read.

use gateway_protocol::app::AppId;
use signpost_kit::clock::StoredTime;
use signpost_store::StoredRow;

use super::LoggedIn;
use crate::accounts::account_from_row;

/// What [`logged_in_from_row`] reads, of `credentials` joined with `accounts`.
pub(super) const COLUMNS: &str = "application_id, expires_at, account_id, username, kind, \
    accounts.created_at AS account_created_at";

pub(super) fn logged_in_from_row<R: StoredRow>(row: &R) -> Result<LoggedIn, R::Error> {
    Ok(LoggedIn {
        account: account_from_row(row)?,
        application: AppId::new(row.number("application_id")?),
        expires_at: row.time("expires_at")?,
    })
}
