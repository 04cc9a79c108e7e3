//! The store of a stack, of the kind that the test run is on; and what a test does to it behind the programs' backs.

mod postgres;
mod sqlite;

use std::{any::Any, env, fmt::Debug, path::Path};

pub use self::{postgres::PostgresStore, sqlite::SqliteStore};
use crate::{postgres::shared_server, rows::Rows};

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// A file in the stack's folder.
    Sqlite,
    /// A database of a server.
    Postgres,
}

/// Says which kind of store the tests of a run use: `sqlite`, the default, or `postgres`.
const CHOICE: &str = "SIGNPOST_TEST_STORE";

impl StoreKind {
    /// The kind that this run is on.
    ///
    /// # Panics
    ///
    /// When the choice is none that there is.
    #[must_use]
    pub fn chosen() -> Self {
        match env::var(CHOICE).as_deref() {
            Err(_) | Ok("sqlite") => Self::Sqlite,
            Ok("postgres") => Self::Postgres,
            Ok(other) => panic!("{CHOICE} is {other:?}: sqlite or postgres"),
        }
    }

    /// Whether the run is on this kind: for a test that has no meaning on the other one, or is made once for both.
    /// If it is not, says why the test ends here.
    #[must_use]
    pub fn is_chosen(self, why: &str) -> bool {
        let chosen = Self::chosen();
        if chosen != self {
            #[expect(
                clippy::print_stderr,
                reason = "the test runner keeps this with the test"
            )]
            {
                eprintln!("not on {chosen:?}, but on {self:?}: {why}");
            }
        }
        chosen == self
    }

    /// A new store of this kind, empty; a file of it would be in `folder`.
    ///
    /// # Panics
    ///
    /// When it cannot be made.
    #[must_use]
    pub fn create(self, folder: &Path) -> Box<dyn Store> {
        match self {
            Self::Sqlite => Box::new(SqliteStore::new(folder)),
            Self::Postgres => Box::new(PostgresStore::create(&shared_server())),
        }
    }
}

/// A stack's store. Every method panics when the store refuses: no test can go on then.
pub trait Store: Debug + Send + Sync {
    /// Its kind.
    fn kind(&self) -> StoreKind;

    /// As the `store` setting names it.
    fn address(&self) -> String;

    /// What is secret in its address, where it is escaped.
    fn password(&self) -> Option<&str>;

    /// What a statement answers.
    fn query(&self, sql: &str) -> Rows;

    /// Where it holds these bytes as they are, or as digits, if it does.
    fn find(&self, bytes: &[u8]) -> Option<String>;

    /// Keeps everybody else from writing, until dropped.
    fn lock(&self) -> Lock;

    /// Lets no account be made any more.
    fn refuse_accounts(&self);

    /// Makes it unreachable, and cuts whoever is connected.
    fn make_unavailable(&self);

    /// Makes it reachable again, as it was.
    fn make_available(&self);
}

/// Whatever holds the lock.
#[derive(Debug)]
#[must_use = "the lock is let go when this is dropped"]
pub struct Lock(#[expect(dead_code, reason = "held until dropped")] Box<dyn Any + Send>);
