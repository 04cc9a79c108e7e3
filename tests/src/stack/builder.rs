//! What a stack is made of, and how it is started.

use std::{collections::BTreeMap, net::SocketAddr};

use toml::Table;

use super::{
    Ended, Stack,
    files::{self, Addresses},
};
use crate::{
    folder::Folder, program::Program, recording_backend::RecordingBackend,
    signed_client::http_client,
};

/// What a stack is made of, before it is started.
#[derive(Clone, Debug)]
pub struct StackBuilder {
    programs: Vec<Program>,
    overrides: BTreeMap<Program, Table>,
    without: Vec<(Program, &'static str)>,
    provider_arguments: Vec<String>,
    backend: Option<SocketAddr>,
    is_multi: bool,
}

impl StackBuilder {
    pub(super) fn new() -> Self {
        Self {
            programs: vec![
                Program::Gateway,
                Program::V1,
                Program::V2,
                Program::Provider,
            ],
            overrides: BTreeMap::new(),
            without: Vec::new(),
            provider_arguments: Vec::new(),
            backend: None,
            is_multi: false,
        }
    }

    /// Adds to the gateway's file, or replaces what is there. For places see [`Stack`]'s files:
    /// `$GATEWAY`, `$V1`, `$V2`, `$PROVIDER` are addresses, `$FOLDER` is the stack's folder.
    #[must_use]
    pub fn gateway(self, toml: &str) -> Self {
        self.overriding(&[Program::Gateway], toml)
    }

    /// Adds to the files of both backends.
    #[must_use]
    pub fn backends(self, toml: &str) -> Self {
        self.overriding(&[Program::V1, Program::V2, Program::All], toml)
    }

    /// Adds to one program's file.
    #[must_use]
    pub fn program(self, program: Program, toml: &str) -> Self {
        self.overriding(&[program], toml)
    }

    /// Takes a key of the usual file away.
    #[must_use]
    pub fn without(mut self, program: Program, key: &'static str) -> Self {
        self.without.push((program, key));
        self
    }

    /// Further arguments of the sandbox provider.
    #[must_use]
    pub fn provider(mut self, arguments: &[&str]) -> Self {
        self.provider_arguments
            .extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// Many applications, by their records in the store. There is none at first.
    #[must_use]
    pub fn multi(mut self) -> Self {
        self.is_multi = true;
        self
    }

    /// Both versions from one process.
    #[must_use]
    pub fn internal_forwarding(mut self) -> Self {
        self.programs = vec![Program::Gateway, Program::All, Program::Provider];
        self
    }

    /// Only the gateway, with this behind it as both versions.
    #[must_use]
    pub fn in_front_of(self, backend: &RecordingBackend) -> Self {
        self.in_front_of_address(backend.address())
    }

    /// Only the gateway, with this address behind it as both versions.
    #[must_use]
    pub fn in_front_of_address(mut self, backend: SocketAddr) -> Self {
        self.programs = vec![Program::Gateway];
        self.backend = Some(backend);
        self
    }

    /// Only the sandbox provider.
    #[must_use]
    pub fn only_provider(mut self) -> Self {
        self.programs = vec![Program::Provider];
        self
    }

    /// Starts everything and waits until all of it is ready.
    ///
    /// # Panics
    ///
    /// When a program does not get ready; what it wrote is in the message.
    pub async fn start(self) -> Stack {
        for _ in 0..MOST_TRIES {
            match self.try_start().await {
                Ok(stack) => return stack,
                // Somebody else was faster to bind a port: choose others.
                Err(ended) if ended.is_port_taken() => {}
                Err(ended) => panic!("{} ended at its start:\n{}", ended.program, ended.log),
            }
        }
        panic!("ports were taken {MOST_TRIES} times in a row");
    }

    /// Writes the files without starting anything, for what is not meant to start.
    #[must_use]
    pub fn write_files(&self) -> (Folder, Addresses) {
        let folder = Folder::create();
        let mut addresses = Addresses::choose();
        if let Some(backend) = self.backend {
            (addresses.v1, addresses.v2) = (backend, backend);
        }
        if self.programs.contains(&Program::All) {
            addresses.v2 = addresses.v1;
        }
        for program in [Program::Gateway, Program::V1, Program::V2, Program::All] {
            let text = files::write(
                program,
                self.is_multi,
                self.overrides.get(&program).unwrap_or(&Table::new()),
                self.without
                    .iter()
                    .filter(|(of, _)| *of == program)
                    .map(|(_, key)| *key),
            );
            let text = addresses.fill_in(&text, folder.path());
            folder.write(&format!("{program}.toml"), &text);
        }
        (folder, addresses)
    }

    async fn try_start(&self) -> Result<Stack, Ended> {
        let (folder, addresses) = self.write_files();
        let mut stack = Stack {
            running: BTreeMap::new(),
            arguments: BTreeMap::new(),
            addresses,
            http: http_client(),
            folder,
        };
        for program in &self.programs {
            let arguments = self.arguments(*program, &stack);
            stack.arguments.insert(*program, arguments);
            stack.spawn(*program);
        }
        for program in &self.programs {
            stack.ready(*program).await?;
        }
        Ok(stack)
    }

    fn arguments(&self, program: Program, stack: &Stack) -> Vec<String> {
        let config = stack
            .folder
            .path()
            .join(format!("{program}.toml"))
            .display()
            .to_string();
        match program {
            Program::Gateway => vec!["run".to_owned(), "--config".to_owned(), config],
            Program::V1 | Program::V2 | Program::All => vec!["--config".to_owned(), config],
            Program::Provider => {
                let mut arguments = vec![
                    format!("--listen={}", stack.addresses.provider),
                    format!("--callback={}/login", stack.origin()),
                ];
                arguments.extend(self.provider_arguments.iter().cloned());
                arguments
            }
        }
    }

    fn overriding(mut self, programs: &[Program], toml: &str) -> Self {
        let table: Table = toml.parse().expect("a test's TOML is well-formed");
        for program in programs {
            files::merge(self.overrides.entry(*program).or_default(), &table);
        }
        self
    }
}

/// More than once in a row is unlikely, more than that is another problem.
const MOST_TRIES: usize = 5;
