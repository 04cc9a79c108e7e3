//! The audit, as it is shown: who changed what.

use std::fs;

use serde::Serialize;
use serde_json::{Map, Value, json};
use signpost_kit::{clock::Timestamp, config::Change};
use signpost_protocol::{app::shown_name, log_text};
use signpost_proxy::as_rfc3339;
use signpost_store::{
    Store, StoreError,
    tables::audit::{self, Action, Audit, AuditRow, Author, Entry, Filter},
};
use utoipa::ToSchema;

use super::fitting;

/// Limit of a user's name in characters.
const MAX_NAME_LENGTH: usize = 255;

/// An action and one of its subjects.
#[derive(Serialize, ToSchema)]
pub struct AuditItem {
    /// Its number; a later one has a higher number.
    pub id: i64,
    /// When.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Who: the system's user, or the token's name; of a reload also `signal` or `watch`.
    pub actor: String,
    /// From where: `cli HOST`, `api ADDRESS`, or `gateway HOST`.
    pub origin: String,
    /// Why, in the actor's words.
    pub reason: Option<String>,
    /// What, for example `app.update`.
    pub action: String,
    /// To what: an application's ident, an account's `provider/username`, a token's name, a backend's address,
    /// `configuration` or `master-key`.
    pub subject: String,
    /// The subject's revision, by the change; 0 if it has none.
    pub revision: i64,
    /// Old and new value by name; "changed" in place of a secret.
    #[schema(value_type = Object)]
    pub changes: Value,
}

impl From<AuditRow> for AuditItem {
    fn from(row: AuditRow) -> Self {
        let changes = row.entry.changes;
        Self {
            id: row.id,
            at: row.at,
            actor: row.author.actor,
            origin: row.author.origin,
            reason: row.author.reason,
            action: row.action,
            subject: row.entry.subject,
            revision: row.entry.revision,
            changes: serde_json::from_str(&changes).unwrap_or_else(|_| json!(changes)),
        }
    }
}

/// Up to `limit` items, newest first, and whether there are more.
///
/// # Errors
///
/// The store is unavailable.
pub async fn page(
    store: &Store,
    filter: Filter,
    limit: usize,
) -> Result<(Vec<AuditItem>, bool), StoreError> {
    let mut rows = audit::page(store, filter, limit + 1).await?;
    let fitting = fitting(&rows, limit, |row| row.entry.changes.len());
    let has_more = rows.len() > fitting;
    rows.truncate(fitting);
    Ok((rows.into_iter().map(AuditItem::from).collect(), has_more))
}

/// A row about the reload by which a gateway's configuration gets this number.
pub fn of_reload(changes: &Value, number: u64, author: Author, at: Timestamp) -> Audit {
    let entry = Entry {
        subject: "configuration".to_owned(),
        revision: i64::try_from(number).unwrap_or(i64::MAX),
        changes: changes.to_string(),
    };
    Audit::of_one(at, author, Action::ReloadConfig, entry)
}

/// A row about a request that was signed with an application's key.
pub fn of_signing(subject: &str, method: &str, path: &str, author: Author, at: Timestamp) -> Audit {
    let entry = Entry {
        subject: subject.to_owned(),
        revision: 0,
        changes: json!({ "method": method, "path": log_text::path(path) }).to_string(),
    };
    Audit::of_one(at, author, Action::SignRequest, entry)
}

/// A reload's changes as the audit has them.
pub fn changes_of(changed: &[Change]) -> Value {
    let shown = |change: &Change| match change.from == change.to {
        // It is a secret.
        true => json!("changed"),
        false => json!([change.from, change.to]),
    };
    let changes = changed
        .iter()
        .map(|change| (change.key.clone(), shown(change)));
    Value::Object(changes.collect::<Map<_, _>>())
}

/// The name of the system's user with this number, or `uid 1000` if it has none in the system's file.
pub fn user_name(id: u32) -> String {
    // Not `getpwuid`: it needs unsafe code, and can wait for a directory server.
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = user_of(&users, id).and_then(user_shown);
    user.map_or_else(|| format!("uid {id}"), str::to_owned)
}

/// The name of a user in the format of `/etc/passwd`.
fn user_of(users: &str, id: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, user) = (fields.next()?, fields.nth(1)?);
        (user.parse() == Ok(id)).then_some(name)
    })
}

/// A user's name, if it can be shown.
pub fn user_shown(name: &str) -> Option<&str> {
    shown_name(name, MAX_NAME_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(user_of(users, 0), Some("root"));
        assert_eq!(user_of(users, 1000), Some("ada"));
        assert_eq!(user_of(users, 100), None);
    }
}
