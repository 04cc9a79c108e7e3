//! A shell in a copy of the project, which runs the commands of a document one after another.

use std::{
    env,
    fmt::Write as _,
    fs::{self, File},
    os::unix::{
        fs::{PermissionsExt as _, symlink},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use end_to_end::{
    documents::{self, Document, is_shown, root},
    examples::uncommented,
    port::free_address,
    program::programs_folder,
    project_copy::{ProjectCopy, command_with_builds},
    versions::versions,
};

use super::commands::is_run;

/// For all commands of a document together; the longest of them builds a version.
const TIMEOUT: Duration = Duration::from_secs(1800);
const INTERVAL: Duration = Duration::from_millis(20);

/// The ports in the documents and in `conf`. Each is replaced by a free one.
const PORTS: [&str; 12] = [
    "8080", "8081", "7001", "7002", "7003", "7010", "7011", "7020", "7021", "7022", "7023", "7100",
];

/// Keys in `conf` whose commented-out default has such a port.
const KEYS_WITH_PORTS: [&str; 2] = ["listen", "public_url"];

/// How `scripts/new-version` chooses the ports of version 3, and those ports: free ones here.
const PORT_RULES: [(&str, &str); 2] = [
    ("new_port=$((7000 + new_number))", "new_port=7003"),
    (
        "new_management=$((7020 + new_number))",
        "new_management=7023",
    ),
];

/// Cargo reads this from the folder around a copy. What is built there runs few requests.
const CARGO_CONFIG: &str =
    "[profile.dev]\ndebug = false\n\n[profile.dev.package.\"*\"]\nopt-level = 0\n";

/// Precedes each command's output, and its exit status.
const MARK: char = '\u{1e}';

/// Defined in every session. `scripts/run` builds only new versions here, and runs until the session ends.
const PRELUDE: &str = r#"
set -o pipefail
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
PATH=$PWD/target/release:$PATH
run() {
    local version
    for version in $(scripts/versions); do
        [ -e target/release/login-$version ] && continue
        cargo build --quiet --package login-$version --bin login-$version &&
            ln -s "$CARGO_TARGET_DIR/debug/login-$version" target/release/ || return
    done
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
    /// Where cargo builds.
    target: PathBuf,
    /// Also the folder for the script and its output.
    copy: ProjectCopy,
}

impl Session {
    /// In the project itself, for commands that only build and test.
    pub(super) fn in_the_project(name: &str) -> Self {
        let target = programs_folder().parent().unwrap().to_owned();
        Self {
            folder: root(),
            replacements: Vec::new(),
            target,
            copy: ProjectCopy::prepare(env!("CARGO_TARGET_TMPDIR"), name),
        }
    }

    /// In a copy of the project with free ports, a git repository, where `target/release` has the programs of this build.
    pub(super) fn in_a_copy(name: &str) -> Self {
        let copy = ProjectCopy::prepare(env!("CARGO_TARGET_TMPDIR"), name);
        copy.copy();
        let config = copy.around().join(".cargo");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("config.toml"), CARGO_CONFIG).unwrap();
        copy.share_built_crates();
        let session = Self {
            folder: copy.path(),
            replacements: PORTS.map(|port| (port.to_owned(), free_port())).into(),
            target: copy.target(),
            copy,
        };
        for name in ["backends", "conf", "scripts/run"] {
            session.replace_in(&session.folder.join(name));
        }
        let script = session.folder.join("scripts/new-version");
        let mut text = fs::read_to_string(&script).unwrap();
        for (rule, port) in PORT_RULES {
            assert!(text.contains(rule), "{rule}");
            text = text.replace(rule, &session.to_here(port));
        }
        fs::write(script, text).unwrap();
        session.copy.commit_first();
        session.link_programs();
        session
    }

    /// The copy that the session runs in.
    pub(super) fn copy(&self) -> &ProjectCopy {
        &self.copy
    }

    /// All profiles are one here: a release build takes minutes more.
    fn link_programs(&self) {
        let target = self.folder.join("target");
        let release = target.join("release");
        fs::create_dir_all(&release).unwrap();
        for file in fs::read_dir(programs_folder()).unwrap() {
            let path = file.unwrap().path();
            let (name, file) = (path.file_name().unwrap(), fs::metadata(&path).unwrap());
            // A program of a version that is not in the project is from another time.
            let name = name.to_string_lossy();
            let is_version = name.starts_with("login-v");
            if is_version && !versions().iter().any(|one| one.program.name() == name) {
                continue;
            }
            if file.is_file() && file.permissions().mode() & 0o100 != 0 {
                symlink(&path, release.join(&*name)).unwrap();
            }
        }
        for profile in ["debug", "programs"] {
            symlink("release", target.join(profile)).unwrap();
        }
        if let Ok(frameworks) = root().join("target/examples").canonicalize() {
            symlink(frameworks, target.join("examples")).unwrap();
        }
    }

    /// Puts the free ports into a file, or into all files of a folder.
    fn replace_in(&self, path: &Path) {
        if path.ends_with("package-lock.json") {
            // Digits in its hashes are no ports.
        } else if path.is_dir() {
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
        let replace = |text: String, (shown, here): &(String, String)| replaced(&text, shown, here);
        self.replacements.iter().fold(text.to_owned(), replace)
    }

    fn to_shown(&self, text: &str) -> String {
        let replace = |text: String, (shown, here): &(String, String)| replaced(&text, here, shown);
        self.replacements.iter().fold(text.to_owned(), replace)
    }

    /// Runs the commands in one shell. Each must succeed and print what the document shows.
    pub(super) fn run(&self, document: &Document) {
        // `scripts/test` has reported that what follows cannot run.
        let is_left_out = |one: &documents::Command| {
            one.text == "scripts/prerequisites examples"
                && env::var_os("SIGNPOST_TEST_WITHOUT_FRAMEWORKS").is_some()
        };
        let commands = document.commands.iter().filter(|one| is_run(one));
        let commands: Vec<_> = commands.take_while(|one| !is_left_out(one)).collect();
        assert!(
            !commands.is_empty(),
            "{} has no commands",
            document.path.display()
        );
        let mut script = PRELUDE.to_owned();
        for command in &commands {
            let text = self.to_here(&command.text).replace("./scripts/run", "run");
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
        let own = self.copy.around();
        let (file, printed_to) = (own.join("session.sh"), own.join("printed"));
        fs::write(&file, script).unwrap();
        let printed = File::create(&printed_to).unwrap();
        let mut shell = command_with_builds("bash", &self.folder, &self.target);
        shell
            .arg(file)
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

/// A text with another port. Digits in a longer number or word, for example a signature, are no port.
fn replaced(text: &str, port: &str, by: &str) -> String {
    let mut parts = text.split(port);
    let mut new = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_within =
            new.ends_with(char::is_alphanumeric) || part.starts_with(char::is_alphanumeric);
        new += if is_within { port } else { by };
        new += part;
    }
    new
}

/// A free port that is none of those that are replaced.
fn free_port() -> String {
    loop {
        let port = free_address().port().to_string();
        if !PORTS.contains(&&*port) {
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

#[test]
fn digits_of_a_signature_are_no_port() {
    let shown = "127.0.0.1:8080, 50c8080ae9, 18080 and 8080";
    let here = replaced(shown, "8080", "14179");
    assert_eq!(here, "127.0.0.1:14179, 50c8080ae9, 18080 and 14179");
    assert_eq!(replaced(&here, "14179", "8080"), shown);
}
