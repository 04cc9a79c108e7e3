//! Gateway, v1 and sandbox provider as processes, with default configuration except for addresses and limits.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use end_to_end::{folder::Folder, port::free_address};

use super::{
    caller::{Caller, get},
    tables::PROVIDER,
};
use crate::{
    load::client::Client,
    process::{Process, RunMode},
};

/// Timeout until a program is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause between two checks: the precision of the start time.
const INTERVAL: Duration = Duration::from_millis(1);

/// Raised limits: all logins of a run are of one application, and all callbacks come from one address.
const LIMITS: &str = "[limits]\nstarts_per_second = 100000\nstarts_burst = 1000000\n\
                      callbacks_per_second = 100000\ncallbacks_burst = 1000000\n\
                      provider_calls = 10000";

/// The applications that sign requests.
#[derive(Clone, Copy, Debug)]
pub enum Applications<'a> {
    /// One application.
    Single(&'a Caller),
    /// The applications in the store; the file of the master key.
    Multi(&'a Path),
}

/// A configured installation.
#[derive(Debug)]
pub struct Installation {
    /// The address of the gateway.
    pub gateway: SocketAddr,
    /// The address of the sandbox provider.
    pub provider: SocketAddr,
    management: SocketAddr,
    v1: SocketAddr,
    programs: PathBuf,
    folder: Folder,
}

impl Installation {
    /// Writes the configurations. `programs` is the folder of the programs.
    ///
    /// # Errors
    ///
    /// When they cannot be written.
    pub fn configure(
        programs: &Path,
        store: &str,
        applications: Applications<'_>,
    ) -> anyhow::Result<Self> {
        let installation = Self {
            gateway: free_address(),
            provider: free_address(),
            management: free_address(),
            v1: free_address(),
            programs: programs.to_owned(),
            folder: Folder::create(),
        };
        installation.write("signpost", &installation.gateway_file(store, applications))?;
        installation.write("login-v1", &installation.v1_file(store))?;
        installation.write("sandbox-provider", "")?;
        Ok(installation)
    }

    /// Starts the gateway, and returns the time until it was ready.
    ///
    /// # Errors
    ///
    /// When it does not become ready.
    pub fn start_gateway(&self) -> anyhow::Result<(Process, Duration)> {
        self.start("signpost", &["run"], self.management)
    }

    /// Starts v1.
    ///
    /// # Errors
    ///
    /// When it does not become ready.
    pub fn start_v1(&self) -> anyhow::Result<Process> {
        Ok(self.start("login-v1", &[], self.v1)?.0)
    }

    /// Starts the sandbox provider.
    ///
    /// # Errors
    ///
    /// When it does not become ready.
    pub fn start_provider(&self) -> anyhow::Result<Process> {
        let line = [
            self.program("sandbox-provider")?,
            format!("--listen={}", self.provider),
            format!("--callback=http://{}/login", self.gateway),
        ];
        let started = self.spawn("sandbox-provider", &line, self.provider);
        Ok(started?.0)
    }

    fn start(
        &self,
        name: &'static str,
        command: &[&str],
        readiness: SocketAddr,
    ) -> anyhow::Result<(Process, Duration)> {
        let file = self.folder_of(name).join("config.toml");
        let mut line = vec![self.program(name)?];
        line.extend(command.iter().map(|&word| word.to_owned()));
        line.extend(["--config".to_owned(), file.display().to_string()]);
        self.spawn(name, &line, readiness)
    }

    fn spawn(
        &self,
        name: &'static str,
        line: &[String],
        readiness: SocketAddr,
    ) -> anyhow::Result<(Process, Duration)> {
        let started = Instant::now();
        let process = Process::start(name, line, &self.folder_of(name), RunMode::Anywhere)?;
        let mut client = Client::new(readiness);
        let is_ready = |client: &mut Client| {
            let response = client.exchange(&get("/readyz", ""));
            response.is_ok_and(|response| response.status == 200)
        };
        while !is_ready(&mut client) {
            ensure!(
                started.elapsed() < READY_TIMEOUT,
                "{name} is not ready:\n{}",
                process.log()
            );
            thread::sleep(INTERVAL);
        }
        Ok((process, started.elapsed()))
    }

    fn program(&self, name: &str) -> anyhow::Result<String> {
        let path = self.programs.join(name);
        let path = fs::canonicalize(&path);
        let path =
            path.with_context(|| format!("{name} is missing: build it with scripts/capacity"));
        Ok(path?.display().to_string())
    }

    fn folder_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, config: &str) -> anyhow::Result<()> {
        let folder = self.folder_of(name);
        fs::create_dir_all(&folder)?;
        Ok(fs::write(folder.join("config.toml"), config)?)
    }

    fn gateway_file(&self, store: &str, applications: Applications<'_>) -> String {
        let applications = match applications {
            Applications::Single(caller) => format!("[application]\nkey = \"{}\"", caller.key),
            Applications::Multi(master_key) => format!(
                "[applications]\nmaster_key = \"file:{}\"",
                master_key.display()
            ),
        };
        format!(
            "prefix = \"Acme\"\nlisten = \"{}\"\npublic_url = \"http://{}\"\nstore = \"{store}\"\n\n\
             [versions.v1]\nbackend = \"{}\"\n\n{applications}\n\n[management]\nlisten = \"{}\"\n\
             hosts = [\"api.example.com\"]\n\n[limits.unsigned]\nper_second = 0\n",
            self.gateway, self.gateway, self.v1, self.management
        )
    }

    fn v1_file(&self, store: &str) -> String {
        format!(
            "prefix = \"Acme\"\nlisten = \"{}\"\npublic_url = \"http://{}\"\nstore = \"{store}\"\n\n\
             {LIMITS}\n\n\
             [providers.{PROVIDER}]\nkind = \"bitbucket\"\nurl = \"http://{}\"\n\
             client_id = \"signpost-demo\"\nclient_secret = \"sandbox-only-secret\"\n",
            self.v1, self.gateway, self.provider
        )
    }
}
