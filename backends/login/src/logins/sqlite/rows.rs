//! A login's row, read.

use gateway_protocol::app::AppId;
use rusqlite::Row;

use super::super::{
    BoundCookie, Completion, CookieHash, CookieStage, Login, LoginState, Mode, StateHash, Status,
};
use crate::{
    accounts,
    store_values::{invalid, optional_hash, parsed, time},
};

/// What [`login_from_row`] reads, of `logins` joined with `accounts`.
pub(super) const COLUMNS: &str = "state_hash, version, application_id, mode, logins.provider AS login_provider, \
    user_code, return_to, cookie_hash, cookie_stage, status, reason, account_id, account_created, finished_at, \
    claimable_until, expires_at, username, kind, accounts.created_at AS account_created_at";

pub(super) fn login_from_row(row: &Row<'_>) -> rusqlite::Result<Login> {
    let hash = StateHash::from_bytes(row.get("state_hash")?);
    Ok(Login {
        state: LoginState::new(parsed(row, "version")?, hash),
        application: AppId::new(row.get("application_id")?),
        mode: mode_from_row(row)?,
        provider: parsed(row, "login_provider")?,
        cookie: cookie_from_row(row)?,
        expires_at: time(row, "expires_at")?,
        status: status_from_row(row)?,
    })
}

pub(super) fn completion_from_row(row: &Row<'_>) -> rusqlite::Result<Completion> {
    Ok(Completion {
        account: accounts::from_row(row)?,
        created: row.get("account_created")?,
        finished_at: time(row, "finished_at")?,
        claimable_until: time(row, "claimable_until")?,
    })
}

/// The word for a stage in the store.
pub(super) const fn stage_word(stage: CookieStage) -> &'static str {
    match stage {
        CookieStage::Shown => "shown",
        CookieStage::Authorizing => "authorizing",
    }
}

fn mode_from_row(row: &Row<'_>) -> rusqlite::Result<Mode> {
    match row.get_ref("mode")?.as_str()? {
        "redirect" => {
            let return_to = match row.get::<_, Option<String>>("return_to")? {
                Some(_) => Some(parsed(row, "return_to")?),
                None => None,
            };
            Ok(Mode::Redirect { return_to })
        }
        "polling" => Ok(Mode::Polling {
            user_code: parsed(row, "user_code")?,
        }),
        _ => Err(invalid("mode")),
    }
}

fn cookie_from_row(row: &Row<'_>) -> rusqlite::Result<Option<BoundCookie>> {
    let Some(hash) = optional_hash(row, "cookie_hash")? else {
        return Ok(None);
    };
    let stage = match row.get_ref("cookie_stage")?.as_str()? {
        "shown" => CookieStage::Shown,
        "authorizing" => CookieStage::Authorizing,
        _ => return Err(invalid("cookie_stage")),
    };
    Ok(Some(BoundCookie {
        hash: CookieHash::from_bytes(hash),
        stage,
    }))
}

fn status_from_row(row: &Row<'_>) -> rusqlite::Result<Status> {
    match row.get_ref("status")?.as_str()? {
        "pending" => Ok(Status::Pending),
        "exchanging" => Ok(Status::Exchanging),
        "complete" => completion_from_row(row).map(Status::Complete),
        "failed" => Ok(Status::Failed {
            reason: parsed(row, "reason")?,
            claimable_until: time(row, "claimable_until")?,
        }),
        _ => Err(invalid("status")),
    }
}
