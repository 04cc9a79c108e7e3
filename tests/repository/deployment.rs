//! Installation: docker-compose.yml and its files, the images, the systemd units, TLS in front.
//!
//! No container engine runs here; `scripts/compose-test` runs containers. `systemd` is one in namespaces of its own, if root
//! runs the tests. Compose's own parser reads
//! the file, the script of the Dockerfile creates the images' contents, and the programs run with the configuration of the
//! containers.

mod compose;
mod front;
mod images;
mod installation;
mod local_config;
mod observe;
mod systemd;
mod tls_front;
mod units;
mod users;

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use end_to_end::program::output_text;

/// A path in the project.
fn project(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path)
}

/// A file of the project.
fn read(path: &str) -> String {
    let path = project(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs a command, which must succeed, and returns its output.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error}; scripts/prerequisites test installs it")
    });
    let printed = output_text(&output);
    assert!(output.status.success(), "{command:?}: {printed}");
    printed
}

/// A file of the project with replacements, each of which must apply.
fn read_replaced<T: AsRef<str>>(path: &str, replacements: &[(&str, T)]) -> String {
    replacements.iter().fold(read(path), |text, (from, to)| {
        assert!(text.contains(from), "{path}: {from}");
        text.replace(from, to.as_ref())
    })
}

/// Starts a proxy in front of the gateways; its output goes to `front.log`.
fn start_proxy(program: &str, arguments: &[&str], folder: &Path) -> Child {
    let log = File::create(folder.join("front.log")).unwrap();
    Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("PATH", "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .expect("scripts/prerequisites test installs it")
}
