//! Query plans: logins are found by their primary key. With an index of pending logins, the server would scan all of
//! them; and with a plan of the time when the table was empty, the whole table.

use signpost_store::{PostgresDatabase, SqliteDatabase, Store, postgres::Session};

use super::*;
use crate::records::logins::table::{BIND, CLAIM, FINISH, UNCLAIM, find_statement};

/// Inserts many finished logins, updates the server's statistics, then inserts many pending ones.
const FILL: &str = "INSERT INTO logins (state_hash, version, application_id, mode, provider, status, reason, \
          created_at, expires_at) \
     SELECT sha256(CAST(CAST(number AS TEXT) AS BYTEA)), 'v1', 7, 'redirect', 'sandbox', 'failed', \
         'access_denied', number, number + 600000 \
     FROM generate_series(1, 50000) AS number; \
     ANALYZE logins; \
     INSERT INTO logins (state_hash, version, application_id, mode, provider, status, created_at, expires_at) \
     SELECT sha256(CAST(CAST(number AS TEXT) AS BYTEA)), 'v1', 7, 'redirect', 'sandbox', 'pending', \
         number, 1000000000 \
     FROM generate_series(50001, 55000) AS number";

/// Returns the server's plan of a statement.
async fn plan_of_server(session: &Session, mode: &str, statement: &str, values: &str) -> String {
    let run = async |sql: &str| session.query(sql, &[]).await.unwrap();
    run(&format!("SET plan_cache_mode = {mode}")).await;
    run(&format!("PREPARE tried AS {statement}")).await;
    let lines = run(&format!("EXPLAIN EXECUTE tried ({values})")).await;
    run("DEALLOCATE tried").await;
    let lines = lines.iter().map(|line| line.get::<_, String>(0));
    lines.collect::<Vec<_>>().join("\n")
}

async fn in_postgres(store: &TestStore, database: &PostgresDatabase) {
    // As autovacuum leaves the table after a quiet night.
    store.execute("VACUUM ANALYZE logins").await;
    by_primary_key(database).await;
    store.execute(FILL).await;
    by_primary_key(database).await;
}

async fn by_primary_key(database: &PostgresDatabase) {
    let find = find_statement();
    let hash = format!("'\\x{}'", "00".repeat(32));
    let session = database.session().await.unwrap();
    let finish = "'failed', 'access_denied', NULL, false, NULL, NULL, 700000, 820000, 705000";
    for mode in ["force_generic_plan", "force_custom_plan"] {
        for (statement, values) in [
            (find.as_str(), hash.clone()),
            (BIND, format!("{hash}, {hash}, 700000, NULL")),
            (
                CLAIM,
                format!("{hash}, {hash}, 700000, 730000, 850000, 'sandbox'"),
            ),
            (UNCLAIM, hash.clone()),
            (FINISH, format!("{hash}, {finish}")),
        ] {
            let plan = plan_of_server(&session, mode, statement, &values).await;
            assert!(plan.contains("using logins_pkey"), "{mode}: {plan}");
            for other in ["logins_unvouched", "logins_by_age", "Seq Scan on logins"] {
                assert!(!plan.contains(other), "{mode}: {plan}");
            }
        }
    }
}

async fn in_sqlite(database: &SqliteDatabase) {
    for statement in [BIND, CLAIM, FINISH] {
        let explain = format!("EXPLAIN QUERY PLAN {statement}").replace('$', "?");
        let plan: String = database
            .call(move |connection| {
                let mut explain = connection.prepare(&explain)?;
                explain.raw_bind_parameter(1, [0; 32])?;
                let mut rows = explain.raw_query();
                let row = rows.next()?.expect("a plan has a line");
                row.get("detail")
            })
            .await
            .unwrap();
        assert_eq!(plan, "SEARCH logins USING PRIMARY KEY (state_hash=?)");
    }
}

#[tokio::test]
async fn logins_are_updated_by_primary_key() {
    let store = TestStore::new().await;
    match store.store() {
        Store::Sqlite(database) => in_sqlite(database).await,
        Store::Postgres(database) => in_postgres(&store, database).await,
    }
}
