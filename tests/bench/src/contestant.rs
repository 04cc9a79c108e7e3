//! The measured programs: configuration and start.

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
    process::{Process, RunMode},
};

/// Size of the file that W4 downloads, in bytes.
pub const BLOB: u64 = 1024 * 1024;

/// Enough for the signatures of one minute, at any rate that one thread can serve.
const REPLAY_ENTRIES: u64 = 10_000_000;

/// A measured program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contestant {
    /// The backend itself, without a proxy.
    Direct,
    /// Signpost.
    Signpost,
    /// pingora with version routing only.
    BarePingora,
    /// nginx with a `map` on the version header.
    NginxMap,
    /// nginx as above, verifying signatures in Lua.
    NginxLua,
    /// `HAProxy` with a map on the version header.
    HaproxyMap,
    /// `HAProxy` as above, verifying signatures in Lua.
    HaproxyLua,
}

/// The configuration of a contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setup {
    /// One application.
    Single,
    /// 10,000 applications.
    Multi,
    /// One application, with replay protection.
    Replay,
}

/// Folders of programs and configurations, and the number of threads.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The folder of `signpost` and `bare-pingora`.
    pub binaries: PathBuf,
    /// The folder of the other proxies' configurations.
    pub configurations: PathBuf,
    /// Worker threads of each contestant, or worker processes.
    pub threads: usize,
}

impl Environment {
    /// The run mode of measured contestants.
    pub const fn run_mode(&self) -> RunMode {
        match self.threads {
            1 => RunMode::Contestant,
            _ => RunMode::SeveralThreads,
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

    /// Its title in the tables.
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

    /// Whether it verifies signatures.
    pub const fn verifies(self) -> bool {
        matches!(self, Self::Signpost | Self::NginxLua | Self::HaproxyLua)
    }

    /// Whether it is a proxy.
    pub const fn is_proxy(self) -> bool {
        !matches!(self, Self::Direct)
    }

    /// Whether it takes part in a case.
    pub const fn takes_part_in(self, case: Case) -> bool {
        match case {
            Case::W1 | Case::W4 | Case::W5 => true,
            Case::W2 | Case::W3 => self.is_proxy(),
            Case::W6 => matches!(self, Self::Signpost),
            Case::W7 => self.verifies(),
        }
    }

    /// The set-up that it uses for `setup`: a contestant that does not verify has only one.
    pub const fn setup(self, setup: Setup) -> Setup {
        if self.verifies() {
            setup
        } else {
            Setup::Single
        }
    }

    /// The file name of its configuration template.
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

/// The backend of all contestants: both versions in one process.
#[derive(Debug)]
pub struct Backend {
    /// The process.
    pub process: Process,
    /// The address of version 1.
    pub v1: SocketAddr,
    /// The address of version 2.
    pub v2: SocketAddr,
    _folder: Folder,
}

/// A running contestant.
#[derive(Debug)]
pub struct Running {
    /// The contestant.
    pub contestant: Contestant,
    /// Its configuration.
    pub setup: Setup,
    /// The address it listens on.
    pub address: SocketAddr,
    /// Its process.
    pub process: Process,
    /// Its files. Last, so that they are removed after the process has exited.
    pub folder: Folder,
}

impl Backend {
    /// Starts the backend, and waits until it listens.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub fn start(environment: &Environment) -> anyhow::Result<Self> {
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
        let file = rendering.render(&environment.configurations, template, folder.path())?;
        let command = nginx(&file, folder.path());
        let process = Process::start("backend", &command, folder.path(), RunMode::Backend)?;
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
    /// When it does not start.
    pub fn start(
        contestant: Contestant,
        setup: Setup,
        environment: &Environment,
        keys: &Keys,
        backend: &Backend,
        run_mode: RunMode,
    ) -> anyhow::Result<Self> {
        let folder = Folder::create();
        let address = free_address();
        let rendering = Rendering {
            listen: address,
            v1: backend.v1,
            v2: backend.v2,
            setup,
            has_master: run_mode != RunMode::Callgrind,
            threads: environment.threads,
        };
        let path = folder.path();
        let command = match contestant {
            Contestant::Direct => bail!("the backend is running already"),
            Contestant::Signpost => signpost(&rendering, environment, keys, path)?,
            Contestant::BarePingora => bare_pingora(&rendering, environment)?,
            _ => {
                keys.write(path)?;
                let template = contestant.template().context("a proxy has a template")?;
                let file = rendering.render(&environment.configurations, template, path)?;
                match contestant {
                    Contestant::HaproxyMap | Contestant::HaproxyLua => haproxy(&file),
                    _ => nginx(&file, path),
                }
            }
        };
        let process = Process::start(contestant.title(), &command, path, run_mode)?;
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

/// A command line: a program and its arguments.
pub type Line = Vec<String>;

fn nginx(file: &Path, folder: &Path) -> Line {
    // Until nginx has read its configuration, it would log to the system-wide file.
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

fn bare_pingora(rendering: &Rendering, environment: &Environment) -> anyhow::Result<Line> {
    let mut line = vec![program(environment, "bare-pingora")?];
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
    environment: &Environment,
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
    let program = program(environment, "signpost")?;
    Ok([&program, "run", "--config", &text(&file)]
        .map(str::to_owned)
        .into())
}

fn program(environment: &Environment, name: &str) -> anyhow::Result<String> {
    let path = environment.binaries.join(name);
    ensure!(
        path.is_file(),
        "{} is missing: build it with scripts/dist, or pass another folder with --binaries",
        path.display()
    );
    Ok(text(&fs::canonicalize(path)?))
}

/// The values of a template's placeholders.
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
    /// Writes the rendered template, and the Lua and map files beside it, into a folder.
    fn render(&self, from: &Path, template: &str, to: &Path) -> anyhow::Result<PathBuf> {
        for entry in fs::read_dir(from)
            .with_context(|| format!("cannot read the folder {}", from.display()))?
        {
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
