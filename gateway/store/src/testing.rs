//! Stores for tests, one for each test, removed at its end.
//!
//! `SIGNPOST_TEST_STORE` selects the kind: `sqlite` (default) or `postgres`. The latter needs `SIGNPOST_TEST_POSTGRES`:
//! the address of a disposable server, with a superuser. `scripts/postgres run` starts one.

use std::{
    env,
    path::PathBuf,
    process,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use tokio_postgres::{Config, NoTls};

use crate::{SqliteDatabase, Store, StoreAddress, StoreSettings};

const KIND: &str = "SIGNPOST_TEST_STORE";
const SERVER: &str = "SIGNPOST_TEST_POSTGRES";

/// Who opens the store in tests.
#[cfg(test)]
pub(crate) const PROGRAM: &str = "test 1.0.0";

/// Limit for a change to be reported: far more than the second of CONTRACT 4 and 8, since many tests share the
/// processors.
pub const CHANGE_TIMEOUT: Duration = Duration::from_secs(20);

/// Timeout of connections and statements: for the same reason more than the default.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// A change is reported by every process within this time. CONTRACT 4 and 8.
#[cfg(test)]
pub(crate) const CHANGE_DELAY: Duration = Duration::from_secs(1);

/// A store of a test.
pub struct TestStore {
    address: StoreAddress,
    cleanup: Cleanup,
}

enum Cleanup {
    Folder(PathBuf),
    Database { server: String, name: String },
}

impl TestStore {
    /// A new store of the selected kind, for a test in a module `both_stores`: those run on both kinds (`scripts/test`).
    ///
    /// # Panics
    ///
    /// The test stands in another module.
    #[must_use]
    pub fn chosen() -> Self {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or_default();
        // With one thread of tests, that is the main one.
        assert!(
            test == "main" || test.contains("both_stores::"),
            "{test} uses the chosen store: move it to a module `both_stores`"
        );
        match env::var(KIND).as_deref() {
            Err(_) | Ok("sqlite") => Self::sqlite(),
            Ok("postgres") => Self::postgres(),
            Ok(other) => panic!("{KIND} is {other:?}; allowed: sqlite, postgres"),
        }
    }

    /// A new SQLite store: a folder without the file yet.
    #[must_use]
    pub fn sqlite() -> Self {
        let folder = env::temp_dir().join(unique("signpost-store"));
        std::fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
        Self {
            address: StoreAddress::Sqlite(folder.join("signpost.db")),
            cleanup: Cleanup::Folder(folder),
        }
    }

    /// A new, empty Postgres database.
    #[must_use]
    pub fn postgres() -> Self {
        let server = env::var(SERVER).unwrap_or_else(|_| {
            panic!("{SERVER} is not set: run this by scripts/test, or by scripts/postgres run cargo test …")
        });
        let name = unique("signpost_test").replace('-', "_");
        administer(&config(&server), &format!("CREATE DATABASE {name}"));
        let (front, query) = server.split_once('?').unwrap_or((&server, ""));
        let front = front
            .rsplit_once('/')
            .expect("an address names a database")
            .0;
        let address = format!("{front}/{name}?{query}");
        Self {
            address: address.parse().expect("the server's address is valid"),
            cleanup: Cleanup::Database { server, name },
        }
    }

    /// The store's address.
    #[must_use]
    pub fn address(&self) -> &StoreAddress {
        &self.address
    }

    /// The settings that [`Self::open`] uses.
    #[must_use]
    pub fn settings(&self) -> StoreSettings {
        let mut settings = StoreSettings::new(self.address.clone());
        settings.postgres.wait = CALL_TIMEOUT;
        settings.postgres.statement = CALL_TIMEOUT;
        settings.postgres.heartbeat = CALL_TIMEOUT;
        settings
    }

    /// Opens the store, as a process would. Can be called several times.
    pub async fn open(&self) -> Store {
        let settings = self.settings();
        let opened = match &self.address {
            StoreAddress::Sqlite(path) => {
                SqliteDatabase::open_with(path, CALL_TIMEOUT, &settings.program).map(Store::Sqlite)
            }
            StoreAddress::Postgres(_) => Store::open(&settings).await,
        };
        opened.expect("the test's store opens")
    }

    /// Runs statements in the Postgres database, as superuser.
    ///
    /// # Panics
    ///
    /// The store is SQLite.
    pub fn administer(&self, statements: &str) {
        match &self.cleanup {
            Cleanup::Database { server, name } => {
                let mut config = config(server);
                administer(config.dbname(name), statements);
            }
            Cleanup::Folder(_) => panic!("an embedded store has no administrator"),
        }
    }

    /// Closes all connections, and refuses new ones until [`Self::make_available`].
    pub fn make_unavailable(&self) {
        match &self.cleanup {
            Cleanup::Folder(folder) => {
                std::fs::rename(folder.join("signpost.db"), folder.join("away"))
                    .expect("the file is there");
            }
            Cleanup::Database { server, name } => administer(
                &config(server),
                &format!(
                    "ALTER DATABASE {name} ALLOW_CONNECTIONS false; \
                     SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
                ),
            ),
        }
    }

    /// Undoes [`Self::make_unavailable`].
    pub fn make_available(&self) {
        match &self.cleanup {
            Cleanup::Folder(folder) => {
                std::fs::rename(folder.join("away"), folder.join("signpost.db"))
                    .expect("the file was taken away");
            }
            Cleanup::Database { server, name } => administer(
                &config(server),
                &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"),
            ),
        }
    }
}

impl Drop for TestStore {
    fn drop(&mut self) {
        match &self.cleanup {
            Cleanup::Folder(folder) => {
                let _ = std::fs::remove_dir_all(folder);
            }
            Cleanup::Database { server, name } => {
                administer(
                    &config(server),
                    &format!("DROP DATABASE {name} WITH (FORCE)"),
                );
            }
        }
    }
}

fn unique(what: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{what}-{}-{count}", process::id())
}

fn config(server: &str) -> Config {
    server.parse().expect("the server's address is valid")
}

/// On a separate thread: a test may run inside of a runtime, or not.
fn administer(config: &Config, statements: &str) {
    let work = async {
        let (client, connection) = config.connect(NoTls).await?;
        let connection = tokio::spawn(connection);
        // One by one: some are not allowed in a transaction, which several at once would be.
        for statement in statements.split(';') {
            client.batch_execute(statement).await?;
        }
        drop(client);
        let _ = connection.await;
        Ok::<_, tokio_postgres::Error>(())
    };
    let run = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be created")
            .block_on(work)
    };
    let done = std::thread::scope(|scope| scope.spawn(run).join());
    done.expect("the thread does not panic")
        .expect("the test's server executes the statements");
}
