//! A stack's own database on a Postgres server, and the role that owns it.

use std::{
    process::{self, Command},
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use super::{
    Lock, Store, StoreKind,
    front::{Front, Running},
};
use crate::{
    postgres::{Session, binaries},
    rows::Rows,
    waiting::WAIT_TIMEOUT,
};

/// A database, and the role that owns it and has no other rights. Both are removed when this is dropped.
#[derive(Debug)]
pub struct PostgresStore {
    administrator: String,
    name: String,
    /// What stands before it, and the address for the programs.
    front: Option<(Box<dyn Running>, String)>,
}

/// A password that must be escaped in an address, so that the tests notice code that loses the escapes.
const PASSWORD: &str = "Hush-4711/at@all:times";
const PASSWORD_ESCAPED: &str = "Hush-4711%2Fat%40all%3Atimes";

impl PostgresStore {
    /// Creates one on the server with this administrator address.
    ///
    /// # Panics
    ///
    /// When the server is unreachable or reports an error.
    #[must_use]
    pub fn create(administrator: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("signpost_test_{}_{number}", process::id());
        let server = Session::open(administrator);
        // An earlier process with the same id may have been killed before it removed its database.
        for statement in removal(&name) {
            server.query(&statement);
        }
        server.query(&format!("CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'"));
        server.query(&format!(
            "CREATE DATABASE {name} OWNER {name} TEMPLATE template0"
        ));
        Self {
            administrator: administrator.to_owned(),
            name,
            front: None,
        }
    }

    /// The same database, with something between it and the programs.
    #[must_use]
    pub fn behind(mut self, front: Option<Front>) -> Self {
        self.front = front.map(|front| front.start(&self.direct_address(), PASSWORD));
        self
    }

    /// Number of connections that the programs have to it.
    #[must_use]
    pub fn connections(&self) -> i64 {
        let name = &self.name;
        let connections = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'");
        self.server().query(&connections).number()
    }

    fn server(&self) -> Session {
        Session::open(&self.administrator)
    }

    /// The administrator's address, which may name several servers, with this database, and with another login.
    fn address_for(&self, login: Option<&str>) -> String {
        let (administrator, rest) = self
            .administrator
            .split_once('@')
            .expect("the script prints an address");
        let (hosts, rest) = rest.split_once('/').expect("it names a database");
        let parameters = rest.find('?').map_or("", |at| &rest[at..]);
        let login = login.map(|login| format!("postgres://{login}"));
        let login = login.as_deref().unwrap_or(administrator);
        format!("{login}@{hosts}/{}{parameters}", self.name)
    }

    /// Connects to the database as administrator.
    fn open(&self) -> Session {
        Session::open(&self.address_for(None))
    }

    fn tables(&self, session: &Session) -> Vec<String> {
        let tables = session.query(
            "SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = 'public'",
        );
        tables.values().map(str::to_owned).collect()
    }

    /// Allows or forbids connections.
    fn allow(&self, server: &Session, allowed: bool) {
        let name = &self.name;
        server.query(&format!(
            "ALTER DATABASE {name} ALLOW_CONNECTIONS {allowed}"
        ));
    }
}

impl Store for PostgresStore {
    fn kind(&self) -> StoreKind {
        StoreKind::Postgres
    }

    fn address(&self) -> String {
        let front = self.front.as_ref().map(|(_, address)| address.clone());
        front.unwrap_or_else(|| self.direct_address())
    }

    fn direct_address(&self) -> String {
        self.address_for(Some(&format!("{}:{PASSWORD_ESCAPED}", self.name)))
    }

    fn password(&self) -> Option<&str> {
        Some(PASSWORD)
    }

    fn query(&self, sql: &str) -> Rows {
        self.open().query(sql)
    }

    fn find(&self, bytes: &[u8]) -> Option<String> {
        let session = self.open();
        let text = String::from_utf8_lossy(bytes).into_owned();
        let digits = hex::encode(bytes);
        self.tables(&session).into_iter().find(|table| {
            let rows = session.query(&format!("SELECT whole::text FROM {table} AS whole"));
            let mut rows = rows.values();
            rows.any(|row| row.contains(&text) || row.contains(&digits))
        })
    }

    fn dump(&self) -> String {
        let options = [
            "--inserts",
            "--no-owner",
            "--no-privileges",
            "--no-comments",
        ];
        let mut command = Command::new(binaries().join("pg_dump"));
        let command = command.args(options);
        let output = command.arg(self.address_for(None)).output();
        let output = output.expect("pg_dump is installed");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        // Without the commands that only psql reads.
        let is_kept = |line: &&str| !line.starts_with(['\\']);
        let lines = text.lines().filter(is_kept);
        lines.flat_map(|line| [line, "\n"]).collect()
    }

    fn load(&self, dump: &str) {
        let session = Session::open(&self.direct_address());
        session.query("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
        session.query(dump);
    }

    fn lock(&self) -> Lock {
        let session = self.open();
        let tables = self.tables(&session).join(", ");
        session.query("BEGIN");
        session.query(&format!("LOCK TABLE {tables} IN EXCLUSIVE MODE"));
        Lock(Box::new(session))
    }

    fn fail_account_inserts(&self) {
        self.query(
            "CREATE FUNCTION full_up() RETURNS trigger LANGUAGE plpgsql \
             AS $$ BEGIN RAISE EXCEPTION 'full'; END $$; \
             CREATE TRIGGER full_up BEFORE INSERT ON accounts EXECUTE FUNCTION full_up()",
        );
    }

    fn make_unavailable(&self) {
        let server = self.server();
        self.allow(&server, false);
        let (name, timeout_ms) = (&self.name, WAIT_TIMEOUT.as_millis());
        server.query(&format!(
            "SELECT pg_terminate_backend(pid, {timeout_ms}) FROM pg_stat_activity WHERE datname = '{name}'"
        ));
    }

    fn make_available(&self) {
        self.allow(&self.server(), true);
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        // A test's own server may be removed already; the shared one is removed after the run, with all databases.
        let Ok(server) = Session::try_open(&self.administrator) else {
            return;
        };
        for statement in removal(&self.name) {
            let removed = server.try_query(&statement);
            // A second panic would hide the first one.
            assert!(removed.is_ok() || thread::panicking(), "{removed:?}");
        }
    }
}

/// The statements that remove database and role. Separate, since a database cannot be dropped in a transaction.
fn removal(name: &str) -> [String; 2] {
    [
        format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
        format!("DROP ROLE IF EXISTS {name}"),
    ]
}

#[cfg(test)]
mod tests {
    use tokio_postgres::error::SqlState;

    use super::*;
    use crate::postgres::shared_server;

    #[test]
    fn a_database_becomes_unavailable_and_available_again() {
        let store = PostgresStore::create(&shared_server());
        let client = Session::open(&store.address());
        client.query("CREATE TABLE things (name TEXT, raw BYTEA)");
        client.query("INSERT INTO things VALUES ('one', '\\x00abcd')");
        assert_eq!(store.find(b"one"), Some("things".to_owned()));
        assert_eq!(store.find(&[0xab, 0xcd]), Some("things".to_owned()));
        assert_eq!(store.find(b"two"), None);
        store.make_unavailable();
        assert!(client.try_query("SELECT 1").is_err());
        assert!(Session::try_open(&store.address()).is_err());
        store.make_available();
        let client = Session::open(&store.address());
        assert_eq!(client.query("SELECT count(*) FROM things").number(), 1);
        assert_eq!(store.connections(), 1);
    }

    #[test]
    fn a_lock_blocks_other_writers() {
        let store = PostgresStore::create(&shared_server());
        let client = Session::open(&store.address());
        client.query("CREATE TABLE things (name TEXT)");
        let lock = store.lock();
        client.query("SET lock_timeout = '10ms'");
        client.query("SELECT * FROM things");
        let write = "INSERT INTO things VALUES ('one')";
        let refused = client.try_query(write).unwrap_err();
        assert_eq!(refused.code(), Some(&SqlState::LOCK_NOT_AVAILABLE));
        drop(lock);
        // It is released a moment later.
        client.query("SET lock_timeout = '10s'");
        client.query(write);
    }

    #[test]
    fn a_dropped_store_leaves_no_database_and_no_role() {
        let store = PostgresStore::create(&shared_server());
        let (address, name) = (store.address(), store.name.clone());
        let _connected = Session::open(&address);
        drop(store);
        let server = Session::open(&shared_server());
        for (table, column) in [("pg_database", "datname"), ("pg_roles", "rolname")] {
            let left = format!("SELECT count(*) FROM {table} WHERE {column} = '{name}'");
            assert_eq!(server.query(&left).number(), 0, "{table}");
        }
    }
}
