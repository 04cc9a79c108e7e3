//! For this crate's tests: a store of the kind under test, and configurations.

use std::{
    any::type_name,
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
};

use signpost_kit::clock::{SystemClock, Timestamp};
use signpost_protocol::app::AppId;
use signpost_store::{Store, StoreError, testing};

use super::{insert_application, user};
use crate::{
    config::Config,
    records::{
        accounts::{Account, Accounts},
        credentials::Credentials,
        events::Events,
        logins::Logins,
    },
    service::Service,
};

/// The tables of a database.
pub(crate) struct Stores {
    pub(crate) accounts: Accounts,
    pub(crate) credentials: Credentials,
    pub(crate) events: Events,
    pub(crate) logins: Logins,
    pub(crate) database: Store,
}

impl Stores {
    fn new(database: Store) -> Self {
        Self {
            accounts: Accounts(database.clone()),
            credentials: Credentials::new(database.clone(), Arc::new(SystemClock)),
            events: Events(database.clone()),
            logins: Logins::new(database.clone()),
            database,
        }
    }
}

/// How calls to the store fail that store an account, an outcome, a credential, or redeem a ticket.
pub(crate) struct Faults {
    /// So many of the next calls of each kind fail.
    failures: u32,
    /// Whether failing calls are executed, and only their responses are lost.
    loses_responses: bool,
    /// The calls that have failed, by kind: the type of their result.
    failed: BTreeMap<&'static str, u32>,
}

/// The faults of services, by the address of their state.
static FAULTS: Mutex<BTreeMap<usize, Faults>> = Mutex::new(BTreeMap::new());

impl Faults {
    /// Lets calls of a service fail from now on.
    pub(crate) fn begin(service: &Service, failures: u32, loses_responses: bool) {
        let faults = Self {
            failures,
            loses_responses,
            failed: BTreeMap::new(),
        };
        let mut all = FAULTS.lock().unwrap();
        all.insert(Arc::as_ptr(&service.state).addr(), faults);
    }
}

/// Runs a call to the store, which may fail.
pub(crate) async fn try_store<T>(
    service: &Service,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let fails = || {
        let mut all = FAULTS.lock().unwrap();
        let faults = all.get_mut(&Arc::as_ptr(&service.state).addr())?;
        let failed = faults.failed.entry(type_name::<T>()).or_default();
        let fails = *failed < faults.failures;
        *failed += u32::from(fails);
        fails.then_some(faults.loses_responses)
    };
    match fails() {
        None => return call.await,
        Some(true) => drop(call.await?),
        Some(false) => {}
    }
    Err(StoreError::Interrupted)
}

/// An open store for one test, removed at its end.
pub(crate) struct TestStore {
    database: testing::TestStore,
    store: Store,
}

impl TestStore {
    pub(crate) async fn new() -> Self {
        let database = testing::TestStore::chosen();
        let store = database.open().await;
        Self { database, store }
    }

    /// The database, for example to make it unavailable.
    pub(crate) fn database(&self) -> &testing::TestStore {
        &self.database
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn stores(&self) -> Stores {
        Stores::new(self.store.clone())
    }

    /// Returns stores over new connections to the same database, like another process.
    pub(crate) async fn of_another_process(&self) -> Stores {
        Stores::new(self.database.open().await)
    }

    /// Executes a statement that no program of this service executes.
    pub(crate) async fn execute(&self, sql: &str) {
        match &self.store {
            Store::Sqlite(database) => {
                let sql = sql.to_owned();
                let done = database.write(move |transaction| transaction.execute_batch(&sql));
                done.await.unwrap();
            }
            Store::Postgres(_) => self.database.administer(sql),
        }
    }

    /// The number of rows in a table.
    pub(crate) async fn count(&self, table: &str) -> i64 {
        let query = format!("SELECT count(*) FROM {table}");
        match &self.store {
            Store::Sqlite(database) => database
                .call(move |connection| connection.query_row(&query, [], |row| row.get(0)))
                .await
                .unwrap(),
            Store::Postgres(database) => {
                let session = database.session().await.unwrap();
                session.query_one(&query, &[]).await.unwrap().get(0)
            }
        }
    }

    pub(crate) async fn account(&self, username: &str) -> Account {
        let config = config("");
        let provider = &config.providers.all[0];
        let now = Timestamp::from_millis(1);
        self.stores()
            .accounts
            .find_or_create(&provider.name, &user(username), now)
            .await
            .unwrap()
            .0
    }

    /// Inserts an application as the gateway does.
    pub(crate) async fn application(&self, name: &str, origins: &str) -> AppId {
        insert_application(&self.store, name, origins).await
    }
}

/// A configuration with one unreachable provider; `more` is inserted above its section.
pub(crate) fn config(more: &str) -> Config {
    parse(&format!(
        "prefix = \"Acme\"\n{more}\n{}",
        config_text_with_provider("http://127.0.0.1:1", "")
    ))
}

/// Parses a valid configuration.
pub(crate) fn parse(text: &str) -> Config {
    let parsed = Config::parse(Path::new("test.toml"), text, |_| Ok(()));
    parsed.unwrap().config.0
}

/// A provider at `address`; `more` is appended to its section.
pub(crate) fn config_text_with_provider(address: &str, more: &str) -> String {
    format!(
        "[providers.sandbox]\nkind = \"bitbucket\"\nurl = \"{address}\"\n\
         client_id = \"id\"\nclient_secret = \"secret\"\n{more}\n"
    )
}
