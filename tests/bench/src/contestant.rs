//! The measured programs: what they are, and their start. Their configurations are in `rendering` and `signpost`.

mod rendering;
mod signpost;

use std::{fs, net::SocketAddr, path::PathBuf};

use anyhow::{Context, bail};
use clap::ValueEnum;
use end_to_end::{folder::Folder, port::free_address};
use serde::Serialize;

use self::rendering::{Rendering, bare_pingora, haproxy, nginx};
use crate::{
    case::Case,
    keys::Keys,
    process::{Process, RunMode},
};

/// Size of the file that W4 downloads, in bytes.
pub const BLOB: u64 = 1024 * 1024;

/// A measured program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contestant {
    /// The backend itself, without a proxy.
    Direct,
    /// Signpost.
    Signpost,
    /// Signpost with traces of one request in a hundred. Measured only if it is named.
    SignpostTraced,
    /// Signpost with v1 over a bridge to v2, which changes each response. Measured only if it is named.
    SignpostBridged,
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
    /// One application, over TLS: h2 and HTTP/1.1.
    Tls,
    /// One application that signs headers, in front of versions that take JSON.
    Headers,
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
    pub const ALL: [Self; 9] = [
        Self::Direct,
        Self::NginxMap,
        Self::HaproxyMap,
        Self::NginxLua,
        Self::HaproxyLua,
        Self::BarePingora,
        Self::Signpost,
        Self::SignpostTraced,
        Self::SignpostBridged,
    ];

    /// Whether it is measured without being named.
    pub const fn is_default(self) -> bool {
        !matches!(self, Self::SignpostTraced | Self::SignpostBridged)
    }

    /// Whether it is Signpost, in any configuration.
    pub const fn is_signpost(self) -> bool {
        matches!(
            self,
            Self::Signpost | Self::SignpostTraced | Self::SignpostBridged
        )
    }

    /// Its title in the tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Direct => "straight to the backend",
            Self::Signpost => "Signpost",
            Self::SignpostTraced => "Signpost, 1 % traced",
            Self::SignpostBridged => "Signpost, v1 over a bridge",
            Self::BarePingora => "bare pingora",
            Self::NginxMap => "nginx, map",
            Self::NginxLua => "nginx + Lua, verifying",
            Self::HaproxyMap => "HAProxy, map",
            Self::HaproxyLua => "HAProxy + Lua, verifying",
        }
    }

    /// Whether it verifies signatures.
    pub const fn verifies(self) -> bool {
        self.is_signpost() || matches!(self, Self::NginxLua | Self::HaproxyLua)
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
            Case::W6 => self.is_signpost(),
            // Debian's Lua modules have no SHA-256, so no other contestant verifies a body.
            Case::W13 => self.is_signpost() || matches!(self, Self::NginxMap | Self::HaproxyMap),
            Case::W7 => self.verifies(),
            Case::W8 | Case::W9 | Case::W10 | Case::W11 | Case::W12 => {
                self.is_signpost() || matches!(self, Self::NginxMap | Self::HaproxyMap)
            }
        }
    }

    /// The set-up that it uses for `setup`: to a contestant that does not verify, only TLS makes a difference.
    pub const fn setup(self, setup: Setup) -> Setup {
        match setup {
            Setup::Multi | Setup::Replay | Setup::Headers if !self.verifies() => Setup::Single,
            _ => setup,
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
            Self::Signpost | Self::SignpostTraced | Self::SignpostBridged | Self::BarePingora => {
                None
            }
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
            Contestant::Signpost | Contestant::SignpostTraced | Contestant::SignpostBridged => {
                signpost::configure(contestant, &rendering, environment, keys, path)?
            }
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
