//! A throw-away copy of the project, with a git repository of its own, in which a test changes, tags and builds it.

use std::{
    env,
    fs::{self, File},
    io::ErrorKind::NotFound,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::{
    documents::root,
    program::{output_text, programs_folder},
};

/// Not copied, as hidden files are not.
const NOT_COPIED: [&str; 2] = ["target", "data"];

/// Hidden files that are copied: without the first, a copy that was built in would not be clean.
const COPIED: [&str; 2] = [".gitignore", ".dockerignore"];

/// A folder for a copy and its builds, below `target/`. It stays after the test, so that the next run builds less.
///
/// Sources that are newer than a build are built again. All builds of a folder share their files, so a copy must be made
/// after the last build of another one.
#[derive(Debug)]
pub struct ProjectCopy {
    own: PathBuf,
    /// Concurrent runs wait for each other.
    _lock: File,
}

impl ProjectCopy {
    /// Takes the folder of this name below `tmpdir`, which is `CARGO_TARGET_TMPDIR`. It has no copy yet.
    ///
    /// # Panics
    ///
    /// When the folder cannot be used.
    #[must_use]
    pub fn prepare(tmpdir: &str, name: &str) -> Self {
        let own = Path::new(tmpdir).join(name);
        fs::create_dir_all(&own).expect("a folder below target can be created");
        let lock = File::create(own.join("lock")).expect("a file below target can be created");
        lock.lock().expect("a file can be locked");
        match fs::remove_dir_all(own.join("signpost")) {
            Err(error) if error.kind() != NotFound => panic!("an earlier copy stays: {error}"),
            _ => Self { own, _lock: lock },
        }
    }

    /// The folder around the copy.
    #[must_use]
    pub fn around(&self) -> &Path {
        &self.own
    }

    /// The copy's root. It is the same in each run.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.own.join("signpost")
    }

    /// Copies the project's files.
    ///
    /// # Panics
    ///
    /// When a file cannot be copied.
    pub fn copy(&self) {
        copy(&root(), &self.path());
    }

    /// Makes the copy a git repository with one commit.
    ///
    /// # Panics
    ///
    /// When git fails.
    pub fn commit_first(&self) {
        self.succeed("git", &["init", "--quiet", "--initial-branch=main"]);
        self.succeed("git", &["config", "user.name", "Test"]);
        self.succeed("git", &["config", "user.email", "test@localhost"]);
        self.commit("First");
    }

    /// Commits all changes.
    ///
    /// # Panics
    ///
    /// When git fails.
    pub fn commit(&self, message: &str) {
        self.succeed("git", &["add", "--all"]);
        self.succeed("git", &["commit", "--quiet", "--message", message]);
    }

    /// A command that runs in the copy, builds into `versions-target` beside its folder, and downloads nothing.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        command_with_builds(program, &self.path(), &self.target())
    }

    /// Where copies are built. All copies have the same folder: other people's crates are built once.
    ///
    /// # Panics
    ///
    /// When the folder cannot be created.
    #[must_use]
    pub fn target(&self) -> PathBuf {
        let target = self.own.with_file_name("versions-target");
        fs::create_dir_all(&target).expect("a folder below target can be created");
        target
    }

    /// Copies other people's crates from this build to where the copies are built, once. A build of a single package still
    /// builds those that have other features there.
    ///
    /// # Panics
    ///
    /// When they cannot be copied.
    pub fn share_built_crates(&self) {
        let script = root().join("scripts/built-crates");
        let lock = File::create(self.target().join("lock"));
        let lock = lock.expect("a file below target can be created");
        lock.lock().expect("a file can be locked");
        // `scripts/deploy` builds in a folder of its own.
        for folder in ["debug", "deploy/debug"].map(|name| self.target().join(name)) {
            if folder.join(".fingerprint").exists() {
                continue;
            }
            let mut command = self.command(&script.display().to_string());
            let output = command.arg(programs_folder()).arg(folder).output();
            let output = output.expect("the script can be started");
            assert!(output.status.success(), "{}", output_text(&output));
        }
    }

    /// Runs a command in the copy.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let output = self.command(program).args(arguments).output();
        output.unwrap_or_else(|error| panic!("{program}: {error}"))
    }

    /// Runs a command in the copy, which must succeed, and returns what it prints.
    ///
    /// # Panics
    ///
    /// When it fails.
    #[must_use = "or call `succeed`"]
    pub fn printed(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        let printed = output_text(&output);
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {printed}"
        );
        printed
    }

    /// Runs a command in the copy, which must succeed.
    ///
    /// # Panics
    ///
    /// When it fails.
    pub fn succeed(&self, program: &str, arguments: &[&str]) {
        let _ = self.printed(program, arguments);
    }
}

/// A command that runs in a folder, builds into `target`, stores credentials beside that, and downloads nothing.
///
/// It lacks the variables that `cargo test` sets for a test, such as `CARGO_MANIFEST_DIR`. Cargo compares variables that
/// build scripts name: with these, it would build ring and all that depends on it again, now and after the test.
#[must_use]
pub fn command_with_builds(program: &str, folder: &Path, target: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_NET_OFFLINE", "true")
        .env("XDG_STATE_HOME", target.join("states"))
        .stdin(Stdio::null());
    for (name, _) in env::vars_os() {
        let shown = name.to_string_lossy();
        if shown.starts_with("CARGO_MANIFEST_") || shown.starts_with("CARGO_PKG_") {
            command.env_remove(&name);
        }
    }
    command
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::copy(from, to).expect("a file can be copied");
        return;
    }
    fs::create_dir_all(to).expect("a folder can be created");
    for entry in fs::read_dir(from).expect("a folder can be read") {
        let name = entry.expect("an entry can be read").file_name();
        let shown = name.to_string_lossy();
        let is_copied = match shown.strip_prefix('.') {
            Some(_) => COPIED.contains(&&*shown),
            None => !NOT_COPIED.contains(&&*shown),
        };
        if is_copied {
            copy(&from.join(&name), &to.join(&name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_no_variables_of_the_test() {
        assert!(env::var_os("CARGO_MANIFEST_DIR").is_some());
        let mut command = command_with_builds("env", &root(), &root().join("target"));
        let printed = output_text(&command.output().unwrap());
        assert!(printed.contains("PATH="), "{printed}");
        for name in ["CARGO_MANIFEST_", "CARGO_PKG_"] {
            assert!(!printed.contains(name), "{printed}");
        }
    }
}
