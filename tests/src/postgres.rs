//! Postgres servers: the one that all tests of a run share, and a test's own, which it may stop and kill.
//!
//! Both are created by `scripts/postgres`.

mod cluster;
mod limited;
mod session;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

pub use self::{cluster::PostgresCluster, limited::LimitedEngine, session::Session};
use crate::folder::Folder;

/// Environment variable with the administrator address of the shared server.
const SHARED: &str = "SIGNPOST_TEST_POSTGRES";

/// The administrator address of the server that all tests of a run share.
///
/// # Panics
///
/// When the tests run without a shared server.
#[must_use]
pub fn shared_server() -> String {
    env::var(SHARED).unwrap_or_else(|_| {
        panic!(
            "this test needs a Postgres server, but {SHARED} is not set: run scripts/test, or \
             scripts/postgres run cargo test …"
        )
    })
}

/// A test's own server in its own folder. When dropped, it is stopped and its folder removed.
#[derive(Debug)]
pub struct PostgresServer {
    address: String,
    folder: Folder,
}

impl PostgresServer {
    /// Creates and starts a server; takes about a second.
    ///
    /// # Panics
    ///
    /// When it does not start, for example because Postgres is not installed.
    #[must_use]
    pub fn start() -> Self {
        let folder = Folder::create();
        let address = script("start", folder.path());
        Self { address, folder }
    }

    /// The administrator address. It is the same after each restart.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The path of the certificate, in PEM, of the authority that issued the server's.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("tls/authority.crt")
    }

    /// Stops it as an operator would: connections are closed, committed data is flushed.
    ///
    /// # Panics
    ///
    /// When it does not stop.
    pub fn stop(&self) {
        script("stop", self.folder.path());
    }

    /// Kills it, as a crash would: clients get no message.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub fn kill(&self) {
        script("kill", self.folder.path());
    }

    /// Freezes it, as a network that drops all packets would: it accepts connections, but does not answer.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub fn freeze(&self) {
        script("freeze", self.folder.path());
    }

    /// Continues it after a freeze.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub fn thaw(&self) {
        script("thaw", self.folder.path());
    }

    /// Creates a standby of it, for which each of its commits waits.
    ///
    /// # Panics
    ///
    /// When it does not start.
    #[must_use]
    pub fn standby(&self) -> Self {
        let folder = Folder::create();
        let mut standby = Self {
            address: String::new(),
            folder,
        };
        standby.address = standby.follow(self);
        standby
    }

    /// Makes it a standby of another server, for which each commit waits, with the same address as before.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn follow(&self, primary: &Self) -> String {
        let path = script_path();
        let mut command = Command::new(path);
        let folders = [self.folder.path(), primary.folder.path()];
        output_of(command.arg("follow").args(folders)).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Makes a standby a primary without standby.
    ///
    /// # Panics
    ///
    /// When that fails.
    pub fn promote(&self) {
        script("promote", self.folder.path());
    }

    /// Starts it after a stop, and waits until it accepts connections.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn start_again(&self) {
        assert_eq!(script("start", self.folder.path()), self.address);
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let removed = run_script("remove", self.folder.path());
        // A second panic would hide the first one.
        assert!(removed.is_ok() || thread::panicking(), "{removed:?}");
    }
}

/// The folder of the server's programs, and of `pg_dump`.
pub(crate) fn binaries() -> PathBuf {
    script("binaries", Path::new("")).into()
}

/// Runs a task of `scripts/postgres`, and returns its output.
fn script(task: &str, folder: &Path) -> String {
    run_script(task, folder).unwrap_or_else(|error| panic!("{error}"))
}

fn run_script(task: &str, folder: &Path) -> Result<String, String> {
    output_of(Command::new(script_path()).arg(task).arg(folder))
}

const fn script_path() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/postgres")
}

/// The output of a script, or its errors.
fn output_of(command: &mut Command) -> Result<String, String> {
    let output = command.output();
    let output = output.expect("the script can be run");
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_keeps_its_data_over_a_stop_and_a_crash() {
        let server = PostgresServer::start();
        let client = Session::open(server.address());
        client.query("CREATE TABLE kept (number INT)");
        client.query("INSERT INTO kept VALUES (1)");
        server.stop();
        assert!(
            client.try_query("SELECT 1").is_err(),
            "connections are closed"
        );
        assert!(Session::try_open(server.address()).is_err());
        server.start_again();
        server.kill();
        assert!(Session::try_open(server.address()).is_err());
        server.start_again();
        let kept = Session::open(server.address()).query("SELECT number FROM kept");
        assert_eq!(kept.number(), 1);
        let folder = server.folder.path().to_owned();
        drop(server);
        assert!(!folder.exists());
    }
}
