//! What the audit has of reloads that are not by the API.

use std::{fs, time::Duration};

use rustix::process::{Signal, geteuid, getpid, kill_process};
use serde_json::Value;
use signpost_kit::reload::{
    ReloadSignals, Reloader,
    control::{Reply, Verb, send},
};
use signpost_proxy::testing::MINIMAL;
use signpost_store::{
    tables::audit::{Filter, page},
    testing::TestStore,
};
use tokio::task::spawn_blocking;

use super::{tests::reload, *};

/// Actors and the changes of the key `watch`, newest first.
async fn rows(store: &Store) -> Vec<(String, String)> {
    let rows = page(store, Filter::default(), 10).await.unwrap();
    let rows = rows.into_iter().map(|row| {
        assert_eq!(
            (&*row.action, &*row.entry.subject),
            ("config.reload", "configuration")
        );
        let changes: Value = serde_json::from_str(&row.entry.changes).unwrap();
        (row.author.actor, changes["watch"].to_string())
    });
    rows.collect()
}

async fn wait_for_row(store: &Store, actor: &str, watch: &str) {
    let mut interval = tokio::time::interval(Duration::from_millis(20));
    while rows(store).await.first() != Some(&(actor.to_owned(), watch.to_owned())) {
        interval.tick().await;
    }
}

async fn command(file: &Path) -> Reply {
    let file = file.to_owned();
    spawn_blocking(move || send(&file, Verb::Reload).unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn reloads_by_command_signal_and_watch_are_audited() {
    let test = TestStore::chosen();
    let store = test.open().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let write = |added: &str| fs::write(&file, format!("{added}{MINIMAL}")).unwrap();
    write("");
    let Loaded { config, settings } = Config::load_settings(&file).unwrap();
    let program = GatewayReload {
        store: Some(store.clone()),
        ..reload(config)
    };
    let hangups = ReloadSignals::listen().unwrap();
    let reloader = Reloader::new(program, file.clone(), settings, hangups, Arc::default());
    tokio::spawn(reloader.run());
    write("watch = 1\n");
    assert!(!command(&file).await.is_success);
    assert_eq!(rows(&store).await, []);
    // It reloads although the store does not take the row.
    let rename = async |from: &str, to: &str| {
        let rename = format!("ALTER TABLE {from} RENAME TO {to}");
        store.execute(&rename, Vec::new()).await.unwrap();
    };
    rename("audit", "elsewhere").await;
    write("watch = true\n");
    assert!(command(&file).await.is_success);
    rename("elsewhere", "audit").await;
    write("");
    wait_for_row(&store, "watch", r#"["true","false"]"#).await;
    write("watch = true\n");
    assert!(command(&file).await.is_success);
    let user = user_name(geteuid().as_raw());
    wait_for_row(&store, &user, r#"["false","true"]"#).await;
    kill_process(getpid(), Signal::HUP).unwrap();
    wait_for_row(&store, "signal", "null").await;
    assert_eq!(rows(&store).await.len(), 3);
}
