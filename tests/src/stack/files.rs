//! The configuration files of a stack: the usual ones, and how a test changes them.

use std::{net::SocketAddr, path::Path};

use toml::{Table, Value};

use super::APP_KEY;
use crate::{port::free_address, program::Program};

/// Where each program of a stack listens.
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
}

impl Addresses {
    pub(super) fn choose() -> Self {
        Self {
            gateway: free_address(),
            management: free_address(),
            v1: free_address(),
            v2: free_address(),
            provider: free_address(),
        }
    }

    /// Replaces `$GATEWAY` and the like.
    #[must_use]
    pub fn fill_in(&self, text: &str, folder: &Path) -> String {
        text.replace("$GATEWAY", &self.gateway.to_string())
            .replace("$MANAGEMENT", &self.management.to_string())
            .replace("$V1", &self.v1.to_string())
            .replace("$V2", &self.v2.to_string())
            .replace("$PROVIDER", &self.provider.to_string())
            .replace("$FOLDER", &folder.display().to_string())
    }
}

/// A program's file as text, with places still to be filled in.
pub(super) fn write<'k>(
    program: Program,
    is_multi: bool,
    overrides: &Table,
    without: impl Iterator<Item = &'k str>,
) -> String {
    let mut table = match program {
        Program::Gateway if is_multi => parse(&[GATEWAY, MULTI]),
        Program::Gateway => parse(&[GATEWAY, &format!("[application]\nkey = \"{APP_KEY}\"\n")]),
        Program::V1 | Program::All => parse(&["listen = \"$V1\"\n", BACKEND]),
        Program::V2 => parse(&["listen = \"$V2\"\n", BACKEND]),
        Program::Provider => Table::new(),
    };
    for key in without {
        table.remove(key);
    }
    merge(&mut table, overrides);
    toml::to_string(&table).expect("a table can be written")
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
listen = \"$GATEWAY\"
public_url = \"http://$GATEWAY\"
store = \"sqlite:$FOLDER/signpost.db\"
default_version = \"v1\"

[management]
listen = \"$MANAGEMENT\"

[versions.v1]
backend = \"$V1\"

[versions.v2]
backend = \"$V2\"
";

const MULTI: &str = "
[applications]
master_key = \"file:$FOLDER/master.key\"
";

const BACKEND: &str = "
prefix = \"Acme\"
public_url = \"http://$GATEWAY\"
store = \"sqlite:$FOLDER/signpost.db\"

[providers.bitbucket]
kind = \"bitbucket\"
auth_url = \"http://$PROVIDER\"
api_url = \"http://$PROVIDER\"
client_id = \"signpost-demo\"
client_secret = \"sandbox-only-secret\"
";
