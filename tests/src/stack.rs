//! A whole installation as processes of its own, on free ports, with files of its own.
//!
//! ```no_run
//! # async fn example() {
//! use end_to_end::stack::Stack;
//! let stack = Stack::builder().gateway("[sign]\nreplay = \"reject\"").start().await;
//! let answer = stack.client().post("/login").signed().send().await;
//! # }
//! ```

mod application;
mod builder;
mod files;

use std::{collections::BTreeMap, path::Path, process::Output};

use reqwest::Client;
use rusqlite::Connection;
use serde_json::Value;

use self::files::Addresses;
pub use self::{application::Application, builder::StackBuilder};
use crate::{
    browser::Browser,
    folder::Folder,
    program::{Program, Running},
    raw_connection::RawConnection,
    recording_backend::RecordingBackend,
    signed_client::SignedClient,
    waiting::until,
};

/// The key of the one application, when there is only one.
pub const APP_KEY: &str = "4283fefc63f0cd0e873a0000c6d07ef7b77e90d3593ad699fc1f7cd5bb2e35cb";

/// Running programs. They end, and their files go, when this is dropped.
#[derive(Debug)]
pub struct Stack {
    // The order matters: programs end before their folder goes.
    running: BTreeMap<Program, Running>,
    arguments: BTreeMap<Program, Vec<String>>,
    addresses: Addresses,
    http: Client,
    folder: Folder,
}

/// A program ended before it was ready.
struct Ended {
    program: Program,
    log: String,
}

impl Stack {
    /// Gateway, v1, v2 and the sandbox provider, with one application.
    #[must_use]
    pub fn builder() -> StackBuilder {
        StackBuilder::new()
    }

    /// The usual stack, started.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Only a gateway, in front of a recording backend.
    pub async fn recording() -> (Self, RecordingBackend) {
        let backend = RecordingBackend::start().await;
        (Self::builder().in_front_of(&backend).start().await, backend)
    }

    /// The gateway's origin, without a slash at its end.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://{}", self.addresses.gateway)
    }

    /// An address at the gateway.
    #[must_use]
    pub fn url(&self, target: &str) -> String {
        format!("{}{target}", self.origin())
    }

    /// Where each program listens.
    #[must_use]
    pub const fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The stack's folder: files, logs and store.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A client of the one application.
    #[must_use]
    pub fn client(&self) -> SignedClient {
        SignedClient::new(&self.origin(), APP_KEY)
    }

    /// A browser.
    #[must_use]
    pub fn browser(&self) -> Browser {
        Browser::default()
    }

    /// A connection to the gateway for bytes as they are.
    pub async fn raw(&self) -> RawConnection {
        RawConnection::open(self.addresses.gateway).await
    }

    /// A running program.
    ///
    /// # Panics
    ///
    /// When it is not part of this stack.
    pub fn running(&mut self, program: Program) -> &mut Running {
        self.running
            .get_mut(&program)
            .expect("the program was started")
    }

    /// What a program wrote.
    ///
    /// # Panics
    ///
    /// When it is not part of this stack.
    #[must_use]
    pub fn log(&self, program: Program) -> String {
        self.running
            .get(&program)
            .expect("the program was started")
            .log()
    }

    /// What a program wrote, once that has a text in it: a line may come after the answer it is about.
    ///
    /// # Panics
    ///
    /// When it does not come in time.
    pub async fn log_with(&self, program: Program, text: &str) -> String {
        until(&format!("{text} in the log of {program}"), || async {
            let log = self.log(program);
            log.contains(text).then_some(log)
        })
        .await
    }

    /// Ends a program as a crash would, without starting it again.
    pub fn kill(&mut self, program: Program) {
        self.running(program).kill();
    }

    /// Starts a program once more and waits until it is ready.
    ///
    /// # Panics
    ///
    /// When it does not get ready.
    pub async fn restart(&mut self, program: Program) {
        self.running.remove(&program);
        self.spawn(program);
        if let Err(ended) = self.ready(program).await {
            panic!("{program} ended at its second start:\n{}", ended.log);
        }
    }

    /// Runs one of the command line's own commands against the same files.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Output {
        let config = self.folder().join("signpost.toml").display().to_string();
        let mut whole = arguments.to_vec();
        whole.extend(["--config", &config]);
        Program::Gateway.run(self.folder(), &whole)
    }

    /// The store, to look into.
    ///
    /// # Panics
    ///
    /// When it cannot be opened.
    #[must_use]
    pub fn store(&self) -> Connection {
        let path = self.folder().join("signpost.db");
        Connection::open(path).expect("the store is a database")
    }

    /// How often the provider's addresses were called.
    ///
    /// # Panics
    ///
    /// When the provider is not there.
    pub async fn provider_counts(&self) -> Value {
        let url = format!("http://{}/_sandbox/counts", self.addresses.provider);
        let answer = self
            .http
            .get(url)
            .send()
            .await
            .expect("the provider answers");
        serde_json::from_slice(&answer.bytes().await.expect("the counts come"))
            .expect("the counts are JSON")
    }

    fn spawn(&mut self, program: Program) {
        let running = Running::start(program, self.folder.path(), &self.arguments[&program]);
        self.running.insert(program, running);
    }

    async fn ready(&mut self, program: Program) -> Result<(), Ended> {
        let address = match program {
            Program::Gateway => self.addresses.management,
            Program::V1 | Program::All => self.addresses.v1,
            Program::V2 => self.addresses.v2,
            Program::Provider => self.addresses.provider,
        };
        let url = format!("http://{address}/readyz");
        let running = self
            .running
            .get_mut(&program)
            .expect("the program was started");
        until(&format!("{program} to be ready at {url}"), || {
            let ended = running.ended().map(|_| Ended {
                program,
                log: running.log(),
            });
            let request = self.http.get(&url);
            async move {
                if let Some(ended) = ended {
                    return Some(Err(ended));
                }
                let answer = request.send().await.ok()?;
                answer.status().is_success().then_some(Ok(()))
            }
        })
        .await
    }
}

impl Ended {
    fn is_port_taken(&self) -> bool {
        let log = self.log.to_ascii_lowercase();
        log.contains("in use") || log.contains("os error 98")
    }
}
