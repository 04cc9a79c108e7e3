//! What this crate's tests share: a store in a folder of its own, and a configuration.

use gateway_protocol::app::AppId;
use signpost_store::Database;
use tempfile::TempDir;

use crate::{
    accounts::{Account, AccountStore, SqliteAccounts, Username},
    clock::Timestamp,
    config::Config,
};

/// A SQLite file of the test's own, removed at its end.
pub(crate) struct TestStore {
    database: Database,
    folder: TempDir,
}

impl TestStore {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            database: open(&folder),
            folder,
        }
    }

    pub(crate) fn database(&self) -> Database {
        self.database.clone()
    }

    /// The same handle, or another one on the same file, as another process would have.
    pub(crate) fn open(&self, another: bool) -> Database {
        if another {
            open(&self.folder)
        } else {
            self.database()
        }
    }

    pub(crate) async fn account(&self, username: &str) -> Account {
        let config = config("");
        let provider = config.providers().iter().next().unwrap();
        let username = Username::new(username.to_owned()).unwrap();
        let accounts = SqliteAccounts::new(self.database());
        let now = Timestamp::from_millis(1);
        accounts
            .find_or_create(&provider.name, &provider.kind, &username, now)
            .await
            .unwrap()
            .0
    }

    /// An application as the gateway would write it.
    pub(crate) async fn application(&self, name: &'static str, origins: &'static str) -> AppId {
        let id = self.database.write(move |transaction| {
            transaction.query_row(
                "INSERT INTO applications (ident, name, state, created_at, key_sealed, return_to_origins) \
                 VALUES (?1, ?1, 'active', 0, x'00', ?2) RETURNING id",
                [name, origins],
                |row| row.get(0),
            )
        });
        AppId::new(id.await.unwrap())
    }
}

fn open(folder: &TempDir) -> Database {
    let address = format!("sqlite:{}", folder.path().join("signpost.db").display());
    Database::open(&address.parse().unwrap()).unwrap()
}

/// A configuration with one provider that nobody listens for; `more` goes above its section.
pub(crate) fn config(more: &str) -> Config {
    Config::parse(&format!(
        "prefix = \"Acme\"\n{more}\n{}",
        config_text_with_provider("http://127.0.0.1:1", "")
    ))
    .unwrap()
}

/// One provider at `address`; `more` goes into its section.
pub(crate) fn config_text_with_provider(address: &str, more: &str) -> String {
    format!(
        "[providers.sandbox]\nkind = \"bitbucket\"\nauth_url = \"{address}\"\napi_url = \"{address}\"\n\
         client_id = \"id\"\nclient_secret = \"secret\"\n{more}\n"
    )
}

/// What `main` does before the first HTTP client is made.
pub(crate) fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
