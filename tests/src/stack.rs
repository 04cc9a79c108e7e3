//! A whole installation: its own processes on free ports, with its own files.
//!
//! ```no_run
//! # async fn example() {
//! use end_to_end::stack::Stack;
//! let stack = Stack::builder().gateway("[sign]\nreplay = \"reject\"").start().await;
//! let answer = stack.client().post("/login").signed().send().await;
//! # }
//! ```

mod api;
mod application;
mod bridged;
mod builder;
mod files;
mod reload;
mod upgrade;

use std::{
    collections::BTreeMap,
    io::PipeReader,
    path::Path,
    process::{Command, ExitStatus, Output},
};

use reqwest::Client;
use serde_json::Value;

use self::upgrade::Successors;
pub use self::{
    application::Application,
    bridged::{is_bridged, serving},
    builder::StackBuilder,
    files::{Addresses, Files},
};
use crate::{
    browser::Browser,
    program::{Instance, Program, Running},
    raw_connection::RawConnection,
    recording_backend::RecordingBackend,
    signed_client::SignedClient,
    store::Store,
    waiting::{WAIT_TIMEOUT, until, until_within},
};

/// The application's key in single-application mode.
pub const APP_KEY: &str = "4283fefc63f0cd0e873a0000c6d07ef7b77e90d3593ad699fc1f7cd5bb2e35cb";

/// Running programs. When dropped, they are killed and their files removed.
#[derive(Debug)]
pub struct Stack {
    // Before `files`: programs are killed before their files are removed.
    running: BTreeMap<Instance, Running>,
    successors: BTreeMap<Instance, Successors>,
    arguments: BTreeMap<Instance, Vec<String>>,
    http: Client,
    files: Files,
}

/// A program that exited before it was ready.
struct Ended {
    instance: Instance,
    log: String,
}

impl Stack {
    /// A builder for gateway, v1, v2 and the sandbox provider, in single-application mode.
    #[must_use]
    pub fn builder() -> StackBuilder {
        StackBuilder::new()
    }

    /// Starts the default stack.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Starts only a gateway, in front of a recording backend.
    pub async fn recording() -> (Self, RecordingBackend) {
        let backend = RecordingBackend::start().await;
        (Self::builder().in_front_of(&backend).start().await, backend)
    }

    /// The gateway's origin, without a trailing slash.
    #[must_use]
    pub fn origin(&self) -> String {
        self.origin_of(0)
    }

    /// The origin of one of several gateways.
    #[must_use]
    pub fn origin_of(&self, number: usize) -> String {
        let gateway = Program::Gateway.number(number);
        format!("http://{}", self.addresses().of(gateway))
    }

    /// Number of gateways.
    #[must_use]
    pub fn gateways(&self) -> usize {
        let is_gateway = |instance: &&Instance| instance.program == Program::Gateway;
        self.arguments.keys().filter(is_gateway).count()
    }

    /// The URL of a target at the gateway.
    #[must_use]
    pub fn url(&self, target: &str) -> String {
        format!("{}{target}", self.origin())
    }

    /// The addresses of all programs.
    #[must_use]
    pub const fn addresses(&self) -> &Addresses {
        &self.files.addresses
    }

    /// The stack's folder: configuration files, logs, and the SQLite file.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.files.path()
    }

    /// A client in single-application mode.
    #[must_use]
    pub fn client(&self) -> SignedClient {
        self.client_at(0)
    }

    /// A client in single-application mode, of one of several gateways.
    #[must_use]
    pub fn client_at(&self, number: usize) -> SignedClient {
        SignedClient::new(&self.origin_of(number), APP_KEY)
    }

    /// A new browser.
    #[must_use]
    pub fn browser(&self) -> Browser {
        Browser::default()
    }

    /// Opens a raw connection to the gateway.
    pub async fn raw(&self) -> RawConnection {
        RawConnection::open(self.addresses().gateway).await
    }

    /// A running program.
    ///
    /// # Panics
    ///
    /// When it is not part of this stack.
    pub fn running(&mut self, instance: impl Into<Instance>) -> &mut Running {
        self.running
            .get_mut(&instance.into())
            .expect("the program was started")
    }

    /// A program's log.
    ///
    /// # Panics
    ///
    /// When it is not part of this stack.
    #[must_use]
    pub fn log(&self, instance: impl Into<Instance>) -> String {
        self.running
            .get(&instance.into())
            .expect("the program was started")
            .log()
    }

    /// A program's log, once it contains a text: a line may be written after the response that it is about.
    ///
    /// # Panics
    ///
    /// When the text does not appear in time.
    pub async fn log_with(&self, instance: impl Into<Instance>, text: &str) -> String {
        let instance = instance.into();
        until(&format!("{text} in the log of {instance}"), || async {
            let log = self.log(instance);
            log.contains(text).then_some(log)
        })
        .await
    }

    /// Makes the store unavailable and available again, so that the change feed of each of these programs is lost and
    /// restored.
    ///
    /// # Panics
    ///
    /// When a program does not notice it in time.
    pub async fn interrupt_store(&self, programs: &[Program]) {
        // By the last line: a slow store loses a feed, too.
        let is_lost = |program: &Program| {
            let log = self.log(*program);
            log.rfind("change feed is lost") > log.rfind("change feed is restored")
        };
        self.store().make_unavailable();
        until("each change feed to be lost", || async {
            programs.iter().all(is_lost).then_some(())
        })
        .await;
        self.store().make_available();
        until("each change feed to be restored", || async {
            (!programs.iter().any(is_lost)).then_some(())
        })
        .await;
    }

    /// Kills a program, as a crash would.
    pub fn kill(&mut self, instance: impl Into<Instance>) {
        self.running(instance).kill();
    }

    /// Kills and starts a program again, without waiting until it is ready.
    pub fn restart_without_waiting(&mut self, instance: impl Into<Instance>) {
        let instance = instance.into();
        self.running.remove(&instance);
        self.spawn(instance);
    }

    /// Kills and starts a program again, and waits until it is ready.
    ///
    /// # Panics
    ///
    /// When it does not become ready.
    pub async fn restart(&mut self, instance: impl Into<Instance>) {
        let instance = instance.into();
        self.running.remove(&instance);
        self.spawn(instance);
        if let Err(ended) = self.ready(instance).await {
            panic!("{instance} exited after a restart:\n{}", ended.log);
        }
    }

    /// The same as [`Self::restart`], with a limit on file descriptors.
    ///
    /// # Panics
    ///
    /// When it does not become ready.
    pub async fn restart_with_descriptors(&mut self, instance: impl Into<Instance>, limit: u32) {
        let instance = instance.into();
        let folder = self.folder();
        let command = instance.program.command_with_descriptors(folder, limit);
        self.restart_as(instance, command).await;
    }

    /// The same as [`Self::restart`], by this command, for example with a variable or another path of the program.
    ///
    /// # Panics
    ///
    /// When it does not become ready.
    pub async fn restart_as(&mut self, instance: impl Into<Instance>, command: Command) {
        let instance = instance.into();
        self.running.remove(&instance);
        let arguments = &self.arguments[&instance];
        let running = Running::start_as(instance, command, self.folder(), arguments);
        self.running.insert(instance, running);
        if let Err(ended) = self.ready(instance).await {
            panic!("{instance} exited after a restart:\n{}", ended.log);
        }
    }

    /// The same as [`Self::restart`]; the program then writes its log into a pipe.
    ///
    /// # Panics
    ///
    /// When it does not become ready.
    pub async fn restart_into_pipe(&mut self, instance: impl Into<Instance>) -> PipeReader {
        let instance = instance.into();
        self.running.remove(&instance);
        let arguments = &self.arguments[&instance];
        let (running, reader) = Running::start_into_pipe(instance, self.folder(), arguments);
        self.running.insert(instance, running);
        if self.ready(instance).await.is_err() {
            panic!("{instance} exited after a restart");
        }
        reader
    }

    /// Waits until a program has exited by itself.
    ///
    /// # Panics
    ///
    /// When it does not exit in time.
    pub async fn wait_for_exit(&mut self, instance: impl Into<Instance>) -> ExitStatus {
        let instance = instance.into();
        let running = self.running(instance);
        // More than its drain delay, and less than the grace period by default.
        let limit = 2 * WAIT_TIMEOUT;
        until_within(limit, &format!("{instance} to exit"), || {
            let status = running.exit_status();
            async move { status }
        })
        .await
    }

    /// Runs a subcommand of `signpost` with the gateway's configuration file.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Output {
        let config = self.files.config(Program::Gateway);
        let mut whole = arguments.to_vec();
        whole.extend(["--config", &config]);
        Program::Gateway.run(self.folder(), &whole)
    }

    /// The store, to query it and to make it fail.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        &*self.files.store
    }

    /// How often each path of the sandbox provider was called.
    ///
    /// # Panics
    ///
    /// When the provider does not answer.
    pub async fn provider_counts(&self) -> Value {
        let url = format!("http://{}/_sandbox/counts", self.addresses().provider);
        let response = self
            .http
            .get(url)
            .send()
            .await
            .expect("the provider answers");
        serde_json::from_slice(&response.bytes().await.expect("the counts are complete"))
            .expect("the counts are JSON")
    }

    fn spawn(&mut self, instance: Instance) {
        let running = Running::start(instance, self.folder(), &self.arguments[&instance]);
        self.running.insert(instance, running);
    }

    async fn ready(&mut self, instance: Instance) -> Result<(), Ended> {
        let address = match instance.program {
            Program::Gateway => self.addresses().management_of(instance),
            _ => self.addresses().of(instance),
        };
        let url = format!("http://{address}/readyz");
        let running = self
            .running
            .get_mut(&instance)
            .expect("the program was started");
        // Ten programs may start at once, beside other tests.
        let what = format!("{instance} to be ready at {url}");
        until_within(3 * WAIT_TIMEOUT, &what, || {
            let ended = running.exit_status().map(|_| Ended {
                instance,
                log: running.log(),
            });
            let request = self.http.get(&url);
            async move {
                if let Some(ended) = ended {
                    return Some(Err(ended));
                }
                let response = request.send().await.ok()?;
                response.status().is_success().then_some(Ok(()))
            }
        })
        .await
    }
}
