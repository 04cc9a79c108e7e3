//! Calls that are dropped while the server executes their statement (#9).

use tokio::time::timeout;

use super::*;

/// Longer than the timeout of a statement.
const DEADLINE: Duration = Duration::from_secs(30);

fn free_connections(database: &PostgresDatabase) -> usize {
    database.shared.pool.status().available
}

async fn wait_until_all_free(database: &PostgresDatabase) {
    let all_free = async {
        while free_connections(database) < database.shared.pool.status().size {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, all_free).await.expect("statements end");
}

#[tokio::test]
async fn a_connection_returns_to_the_pool_when_its_statement_ends() {
    let store = TestStore::postgres();
    let database = open(&store).await;
    let pid = "SELECT pg_backend_pid()";
    // Soon after its timeout, the connection is closed. On a busy machine, the statement may not have ended by then.
    for _ in 0..10 {
        let session = database.session().await.unwrap();
        let before: i32 = session.query_one(pid, &[]).await.unwrap().get(0);
        assert_eq!(free_connections(&database), 0);
        let sleeping = async move { session.query("SELECT pg_sleep(20)", &[]).await };
        let dropped = timeout(Duration::from_millis(100), sleeping).await;
        assert!(dropped.is_err(), "it sleeps");
        assert_eq!(
            free_connections(&database),
            0,
            "the statement is still running"
        );
        wait_until_all_free(&database).await;
        let session = database.session().await.unwrap();
        let after: i32 = session.query_one(pid, &[]).await.unwrap().get(0);
        if after == before {
            return;
        }
    }
    panic!("no connection is used again");
}

#[tokio::test]
async fn dropped_calls_never_exceed_the_pool_size() {
    let store = TestStore::postgres();
    let (database, observer) = (open(&store).await, open(&store).await);
    let observer = observer.session().await.unwrap();
    let count = "SELECT count(*) FROM pg_stat_activity \
                 WHERE datname = current_database() AND pid <> pg_backend_pid()";
    for _ in 0..40 {
        let sleeping = async {
            let session = database.session().await?;
            session.query("SELECT pg_sleep(20)", &[]).await
        };
        let _ = timeout(Duration::from_millis(20), sleeping).await;
        let connections: i64 = observer.query_one(count, &[]).await.unwrap().get(0);
        // The connections of the migrations may still be open.
        assert!(connections <= 2 + 2, "{connections}");
    }
    wait_until_all_free(&database).await;
}

#[tokio::test]
async fn a_session_dropped_after_its_response_frees_the_connection_immediately() {
    let store = TestStore::postgres();
    let database = open(&store).await;
    let session = database.session().await.unwrap();
    session.query("SELECT 1", &[]).await.unwrap();
    session.query("SELECT nonsense", &[]).await.unwrap_err();
    drop(session);
    assert_eq!(free_connections(&database), 1);
}
