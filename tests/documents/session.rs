//! A shell in a copy of the project, which runs the commands of a document one after another.

use std::{
    fmt::Write as _,
    fs::{self, File},
    os::unix::{fs::symlink, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use end_to_end::{
    documents::{Document, is_shown, root},
    examples::uncommented,
    port::free_address,
    program::programs_folder,
};

use super::is_run;

/// For all commands of a document together; the longest of them builds a version.
const TIMEOUT: Duration = Duration::from_secs(900);
const INTERVAL: Duration = Duration::from_millis(20);

/// Left out of the project's copy, as hidden files are.
const NOT_COPIED: [&str; 2] = ["target", "data"];

/// The ports in the documents and in `conf`. Each is replaced by a free one.
const PORTS: [&str; 7] = ["8080", "8081", "7001", "7002", "7003", "7010", "7100"];

/// Keys in `conf` whose commented-out default has such a port.
const KEYS_WITH_PORTS: [&str; 2] = ["listen", "public_url"];

/// Packages that a document names so that `scripts/run` and a version share a build. They are built already.
const BUILT: &str =
    "--package gateway --package login-v1 --package login-v2 --package sandbox-provider \\\n    ";

/// Precedes each command's output, and its exit status.
const MARK: char = '\u{1e}';

/// Defined in every session. `scripts/run` builds nothing here, and runs until the session ends.
const PRELUDE: &str = r#"
set -o pipefail
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
run() {
    ./scripts/run --programs target/release "$@" >run.log 2>&1 &
    until grep -q 'Ctrl-C stops everything' run.log; do
        kill -0 $! || { cat run.log; return 1; }
        sleep 0.05
    done
    cat run.log
}
"#;

/// Where the commands of a document run.
pub(super) struct Session {
    folder: PathBuf,
    /// Texts in the documents, and their replacements here.
    replacements: Vec<(String, String)>,
    /// The folder for the script and its output; locked, so that concurrent runs wait for each other.
    own: PathBuf,
    _lock: File,
}

impl Session {
    /// In the project itself, for commands that only build and test.
    pub(super) fn in_the_project(name: &str) -> Self {
        Self {
            folder: root(),
            ..Self::new(name)
        }
    }

    /// In a copy of the project with free ports, where `target/release` has the programs of this build.
    pub(super) fn in_a_copy(name: &str) -> Self {
        let mut session = Self::new(name);
        session.replacements = PORTS.map(|port| (port.to_owned(), free_port())).into();
        copy(&root(), &session.folder);
        for name in ["backends", "conf", "scripts/run"] {
            session.replace_in(&session.folder.join(name));
        }
        let target = session.folder.join("target");
        fs::create_dir(&target).unwrap();
        for profile in ["release", "debug", "programs"] {
            symlink(programs_folder(), target.join(profile)).unwrap();
        }
        session
    }

    /// Its folder always has the same path: cargo then builds into the same files each time.
    fn new(name: &str) -> Self {
        let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&own).unwrap();
        let lock = File::create(own.join("lock")).unwrap();
        lock.lock().unwrap();
        let folder = own.join("signpost");
        let _ = fs::remove_dir_all(&folder);
        Self {
            folder,
            replacements: Vec::new(),
            own,
            _lock: lock,
        }
    }

    /// Puts the free ports into a file, or into all files of a folder.
    fn replace_in(&self, path: &Path) {
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                self.replace_in(&entry.unwrap().path());
            }
        } else if let Ok(text) = fs::read_to_string(path) {
            let lines = text
                .lines()
                .map(|line| self.to_here(with_default(line)) + "\n");
            fs::write(path, lines.collect::<String>()).unwrap();
        }
    }

    fn to_here(&self, text: &str) -> String {
        let replace = |text: String, (shown, here): &(String, String)| text.replace(shown, here);
        self.replacements.iter().fold(text.to_owned(), replace)
    }

    fn to_shown(&self, text: &str) -> String {
        let replace = |text: String, (shown, here): &(String, String)| text.replace(here, shown);
        self.replacements.iter().fold(text.to_owned(), replace)
    }

    /// Runs the commands in one shell. Each must succeed and print what the document shows.
    pub(super) fn run(&self, document: &Document) {
        let commands: Vec<_> = document.commands.iter().filter(|one| is_run(one)).collect();
        assert!(
            !commands.is_empty(),
            "{} has no commands",
            document.path.display()
        );
        let mut script = PRELUDE.to_owned();
        for command in &commands {
            let text = self.to_here(&command.text).replace("./scripts/run", "run");
            // All profiles are one here: a release build takes minutes more.
            let text = text.replace("cargo build --release", "cargo build");
            let text = text.replace(BUILT, "");
            writeln!(script, "printf '{MARK}'\n{text}\nprintf '\\n{MARK}%d' $?").unwrap();
        }
        let printed = self.to_shown(&self.shell(&script));
        let mut parts = printed.split(MARK).skip(1);
        let mut failures = Vec::new();
        for command in commands {
            let (output, status) = (parts.next(), parts.next());
            let output = output.unwrap_or("(the shell ended before)");
            let is_success = status.is_some_and(|status| status.trim() == "0");
            let is_as_shown = command.output.is_empty() || is_shown(&command.output, output);
            if !is_success || !is_as_shown {
                failures.push(format!(
                    "{}:{}: $ {}\nexpected: {}\nexit status {status:?}, printed: {output}",
                    document.path.display(),
                    command.line,
                    command.text,
                    command.output,
                ));
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    }

    /// Runs the script in a shell, in the session's folder, and returns what it prints.
    fn shell(&self, script: &str) -> String {
        let (file, printed_to) = (self.own.join("session.sh"), self.own.join("printed"));
        fs::write(&file, script).unwrap();
        let printed = File::create(&printed_to).unwrap();
        let mut shell = Command::new("bash");
        shell
            .arg(file)
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", programs_folder().parent().unwrap())
            .env("CARGO_NET_OFFLINE", "true")
            .stdin(Stdio::null())
            .stdout(printed.try_clone().unwrap())
            .stderr(printed)
            .process_group(0);
        let mut shell = Shell(shell.spawn().unwrap());
        let start = Instant::now();
        while shell.0.try_wait().unwrap().is_none() && start.elapsed() < TIMEOUT {
            thread::sleep(INTERVAL);
        }
        drop(shell);
        fs::read_to_string(printed_to).unwrap()
    }
}

/// A shell and its programs, which end when this is dropped.
struct Shell(Child);

impl Drop for Shell {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill")
            .args(["-KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
        let _ = self.0.wait();
    }
}

/// A free port that contains none of the ports that are replaced.
fn free_port() -> String {
    loop {
        let port = free_address().port().to_string();
        if !PORTS.iter().any(|shown| port.contains(shown)) {
            return port;
        }
    }
}

/// A line of a configuration, with its default written out if that has a port.
fn with_default(line: &str) -> &str {
    let has_port = |default: &&str| {
        let key = default.split(" = ").next().unwrap_or_default();
        KEYS_WITH_PORTS.contains(&key)
    };
    uncommented(line).filter(has_port).unwrap_or(line)
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            let shown = name.to_string_lossy();
            if !shown.starts_with('.') && !NOT_COPIED.contains(&&*shown) {
                copy(&from.join(&name), &to.join(&name));
            }
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}
