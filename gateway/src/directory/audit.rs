//! The audit, as it is shown: who changed what.

use serde::Serialize;
use serde_json::{Value, json};
use signpost_kit::clock::Timestamp;
use signpost_store::{
    Store, StoreError,
    tables::audit::{self, AuditRow, Filter},
};
use utoipa::ToSchema;

use super::apps::store::as_rfc3339;

/// An action and one of its subjects.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditItem {
    /// Its number; a later one has a higher number.
    pub(crate) id: i64,
    /// When.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub(crate) at: Timestamp,
    /// Who: the system's user, or the token's name.
    pub(crate) actor: String,
    /// From where: `cli HOST`, or `api ADDRESS`.
    pub(crate) origin: String,
    /// Why, in the actor's words.
    pub(crate) reason: Option<String>,
    /// What, for example `app.update`.
    pub(crate) action: String,
    /// To what: an application's ident, a token's name.
    pub(crate) subject: String,
    /// The subject's revision, by the change.
    pub(crate) revision: i64,
    /// Old and new value by name; "changed" in place of a secret.
    #[schema(value_type = Object)]
    pub(crate) changes: Value,
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
pub(crate) async fn page(
    store: &Store,
    filter: Filter,
    limit: usize,
) -> Result<(Vec<AuditItem>, bool), StoreError> {
    let mut rows = audit::page(store, filter, limit + 1).await?;
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    Ok((rows.into_iter().map(AuditItem::from).collect(), has_more))
}
