//! The configuration files of a stack: the usual ones, and how a test changes them.

use std::{collections::BTreeMap, fs, net::SocketAddr, os::unix::fs::PermissionsExt, path::Path};

use toml::{Table, Value};

use super::APP_KEY;
use crate::{
    folder::Folder,
    port::free_address,
    program::{Instance, Program},
    store::Store,
};

/// The files of a stack that is not started, or not yet.
#[derive(Debug)]
pub struct Files {
    // The order matters: what is in the folder goes first.
    /// What the files name as the store.
    pub store: Box<dyn Store>,
    /// Where each program will listen.
    pub addresses: Addresses,
    /// Where the files are.
    pub folder: Folder,
}

impl Files {
    /// Where the files are.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A program's own file.
    #[must_use]
    pub fn config(&self, instance: impl Into<Instance>) -> String {
        let name = format!("{}.toml", instance.into());
        self.path().join(name).display().to_string()
    }
}

/// Where each program of a stack listens; the first of them, where there are several.
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
    further_management: BTreeMap<Instance, SocketAddr>,
}

impl Addresses {
    /// With so many of each program.
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
            further_management: counts.iter().flat_map(further).collect(),
        }
    }

    /// Where one of them listens.
    ///
    /// # Panics
    ///
    /// When there are not so many.
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

    /// Where a gateway's management listens.
    ///
    /// # Panics
    ///
    /// When there are not so many.
    #[must_use]
    pub fn management_of(&self, instance: impl Into<Instance>) -> SocketAddr {
        match instance.into() {
            first if first.number == 0 => self.management,
            instance => self.further_management[&instance],
        }
    }

    /// Replaces `$GATEWAY` and the like in the text of one program's file.
    fn fill_in(&self, text: &str, instance: Instance) -> String {
        let mut text = text.to_owned();
        for (other, address) in &self.further {
            let place = format!("${:?}-{}", other.program, other.number).to_uppercase();
            text = text.replace(&place, &address.to_string());
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
    /// Writes a program's file: its text has places that are filled in here.
    pub(super) fn write(&self, instance: Instance, table: &Table) {
        let text = toml::to_string(table).expect("a table can be written");
        let text = self
            .addresses
            .fill_in(&text, instance)
            .replace("$FOLDER", &self.path().display().to_string())
            .replace("$STORE", &self.store.address());
        self.folder.write(&format!("{instance}.toml"), &text);
    }

    /// Writes the key that all gateways on a server share, and that none of them makes.
    pub(super) fn write_master_key(&self) {
        let path = self.folder.write(MASTER_KEY, &"5a".repeat(32));
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))
            .expect("whoever made a file may say who reads it");
    }
}

/// A program's usual file, with places still to be filled in.
pub(super) fn usual(program: Program, is_multi: bool) -> Table {
    match program {
        Program::Gateway if is_multi => parse(&[GATEWAY, MULTI]),
        Program::Gateway => parse(&[GATEWAY, &format!("[application]\nkey = \"{APP_KEY}\"\n")]),
        Program::V1 | Program::V2 | Program::All => parse(&[BACKEND]),
        Program::Provider => Table::new(),
    }
}

/// What a gateway's file says about a version with several backends.
pub(super) fn several_backends(version: &str, count: usize) -> Table {
    let place = version.to_uppercase();
    let further = (1..count).map(|number| format!(", \"${place}-{number}\""));
    let further: String = further.collect();
    parse(&[&format!(
        "[versions.{version}]\nbackends = [\"${place}\"{further}]"
    )])
}

/// Puts one table over another, table by table.
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
        .expect("the usual files are well-formed")
}

const GATEWAY: &str = "
prefix = \"Acme\"
listen = \"$LISTEN\"
public_url = \"http://$GATEWAY\"
store = \"$STORE\"
default_version = \"v1\"

[management]
listen = \"$MANAGEMENT\"

# Tests begin hundreds of logins from one address, as nobody else does.
[limits.unsigned]
per_second = 10000
burst = 100000

[versions.v1]
backend = \"$V1\"

[versions.v2]
backend = \"$V2\"
";

/// Its name in the folder; the files name it, too.
const MASTER_KEY: &str = "master.key";

const MULTI: &str = "
[applications]
master_key = \"file:$FOLDER/master.key\"
";

const BACKEND: &str = "
prefix = \"Acme\"
listen = \"$LISTEN\"
public_url = \"http://$GATEWAY\"
store = \"$STORE\"

[providers.bitbucket]
kind = \"bitbucket\"
auth_url = \"http://$PROVIDER\"
api_url = \"http://$PROVIDER\"
client_id = \"signpost-demo\"
client_secret = \"sandbox-only-secret\"
";
