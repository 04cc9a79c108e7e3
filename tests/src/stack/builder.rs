//! The parts of a stack, and its start.

use std::{collections::BTreeMap, net::SocketAddr};

use toml::Table;

use super::bridged::{is_bridged, serving};
use super::{
    Ended, Stack,
    files::{self, Addresses, Files},
};
use crate::{
    folder::Folder,
    postgres::{PostgresCluster, PostgresServer},
    program::{Instance, Program, is_port_taken},
    recording_backend::RecordingBackend,
    signed_client::http_client,
    store::{Front, PostgresStore, Store, StoreKind},
};

/// A stack that is not started yet.
#[derive(Clone, Debug)]
pub struct StackBuilder {
    programs: BTreeMap<Program, usize>,
    overrides: BTreeMap<Program, Table>,
    overrides_of_one: BTreeMap<Instance, Table>,
    without: Vec<(Program, &'static str)>,
    further_files: Vec<(String, String)>,
    provider_arguments: Vec<String>,
    backend: Option<SocketAddr>,
    is_multi: bool,
    server: Option<String>,
    front: Option<Front>,
}

impl StackBuilder {
    pub(super) fn new() -> Self {
        let programs = [
            Program::Gateway,
            Program::V1,
            Program::V2,
            Program::Provider,
        ];
        let programs = programs.into_iter();
        let started = programs.filter(|program| !(is_bridged() && *program == Program::V1));
        Self {
            programs: started.map(|program| (program, 1)).collect(),
            overrides: BTreeMap::new(),
            overrides_of_one: BTreeMap::new(),
            without: Vec::new(),
            further_files: Vec::new(),
            provider_arguments: Vec::new(),
            backend: None,
            is_multi: false,
            server: None,
            front: None,
        }
    }

    /// Adds to the gateway's file, or replaces its keys. Placeholders: `$GATEWAY`, `$V1`, `$V2`, `$PROVIDER` are
    /// addresses, and `$V1-1` is the address of the second v1. `$LISTEN` is the program's own address. `$FOLDER` is the
    /// stack's folder, `$STORE` its store, `$DIRECT` the store past what stands before it.
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

    /// Adds to the file of one process of several.
    #[must_use]
    pub fn only(mut self, instance: Instance, toml: &str) -> Self {
        let table = parse(toml);
        files::merge(self.overrides_of_one.entry(instance).or_default(), &table);
        self
    }

    /// Starts `count` processes of a program. Every gateway has all backends; the first one's address is public.
    #[must_use]
    pub fn several(mut self, program: Program, count: usize) -> Self {
        self.programs.insert(serving(program), count);
        self
    }

    /// Stores everything on the test's own Postgres server, whichever store the run uses.
    #[must_use]
    pub fn on_server(self, server: &PostgresServer) -> Self {
        self.on_servers(server.address())
    }

    /// Stores everything on the test's own servers: this address names them all for an administrator.
    #[must_use]
    pub fn on_servers(mut self, address: &str) -> Self {
        self.server = Some(address.to_owned());
        self
    }

    /// Stores everything on the test's own servers, of which one takes writes: `$STORE` names them all, and `$DIRECT` the
    /// proxy before them.
    #[must_use]
    pub fn on_cluster(mut self, cluster: &PostgresCluster) -> Self {
        self.front = Some(Front::Hosts(cluster.hosts().to_owned()));
        self.on_servers(cluster.address())
    }

    /// Removes a key from the default file.
    #[must_use]
    pub fn without(mut self, program: Program, key: &'static str) -> Self {
        self.without.push((program, key));
        self
    }

    /// Writes a further file into the stack's folder, for example a certificate: `$FOLDER/ca.pem`.
    #[must_use]
    pub fn file(mut self, name: &str, content: &str) -> Self {
        self.further_files
            .push((name.to_owned(), content.to_owned()));
        self
    }

    /// Adds arguments of the sandbox provider. A `--callback=` replaces the gateway's own.
    #[must_use]
    pub fn provider(mut self, arguments: &[&str]) -> Self {
        self.provider_arguments
            .extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// Multi-application mode, with no application at first.
    #[must_use]
    pub fn multi(mut self) -> Self {
        self.is_multi = true;
        self
    }

    /// Both versions in one process, `login-all`.
    #[must_use]
    pub fn internal_forwarding(mut self) -> Self {
        self.programs.remove(&Program::V1);
        self.programs.remove(&Program::V2);
        self.programs.insert(Program::All, 1);
        self
    }

    /// Only the gateway, with this backend for both versions.
    #[must_use]
    pub fn in_front_of(self, backend: &RecordingBackend) -> Self {
        self.in_front_of_address(backend.address())
    }

    /// Only the gateway, with this backend address for both versions.
    #[must_use]
    pub fn in_front_of_address(mut self, backend: SocketAddr) -> Self {
        self.programs = BTreeMap::from([(Program::Gateway, 1)]);
        self.backend = Some(backend);
        self
    }

    /// Only the sandbox provider.
    #[must_use]
    pub fn only_provider(mut self) -> Self {
        self.programs = BTreeMap::from([(Program::Provider, 1)]);
        self
    }

    /// Starts all programs, and waits until all are ready.
    ///
    /// # Panics
    ///
    /// When a program does not become ready; its log is in the message.
    pub async fn start(self) -> Stack {
        for _ in 0..MAX_TRIES {
            match self.try_start().await {
                Ok(stack) => return stack,
                // Another process has bound a port in the meantime: try again with other ports.
                Err(ended) if is_port_taken(&ended.log) => {}
                Err(ended) => panic!("{} exited at its start:\n{}", ended.instance, ended.log),
            }
        }
        panic!("a port was in use {MAX_TRIES} times in a row");
    }

    /// Writes the files without starting a program, for tests of programs that must not start.
    #[must_use]
    pub fn write_files(&self) -> Files {
        let folder = Folder::create();
        for (name, content) in &self.further_files {
            folder.write(name, content);
        }
        let mut addresses = Addresses::choose(&self.programs);
        if let Some(backend) = self.backend {
            (addresses.v1, addresses.v2) = (backend, backend);
        }
        if self.programs.contains_key(&Program::All) {
            addresses.v2 = addresses.v1;
        }
        if self.has_bridge() {
            addresses.v1 = addresses.v2;
        }
        let files = Files {
            store: self.create_store(&folder),
            addresses,
            folder,
        };
        if self.is_multi && files.store.kind() == StoreKind::Postgres {
            files.write_master_key();
        }
        // Programs that are not started have a file too: a test may run them.
        for program in [Program::Gateway, Program::V1, Program::V2, Program::All] {
            for number in 0..self.programs.get(&program).copied().unwrap_or(1) {
                let instance = program.number(number);
                files.write(instance, &self.file_of(instance));
            }
        }
        files
    }

    async fn try_start(&self) -> Result<Stack, Ended> {
        let files = self.write_files();
        let mut stack = Stack {
            running: BTreeMap::new(),
            successors: BTreeMap::new(),
            arguments: BTreeMap::new(),
            http: http_client(),
            files,
        };
        // A login service that starts before its OpenID provider refuses logins until it asks again, and a gateway whose
        // checks found a backend not listening yet rejects requests until the next check.
        let wave = |instance: &Instance| match instance.program {
            Program::Provider => 0,
            Program::Gateway => 2,
            _ => 1,
        };
        let mut instances: Vec<_> = self.instances().collect();
        instances.sort_by_key(wave);
        for instances in instances.chunk_by(|one, other| wave(one) == wave(other)) {
            for instance in instances {
                let arguments = self.arguments(*instance, &stack);
                stack.arguments.insert(*instance, arguments);
                stack.spawn(*instance);
            }
            for instance in instances {
                stack.ready(*instance).await?;
            }
        }
        Ok(stack)
    }

    fn instances(&self) -> impl Iterator<Item = Instance> {
        self.programs
            .iter()
            .flat_map(|(program, count)| (0..*count).map(|number| program.number(number)))
    }

    fn create_store(&self, folder: &Folder) -> Box<dyn Store> {
        if let Some(server) = &self.server {
            return Box::new(PostgresStore::create(server).behind(self.front.clone()));
        }
        let has_backend = [Program::V1, Program::V2, Program::All]
            .iter()
            .any(|program| self.programs.contains_key(program));
        // Otherwise no program opens the store, and a SQLite file that is never opened costs nothing.
        let is_used = has_backend || self.is_multi;
        let kind = if is_used {
            StoreKind::chosen()
        } else {
            StoreKind::Sqlite
        };
        kind.create(folder.path())
    }

    fn file_of(&self, instance: Instance) -> Table {
        let program = instance.program;
        let mut table = files::default_table(program, self.is_multi);
        if program == Program::Gateway && self.has_bridge() {
            table["versions"]["v1"] = files::bridged_v1();
        }
        for (version, backend) in [("v1", Program::V1), ("v2", Program::V2)] {
            let count = self.programs.get(&backend).copied().unwrap_or(1);
            let is_several = count > 1 && !(self.has_bridge() && version == "v1");
            if program == Program::Gateway && is_several {
                table["versions"][version] = Table::new().into();
                files::merge(&mut table, &files::several_backends(version, count));
            }
        }
        for (_, key) in self.without.iter().filter(|(of, _)| *of == program) {
            table.remove(*key);
        }
        for further in [
            self.overrides.get(&program),
            self.overrides_of_one.get(&instance),
        ] {
            files::merge(&mut table, further.unwrap_or(&Table::new()));
        }
        if program == Program::Gateway && self.has_bridge() {
            files::move_backend_keys(&mut table);
        }
        table
    }

    fn arguments(&self, instance: Instance, stack: &Stack) -> Vec<String> {
        let config = stack.files.config(instance);
        match instance.program {
            Program::Gateway => vec!["run".to_owned(), "--config".to_owned(), config],
            Program::V1 | Program::V2 | Program::All | Program::Further(_) => {
                vec!["--config".to_owned(), config]
            }
            Program::Provider => {
                let mut arguments = vec![format!("--listen={}", stack.addresses().of(instance))];
                let is_callback = |argument: &String| argument.starts_with("--callback=");
                if !self.provider_arguments.iter().any(is_callback) {
                    arguments.push(format!("--callback={}/login", stack.origin()));
                }
                arguments.extend(self.provider_arguments.iter().cloned());
                arguments
            }
        }
    }

    fn overriding(mut self, programs: &[Program], toml: &str) -> Self {
        let table = parse(toml);
        for program in programs {
            let program = serving(*program);
            files::merge(self.overrides.entry(program).or_default(), &table);
        }
        self
    }

    /// Whether v2 serves version 1.
    fn has_bridge(&self) -> bool {
        is_bridged() && self.programs.contains_key(&Program::V2)
    }
}

fn parse(toml: &str) -> Table {
    toml.parse().expect("a test's TOML is well-formed")
}

/// Attempts to start on free ports. Two failures in a row are unlikely; more have another cause.
const MAX_TRIES: usize = 5;
