//! The store of a stack, of the kind that the test run uses, and direct access to it for tests.

mod front;
mod postgres;
mod sqlite;

use std::{any::Any, env, fmt::Debug, path::Path};

pub use self::{
    front::{FRONT, Front},
    postgres::PostgresStore,
    sqlite::SqliteStore,
};
use crate::{postgres::shared_server, rows::Rows};

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// A SQLite file in the stack's folder.
    Sqlite,
    /// A database on a Postgres server.
    Postgres,
}

/// Environment variable with the kind of store of a test run: `sqlite`, the default, or `postgres`.
const CHOICE: &str = "SIGNPOST_TEST_STORE";

impl StoreKind {
    /// The kind that this run uses.
    ///
    /// # Panics
    ///
    /// When the environment variable has another value.
    #[must_use]
    pub fn chosen() -> Self {
        match env::var(CHOICE).as_deref() {
            Err(_) | Ok("sqlite") => Self::Sqlite,
            Ok("postgres") => Self::Postgres,
            Ok(other) => panic!("{CHOICE}: found {other:?}; allowed: sqlite, postgres"),
        }
    }

    /// Whether the run uses this kind: for tests that make sense on one kind only, or need to run only once.
    /// If it does not, prints `why` the test ends early.
    #[must_use]
    pub fn is_chosen(self, why: &str) -> bool {
        let chosen = Self::chosen();
        if chosen != self {
            #[expect(
                clippy::print_stderr,
                reason = "the test runner keeps this with the test"
            )]
            {
                eprintln!("skipped on {chosen:?}, runs on {self:?}: {why}");
            }
        }
        chosen == self
    }

    /// Creates an empty store of this kind; a SQLite file is in `folder`.
    ///
    /// # Panics
    ///
    /// When it cannot be created.
    #[must_use]
    pub fn create(self, folder: &Path) -> Box<dyn Store> {
        match self {
            Self::Sqlite => Box::new(SqliteStore::new(folder)),
            Self::Postgres => {
                let store = PostgresStore::create(&shared_server());
                Box::new(store.behind(Front::chosen()))
            }
        }
    }
}

/// A stack's store. Every method panics when the store fails: no test can continue then.
pub trait Store: Debug + Send + Sync {
    /// SQLite or Postgres.
    fn kind(&self) -> StoreKind;

    /// Its address, as in the `store` setting.
    fn address(&self) -> String;

    /// Its address past what may stand before it.
    fn direct_address(&self) -> String {
        self.address()
    }

    /// The password in its address, not escaped.
    fn password(&self) -> Option<&str>;

    /// Runs a statement, and returns its result.
    fn query(&self, sql: &str) -> Rows;

    /// The file or table that contains these bytes, raw or in hex, if any.
    fn find(&self, bytes: &[u8]) -> Option<String>;

    /// All of it as SQL, which [`load`](Self::load) reads. No program may have it open.
    fn dump(&self) -> String;

    /// Replaces all of it by a dump. No program may have it open.
    fn load(&self, dump: &str);

    /// Blocks all other writers until the lock is dropped.
    fn lock(&self) -> Lock;

    /// Makes every creation of an account fail.
    fn fail_account_inserts(&self);

    /// Makes it unreachable, and closes open connections to a server.
    fn make_unavailable(&self);

    /// Makes it reachable again, unchanged.
    fn make_available(&self);
}

/// A lock in the store, which is released when it is dropped.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct Lock(#[expect(dead_code, reason = "held until dropped")] Box<dyn Any + Send>);
