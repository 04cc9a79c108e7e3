//! Writes a change together with what the audit says of it.

use serde_json::{Map, Value, json};
use signpost_kit::clock::Timestamp;
use signpost_protocol::app::AppIdent;
use signpost_proxy::AppStoreError;
use signpost_store::{
    StoreError,
    tables::{
        applications::{self, ApplicationRow},
        audit::{Action, Audit, Author, Entry},
    },
};

use super::{Administration, AdministrationError, ChangeRequest};
use crate::administration::summary::AppSummary;

/// Limit of a change's attempts: one fails if another process changes the same application concurrently.
const MAX_ATTEMPTS: usize = 32;
/// Members of an application that no change concerns, or that the audit has beside the changes.
const NOT_CHANGED: [&str; 3] = ["ident", "created_at", "revision"];

impl Administration {
    /// Adds all of these applications; or none of them, and returns the idents that the store already has.
    pub(super) async fn insert(
        &self,
        new: Vec<ApplicationRow>,
        action: Action,
        author: Author,
        at: Timestamp,
    ) -> Result<Vec<AppIdent>, AppStoreError> {
        let audit = Audit {
            at,
            author,
            action,
            entries: new.iter().map(|row| entry(None, Some(row))).collect(),
        };
        let idents = new.iter().map(|row| row.ident.parse());
        let idents: Vec<_> = idents.filter_map(Result::ok).collect();
        let database = self.store.database();
        match applications::insert(database, new, audit).await {
            Err(error) if error.is_duplicate() => {
                match applications::taken(database, &idents).await? {
                    // Another process has deleted it again.
                    taken if taken.is_empty() => Err(error.into()),
                    taken => Ok(taken),
                }
            }
            inserted => Ok(inserted.map(|()| Vec::new())?),
        }
    }

    /// Writes what `decide` makes of the record, in the next revision; nothing if it changes nothing. If another process
    /// has changed it meanwhile, `decide` is called with the new record.
    pub async fn change(
        &self,
        ident: AppIdent,
        action: Action,
        request: &ChangeRequest,
        decide: impl Fn(ApplicationRow) -> Result<ApplicationRow, AdministrationError>,
    ) -> Result<AppSummary, AdministrationError> {
        for _ in 0..MAX_ATTEMPTS {
            let row = self.read(ident, request).await?;
            let mut new = decide(row.clone())?;
            // No revision and no row of the audit for nothing: a change that is repeated has no effect.
            if new == row {
                return Ok(row.into());
            }
            new.revision += 1;
            let audit = request.audit(action, entry(Some(&row), Some(&new)));
            let summary = new.clone().into();
            // Replaces only the row that was read: another process may have changed it since. If the caller named a
            // revision, the next attempt is `Stale`.
            if applications::replace(self.store.database(), &row, new, audit)
                .await
                .map_err(AppStoreError::from)?
            {
                return Ok(summary);
            }
        }
        Err(AppStoreError::Store(StoreError::Busy).into())
    }

    /// Deletes an application.
    ///
    /// # Errors
    ///
    /// The revision is stale.
    pub async fn delete(
        &self,
        ident: AppIdent,
        request: ChangeRequest,
    ) -> Result<(), AdministrationError> {
        for _ in 0..MAX_ATTEMPTS {
            let row = self.read(ident, &request).await?;
            let audit = request.audit(Action::DeleteApp, entry(Some(&row), None));
            // Only the row that was read: the audit says what exactly was deleted.
            if applications::delete(self.store.database(), &row, audit)
                .await
                .map_err(AppStoreError::from)?
            {
                return Ok(());
            }
        }
        Err(AppStoreError::Store(StoreError::Busy).into())
    }

    /// The record, if it has the revision that the author has seen.
    async fn read(
        &self,
        ident: AppIdent,
        request: &ChangeRequest,
    ) -> Result<ApplicationRow, AdministrationError> {
        let row = self.row(ident).await?;
        match request.revision {
            Some(seen) if seen != row.revision => Err(AdministrationError::Stale {
                present: row.revision,
            }),
            _ => Ok(row),
        }
    }
}

impl ChangeRequest {
    fn audit(&self, action: Action, entry: Entry) -> Audit {
        Audit::of_one(self.at, self.author.clone(), action, entry)
    }
}

/// What the audit says of an application that is changed, created (`old` is `None`) or deleted (`new` is).
fn entry(old: Option<&ApplicationRow>, new: Option<&ApplicationRow>) -> Entry {
    let members =
        |row: Option<&ApplicationRow>| match row.map(|row| json!(AppSummary::from(row.clone()))) {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        };
    let (before, after) = (members(old), members(new));
    let names = before.keys().chain(after.keys());
    let mut changes = Map::new();
    for name in names.filter(|name| !NOT_CHANGED.contains(&name.as_str())) {
        let value = |members: &Map<_, Value>| members.get(name).cloned().unwrap_or_default();
        let (old, new) = (value(&before), value(&after));
        if old != new {
            changes.insert(name.clone(), json!([old, new]));
        }
    }
    if old.map(|row| &row.key) != new.map(|row| &row.key) {
        // Never the key, not even sealed: more people see the audit than may see keys.
        changes.insert("key".to_owned(), "changed".into());
    }
    let (subject, revision) = match (old, new) {
        (_, Some(row)) => (row.ident.clone(), row.revision),
        // The deletion is the last revision.
        (row, None) => row.map_or_else(Default::default, |row| {
            (row.ident.clone(), row.revision + 1)
        }),
    };
    Entry {
        subject,
        revision,
        changes: Value::Object(changes).to_string(),
    }
}
