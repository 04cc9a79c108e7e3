//! The configuration files of a stack: the defaults, and how a test changes them.

use std::{collections::BTreeMap, fs, net::SocketAddr, os::unix::fs::PermissionsExt, path::Path};

use toml::{Table, Value};

use super::APP_KEY;
use crate::{
    folder::Folder,
    port::free_address,
    program::{Instance, Program},
    store::Store,
};

/// The files of a stack, before or without its start.
#[derive(Debug)]
pub struct Files {
    // Before `folder`: the store is removed before the folder that it may be in.
    /// The store of all programs.
    pub store: Box<dyn Store>,
    /// The addresses of all programs.
    pub addresses: Addresses,
    /// The folder of all files.
    pub folder: Folder,
}

impl Files {
    /// The folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The path of a program's configuration file.
    #[must_use]
    pub fn config(&self, instance: impl Into<Instance>) -> String {
        let name = format!("{}.toml", instance.into());
        self.path().join(name).display().to_string()
    }
}

/// The programs whose first process always has a file.
const BACKENDS: [Program; 3] = [Program::V1, Program::V2, Program::All];

/// The addresses of all programs. Each field is the address of the program's first process.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// The gateway, for clients.
    pub gateway: SocketAddr,
    /// The gateway's management listener.
    pub management: SocketAddr,
    /// v1, or both versions in one process.
    pub v1: SocketAddr,
    /// v2.
    pub v2: SocketAddr,
    /// The sandbox provider.
    pub provider: SocketAddr,
    further: BTreeMap<Instance, SocketAddr>,
    /// Of further gateways, and of all backends.
    further_management: BTreeMap<Instance, SocketAddr>,
}

impl Addresses {
    /// Chooses free addresses for this number of each program.
    pub(super) fn choose(counts: &BTreeMap<Program, usize>) -> Self {
        let further = |(program, count): (&Program, &usize)| {
            let program = *program;
            (1..*count).map(move |number| (program.number(number), free_address()))
        };
        Self {
            gateway: free_address(),
            management: free_address(),
            v1: free_address(),
            v2: free_address(),
            provider: free_address(),
            further: counts.iter().flat_map(further).collect(),
            further_management: counts
                .iter()
                .flat_map(further)
                .chain(BACKENDS.map(|program| (program.number(0), free_address())))
                .collect(),
        }
    }

    /// The address of a process.
    ///
    /// # Panics
    ///
    /// When the stack does not have it.
    #[must_use]
    pub fn of(&self, instance: impl Into<Instance>) -> SocketAddr {
        let instance = instance.into();
        match (instance.program, instance.number) {
            (Program::Gateway, 0) => self.gateway,
            (Program::V1 | Program::All, 0) => self.v1,
            (Program::V2, 0) => self.v2,
            (Program::Provider, 0) => self.provider,
            _ => self.further[&instance],
        }
    }

    /// The address of a process' management listener: of a gateway, or of a backend whose file has
    /// `[management] listen = "$MANAGEMENT"`.
    ///
    /// # Panics
    ///
    /// When the stack does not have this process.
    #[must_use]
    pub fn management_of(&self, instance: impl Into<Instance>) -> SocketAddr {
        match instance.into() {
            Instance {
                program: Program::Gateway,
                number: 0,
            } => self.management,
            instance => self.further_management[&instance],
        }
    }

    /// Replaces the placeholders, for example `$GATEWAY`, in the text of one program's file.
    fn fill_in(&self, text: &str, instance: Instance) -> String {
        let mut text = text.to_owned();
        for (other, address) in &self.further {
            let placeholder = format!("${:?}-{}", other.program, other.number).to_uppercase();
            text = text.replace(&placeholder, &address.to_string());
        }
        text.replace("$LISTEN", &self.of(instance).to_string())
            .replace("$MANAGEMENT", &self.management_of(instance).to_string())
            .replace("$GATEWAY", &self.gateway.to_string())
            .replace("$V1", &self.v1.to_string())
            .replace("$V2", &self.v2.to_string())
            .replace("$PROVIDER", &self.provider.to_string())
    }
}

impl Files {
    /// Writes a program's file, with its placeholders replaced.
    pub(super) fn write(&self, instance: Instance, table: &Table) {
        let text = toml::to_string(table).expect("a table can be written");
        let text = self
            .addresses
            .fill_in(&text, instance)
            .replace("$FOLDER", &self.path().display().to_string())
            .replace("$STORE", &self.store.address())
            .replace("$DIRECT", &self.store.direct_address());
        let path = self.folder.write(&format!("{instance}.toml"), &text);
        // It has secrets.
        make_private(&path);
    }

    /// Writes the master key that all gateways on a Postgres server share: none of them creates it.
    pub(super) fn write_master_key(&self) {
        let path = self.folder.write(MASTER_KEY, &"5a".repeat(32));
        make_private(&path);
    }
}

fn make_private(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .expect("the owner of a file may change its mode");
}

/// A program's default file, with placeholders.
pub(super) fn default_table(program: Program, is_multi: bool) -> Table {
    match program {
        Program::Gateway if is_multi => parse(&[COMMON, GATEWAY, MULTI]),
        Program::Gateway => parse(&[
            COMMON,
            GATEWAY,
            &format!("[application]\nkey = \"{APP_KEY}\"\n"),
        ]),
        Program::V1 | Program::V2 | Program::All | Program::Further(_) => parse(&[COMMON, BACKEND]),
        Program::Provider => Table::new(),
    }
}

/// The part of a gateway's file that gives a version several backends, with health checks that no pause of the machine
/// fails.
pub(super) fn several_backends(version: &str, count: usize) -> Table {
    let placeholder = version.to_uppercase();
    let further = (1..count).map(|number| format!(", \"${placeholder}-{number}\""));
    let further: String = further.collect();
    parse(&[&format!(
        "[versions.{version}]\nbackends = [\"${placeholder}\"{further}]\nhealth = {{ timeout_seconds = 30 }}"
    )])
}

/// The table of version 1 in the example of its bridge.
pub(super) fn bridged_v1() -> Value {
    let mut example = parse(&[include_str!("../../../conf/gateway-bridge.toml")]);
    let versions = example
        .remove("versions")
        .expect("the example has versions");
    versions["v1"].clone()
}

/// Moves a test's keys of version 1's backend to version 2, whose backend serves version 1.
pub(super) fn move_backend_keys(table: &mut Table) {
    let versions = table["versions"].as_table_mut().expect("a table");
    let v1 = versions["v1"].as_table_mut().expect("a table");
    let health = v1.remove("health");
    let v2 = versions["v2"].as_table_mut().expect("a table");
    v2.extend(health.map(|health| ("health".to_owned(), health)));
}

/// Merges `above` into `below`, table by table; values of `above` win.
pub(super) fn merge(below: &mut Table, above: &Table) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}

fn parse(parts: &[&str]) -> Table {
    parts
        .concat()
        .parse()
        .expect("the default files are well-formed")
}

/// What gateways and backends have in common, before their tables.
const COMMON: &str = "
prefix = \"Acme\"
listen = \"$LISTEN\"
public_url = \"http://$GATEWAY\"
store = \"$STORE\"
# Tests of a stop set it.
shutdown.drain_delay_seconds = 0
# Many requests wait for few connections, on a machine that runs many tests.
postgres.wait_seconds = 20
postgres.statement_seconds = 10
";

const GATEWAY: &str = "
default_version = \"v1\"

[management]
listen = \"$MANAGEMENT\"

# Tests start hundreds of logins from one address.
[limits.unsigned]
per_second = 10000
burst = 100000

[versions.v1]
backend = \"$V1\"

[versions.v2]
backend = \"$V2\"
";

/// File name of the master key; `MULTI` has it too.
const MASTER_KEY: &str = "master.key";

const MULTI: &str = "
[applications]
master_key = \"file:$FOLDER/master.key\"
";

const BACKEND: &str = "
[providers.bitbucket]
kind = \"bitbucket\"
url = \"http://$PROVIDER\"
client_id = \"signpost-demo\"
client_secret = \"sandbox-only-secret\"
";
