//! Replacing the running gateway by a new process, which is not a child of the test.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use super::Stack;
use crate::program::{Instance, Program, signal};

/// The processes that upgrades have started. When dropped, they are killed.
#[derive(Debug)]
pub(super) struct Successors {
    config: PathBuf,
}

impl Drop for Successors {
    fn drop(&mut self) {
        for id in processes(&self.config) {
            // It may have ended by itself.
            if is_running(id) {
                signal(id, "KILL");
            }
        }
    }
}

impl Stack {
    /// Runs the command that replaces the running gateway. What it starts is killed with the stack.
    ///
    /// # Panics
    ///
    /// When the command does not end in time.
    pub async fn upgrade(&mut self) -> Output {
        self.upgrade_of(Program::Gateway.number(0)).await
    }

    /// The same, for one of several gateways.
    ///
    /// # Panics
    ///
    /// When the command does not end in time.
    pub async fn upgrade_of(&mut self, gateway: Instance) -> Output {
        let config = self.config(gateway);
        let successors = || Successors {
            config: config.clone(),
        };
        self.successors.entry(gateway).or_insert_with(successors);
        let folder = self.folder().to_owned();
        let command = tokio::task::spawn_blocking(move || {
            let config = config.display().to_string();
            Program::Gateway.run(&folder, &["upgrade", "--config", &config])
        });
        command.await.expect("the command ends")
    }

    /// The ids of all gateway processes that serve with this stack's file, in ascending order.
    ///
    /// # Panics
    ///
    /// When the system does not list its processes.
    #[must_use]
    pub fn gateway_processes(&self) -> Vec<u32> {
        self.gateway_processes_of(Program::Gateway.number(0))
    }

    /// The same, of one of several gateways.
    ///
    /// # Panics
    ///
    /// When the system does not list its processes.
    #[must_use]
    pub fn gateway_processes_of(&self, gateway: Instance) -> Vec<u32> {
        processes(&self.config(gateway))
    }
}

/// The processes that were started with `run` and this configuration file. The file is the test's own, and so are they.
fn processes(config: &Path) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("Linux lists its processes");
    let ids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut found: Vec<u32> = ids.filter(|id| serves_with(*id, config)).collect();
    found.sort_unstable();
    found
}

fn serves_with(id: u32, config: &Path) -> bool {
    // A zombie has an empty command line.
    let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let arguments: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    let config = config.as_os_str().as_encoded_bytes();
    arguments.get(1) == Some(&&b"run"[..]) && arguments.contains(&config)
}

fn is_running(id: u32) -> bool {
    let line = fs::read(format!("/proc/{id}/cmdline"));
    line.is_ok_and(|line| !line.is_empty())
}
