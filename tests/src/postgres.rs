//! A Postgres server: the one that all tests of a run share, and servers of a test's own, which it may stop and kill.
//!
//! Both are made by `scripts/postgres`.

mod session;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

pub use self::session::Session;
use crate::folder::Folder;

/// Where the server is that the tests of a run share: the address of an administrator.
const SHARED: &str = "SIGNPOST_TEST_POSTGRES";

/// The address of an administrator of the server that the tests of a run share.
///
/// # Panics
///
/// When the tests run without one.
#[must_use]
pub fn shared_server() -> String {
    env::var(SHARED).unwrap_or_else(|_| {
        panic!(
            "this test needs a Postgres, and {SHARED} does not say where one is: run scripts/test, or \
             scripts/postgres run cargo test …"
        )
    })
}

/// A server of the test's own, in a folder of its own. It ends, and its folder goes, when this is dropped.
#[derive(Debug)]
pub struct PostgresServer {
    address: String,
    folder: Folder,
}

impl PostgresServer {
    /// Makes one and starts it; takes about a second.
    ///
    /// # Panics
    ///
    /// When it does not start: no server's programs are on this machine, say.
    #[must_use]
    pub fn start() -> Self {
        let folder = Folder::create();
        let address = script("start", folder.path());
        Self { address, folder }
    }

    /// The address of an administrator. It stays the same however often the server is stopped and started.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The certificate, in PEM, of the authority that vouches for the server's own.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("tls/authority.crt")
    }

    /// Ends it as an operator would: connections are cut, what was committed is written.
    ///
    /// # Panics
    ///
    /// When it does not end.
    pub fn stop(&self) {
        script("stop", self.folder.path());
    }

    /// Ends it as a crash would, with no word to anybody.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub fn kill(&self) {
        script("kill", self.folder.path());
    }

    /// Lets it say nothing more, as a network that swallows everything would; it still accepts connections.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub fn freeze(&self) {
        script("freeze", self.folder.path());
    }

    /// Lets it go on as if nothing had been.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub fn thaw(&self) {
        script("thaw", self.folder.path());
    }

    /// Starts it once more, and waits until it can be connected to.
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

/// What the script printed.
fn script(task: &str, folder: &Path) -> String {
    run_script(task, folder).unwrap_or_else(|said| panic!("{said}"))
}

fn run_script(task: &str, folder: &Path) -> Result<String, String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/postgres");
    let output = Command::new(path).arg(task).arg(folder).output();
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
    fn a_server_comes_back_with_what_it_held() {
        let server = PostgresServer::start();
        let held = Session::open(server.address());
        held.query("CREATE TABLE kept (number INT)");
        held.query("INSERT INTO kept VALUES (1)");
        server.stop();
        assert!(held.try_query("SELECT 1").is_err(), "connections are cut");
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
