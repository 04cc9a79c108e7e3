//! Reads credentials from rows.

use signpost_kit::clock::StoredTime;
use signpost_protocol::app::AppId;
use signpost_store::StoredRow;

use super::CredentialClaims;
use crate::records::accounts::account_from_row;

/// The columns for [`logged_in_from_row`], of `credentials` joined with `accounts`.
pub(super) const COLUMNS: &str = "application_id, expires_at, account_id, username, kind, \
    accounts.created_at AS account_created_at";

pub(super) fn logged_in_from_row<R: StoredRow>(row: &R) -> Result<CredentialClaims, R::Error> {
    Ok(CredentialClaims {
        account: account_from_row(row)?,
        application: AppId::new(row.number("application_id")?),
        expires_at: row.time("expires_at")?,
    })
}
