//! Applications: who may sign requests. The gateway writes them. CONTRACT 4.

use std::ops::RangeInclusive;

use signpost_protocol::{
    app::{AppId, AppIdent},
    version::Version,
};

use crate::{
    Batch, Changed, FromRow, Row, Store, StoreError, Timestamp, Value, audit::Audit, from_row,
    value::GIVEN, values,
};

/// Idents in one statement: fewer than either database allows.
const MAX_IDENTS: usize = 1_000;

/// An application, as stored. Its keys are sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct ApplicationRow {
    /// Primary key, which no client sees.
    pub id: AppId,
    /// Ident in the application header of requests.
    pub ident: String,
    /// Name for people, on pages and in lists.
    pub name: String,
    /// `active` or `disabled`.
    pub state: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// The sealed signing key.
    pub key: Vec<u8>,
    /// The key before the last rotation.
    pub previous_key: Option<Vec<u8>>,
    /// The end of the previous key's validity.
    pub previous_until: Option<Timestamp>,
    /// 1 for a new one, and one more after each change.
    pub revision: i64,
    /// What an operator may change.
    pub settings: ApplicationSettings,
}

/// An application's own settings, as stored.
#[derive(Clone, PartialEq, Eq)]
pub struct ApplicationSettings {
    /// JSON; `None`: the gateway's.
    pub sign_profile: Option<String>,
    /// JSON: a list of origins that a login may return to.
    pub return_to_origins: String,
    /// The version of requests that name none.
    pub default_version: Option<String>,
    /// Requests per second and at once; `None`: the gateway's.
    pub rate_limit: Option<[i64; 2]>,
    /// JSON: until when it may use versions that end; `None`: none is extended.
    pub extensions: Option<String>,
}

/// The columns of a row as it is read.
const COLUMNS: &str = "id, ident, name, state, created_at, key_sealed AS key, previous_sealed AS previous_key, previous_until, \
                       sign_profile, return_to_origins, default_version, rate_per_second, rate_burst, extensions, revision";

/// The columns that an operator sets, whose values are [`written`].
const WRITTEN: &str = "name, name_folded, state, key_sealed, previous_sealed, previous_until, sign_profile, \
                       return_to_origins, default_version, rate_per_second, rate_burst, extensions";

/// The columns of a new row, with their types.
const NEW: &str = "ident text, created_at bigint, name text, name_folded bytea, state text, key_sealed bytea, \
                   previous_sealed bytea, previous_until bigint, sign_profile text, return_to_origins text, \
                   default_version text, rate_per_second bigint, rate_burst bigint, extensions text";

fn written(new: ApplicationRow) -> Vec<Value> {
    let (name_folded, settings) = (folded(&new.name), new.settings);
    let (per_second, burst) = settings.rate_limit.map(<(i64, i64)>::from).unzip();
    values![
        new.name,
        name_folded,
        new.state,
        new.key,
        new.previous_key,
        new.previous_until,
        settings.sign_profile,
        settings.return_to_origins,
        settings.default_version,
        per_second,
        burst,
        settings.extensions,
    ]
}

impl ApplicationRow {
    /// Whether its requests are accepted.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.state == "active"
    }
}

from_row!(ApplicationRow {
    id, ident, name, state, created_at, key, previous_key, previous_until, revision;
    settings
});

impl FromRow for ApplicationSettings {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        let per_second: Option<i64> = row.get("rate_per_second")?;
        let burst = row.get("rate_burst")?;
        Ok(Self {
            sign_profile: row.get("sign_profile")?,
            return_to_origins: row.get("return_to_origins")?,
            default_version: row.get("default_version")?,
            rate_limit: per_second.zip(burst).map(<[i64; 2]>::from),
            extensions: row.get("extensions")?,
        })
    }
}

/// All that fail do so because the store is unavailable.
async fn first_row(
    store: &Store,
    condition: &str,
    values: Vec<Value>,
) -> Result<Option<ApplicationRow>, StoreError> {
    let query = format!("SELECT {COLUMNS} FROM applications {condition} LIMIT 1");
    store.row(&query, values).await
}

/// The application with this ident.
///
/// # Errors
///
/// The store is unavailable; the same holds for all other functions.
pub async fn find(store: &Store, ident: AppIdent) -> Result<Option<ApplicationRow>, StoreError> {
    first_row(store, "WHERE ident = $1", values![ident.as_str()]).await
}

/// The application with this internal id.
pub async fn find_by_id(store: &Store, id: AppId) -> Result<Option<ApplicationRow>, StoreError> {
    first_row(store, "WHERE id = $1", values![id.get()]).await
}

/// The number of applications.
pub async fn count(store: &Store) -> Result<u64, StoreError> {
    let count = store.row("SELECT count(*) FROM applications", Vec::new());
    Ok(count.await?.map_or(0, |(count,)| count))
}

/// Up to `limit` applications whose internal ids are larger than `after`, oldest first.
pub async fn page(
    store: &Store,
    after: i64,
    limit: usize,
) -> Result<Vec<ApplicationRow>, StoreError> {
    let query =
        format!("SELECT {COLUMNS} FROM applications WHERE id > $1 ORDER BY id LIMIT {limit}");
    store.rows(&query, values![after]).await
}

/// Up to `limit` applications whose name begins with this text, in upper or lower case: by name, and of one name
/// oldest first. `after` is the [folded] name and the internal id of the last one of the page before.
pub async fn search(
    store: &Store,
    text: &str,
    after: Option<(Vec<u8>, i64)>,
    limit: usize,
) -> Result<Vec<ApplicationRow>, StoreError> {
    let first = folded(text);
    // Without `after`, or with one of another search, the page begins with the text itself.
    let after = after.unwrap_or_default().max((first.clone(), i64::MIN));
    // UTF-8 has no byte 0xff.
    let end = [&*first, &[0xff]].concat();
    let query = format!(
        "SELECT {COLUMNS} FROM applications WHERE (name_folded, id) > ($1, $2) AND name_folded < $3 \
         ORDER BY name_folded, id LIMIT {limit}"
    );
    store.rows(&query, values![after.0, after.1, end]).await
}

/// An application that is pinned to a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedApplication {
    /// Ident of the application.
    pub ident: String,
    /// The version of its requests that name none.
    pub default_version: String,
}

from_row!(PinnedApplication {
    ident,
    default_version
});

/// At most `limit` applications whose default version is not in `known`, oldest first.
pub async fn with_other_defaults(
    store: &Store,
    known: &[Version],
    limit: usize,
) -> Result<Vec<PinnedApplication>, StoreError> {
    // No version has an empty name; the list must not be empty.
    let known: Vec<_> = known.iter().map(Version::as_str).chain([""]).collect();
    let query = format!(
        "SELECT ident, default_version FROM applications WHERE default_version IS NOT NULL \
         AND default_version NOT IN ({}) ORDER BY id LIMIT {limit}",
        parameters(1..=known.len())
    );
    let known = known.into_iter().map(Value::from).collect();
    store.rows(&query, known).await
}

/// Adds all of these applications, or none of them: if an ident exists, the error is
/// [a duplicate](StoreError::is_duplicate). Notifies every process, of one application by its ident. The store gives
/// them their internal ids; their revision is 1.
pub async fn insert(
    store: &Store,
    new: Vec<ApplicationRow>,
    audit: Audit,
) -> Result<(), StoreError> {
    let names_it = new.len() == 1;
    let row = |new: ApplicationRow| {
        let mut row = values![new.ident.as_str(), new.created_at];
        row.extend(written(new));
        row
    };
    let batch = Batch {
        sql: format!(
            "INSERT INTO applications (ident, created_at, {WRITTEN}, revision) \
             SELECT ident, created_at, {WRITTEN}, 1 FROM {GIVEN} ORDER BY 1"
        ),
        columns: NEW,
        rows: new.into_iter().map(row).collect(),
    };
    let changed = Changed::Application(audit);
    let inserted = store.change_batch(changed, batch, names_it.then_some("ident"));
    inserted.await.map(drop)
}

/// The idents that exist.
pub async fn taken(store: &Store, idents: &[AppIdent]) -> Result<Vec<AppIdent>, StoreError> {
    let mut taken = Vec::new();
    for idents in idents.chunks(MAX_IDENTS) {
        let query = format!(
            "SELECT ident FROM applications WHERE ident IN ({})",
            parameters(1..=idents.len())
        );
        let values = idents
            .iter()
            .map(|ident| Value::from(ident.as_str()))
            .collect();
        let existing: Vec<(AppIdent,)> = store.rows(&query, values).await?;
        taken.extend(existing.into_iter().map(|(ident,)| ident));
    }
    Ok(taken)
}

/// Writes an application's new values and its next revision. `false`: it is no longer as it was read.
pub async fn replace(
    store: &Store,
    old: &ApplicationRow,
    new: ApplicationRow,
    audit: Audit,
) -> Result<bool, StoreError> {
    let mut values = as_read(old);
    let before = values.len();
    values.extend(written(new));
    let update = format!(
        "UPDATE applications SET ({WRITTEN}, revision) = ({}, revision + 1) {AS_READ}",
        parameters(before + 1..=values.len())
    );
    change(store, &update, values, audit).await
}

/// Deletes an application. `false`: it is no longer as it was read.
pub async fn delete(store: &Store, old: &ApplicationRow, audit: Audit) -> Result<bool, StoreError> {
    let delete = format!("DELETE FROM applications {AS_READ}");
    change(store, &delete, as_read(old), audit).await
}

/// The sealed key belongs to it: a key that is sealed anew does not change the revision.
const AS_READ: &str = "WHERE id = $1 AND revision = $2 AND key_sealed = $3";

fn as_read(old: &ApplicationRow) -> Vec<Value> {
    values![old.id.get(), old.revision, old.key.clone()]
}

async fn change(
    store: &Store,
    sql: &str,
    values: Vec<Value>,
    audit: Audit,
) -> Result<bool, StoreError> {
    let changed = Changed::Application(audit);
    Ok(store.change(changed, (sql, "ident"), values).await? > 0)
}

/// Deletes previous keys whose overlap ended before `ended_before`. Returns their number.
pub async fn delete_previous_keys(
    store: &Store,
    ended_before: Timestamp,
) -> Result<usize, StoreError> {
    let delete = "UPDATE applications SET previous_sealed = NULL, previous_until = NULL WHERE previous_until < $1";
    store.execute(delete, values![ended_before]).await
}

/// A name as it is searched: in lower case.
#[must_use]
pub fn folded(name: &str) -> Vec<u8> {
    name.to_lowercase().into_bytes()
}

/// `$1, $2, …`
fn parameters(numbers: RangeInclusive<usize>) -> String {
    let numbers: Vec<_> = numbers.map(|number| format!("${number}")).collect();
    numbers.join(", ")
}
