//! Who is measured, and how each is configured and started.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use end_to_end::{folder::Folder, port::free_address};
use serde::Serialize;

use crate::{
    case::Case,
    keys::{KEY_FILE, Keys},
    process::{Manner, Process},
};

/// Bytes of the file that W4 downloads.
pub const BLOB: u64 = 1024 * 1024;

/// Signs of one minute at any rate that one thread serves.
const REPLAY_ENTRIES: u64 = 10_000_000;

/// Somebody who answers the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contestant {
    /// The backend itself, without a proxy.
    Direct,
    /// Signpost.
    Signpost,
    /// pingora with version routing and nothing else.
    BarePingora,
    /// nginx with a `map` on the version header.
    NginxMap,
    /// The same, verifying in Lua.
    NginxLua,
    /// `haproxy` with a map on the version header.
    HaproxyMap,
    /// The same, verifying in Lua.
    HaproxyLua,
}

/// How a contestant is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setup {
    /// One application.
    Single,
    /// 10,000 applications.
    Multi,
    /// One application, and replays are rejected.
    Replay,
}

/// Where programs and configurations are.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder of `signpost` and `bare-pingora`.
    pub binaries: PathBuf,
    /// The folder of the peers' configurations.
    pub configurations: PathBuf,
    /// Worker threads of each contestant, or worker processes.
    pub threads: usize,
}

impl Places {
    /// How contestants are run that are measured.
    pub const fn manner(&self) -> Manner {
        match self.threads {
            1 => Manner::Contestant,
            _ => Manner::SeveralThreads,
        }
    }
}

impl Contestant {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 7] = [
        Self::Direct,
        Self::NginxMap,
        Self::HaproxyMap,
        Self::NginxLua,
        Self::HaproxyLua,
        Self::BarePingora,
        Self::Signpost,
    ];

    /// What tables call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Direct => "straight to the backend",
            Self::Signpost => "Signpost",
            Self::BarePingora => "bare pingora",
            Self::NginxMap => "nginx, map",
            Self::NginxLua => "nginx + Lua, verifying",
            Self::HaproxyMap => "HAProxy, map",
            Self::HaproxyLua => "HAProxy + Lua, verifying",
        }
    }

    /// Whether it verifies signs.
    pub const fn verifies(self) -> bool {
        matches!(self, Self::Signpost | Self::NginxLua | Self::HaproxyLua)
    }

    /// Whether it is a proxy.
    pub const fn is_proxy(self) -> bool {
        !matches!(self, Self::Direct)
    }

    /// Whether it takes part in a case.
    pub const fn does(self, case: Case) -> bool {
        match case {
            Case::W1 | Case::W4 | Case::W5 => true,
            Case::W2 | Case::W3 => self.is_proxy(),
            Case::W6 => matches!(self, Self::Signpost),
            Case::W7 => self.verifies(),
        }
    }

    /// The set-up that serves in a set-up's stead: those who do not verify have one for all.
    pub const fn setup(self, setup: Setup) -> Setup {
        if self.verifies() {
            setup
        } else {
            Setup::Single
        }
    }

    /// Its template among the peers' configurations.
    const fn template(self) -> Option<&'static str> {
        match self {
            Self::Direct => Some("backend.conf"),
            Self::NginxMap => Some("nginx-map.conf"),
            Self::NginxLua => Some("nginx-lua.conf"),
            Self::HaproxyMap => Some("haproxy-map.cfg"),
            Self::HaproxyLua => Some("haproxy-lua.cfg"),
            Self::Signpost | Self::BarePingora => None,
        }
    }
}

/// The backend of all: both versions in one process.
#[derive(Debug)]
pub struct Backend {
    /// The process.
    pub process: Process,
    /// Where version 1 is.
    pub v1: SocketAddr,
    /// Where version 2 is.
    pub v2: SocketAddr,
    _folder: Folder,
}

/// A contestant that runs.
#[derive(Debug)]
pub struct Running {
    /// Who.
    pub contestant: Contestant,
    /// How.
    pub setup: Setup,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process.
    pub process: Process,
    /// Its files: they go after the process has ended.
    pub folder: Folder,
}

impl Backend {
    /// Starts it, and waits until it listens.
    ///
    /// # Errors
    ///
    /// It does not start.
    pub fn start(places: &Places) -> anyhow::Result<Self> {
        let folder = Folder::create();
        let (v1, v2) = (free_address(), free_address());
        fs::write(
            folder.path().join("blob"),
            vec![b'x'; usize::try_from(BLOB)?],
        )?;
        let rendering = Rendering {
            listen: v1,
            v1,
            v2,
            setup: Setup::Single,
            has_master: true,
            threads: 1,
        };
        let template = "backend.conf";
        let file = rendering.render(&places.configurations, template, folder.path())?;
        let command = nginx(&file, folder.path());
        let process = Process::start("backend", &command, folder.path(), Manner::Backend)?;
        let mut backend = Self {
            process,
            v1,
            v2,
            _folder: folder,
        };
        backend.process.listens(v1)?;
        backend.process.listens(v2)?;
        Ok(backend)
    }
}

impl Running {
    /// Starts a contestant, and waits until it listens.
    ///
    /// # Errors
    ///
    /// It does not start.
    pub fn start(
        contestant: Contestant,
        setup: Setup,
        places: &Places,
        keys: &Keys,
        backend: &Backend,
        manner: Manner,
    ) -> anyhow::Result<Self> {
        let folder = Folder::create();
        let address = free_address();
        let rendering = Rendering {
            listen: address,
            v1: backend.v1,
            v2: backend.v2,
            setup,
            has_master: manner != Manner::Callgrind,
            threads: places.threads,
        };
        let path = folder.path();
        let command = match contestant {
            Contestant::Direct => bail!("the backend runs already"),
            Contestant::Signpost => signpost(&rendering, places, keys, path)?,
            Contestant::BarePingora => bare_pingora(&rendering, places)?,
            _ => {
                keys.write(path)?;
                let template = contestant.template().context("a peer has a template")?;
                let file = rendering.render(&places.configurations, template, path)?;
                match contestant {
                    Contestant::HaproxyMap | Contestant::HaproxyLua => haproxy(&file),
                    _ => nginx(&file, path),
                }
            }
        };
        let process = Process::start(contestant.title(), &command, path, manner)?;
        let mut running = Self {
            contestant,
            setup,
            address,
            process,
            folder,
        };
        running.process.listens(address)?;
        Ok(running)
    }
}

/// A program and its arguments.
pub type Line = Vec<String>;

fn nginx(file: &Path, folder: &Path) -> Line {
    // Before it has read its configuration it would write elsewhere.
    let log = folder.join("start.log");
    ["nginx", "-c", &text(file), "-e", &text(&log)]
        .map(str::to_owned)
        .into()
}

fn haproxy(file: &Path) -> Line {
    ["haproxy", "-db", "-f", &text(file)]
        .map(str::to_owned)
        .into()
}

fn bare_pingora(rendering: &Rendering, places: &Places) -> anyhow::Result<Line> {
    let mut line = vec![program(places, "bare-pingora")?];
    for (option, address) in [
        ("--listen", rendering.listen),
        ("--v1", rendering.v1),
        ("--v2", rendering.v2),
    ] {
        line.extend([option.to_owned(), address.to_string()]);
    }
    line.extend(["--threads".to_owned(), rendering.threads.to_string()]);
    Ok(line)
}

fn signpost(
    rendering: &Rendering,
    places: &Places,
    keys: &Keys,
    folder: &Path,
) -> anyhow::Result<Line> {
    let applications = match rendering.setup {
        Setup::Single | Setup::Replay => {
            fs::write(folder.join(KEY_FILE), keys.single.expose())?;
            format!(
                "[application]\nkey = \"file:{}\"",
                text(&folder.join(KEY_FILE))
            )
        }
        Setup::Multi => "[applications]\ncache_entries = 20000".to_owned(),
    };
    let sign = match rendering.setup {
        Setup::Replay => format!("replay = \"reject\"\nreplay_entries = {REPLAY_ENTRIES}"),
        Setup::Single | Setup::Multi => String::new(),
    };
    let config = format!(
        "prefix = \"Acme\"\nlisten = \"{}\"\nstore = \"sqlite:{}\"\nthreads = {}\n\n\
         [versions.v1]\nbackend = \"{}\"\n\n[versions.v2]\nbackend = \"{}\"\n\n{applications}\n\n\
         [sign]\n{sign}\n\n[management]\nlisten = \"{}\"\n\n[log]\naccess = false\n",
        rendering.listen,
        text(&folder.join("signpost.db")),
        rendering.threads,
        rendering.v1,
        rendering.v2,
        free_address(),
    );
    let file = folder.join("signpost.toml");
    fs::write(&file, config)?;
    if rendering.setup == Setup::Multi {
        keys.store(&file)?;
    }
    let program = program(places, "signpost")?;
    Ok([&program, "run", "--config", &text(&file)]
        .map(str::to_owned)
        .into())
}

fn program(places: &Places, name: &str) -> anyhow::Result<String> {
    let path = places.binaries.join(name);
    ensure!(
        path.is_file(),
        "{} is not there: scripts/dist makes it, or say another folder with --binaries",
        path.display()
    );
    Ok(text(&fs::canonicalize(path)?))
}

/// What a template's placeholders stand for.
#[derive(Debug)]
struct Rendering {
    listen: SocketAddr,
    v1: SocketAddr,
    v2: SocketAddr,
    setup: Setup,
    has_master: bool,
    threads: usize,
}

impl Rendering {
    /// Writes the rendered template, and the Lua and map files that stand beside it, into a folder.
    fn render(&self, from: &Path, template: &str, to: &Path) -> anyhow::Result<PathBuf> {
        for entry in fs::read_dir(from).with_context(|| format!("no folder {}", from.display()))? {
            let path = entry?.path();
            let Some(name) = path.file_name() else {
                continue;
            };
            let is_beside = path
                .extension()
                .is_some_and(|kind| kind == "lua" || kind == "map");
            if is_beside || name == template {
                let content = fs::read_to_string(&path)?;
                fs::write(to.join(name), self.fill(&content, to))?;
            }
        }
        let file = to.join(template);
        ensure!(file.is_file(), "{} has no {template}", from.display());
        Ok(file)
    }

    fn fill(&self, template: &str, folder: &Path) -> String {
        let mode = match self.setup {
            Setup::Multi => "multi",
            Setup::Single | Setup::Replay => "single",
        };
        [
            ("@PORT@", self.listen.port().to_string()),
            ("@V1@", self.v1.to_string()),
            ("@V2@", self.v2.to_string()),
            ("@DIR@", text(folder)),
            ("@MODE@", mode.to_owned()),
            ("@THREADS@", self.threads.to_string()),
            (
                "@MASTER@",
                if self.has_master { "on" } else { "off" }.to_owned(),
            ),
        ]
        .iter()
        .fold(template.to_owned(), |filled, (placeholder, value)| {
            filled.replace(placeholder, value)
        })
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
