//! Copies from a real file to a real server: everything, or nothing.

use std::{collections::BTreeSet, path::Path};

use rusqlite::{Connection, types::Value as Stored};
use tokio_postgres::types::Type;

use super::*;
use crate::{
    Migration, Schema, Store, StoreAddress,
    postgres::Session,
    testing::{PROGRAM, TestStore},
};

/// Rows in every table; every column is set in at least one.
const SOME: &str = "
    INSERT INTO applications VALUES
        (3, 'first', 'Ein Name ☃', 'active', 1700000000000, x'00ff', x'01', 1700000000001, '{}', '[]', 'v1', 100, 200,
            '[\"v1=2027-03-01T00:00:00Z\"]', 4, x'65'),
        (7, 'second', 'b', 'disabled', 1, x'', NULL, NULL, NULL, '[\"https://a.example\"]', NULL, NULL, NULL, NULL, 1, x'62');
    INSERT INTO audit VALUES (2, 1, 'ada', 'cli host', 'why', 'app.create', 'first', 1, '{}'),
        (5, 2, 'bob', 'cli host', NULL, 'app.update', 'first', 2, '{\"name\":[\"a\",\"b\"]}');
    INSERT INTO tokens VALUES (1, zeroblob(32), 'ci', 'operator', 1, 'ada', 2, 3, 4),
        (3, randomblob(32), 'ci', 'viewer', 1, 'ada', 2, NULL, NULL);
    INSERT INTO idempotency VALUES (zeroblob(32), randomblob(32), x'00ff', 1), (randomblob(32), randomblob(32), NULL, 2);
    INSERT INTO drains VALUES ('v1', '[[\"127.0.0.1:7001\",1700000000000,true]]', 1700000000000), ('v2 (canary next)', '[]', 1);
    INSERT INTO accounts VALUES (5, 'hub', 'grüße', 1, NULL, NULL), (9, 'hub', 'ada', 2, 'Ada', 'ada@id.example');
    INSERT INTO login_keys VALUES ('redirect_cookie', randomblob(32), 1), ('another', randomblob(32), 2);
    INSERT INTO logins (state_hash, version, application_id, mode, provider, user_code, cookie_hash,
        status, account_id, account_created, finished_at, claimable_until, ticket_hash, ticket_until,
        ticket_used_at, created_at, expires_at)
        VALUES (zeroblob(32), 'v1', 3, 'polling', 'hub', 'ABCD', randomblob(32), 'complete', 9, 1,
            1, 2, randomblob(32), 3, 4, 5, 6);
    INSERT INTO logins (state_hash, version, application_id, mode, provider, return_to, status, reason,
        created_at, expires_at)
        VALUES (randomblob(32), 'v2', 0, 'redirect', 'hub', 'https://a.example/', 'failed', 'denied', 7, 8);
    INSERT INTO credentials VALUES (randomblob(32), randomblob(32), 5, 3, 1, 2, NULL, NULL, NULL, NULL),
        (randomblob(32), randomblob(32), 9, 7, 1, 2, 3, randomblob(32), 4, randomblob(32));
    INSERT INTO events VALUES (4, 9, 3, 'seen', '{\"a\":1}', 10, 'key'), (5, 9, 3, 'seen', NULL, 11, NULL);
    INSERT INTO usage_start VALUES (1, 1700000000000);
    INSERT INTO usage_counts VALUES (20000, 'v1', 3, 1, 'header', 17), (20001, 'v1', 0, 0, 'state', 1);
    INSERT INTO usage_clients VALUES ('v1', 3, 1, 'first', 1700000000000, '192.0.2.1', 'app/1.0'),
        ('v1', 0, 0, NULL, 1700000000000, NULL, NULL);
    INSERT INTO usage_paths VALUES (20000, 'v1', 3, 0, 'GET', '/user', '2xx', 17, 1700000000000);
    INSERT INTO shadow_starts VALUES ('v1', 1700000000000);
    INSERT INTO shadow_tallies VALUES (zeroblob(16), 1700000000000, 'v1', 'v2', 'GET /user', '', '{\"pairs\":1}');
    INSERT INTO replay_mark VALUES (1, 1700000000000);
";

/// Their number, in the order of [`TABLES`].
const ROWS: [i64; TABLES.len()] = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 2, 2, 1, 1, 1, 1];

/// Source and target.
struct Pair {
    from: TestStore,
    to: TestStore,
}

impl Pair {
    async fn with(rows: &str) -> Self {
        let pair = Self {
            from: TestStore::sqlite(),
            to: TestStore::postgres(),
        };
        drop(pair.from.open().await);
        pair.source().execute_batch(rows).unwrap();
        pair
    }

    fn file(&self) -> &Path {
        self.from.address().file().unwrap()
    }

    fn source(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }

    async fn copy(&self) -> Result<Copied, CopyError> {
        let StoreAddress::Postgres(server) = self.to.address() else {
            panic!("a server")
        };
        let settings = self.to.settings().postgres;
        copy(self.file(), server, &settings, PROGRAM, |_| ()).await
    }

    async fn target(&self) -> Session {
        let Store::Postgres(database) = self.to.open().await else {
            panic!("a server")
        };
        database.session().await.unwrap()
    }

    async fn counts(&self) -> Vec<i64> {
        let session = self.target().await;
        let mut counts = Vec::new();
        for table in TABLES {
            let query = format!("SELECT count(*) FROM {table}");
            counts.push(session.query_one(&query, &[]).await.unwrap().get(0));
        }
        counts
    }
}

fn columns(connection: &Connection, table: &str) -> Vec<String> {
    let query = "SELECT name FROM pragma_table_info(?1) ORDER BY name";
    let mut statement = connection.prepare(query).unwrap();
    let names = statement.query_map([table], |row| row.get(0)).unwrap();
    names.map(Result::unwrap).collect()
}

/// The sorted rows of a table in SQLite.
fn source_rows(connection: &Connection, table: &str, columns: &[String]) -> Vec<String> {
    let query = format!("SELECT {} FROM {table}", source::quoted(columns));
    let mut statement = connection.prepare(&query).unwrap();
    let rows = statement.query_map([], |row| {
        let values = (0..columns.len()).map(|index| row.get::<_, Stored>(index));
        Ok(format!("{:?}", values.collect::<Result<Vec<_>, _>>()?))
    });
    let mut rows: Vec<_> = rows.unwrap().map(Result::unwrap).collect();
    rows.sort();
    rows
}

/// The sorted rows of a table in the target, with SQLite's types.
async fn target_rows(session: &Session, table: &str, columns: &[String]) -> Vec<String> {
    let query = format!("SELECT {} FROM {table}", source::quoted(columns));
    let read = |row: &tokio_postgres::Row| {
        let values = row.columns().iter().enumerate().map(|(index, column)| {
            let stored = match *column.type_() {
                Type::BOOL => row
                    .get::<_, Option<bool>>(index)
                    .map(|flag| Stored::Integer(flag.into())),
                Type::INT8 => row.get::<_, Option<i64>>(index).map(Stored::Integer),
                Type::TEXT => row.get::<_, Option<String>>(index).map(Stored::Text),
                Type::BYTEA => row.get::<_, Option<Vec<u8>>>(index).map(Stored::Blob),
                ref other => panic!("{other}"),
            };
            stored.unwrap_or(Stored::Null)
        });
        format!("{:?}", values.collect::<Vec<_>>())
    };
    let rows = session.query(&query, &[]).await.unwrap();
    let mut rows: Vec<_> = rows.iter().map(read).collect();
    rows.sort();
    rows
}

#[tokio::test]
async fn every_row_is_copied_unchanged() {
    let pair = Pair::with(SOME).await;
    let copied = pair.copy().await.unwrap();
    assert!(copied.left_out.is_empty(), "{copied:?}");
    let tables = copied.tables.iter();
    let counted: Vec<_> = tables.map(|table| (&*table.name, table.rows)).collect();
    let expected = [
        ("applications", 2),
        ("audit", 2),
        ("tokens", 2),
        ("idempotency", 2),
        ("drains", 2),
        ("accounts", 2),
        ("login_keys", 2),
        ("logins", 2),
        ("credentials", 2),
        ("events", 2),
        ("usage_start", 1),
        ("usage_counts", 2),
        ("usage_clients", 2),
        ("usage_paths", 1),
        ("shadow_tallies", 1),
        ("shadow_starts", 1),
        ("replay_mark", 1),
    ];
    assert_eq!(counted, expected);
    let (source, target) = (pair.source(), pair.target().await);
    for table in TABLES {
        let columns = columns(&source, table);
        assert_eq!(
            target_rows(&target, table, &columns).await,
            source_rows(&source, table, &columns),
            "{table}"
        );
    }
}

#[tokio::test]
async fn all_tables_and_columns_are_copied() {
    let pair = Pair::with("").await;
    let (source, target) = (pair.source(), pair.target().await);
    let mut statement = source
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        .unwrap();
    let tables = statement.query_map([], |row| row.get::<_, String>(0));
    let tables: BTreeSet<_> = tables.unwrap().map(Result::unwrap).collect();
    let expected = TABLES.into_iter().chain(NOT_COPIED).map(str::to_owned);
    assert_eq!(tables, expected.collect());
    for table in TABLES {
        let query = "SELECT column_name::text FROM information_schema.columns WHERE table_name = $1 \
                     ORDER BY column_name::text COLLATE \"C\"";
        let theirs = target.query(query, &[&table]).await.unwrap();
        let theirs: Vec<String> = theirs.iter().map(|row| row.get(0)).collect();
        assert_eq!(theirs, columns(&source, table), "{table}");
    }
}

const NEW_ACCOUNT: &str =
    "INSERT INTO accounts (provider, username, created_at) VALUES ('', '', 0) RETURNING id";

async fn new_id(session: &Session, insert: &str) -> i64 {
    session.query_one(insert, &[]).await.unwrap().get(0)
}

/// The second table, which refers to the first one, was created before it; a column is a word of SQL; another counts.
const OF_A_VERSION: Schema<'static> = Schema::new(
    "v3",
    &[Migration {
        name: "V1__notes",
        sqlite: "CREATE TABLE v3_links (id TEXT, note INTEGER REFERENCES v3_notes (note_id), \"order\" BLOB) STRICT;
                 CREATE TABLE v3_notes (note_id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT, is_done INTEGER NOT NULL)
                     STRICT",
        postgres: "CREATE TABLE v3_notes (note_id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, text TEXT,
                       is_done BOOLEAN NOT NULL);
                   CREATE TABLE v3_links (id TEXT, note BIGINT REFERENCES v3_notes (note_id), \"order\" BYTEA)",
    }],
);

#[tokio::test]
async fn tables_of_a_version_are_created_and_copied() {
    for was_started_there in [false, true] {
        let pair = Pair::with(SOME).await;
        let store = pair.from.open().await;
        store
            .migrate(&OF_A_VERSION, "login-v3 1.0.0")
            .await
            .unwrap();
        let rows = "INSERT INTO v3_notes VALUES (4, 'one', 1), (8, NULL, 0);
                    INSERT INTO v3_links VALUES ('a', 8, x'00'), (NULL, NULL, NULL);
                    CREATE TABLE elsewhere (id INTEGER)";
        pair.source().execute_batch(rows).unwrap();
        if was_started_there {
            let target = pair.to.open().await;
            target
                .migrate(&OF_A_VERSION, "login-v3 1.0.0")
                .await
                .unwrap();
        }
        let copied = pair.copy().await.unwrap();
        assert_eq!(copied.left_out, ["elsewhere"]);
        let last = copied.tables.iter().rev().take(2);
        let last: Vec<_> = last.map(|table| (&*table.name, table.rows)).collect();
        assert_eq!(last, [("v3_links", 2), ("v3_notes", 2)]);
        let target = pair.target().await;
        for table in ["v3_notes", "v3_links"] {
            let columns = columns(&pair.source(), table);
            assert_eq!(
                target_rows(&target, table, &columns).await,
                source_rows(&pair.source(), table, &columns)
            );
        }
        let insert = "INSERT INTO v3_notes (is_done) VALUES (TRUE) RETURNING note_id";
        assert_eq!(new_id(&target, insert).await, 9);
        // The version starts there, and a second copy finds its rows.
        let started = pair
            .to
            .open()
            .await
            .migrate(&OF_A_VERSION, "login-v3 1.0.0")
            .await;
        started.unwrap();
        let error = pair.copy().await.unwrap_err();
        assert!(
            matches!(&error, CopyError::NotEmpty { tables } if tables.contains(&"v3_notes".to_owned())),
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_a_later_release_has_migrated_is_copied_as_far_as_this_one_knows_its_tables() {
    let pair = Pair::with(SOME).await;
    let store = pair.from.open().await;
    let statements = "ALTER TABLE accounts ADD COLUMN motto TEXT";
    let motto = Migration {
        name: "V2__motto",
        sqlite: statements,
        postgres: statements,
    };
    let news = Migration {
        name: "V3__news",
        sqlite: "CREATE TABLE news (id INTEGER) STRICT",
        postgres: "CREATE TABLE news (id BIGINT)",
    };
    let all = [crate::schema::SIGNPOST.migrations[0], motto, news];
    let later = |number| Schema {
        migrations: &all[..number],
        ..crate::schema::SIGNPOST
    };
    store.migrate(&later(2), "signpost 1.4.0").await.unwrap();
    let update = "UPDATE accounts SET motto = 'short' WHERE id = 9";
    pair.source().execute_batch(update).unwrap();
    pair.copy().await.unwrap();
    let motto = "SELECT motto FROM accounts WHERE id = 9";
    let row = pair.target().await.query_one(motto, &[]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), "short");

    let pair = Pair::with(SOME).await;
    let store = pair.from.open().await;
    store.migrate(&later(3), "signpost 1.5.0").await.unwrap();
    assert_eq!(
        pair.copy().await.unwrap_err().to_string(),
        "signpost 1.5.0 has migrated the source further than this program knows, which knows nothing of news. Copy with \
         the release that has migrated it"
    );
}

#[tokio::test]
async fn ids_of_deleted_rows_are_not_reused() {
    // The application with the highest id was deleted.
    let pair = Pair::with(&format!(
        "{SOME} INSERT INTO applications SELECT 40, 'gone', name, state, 1, x'', NULL, NULL, NULL, '[]', NULL, NULL, NULL, NULL, 1, x'' \
         FROM applications LIMIT 1; DELETE FROM applications WHERE id = 40"
    ))
    .await;
    pair.copy().await.unwrap();
    let target = pair.target().await;
    let insert = "INSERT INTO applications (ident, name, state, created_at, key_sealed, return_to_origins) \
                  VALUES ('new', '', 'active', 0, '', '[]') RETURNING id";
    assert_eq!(new_id(&target, insert).await, 41);
    assert_eq!(new_id(&target, NEW_ACCOUNT).await, 10);
}

#[tokio::test]
async fn an_empty_source_leaves_the_target_empty() {
    let pair = Pair::with("").await;
    pair.copy().await.unwrap();
    assert_eq!(new_id(&pair.target().await, NEW_ACCOUNT).await, 1);
}

#[tokio::test]
async fn a_target_that_is_not_empty_is_not_changed() {
    let pair = Pair::with(SOME).await;
    let target = pair.target().await;
    let insert = "INSERT INTO accounts (provider, username, created_at) VALUES ('', '', 0)";
    target.execute(insert, &[]).await.unwrap();
    let error = pair.copy().await.unwrap_err();
    assert!(
        matches!(&error, CopyError::NotEmpty { tables } if *tables == ["accounts"]),
        "{error}"
    );
    target.execute("DELETE FROM accounts", &[]).await.unwrap();
    // The key that a program creates at its first start is replaced.
    let own_key = "INSERT INTO login_keys VALUES ('redirect_cookie', sha256(''), 0)";
    target.execute(own_key, &[]).await.unwrap();
    // So is the time at which it began to count.
    let start = "INSERT INTO usage_start VALUES (1, 0)";
    target.execute(start, &[]).await.unwrap();
    pair.copy().await.unwrap();
    let key = "SELECT created_at FROM login_keys WHERE name = 'redirect_cookie'";
    let key = target.query_one(key, &[]).await.unwrap();
    assert_eq!(key.get::<_, i64>(0), 1);
    let error = pair.copy().await.unwrap_err();
    let is_replaced = |table: &str| ["login_keys", "usage_start"].contains(&table);
    let others = TABLES.into_iter().filter(|table| !is_replaced(table));
    let others: Vec<_> = others.collect();
    assert!(
        matches!(&error, CopyError::NotEmpty { tables } if *tables == others),
        "{error}"
    );
    assert_eq!(pair.counts().await, ROWS);
}

#[tokio::test]
async fn a_target_with_another_writer_is_in_use() {
    let pair = Pair::with(SOME).await;
    let target = pair.target().await;
    target.execute("BEGIN", &[]).await.unwrap();
    target.execute("DELETE FROM events", &[]).await.unwrap();
    let error = pair.copy().await.unwrap_err();
    assert!(matches!(error, CopyError::InUse), "{error}");
    drop(target);
    assert_eq!(pair.counts().await, [0; TABLES.len()]);
}

#[tokio::test]
async fn a_copy_that_fails_halfway_leaves_the_target_empty() {
    let pair = Pair::with(SOME).await;
    let spoil = "UPDATE accounts SET username = 'a' || char(0) WHERE id = 9";
    pair.source().execute_batch(spoil).unwrap();
    let error = pair.copy().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "accounts.username has a string that holds U+0000 or is not UTF-8, which Postgres cannot store"
    );
    assert_eq!(pair.counts().await, [0; TABLES.len()]);
    let mend = "UPDATE accounts SET username = 'a' WHERE id = 9";
    pair.source().execute_batch(mend).unwrap();
    pair.copy().await.unwrap();
    assert_eq!(pair.counts().await, ROWS);
}

#[tokio::test]
async fn client_texts_are_copied_with_null_characters_replaced() {
    let pair = Pair::with(SOME).await;
    let spoil = "UPDATE events SET data = 'a' || char(0) || 'b' WHERE id = 4";
    pair.source().execute_batch(spoil).unwrap();
    let copied = pair.copy().await.unwrap();
    assert_eq!(
        copied
            .tables
            .iter()
            .map(|table| table.replaced)
            .sum::<u64>(),
        1
    );
    let query = "SELECT data FROM events WHERE id = 4";
    let row = pair.target().await.query_one(query, &[]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), "a\u{fffd}b");
}

#[tokio::test]
async fn a_missing_source_is_not_created() {
    let pair = Pair::with("").await;
    let missing = pair.file().with_extension("missing");
    let StoreAddress::Postgres(server) = pair.to.address() else {
        panic!("a server")
    };
    let copied = copy(
        &missing,
        server,
        &PostgresSettings::default(),
        PROGRAM,
        |_| (),
    )
    .await;
    assert!(matches!(copied, Err(CopyError::NoSource { .. })));
    assert!(!missing.exists());
    assert_eq!(
        crate::sqlite::backup::process_using(&missing).unwrap(),
        None
    );
}

#[tokio::test]
async fn the_source_is_locked_against_writes() {
    let pair = Pair::with(SOME).await;
    let source = Source::open(pair.file(), PROGRAM).unwrap();
    let other = pair.source();
    other.busy_timeout(std::time::Duration::ZERO).unwrap();
    let write = "DELETE FROM events";
    other.execute_batch(write).unwrap_err();
    drop(source);
    other.execute_batch(write).unwrap();
}
