//! A test's own three Postgres servers under Patroni, with an `HAProxy` before them: created by `scripts/postgres-cluster`.

use std::{process::Command, thread};

use super::output_of;
use crate::folder::Folder;

/// The servers, by the number 1, 2 or 3, in a folder. When dropped, all are killed and their folder removed.
#[derive(Debug)]
pub struct PostgresCluster {
    address: String,
    hosts: String,
    folder: Folder,
}

impl PostgresCluster {
    /// Creates and starts all; takes ten seconds.
    ///
    /// # Panics
    ///
    /// When one does not start, for example because Patroni is not installed.
    #[must_use]
    pub fn start() -> Self {
        let mut cluster = Self {
            address: String::new(),
            hosts: String::new(),
            folder: Folder::create(),
        };
        let printed = cluster.run(&["start"]);
        let mut lines = printed.lines();
        let mut next = || lines.next().expect("it prints two lines").to_owned();
        (cluster.address, cluster.hosts) = (next(), next());
        cluster
    }

    /// The administrator address of `HAProxy`, which leads to the server that takes writes.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The servers: `HOST:PORT,HOST:PORT,HOST:PORT`.
    #[must_use]
    pub fn hosts(&self) -> &str {
        &self.hosts
    }

    /// The number of the server that takes writes, if one does.
    #[must_use]
    pub fn primary(&self) -> Option<String> {
        self.try_run(&["primary"]).ok()
    }

    /// Whether all servers run, and one of them is a synchronous standby.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.try_run(&["settled"]).is_ok()
    }

    /// Whether a server that is cut off has noticed it, and takes no writes.
    #[must_use]
    pub fn is_demoted(&self, node: &str) -> bool {
        self.try_run(&["demoted", node]).is_ok()
    }

    /// Runs a task of the script.
    ///
    /// # Panics
    ///
    /// When it fails.
    pub fn run(&self, task: &[&str]) -> String {
        let done = self.try_run(task);
        done.unwrap_or_else(|error| panic!("{task:?}: {error}"))
    }

    fn try_run(&self, task: &[&str]) -> Result<String, String> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/postgres-cluster");
        let mut command = Command::new(path);
        command
            .arg(task[0])
            .arg(self.folder.path())
            .args(&task[1..]);
        output_of(&mut command)
    }
}

impl Drop for PostgresCluster {
    fn drop(&mut self) {
        let removed = self.try_run(&["remove"]);
        // A second panic would hide the first one.
        assert!(removed.is_ok() || thread::panicking(), "{removed:?}");
    }
}
