//! Reads logins from rows, and converts them for rows.

use signpost_store::{FromRow, Parsed, Row, StoreError, tables::accounts::Account};

use super::{
    Begun, Choice, Claim, Completion, CookieHash, Hints, Login, LoginState, Mode, StateHash, Status,
};

/// The columns for a [`Login`], beside those of its account and of its [`Completion`].
pub(super) const COLUMNS: &str = "state_hash, version, application_id, mode, logins.provider AS login_provider, \
    user_chooses, hints, user_code, logins.created_at AS begun_at, network, return_to, cookie_hash, status, claimed_until, reason, expires_at";

/// The columns for a [`Completion`], beside those of its account.
pub(super) const COMPLETION_COLUMNS: &str = "account_created, finished_at, claimable_until";

/// The name of the row that holds the [`SealKey`](super::SealKey).
pub(super) const SEAL_KEY: &str = "redirect_cookie";

impl FromRow for Login {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        let hash = StateHash(row.get("state_hash")?);
        let hints = row.get::<Option<_>>("hints")?;
        Ok(Self {
            state: LoginState::new(row.parsed("version")?, hash),
            application: row.get("application_id")?,
            mode: mode_from_row(row)?,
            provider: choice_from_row(row)?,
            hints: hints.map_or_else(Hints::default, |query: String| Hints::decode(&query)),
            cookie: row.get::<Option<_>>("cookie_hash")?.map(CookieHash),
            expires_at: row.get("expires_at")?,
            status: status_from_row(row)?,
        })
    }
}

impl FromRow for Completion {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            account: Account::from_row(row)?,
            created: row.get("account_created")?,
            finished_at: row.get("finished_at")?,
            claimable_until: row.get("claimable_until")?,
        })
    }
}

/// A redirect login's `return_to` as stored.
pub(super) fn return_to(mode: &Mode) -> Option<&str> {
    match mode {
        Mode::Redirect { return_to } => return_to.as_ref().map(url::Url::as_str),
        Mode::Polling { .. } => None,
    }
}

fn choice_from_row(row: &Row<'_>) -> Result<Choice, StoreError> {
    let provider: Option<Parsed<_>> = row.get("login_provider")?;
    let provider = provider.map(|Parsed(name)| name);
    match (row.get("user_chooses")?, provider) {
        (true, provider) => Ok(Choice::Users(provider)),
        (false, Some(provider)) => Ok(Choice::Fixed(provider)),
        (false, None) => Err(StoreError::Malformed("provider")),
    }
}

fn mode_from_row(row: &Row<'_>) -> Result<Mode, StoreError> {
    match &*row.get::<String>("mode")? {
        "redirect" => {
            let return_to: Option<Parsed<_>> = row.get("return_to")?;
            let return_to = return_to.map(|Parsed(address)| address);
            Ok(Mode::Redirect { return_to })
        }
        "polling" => Ok(Mode::Polling {
            user_code: row.parsed("user_code")?,
            begun: Begun {
                at: row.get("begun_at")?,
                network: row.get("network")?,
            },
        }),
        _ => Err(StoreError::Malformed("mode")),
    }
}

fn status_from_row(row: &Row<'_>) -> Result<Status, StoreError> {
    match &*row.get::<String>("status")? {
        "pending" => Ok(Status::Pending),
        "exchanging" => Ok(Status::Exchanging(Claim {
            until: row.get("claimed_until")?,
            claimable_until: row.get("claimable_until")?,
        })),
        "complete" => Completion::from_row(row).map(Status::Complete),
        "failed" => Ok(Status::Failed {
            reason: row.parsed("reason")?,
            claimable_until: row.get("claimable_until")?,
        }),
        _ => Err(StoreError::Malformed("status")),
    }
}
