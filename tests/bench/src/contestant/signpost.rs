//! The gateway's configuration and command line.

use std::{fs, path::Path};

use end_to_end::port::free_address;

use super::{
    Contestant, Environment, Setup,
    rendering::{Line, Rendering, program, text},
};
use crate::{
    keys::{KEY_FILE, Keys},
    tls::{CERTIFICATE_FILE, CERTIFICATE_KEY_FILE},
};

/// Enough for the signatures of one minute, at any rate that one thread can serve.
const REPLAY_ENTRIES: u64 = 10_000_000;

/// The section that raises limits on clients: the load sends any number of requests on each connection, and opens
/// thousands from one address.
const CLIENT_LIMITS: &str = "[connections]\nper_address = 20000\nrequests = 1000000000\nhandshakes_per_second = 1000000\n\n";

/// Writes the configuration into a folder, and returns the command line.
///
/// # Errors
///
/// When a file or the store cannot be written, or the program is missing.
pub(super) fn configure(
    contestant: Contestant,
    rendering: &Rendering,
    environment: &Environment,
    keys: &Keys,
    folder: &Path,
) -> anyhow::Result<Line> {
    fs::write(folder.join(KEY_FILE), keys.single.expose())?;
    keys.tls.write(folder)?;
    let file = folder.join("signpost.toml");
    let config = config(contestant, rendering, folder) + &observability(contestant, rendering);
    fs::write(&file, config)?;
    let program = program(environment, "signpost")?;
    if rendering.setup == Setup::Multi {
        keys.import(&program, &file)?;
    }
    Ok([&program, "run", "--config", &text(&file)]
        .map(str::to_owned)
        .into())
}

/// The configuration, without what has its default.
fn config(contestant: Contestant, rendering: &Rendering, folder: &Path) -> String {
    let path = |name| text(&folder.join(name));
    let Rendering {
        listen,
        v1,
        v2,
        setup,
        threads,
        ..
    } = rendering;
    // The short form of the address is a key of the whole file, the long form a section.
    let (address, listener) = match setup {
        Setup::Tls => (String::new(), tls_listener(rendering, folder)),
        Setup::Single | Setup::Multi | Setup::Replay | Setup::Headers => {
            (format!("listen = \"{listen}\"\n"), String::new())
        }
    };
    let applications = match setup {
        Setup::Multi => "[applications]\ncache_entries = 20000".to_owned(),
        Setup::Single | Setup::Replay | Setup::Tls | Setup::Headers => {
            format!("[application]\nkey = \"file:{}\"", path(KEY_FILE))
        }
    };
    let sign = match setup {
        Setup::Replay => format!("replay = \"reject\"\nreplay_entries = {REPLAY_ENTRIES}"),
        Setup::Headers => "carrier = \"headers\"".to_owned(),
        Setup::Single | Setup::Multi | Setup::Tls => String::new(),
    };
    let v1 = match contestant {
        // The backends' responses differ by this member only.
        Contestant::SignpostBridged => {
            "bridge = \"v2\"\nchanges = [{ name = \"version\", paths = [\"/\"], \
             pass_types = [\"application/octet-stream\"], \
             response = [{ constant = \"$.version\", value = \"v1\" }] }]"
                .to_owned()
        }
        _ => format!("backend = \"{v1}\""),
    };
    let bodies = match setup {
        Setup::Headers => "bodies = \"json\"\n",
        _ => "",
    };
    let (store, management) = (path("signpost.db"), free_address());
    format!(
        "prefix = \"Acme\"\n{address}store = \"sqlite:{store}\"\nthreads = {threads}\n\n{listener}\
         [versions.v1]\n{v1}\n{bodies}\n[versions.v2]\nbackend = \"{v2}\"\n{bodies}\n{applications}\n\n\
         [sign]\n{sign}\n\n{CLIENT_LIMITS}[management]\nlisten = \"{management}\"\n\n[log]\naccess_sample = 0\n",
    )
}

/// The sections in which the contestants differ.
fn observability(contestant: Contestant, rendering: &Rendering) -> String {
    match contestant {
        // The backend takes the place of a collector: it answers everything with 200.
        Contestant::SignpostTraced => format!(
            "\n[tracing]\nendpoint = \"http://{}/v1/traces\"\nsampled_per_million = 10000\n",
            rendering.v1
        ),
        _ => String::new(),
    }
}

fn tls_listener(rendering: &Rendering, folder: &Path) -> String {
    format!(
        "[[listen]]\naddress = \"{}\"\nprotocols = [\"h2\", \"http/1.1\"]\n\
         tls.certificates = [{{ certificate = \"{}\", key = \"{}\" }}]\n\n",
        rendering.listen,
        text(&folder.join(CERTIFICATE_FILE)),
        text(&folder.join(CERTIFICATE_KEY_FILE)),
    )
}
