//! Reloads of a test program, by every trigger.

use std::{
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::bail;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::{
    control::{MAX_READING, Reply, send},
    *,
};
use crate::config::load;

/// A program with two keys: `size`, which can be reloaded, and `threads`, which needs a new process.
struct Program {
    file: PathBuf,
    /// The sizes that were applied.
    sizes: Arc<Mutex<Vec<u32>>>,
    fails: Arc<AtomicBool>,
}

impl Reload for Program {
    type Config = u32;

    fn load(&self, file: &Path) -> Result<Loaded<u32>, ConfigError> {
        read(file)
    }

    fn needs_restart(&self, key: &str, _: &[&str]) -> bool {
        key == "threads"
    }

    fn new_process(&self, _: &Path) -> String {
        "a restart applies these".to_owned()
    }

    async fn apply(&self, size: u32) -> anyhow::Result<()> {
        if self.fails.load(Ordering::Relaxed) {
            bail!("no room");
        }
        self.sizes.lock().unwrap().push(size);
        // The file changes again during this reload.
        if size == WRITES_AGAIN {
            fs::write(&self.file, "size = 8\nwatch = true\n").unwrap();
        }
        Ok(())
    }

    fn health_address(&self) -> HealthAddress {
        "https://127.0.0.1:7".parse().unwrap()
    }
}

const WRITES_AGAIN: u32 = 7;

fn read(file: &Path) -> Result<Loaded<u32>, ConfigError> {
    load(file, |root| {
        let threads = root.number("threads", 1..=9, 1_u32);
        let secret = root.secret("secret");
        let size = root.number("size", 1..=9, 1_u32);
        threads?;
        secret?;
        size
    })
}

/// A running program.
struct Running {
    _folder: TempDir,
    file: PathBuf,
    sizes: Arc<Mutex<Vec<u32>>>,
    fails: Arc<AtomicBool>,
    handle: ReloadHandle,
    task: JoinHandle<()>,
}

impl Running {
    fn start(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        fs::write(&file, text).unwrap();
        let settings = read(&file).unwrap().settings;
        Self::with_settings(folder, file, settings)
    }

    /// Starts a program that has read these settings.
    fn with_settings(folder: TempDir, file: PathBuf, settings: Settings) -> Self {
        let (sizes, fails) = (Arc::default(), Arc::default());
        let program = Program {
            file: file.clone(),
            sizes: Arc::clone(&sizes),
            fails: Arc::clone(&fails),
        };
        let hangups = ReloadSignals::listen().unwrap();
        let reloader = Reloader::new(program, file.clone(), settings, hangups, Arc::default());
        Self {
            _folder: folder,
            file,
            sizes,
            fails,
            handle: reloader.handle(),
            task: tokio::spawn(reloader.run()),
        }
    }

    fn write(&self, text: &str) {
        fs::write(&self.file, text).unwrap();
    }

    async fn send(&self, verb: Verb) -> Reply {
        let file = self.file.clone();
        let sent = tokio::task::spawn_blocking(move || send(&file, verb));
        sent.await.unwrap().unwrap()
    }

    /// The text of the reply, without the file's path.
    async fn reply(&self, verb: Verb) -> String {
        let reply = self.send(verb).await;
        let file = self.file.display().to_string();
        reply.text.replace(&file, "FILE")
    }

    async fn wait_for_sizes(&self, expected: &[u32]) {
        let wait = async {
            while self.sizes() != expected {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = timeout(Duration::from_secs(20), wait).await;
        waited.unwrap_or_else(|_| panic!("{:?} instead of {expected:?}", self.sizes()));
    }

    fn sizes(&self) -> Vec<u32> {
        self.sizes.lock().unwrap().clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test]
async fn the_command_prints_the_changes() {
    let running = Running::start("size = 2\n");
    assert_eq!(
        running.reply(Verb::Reload).await,
        "FILE: reloaded, nothing changed"
    );
    running.write("size = 3\n");
    assert_eq!(
        running.reply(Verb::Diff).await,
        "FILE: OK, a reload would change:\n  size: 2 -> 3"
    );
    assert_eq!(running.sizes(), [2]);
    assert_eq!(
        running.reply(Verb::Reload).await,
        "FILE: reloaded\n  size: 2 -> 3"
    );
    assert_eq!(running.sizes(), [2, 3]);
}

#[tokio::test]
async fn keys_that_need_a_new_process_stay_and_are_listed_at_each_reload() {
    let running = Running::start("size = 2\n");
    running.write("size = 3\nthreads = 4\n");
    let needed = "\na restart applies these:\n  threads: 1 -> 4";
    let reply = running.reply(Verb::Reload).await;
    assert_eq!(reply, format!("FILE: reloaded\n  size: 2 -> 3{needed}"));
    let reply = running.reply(Verb::Reload).await;
    assert_eq!(reply, format!("FILE: reloaded, nothing changed{needed}"));
    running.write("size = 3\n");
    assert_eq!(
        running.reply(Verb::Reload).await,
        "FILE: reloaded, nothing changed"
    );
}

#[tokio::test]
async fn an_invalid_file_changes_nothing_and_is_explained() {
    let running = Running::start("size = 2\n");
    running.write("size = 10\nsise = 1\n");
    let reply = running.send(Verb::Reload).await;
    assert!(!reply.is_success);
    let explained = running.reply(Verb::Reload).await;
    assert_eq!(
        explained,
        "FILE:1: size: found 10; allowed: a whole number from 1 to 9\n\
         FILE:2: sise: unknown key; did you mean size?\n\
         not reloaded: the old configuration stays"
    );
    running.fails.store(true, Ordering::Relaxed);
    running.write("size = 9\n");
    let reply = running.reply(Verb::Reload).await;
    assert!(reply.starts_with("FILE: no room\n"), "{reply}");
    assert_eq!(running.sizes(), [] as [u32; 0]);
    // The file is still compared with the settings in effect.
    let reply = running.reply(Verb::Diff).await;
    assert!(reply.ends_with("size: 2 -> 9"), "{reply}");
}

#[tokio::test]
async fn concurrent_commands_all_get_a_reply() {
    let running = Running::start("size = 2\n");
    running.write("size = 5\n");
    let replies =
        futures_util::future::join_all((0..20).map(|_| running.reply(Verb::Reload))).await;
    let changed = replies.iter().filter(|reply| reply.contains("2 -> 5"));
    assert_eq!(changed.count(), 1, "{replies:?}");
    assert!(
        replies
            .iter()
            .all(|reply| reply.starts_with("FILE: reloaded"))
    );
}

#[tokio::test]
async fn without_a_program_the_command_fails() {
    let error = send(Path::new("/nonexistent/a.toml"), Verb::Reload).unwrap_err();
    let message = format!("{error:#}");
    assert!(message.contains("no running program was started with --config /nonexistent/a.toml"));
}

#[tokio::test]
async fn a_watched_file_is_reloaded_when_it_changes() {
    let running = Running::start("size = 2\nwatch = true\n");
    running.write("size = 4\nwatch = true\n");
    running.wait_for_sizes(&[4]).await;
}

#[tokio::test]
async fn a_change_during_a_reload_is_detected() {
    let running = Running::start("size = 2\nwatch = true\n");
    running.write(&format!("size = {WRITES_AGAIN}\nwatch = true\n"));
    running.wait_for_sizes(&[WRITES_AGAIN, 8]).await;
}

#[tokio::test]
async fn a_change_between_the_start_and_the_watch_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toml");
    fs::write(&file, "size = 2\nwatch = true\n").unwrap();
    let settings = read(&file).unwrap().settings;
    fs::write(&file, "size = 3\nwatch = true\n").unwrap();
    Running::with_settings(folder, file, settings)
        .wait_for_sizes(&[3])
        .await;
}

#[tokio::test]
async fn a_secret_file_that_is_created_later_is_detected() {
    let running = Running::start("size = 2\nwatch = true\n");
    let secret = running.file.with_file_name("secret");
    let named = format!("secret = 'file:{}'", secret.display());
    running.write(&format!("size = 5\nwatch = true\n{named}\n"));
    // The file is created only after a reload has failed for lack of it.
    let reply = running.reply(Verb::Reload).await;
    assert!(reply.contains("cannot be read"), "{reply}");
    fs::write(&secret, "hush").unwrap();
    running.wait_for_sizes(&[5]).await;
}

#[tokio::test]
async fn the_program_reports_its_health_address() {
    let running = Running::start("size = 2\n");
    let address = running.reply(Verb::HealthAddress).await;
    assert_eq!(address, "https://127.0.0.1:7");
}

#[tokio::test]
async fn a_program_without_a_state_says_so() {
    let running = Running::start("size = 2\n");
    let reply = running.send(Verb::Status).await;
    assert!(!reply.is_success, "{}", reply.text);
    assert_eq!(reply.text, "this program reports no state");
    let same = running.reply(Verb::Diff).await;
    assert!(
        same.ends_with("OK, a reload would change nothing"),
        "{same}"
    );
}

#[tokio::test]
async fn silent_clients_do_not_delay_a_command() {
    let running = Running::start("size = 2\n");
    let silent: Vec<_> = (1..MAX_READING)
        .map(|_| control::connect(&running.file).unwrap())
        .collect();
    // One after the other, they would take 35 s.
    let reply = timeout(Duration::from_secs(30), running.reply(Verb::Reload)).await;
    assert!(reply.unwrap().contains("reloaded"));
    drop(silent);
}

#[tokio::test]
async fn the_command_is_available_once_the_previous_program_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toml");
    fs::write(&file, "size = 2\n").unwrap();
    let settings = || read(&file).unwrap().settings;
    let previous = control::listen(&file).unwrap();
    let running = Running::with_settings(folder, file.clone(), settings());
    drop(previous);
    let mut reply = None;
    for _ in 0..1000 {
        let file = file.clone();
        let sent = tokio::task::spawn_blocking(move || send(&file, Verb::Reload).ok());
        reply = sent.await.unwrap();
        if reply.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(reply.unwrap().text.contains("reloaded"));
    assert_eq!(running.sizes(), [2]);
}

#[tokio::test]
async fn a_handle_reloads_and_compares() {
    let running = Running::start("size = 2\n");
    running.write("size = 3\nthreads = 4\nsecret = 'hush'\n");
    let change = |key, from, to| serde_json::json!({"key": key, "from": from, "to": to});
    let mut expected = serde_json::json!({
        "is_applied": false,
        "warnings": [],
        "changed": [
            change("secret", None, Some("(secret)")),
            change("size", Some("2"), Some("3")),
        ],
        "needing_restart": [change("threads", Some("1"), Some("4"))],
        "new_process": "a restart applies these",
    });
    let report = running.handle.compare().await.unwrap();
    assert_eq!(serde_json::json!(report), expected);
    assert_eq!(running.sizes(), [] as [u32; 0]);
    expected["is_applied"] = true.into();
    let report = running.handle.reload().await.unwrap();
    assert_eq!(serde_json::json!(report), expected);
    assert_eq!(running.sizes(), [3]);
    // A key that needs a new process has its old value.
    let settings: Vec<_> = running.handle.settings().iter().cloned().collect();
    let expected = serde_json::json!([
        {"key": "watch", "value": "false", "source": "default"},
        {"key": "secret", "value": "(secret)", "source": "file"},
        {"key": "size", "value": "3", "source": "file"},
        {"key": "threads", "value": "1", "source": "default"},
    ]);
    assert_eq!(serde_json::json!(settings), expected);
}

#[tokio::test]
async fn a_handle_gets_the_problems_of_an_invalid_file() {
    let running = Running::start("size = 2\n");
    running.write("size = 10\n");
    for called in [
        running.handle.reload().await,
        running.handle.compare().await,
    ] {
        let Err(ReloadError::Rejected(error)) = called else {
            panic!("{called:?}");
        };
        let expected = serde_json::json!([{
            "line": 1, "key": "size", "text": "found 10; allowed: a whole number from 1 to 9",
        }]);
        assert_eq!(serde_json::json!(error.problems), expected);
    }
    assert_eq!(running.sizes(), [] as [u32; 0]);
}

#[tokio::test]
async fn a_reload_completes_without_its_caller() {
    let running = Running::start("size = 2\n");
    running.write("size = 3\n");
    let handle = running.handle.clone();
    // Cancelled once it is queued.
    tokio::select! {
        biased;
        _ = handle.reload() => panic!("the reloader has not run yet"),
        () = std::future::ready(()) => {}
    }
    running.wait_for_sizes(&[3]).await;
}

#[tokio::test]
async fn a_handle_outlives_the_reloader() {
    let running = Running::start("size = 2\n");
    running.task.abort();
    let called = timeout(Duration::from_secs(20), running.handle.reload()).await;
    let called = called.unwrap();
    assert!(matches!(called, Err(ReloadError::Ended)), "{called:?}");
}
