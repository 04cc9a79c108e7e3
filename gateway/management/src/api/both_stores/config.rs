//! The configuration in effect, and its reload.

use std::{fs, path::Path};

use signpost_kit::{
    config::{ConfigError, Loaded},
    reload::{Reload, ReloadSignals, Reloader},
    server::health::HealthAddress,
};
use signpost_proxy::Config;
use signpost_store::tables::audit::{Filter, page};
use tempfile::TempDir;

use super::*;

/// Of such a number of threads, the program says that its address is in use.
const IN_USE: usize = 7;

/// A gateway that reads its file, and applies all but one.
struct Program;

impl Reload for Program {
    type Config = Config;

    fn load(&self, file: &Path) -> Result<Loaded<Config>, ConfigError> {
        Config::load_settings(file)
    }

    fn needs_restart(&self, key: &str, _: &[&str]) -> bool {
        key == "threads"
    }

    fn new_process(&self, _: &Path) -> String {
        "an upgrade applies these".to_owned()
    }

    async fn apply(&self, config: Config) -> anyhow::Result<()> {
        anyhow::ensure!(config.threads != IN_USE, "address in use");
        Ok(())
    }

    fn health_address(&self) -> HealthAddress {
        SocketAddr::from((Ipv4Addr::LOCALHOST, 1)).into()
    }
}

/// A handle on the reloader of a new file, which is removed with the folder.
pub(super) fn reload_of(text: &str) -> (TempDir, ReloadHandle) {
    let (folder, reloader) = reloader_of(text);
    let handle = reloader.handle();
    tokio::spawn(reloader.run());
    (folder, handle)
}

/// A handle on a reloader that has ended.
pub(super) fn ended_reload() -> ReloadHandle {
    reloader_of(MINIMAL).1.handle()
}

fn reloader_of(text: &str) -> (TempDir, Reloader<Program>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    fs::write(&file, text).unwrap();
    let settings = Config::load_settings(&file).unwrap().settings;
    let hangups = ReloadSignals::listen().unwrap();
    let reloader = Reloader::new(Program, file, settings, hangups, Arc::default());
    (folder, reloader)
}

impl Scene {
    fn write(&self, added: &str) {
        let file = self.folder.path().join("gateway.toml");
        fs::write(file, format!("{added}{MINIMAL}")).unwrap();
    }

    /// The values that the API lists, by key.
    async fn values(&self, token: &str) -> Vec<(String, String, String)> {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let path = format!("/api/v1/config?limit=7{after}");
            let page = self.get(&path, token).await.body;
            for item in page["items"].as_array().unwrap() {
                let [key, value, source] =
                    ["key", "value", "source"].map(|name| item[name].as_str().unwrap().to_owned());
                all.push((key, value, source));
            }
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return all,
            }
        }
    }

    /// The reloads in the audit: their reasons and changes.
    async fn reloads(&self) -> Vec<(Option<String>, Value)> {
        let rows = page(&self.store, Filter::default(), 100).await.unwrap();
        let reloads = rows.into_iter().filter(|row| row.action == "config.reload");
        let shown = reloads.map(|row| {
            let changes = serde_json::from_str(&row.entry.changes).unwrap();
            (row.author.reason, changes)
        });
        shown.collect()
    }
}

#[tokio::test]
async fn every_key_is_listed_with_its_value_but_no_secret() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let viewer = scene.token(Role::Viewer).await;
    let values = scene.values(&viewer).await;
    let settings: Vec<_> = scene.reload.settings().iter().cloned().collect();
    assert_eq!(json!(settings).as_array().unwrap().len(), values.len());
    let of = |key: &str| {
        let found = values.iter().find(|(known, _, _)| known == key).unwrap();
        (&*found.1, &*found.2)
    };
    assert_eq!(of("versions.v1.backend").1, "file");
    assert_eq!(of("application.key"), ("(secret)", "file"));
    assert_eq!(of("watch"), ("false", "default"));
    let called = scene.get("/api/v1/config?after=nothing", &viewer).await;
    assert_eq!(called.code(), "param_invalid");
}

#[tokio::test]
async fn a_check_says_what_a_reload_would_change() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let viewer = scene.token(Role::Viewer).await;
    let check = async || scene.get("/api/v1/config/check", &viewer).await.body;
    scene.write("watch = true\nthreads = 2\n");
    let checked = check().await;
    assert_eq!(checked["problems"], json!([]));
    let expected = json!([{"key": "watch", "from": "false", "to": "true"}]);
    assert_eq!(checked["report"]["changed"], expected);
    assert_eq!(checked["report"]["needing_restart"][0]["key"], "threads");
    assert_eq!(checked["report"]["is_applied"], false);
    scene.write("watch = 1\n");
    let checked = check().await;
    assert_eq!(checked["report"], Value::Null);
    let expected =
        json!({"line": 1, "key": "watch", "text": "found a whole number; allowed: true or false"});
    assert_eq!(checked["problems"], json!([expected]));
    assert_eq!(scene.reloads().await, []);
}

#[tokio::test]
async fn a_reload_is_audited_before_it_is_done() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let operator = scene.token(Role::Operator).await;
    let reload = async |body| scene.post("/api/v1/config/reload", &operator, body).await;
    let is_watched = || {
        let settings = scene.reload.settings();
        settings
            .iter()
            .any(|one| one.key == "watch" && one.shown == "true")
    };
    scene.write("watch = 1\n");
    let called = reload(json!({})).await;
    assert_eq!(
        (called.status.as_u16(), called.code()),
        (422, "config_invalid")
    );
    assert_eq!(called.body["problems"][0]["key"], "watch");
    assert_eq!(scene.reloads().await, []);
    scene.write("watch = true\n");
    let rename = async |from: &str, to: &str| {
        let rename = format!("ALTER TABLE {from} RENAME TO {to}");
        scene.store.execute(&rename, Vec::new()).await.unwrap();
    };
    rename("audit", "elsewhere").await;
    let called = reload(json!({})).await;
    assert_eq!(called.code(), "internal", "{called:?}");
    assert!(!is_watched());
    rename("elsewhere", "audit").await;
    let called = reload(json!({"reason": "a change"})).await;
    assert_eq!(called.status, StatusCode::OK, "{called:?}");
    assert_eq!(called.body["is_applied"], true);
    assert!(is_watched());
    let expected = (
        Some("a change".to_owned()),
        json!({"watch": ["false", "true"]}),
    );
    assert_eq!(scene.reloads().await, [expected]);
}

#[tokio::test]
async fn the_audit_says_that_a_reload_was_rejected() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let operator = scene.token(Role::Operator).await;
    scene.write(&format!("watch = true\nthreads = {IN_USE}\n"));
    let called = scene
        .post("/api/v1/config/reload", &operator, json!({}))
        .await;
    assert_eq!(called.code(), "config_invalid", "{called:?}");
    let expected = [
        (None, json!({"outcome": "rejected"})),
        (None, json!({"watch": ["false", "true"]})),
    ];
    assert_eq!(scene.reloads().await, expected);
}

#[tokio::test]
async fn the_audit_of_a_reload_has_no_secret() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let operator = scene.token(Role::Operator).await;
    let file = scene.folder.path().join("gateway.toml");
    let other = "9b1c5c0f4f6d4a0e8e0f1d2c3b4a5968";
    let text = MINIMAL.replace("4283fefc63f0cd0e873a0000c6d07ef7", other);
    fs::write(&file, text).unwrap();
    let called = scene
        .post("/api/v1/config/reload", &operator, json!({}))
        .await;
    assert_eq!(called.status, StatusCode::OK, "{called:?}");
    assert!(!called.text.contains(other));
    assert_eq!(
        scene.reloads().await,
        [(None, json!({"application.key": "changed"}))]
    );
}
