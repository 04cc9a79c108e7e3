//! Applications: who may sign requests. The gateway writes them. CONTRACT 4.

use signpost_protocol::{
    app::{AppId, AppIdent},
    version::Version,
};

use crate::{Batch, FromRow, Row, Store, StoreError, Timestamp, Topic, Value, from_row, values};

/// Applications of one page of a listing, or in one statement: few enough for the shortest statement timeout.
const PAGE: usize = 10_000;
/// Idents in one statement: fewer than either database allows.
const MAX_IDENTS: usize = 1_000;

/// An application, as stored. Its keys are sealed.
pub struct ApplicationRow {
    /// The internal id.
    pub id: AppId,
    /// The public ident.
    pub ident: String,
    /// The display name.
    pub name: String,
    /// `active` or `disabled`.
    pub state: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// The key.
    pub key: Vec<u8>,
    /// The key before the last rotation.
    pub previous_key: Option<Vec<u8>>,
    /// The end of the previous key's validity.
    pub previous_until: Option<Timestamp>,
    /// What an operator may change.
    pub settings: ApplicationSettings,
}

/// An application's own settings, as stored.
pub struct ApplicationSettings {
    /// JSON; `None`: the gateway's.
    pub sign_profile: Option<String>,
    /// JSON: a list of origins that a login may return to.
    pub return_to_origins: String,
    /// The version of requests that name none.
    pub default_version: Option<String>,
    /// Requests per second and at once; `None`: the gateway's.
    pub rate_limit: Option<[i64; 2]>,
}

const COLUMNS: &str = "id, ident, name, state, created_at, key_sealed, previous_sealed, previous_until, \
                       sign_profile, return_to_origins, default_version, rate_per_second, rate_burst";

impl ApplicationRow {
    /// Whether its requests are accepted.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.state == "active"
    }
}

impl FromRow for ApplicationRow {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        let rate: (Option<i64>, _) = (row.get("rate_per_second")?, row.get("rate_burst")?);
        Ok(Self {
            id: row.get("id")?,
            ident: row.get("ident")?,
            name: row.get("name")?,
            state: row.get("state")?,
            created_at: row.get("created_at")?,
            key: row.get("key_sealed")?,
            previous_key: row.get("previous_sealed")?,
            previous_until: row.get("previous_until")?,
            settings: ApplicationSettings {
                sign_profile: row.get("sign_profile")?,
                return_to_origins: row.get("return_to_origins")?,
                default_version: row.get("default_version")?,
                rate_limit: rate.0.zip(rate.1).map(<[i64; 2]>::from),
            },
        })
    }
}

/// All that fail do so because the store is unavailable.
async fn one(
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
    one(store, "WHERE ident = $1", values![ident.as_str()]).await
}

/// The application with this internal id.
pub async fn find_by_id(store: &Store, id: AppId) -> Result<Option<ApplicationRow>, StoreError> {
    one(store, "WHERE id = $1", values![id.get()]).await
}

/// The number of applications.
pub async fn count(store: &Store) -> Result<u64, StoreError> {
    let count: Option<(i64,)> = store
        .row("SELECT count(*) AS count FROM applications", Vec::new())
        .await?;
    Ok(count.map_or(0, |(count,)| u64::try_from(count).unwrap_or(0)))
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

/// All applications, oldest first.
pub async fn all(store: &Store) -> Result<Vec<ApplicationRow>, StoreError> {
    let (mut all, mut last) = (Vec::new(), i64::MIN);
    loop {
        let page = page(store, last, PAGE).await?;
        let Some(application) = page.last() else {
            return Ok(all);
        };
        last = application.id.get();
        all.extend(page);
    }
}

/// An application that is pinned to a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedApplication {
    /// Its ident.
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
        parameters(known.len())
    );
    let known = known.into_iter().map(Value::from).collect();
    store.rows(&query, known).await
}

/// A new application.
pub struct NewApplication {
    /// The ident that its clients send.
    pub ident: AppIdent,
    /// The display name.
    pub name: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// The sealed key.
    pub key: Vec<u8>,
    /// Its settings. The rate limit is the gateway's.
    pub settings: ApplicationSettings,
}

/// Adds all of these applications, or none of them: if an ident exists, the error is
/// [a duplicate](StoreError::is_duplicate). Notifies every process, of one application by its ident.
pub async fn insert(store: &Store, mut new: Vec<NewApplication>) -> Result<(), StoreError> {
    const INTO: &str = "INSERT INTO applications (ident, name, state, created_at, key_sealed, sign_profile, \
                        return_to_origins, default_version, rate_per_second, rate_burst)";
    let row = |new: NewApplication| {
        let rate_limit = new.settings.rate_limit;
        values![
            new.ident.as_str(),
            new.name,
            new.created_at,
            new.key,
            new.settings.sign_profile,
            new.settings.return_to_origins,
            new.settings.default_version,
            rate_limit.map(|[per_second, _]| per_second),
            rate_limit.map(|[_, burst]| burst),
        ]
    };
    if new.len() == 1
        && let Some(new) = new.pop()
    {
        let insert = format!("{INTO} VALUES ($1, $2, 'active', $3, $4, $5, $6, $7, $8, $9)");
        let changed = store.change(Topic::Application, (&insert, "ident"), row(new));
        return changed.await.map(drop);
    }
    let sql = format!(
        "{INTO} SELECT ident, name, 'active', created_at, key_sealed, sign_profile, return_to_origins, \
         default_version, rate_per_second, rate_burst FROM {{given}} ORDER BY 1 RETURNING 1"
    );
    let rows = new.into_iter().map(row).collect();
    let batch = Batch {
        sql,
        columns: &[
            ("ident", "text"),
            ("name", "text"),
            ("created_at", "bigint"),
            ("key_sealed", "bytea"),
            ("sign_profile", "text"),
            ("return_to_origins", "text"),
            ("default_version", "text"),
            ("rate_per_second", "bigint"),
            ("rate_burst", "bigint"),
        ],
        rows,
    };
    store.change_many(Topic::Application, batch).await
}

/// Those of the idents that exist.
pub async fn taken(store: &Store, idents: &[AppIdent]) -> Result<Vec<AppIdent>, StoreError> {
    let mut taken = Vec::new();
    for idents in idents.chunks(MAX_IDENTS) {
        let query = format!(
            "SELECT ident FROM applications WHERE ident IN ({})",
            parameters(idents.len())
        );
        let values = idents
            .iter()
            .map(|ident| Value::from(ident.as_str()))
            .collect();
        let found: Vec<(AppIdent,)> = store.rows(&query, values).await?;
        taken.extend(found.into_iter().map(|(ident,)| ident));
    }
    Ok(taken)
}

/// A change of a column that may be null: `None` keeps it.
pub type Change<T> = Option<Option<T>>;

/// Changes of an application. `None` keeps a column.
pub struct ApplicationChanges {
    /// The display name.
    pub name: Option<String>,
    /// JSON: a list of origins that a login may return to.
    pub return_to_origins: Option<String>,
    /// JSON.
    pub sign_profile: Change<String>,
    /// The version of requests that name none.
    pub default_version: Change<String>,
    /// Requests per second and at once.
    pub rate_limit: Change<[i64; 2]>,
}

/// Changes an application. `false`: it is unknown.
pub async fn update(
    store: &Store,
    ident: AppIdent,
    changes: ApplicationChanges,
) -> Result<bool, StoreError> {
    let update = "UPDATE applications SET name = coalesce($2, name), \
                  return_to_origins = coalesce($3, return_to_origins), \
                  sign_profile = CASE WHEN $4 THEN $5 ELSE sign_profile END, \
                  default_version = CASE WHEN $6 THEN $7 ELSE default_version END, \
                  rate_per_second = CASE WHEN $8 THEN $9 ELSE rate_per_second END, \
                  rate_burst = CASE WHEN $8 THEN $10 ELSE rate_burst END WHERE ident = $1";
    let rate_limit = changes.rate_limit.flatten();
    let values = values![
        ident.as_str(),
        changes.name,
        changes.return_to_origins,
        changes.sign_profile.is_some(),
        changes.sign_profile.flatten(),
        changes.default_version.is_some(),
        changes.default_version.flatten(),
        changes.rate_limit.is_some(),
        rate_limit.map(|[per_second, _]| per_second),
        rate_limit.map(|[_, burst]| burst),
    ];
    change(store, update, values).await
}

/// A replacement of an application's key, if it still has the one that was read.
pub struct KeyChange {
    /// The key that was read.
    pub current: Vec<u8>,
    /// The same key, sealed as the previous one.
    pub previous: Vec<u8>,
    /// The end of the previous key's validity.
    pub previous_until: Timestamp,
    /// The new key.
    pub new: Vec<u8>,
}

/// Replaces an application's key. `false`: another process has replaced it meanwhile, or the application is unknown.
pub async fn change_key(
    store: &Store,
    ident: AppIdent,
    key: KeyChange,
) -> Result<bool, StoreError> {
    let rotate = "UPDATE applications SET previous_sealed = $2, previous_until = $3, key_sealed = $4 \
                  WHERE ident = $1 AND key_sealed = $5";
    let values = values![
        ident.as_str(),
        key.previous,
        key.previous_until,
        key.new,
        key.current
    ];
    change(store, rotate, values).await
}

/// Enables or disables an application. `false`: it is unknown.
pub async fn set_state(store: &Store, ident: AppIdent, state: &str) -> Result<bool, StoreError> {
    let set = "UPDATE applications SET state = $2 WHERE ident = $1";
    change(store, set, values![ident.as_str(), state]).await
}

/// Deletes an application. `false`: it is unknown.
pub async fn delete(store: &Store, ident: AppIdent) -> Result<bool, StoreError> {
    let delete = "DELETE FROM applications WHERE ident = $1";
    change(store, delete, values![ident.as_str()]).await
}

/// Deletes previous keys whose overlap ended before `ended_before`. Returns their number.
pub async fn delete_previous_keys(
    store: &Store,
    ended_before: Timestamp,
) -> Result<usize, StoreError> {
    let delete = "UPDATE applications SET previous_sealed = NULL, previous_until = NULL WHERE previous_until < $1";
    store.execute(delete, values![ended_before]).await
}

async fn change(store: &Store, sql: &str, values: Vec<Value>) -> Result<bool, StoreError> {
    let changed = store
        .change(Topic::Application, (sql, "ident"), values)
        .await?;
    Ok(changed > 0)
}

/// `$1, $2, …`
fn parameters(count: usize) -> String {
    let numbers: Vec<_> = (1..=count).map(|number| format!("${number}")).collect();
    numbers.join(", ")
}
