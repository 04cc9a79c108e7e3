//! A program that reloads, by every way there is.

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
    control::{Answer, ask},
    *,
};
use crate::config::load;

/// A program with a size, which can change, and threads, which cannot.
struct Program {
    file: PathBuf,
    /// The sizes that it took on.
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

    async fn apply(&self, size: u32) -> anyhow::Result<()> {
        if self.fails.load(Ordering::Relaxed) {
            bail!("there is no room");
        }
        self.sizes.lock().unwrap().push(size);
        // The file changes again while the program is still busy with the last change.
        if size == WRITES_ONCE_MORE {
            fs::write(&self.file, "size = 8\nwatch = true\n").unwrap();
        }
        Ok(())
    }

    fn health_address(&self) -> SocketAddr {
        ([127, 0, 0, 1], 7).into()
    }
}

const WRITES_ONCE_MORE: u32 = 7;

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

/// A running one.
struct Running {
    _folder: TempDir,
    file: PathBuf,
    sizes: Arc<Mutex<Vec<u32>>>,
    fails: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        fs::write(&file, text).unwrap();
        let settings = read(&file).unwrap().settings;
        Self::of(folder, file, settings)
    }

    /// One that has read these settings.
    fn of(folder: TempDir, file: PathBuf, settings: Settings) -> Self {
        let (sizes, fails) = (Arc::default(), Arc::default());
        let program = Program {
            file: file.clone(),
            sizes: Arc::clone(&sizes),
            fails: Arc::clone(&fails),
        };
        let hangups = Hangups::listen().unwrap();
        let reloader = Reloader::new(program, file.clone(), settings, hangups);
        Self {
            _folder: folder,
            file,
            sizes,
            fails,
            task: tokio::spawn(reloader.run()),
        }
    }

    fn write(&self, text: &str) {
        fs::write(&self.file, text).unwrap();
    }

    async fn ask(&self, verb: Verb) -> Answer {
        let file = self.file.clone();
        let asked = tokio::task::spawn_blocking(move || ask(&file, verb));
        asked.await.unwrap().unwrap()
    }

    /// What it says, without the file's name.
    async fn says(&self, verb: Verb) -> String {
        let answer = self.ask(verb).await;
        let file = self.file.display().to_string();
        answer.text.replace(&file, "FILE")
    }

    async fn until_sizes(&self, expected: &[u32]) {
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
async fn the_command_says_what_changed() {
    let running = Running::start("size = 2\n");
    assert_eq!(
        running.says(Verb::Reload).await,
        "FILE: reloaded, nothing changed"
    );
    running.write("size = 3\n");
    assert_eq!(
        running.says(Verb::Diff).await,
        "FILE: OK, a reload would change:\n  size: 2 -> 3"
    );
    assert_eq!(running.sizes(), [2]);
    assert_eq!(
        running.says(Verb::Reload).await,
        "FILE: reloaded\n  size: 2 -> 3"
    );
    assert_eq!(running.sizes(), [2, 3]);
}

#[tokio::test]
async fn what_needs_a_restart_stays_and_is_named_each_time() {
    let running = Running::start("size = 2\n");
    running.write("size = 3\nthreads = 4\n");
    let needed = "\na restart is needed for:\n  threads: 1 -> 4";
    let told = running.says(Verb::Reload).await;
    assert_eq!(told, format!("FILE: reloaded\n  size: 2 -> 3{needed}"));
    let told = running.says(Verb::Reload).await;
    assert_eq!(told, format!("FILE: reloaded, nothing changed{needed}"));
    running.write("size = 3\n");
    assert_eq!(
        running.says(Verb::Reload).await,
        "FILE: reloaded, nothing changed"
    );
}

#[tokio::test]
async fn an_invalid_file_changes_nothing_and_is_explained() {
    let running = Running::start("size = 2\n");
    running.write("size = 10\nsise = 1\n");
    let answer = running.ask(Verb::Reload).await;
    assert!(!answer.is_good);
    let explained = running.says(Verb::Reload).await;
    assert_eq!(
        explained,
        "FILE:1: size: found 10; allowed: a whole number from 1 to 9\n\
         FILE:2: sise: unknown key; did you mean size?\n\
         not reloaded: the old configuration stays"
    );
    running.fails.store(true, Ordering::Relaxed);
    running.write("size = 9\n");
    let told = running.says(Verb::Reload).await;
    assert!(told.starts_with("FILE: there is no room\n"), "{told}");
    assert_eq!(running.sizes(), [] as [u32; 0]);
    // It is still compared with what is in force.
    let told = running.says(Verb::Diff).await;
    assert!(told.ends_with("size: 2 -> 9"), "{told}");
}

#[tokio::test]
async fn commands_at_once_are_all_answered() {
    let running = Running::start("size = 2\n");
    running.write("size = 5\n");
    let told = futures_util::future::join_all((0..20).map(|_| running.says(Verb::Reload))).await;
    let changed = told.iter().filter(|told| told.contains("2 -> 5"));
    assert_eq!(changed.count(), 1, "{told:?}");
    assert!(told.iter().all(|told| told.starts_with("FILE: reloaded")));
}

#[tokio::test]
async fn without_a_program_the_command_says_so() {
    let error = ask(Path::new("/nonexistent/a.toml"), Verb::Reload).unwrap_err();
    let told = format!("{error:#}");
    assert!(told.contains("no running program was started with --config /nonexistent/a.toml"));
}

#[tokio::test]
async fn a_watched_file_is_reloaded_by_itself() {
    let running = Running::start("size = 2\nwatch = true\n");
    running.write("size = 4\nwatch = true\n");
    running.until_sizes(&[4]).await;
}

#[tokio::test]
async fn a_change_during_a_reload_is_noticed() {
    let running = Running::start("size = 2\nwatch = true\n");
    running.write(&format!("size = {WRITES_ONCE_MORE}\nwatch = true\n"));
    running.until_sizes(&[WRITES_ONCE_MORE, 8]).await;
}

#[tokio::test]
async fn a_change_between_the_start_and_the_watch_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toml");
    fs::write(&file, "size = 2\nwatch = true\n").unwrap();
    let settings = read(&file).unwrap().settings;
    fs::write(&file, "size = 3\nwatch = true\n").unwrap();
    Running::of(folder, file, settings).until_sizes(&[3]).await;
}

#[tokio::test]
async fn a_secret_that_comes_later_is_noticed() {
    let running = Running::start("size = 2\nwatch = true\n");
    let secret = running.file.with_file_name("secret");
    let named = format!("secret = 'file:{}'", secret.display());
    running.write(&format!("size = 5\nwatch = true\n{named}\n"));
    // The command says that it is not there; only then it comes.
    let told = running.says(Verb::Reload).await;
    assert!(told.contains("cannot be read"), "{told}");
    fs::write(&secret, "hush").unwrap();
    running.until_sizes(&[5]).await;
}

#[tokio::test]
async fn the_program_says_where_its_health_is_answered() {
    let running = Running::start("size = 2\n");
    assert_eq!(running.says(Verb::HealthAddress).await, "127.0.0.1:7");
}

#[tokio::test]
async fn clients_that_say_nothing_keep_no_command_waiting() {
    let running = Running::start("size = 2\n");
    let silent: Vec<_> = (0..4)
        .map(|_| control::connect(&running.file).unwrap())
        .collect();
    let told = timeout(Duration::from_secs(4), running.says(Verb::Reload)).await;
    assert!(told.unwrap().contains("reloaded"));
    drop(silent);
}

#[tokio::test]
async fn the_command_is_available_once_the_former_program_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toml");
    fs::write(&file, "size = 2\n").unwrap();
    let settings = || read(&file).unwrap().settings;
    let former = control::listen(&file).unwrap();
    let running = Running::of(folder, file.clone(), settings());
    drop(former);
    let mut told = None;
    for _ in 0..1000 {
        let file = file.clone();
        let asked = tokio::task::spawn_blocking(move || ask(&file, Verb::Reload).ok());
        told = asked.await.unwrap();
        if told.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(told.unwrap().text.contains("reloaded"));
    assert_eq!(running.sizes(), [2]);
}
