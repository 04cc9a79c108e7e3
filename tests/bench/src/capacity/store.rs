//! A store of either kind, new and migrated; on a server that loses nothing that it has answered for.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, ensure};
use clap::ValueEnum;
use end_to_end::postgres::{Session, shared_server};
use serde::Serialize;
use signpost_store::StoreSettings;
use tokio::runtime;

use super::tables::{PostgresTables, SqliteTables, Tables};

/// What `scripts/postgres` leaves off for tests, and what a real server has on.
const DURABLE: [&str; 3] = ["fsync", "full_page_writes", "synchronous_commit"];

/// How long a server may take to go by new settings.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between two looks at it.
const INTERVAL: Duration = Duration::from_millis(20);

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A file, as the programs use it: WAL, `synchronous = FULL`.
    Sqlite,
    /// A database of a server on this machine.
    Postgres,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    /// What tables call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "Postgres",
        }
    }
}

/// The throw-away server that `scripts/postgres run` has started, as durable as one that is kept.
pub struct Server {
    /// An administrator's, with the password in it.
    address: String,
    /// The number of its first process.
    pub id: u32,
    /// Its version.
    pub version: String,
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Server({})", self.id)
    }
}

impl Server {
    /// Makes it durable.
    ///
    /// # Errors
    ///
    /// It does not become so.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn prepare() -> anyhow::Result<Self> {
        let address = shared_server();
        let session = session(&address)?;
        for setting in DURABLE {
            ask(&session, &format!("ALTER SYSTEM SET {setting} = on"))?;
        }
        ask(&session, "SELECT pg_reload_conf()")?;
        for setting in DURABLE {
            wait_until_on(&session, setting)?;
        }
        let folder = PathBuf::from(ask(&session, "SHOW data_directory")?);
        let file = fs::read_to_string(folder.join("postmaster.pid"))?;
        let id = file.lines().next().context("no process's number")?;
        Ok(Self {
            id: id.parse()?,
            version: ask(&session, "SHOW server_version")?,
            address,
        })
    }

    /// Makes a database, and gives its address.
    fn database(&self) -> anyhow::Result<String> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("capacity_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        session(&self.address)?
            .try_query(&format!("CREATE DATABASE {name}"))
            .map_err(|cause| anyhow!("no database can be made: {cause:?}"))?;
        let (server, _) = self.address.rsplit_once('/').context("no address")?;
        // What TLS costs on the way to a server is not the question here.
        Ok(format!("{server}/{name}?sslmode=disable"))
    }
}

fn session(address: &str) -> anyhow::Result<Session> {
    Session::try_open(address).map_err(|cause| anyhow!("cannot connect: {cause:?}"))
}

/// The first value that a statement answers, or an empty text.
fn ask(session: &Session, sql: &str) -> anyhow::Result<String> {
    let answer = session.try_query(sql);
    let rows = answer.map_err(|cause| anyhow!("{sql}: {cause:?}"))?;
    Ok(rows.values().next().unwrap_or_default().to_owned())
}

fn wait_until_on(session: &Session, setting: &str) -> anyhow::Result<()> {
    let started = Instant::now();
    while ask(session, &format!("SHOW {setting}"))? != "on" {
        ensure!(started.elapsed() < PATIENCE, "{setting} is still off");
        thread::sleep(INTERVAL);
    }
    Ok(())
}

/// A new store, migrated. A file goes with its folder, a database with its server.
pub struct Store {
    /// As the `store` setting names it.
    pub address: String,
    file: Option<PathBuf>,
}

impl Store {
    /// Makes one; a file of it is in `folder`.
    ///
    /// # Errors
    ///
    /// It cannot be made, or a migration fails.
    pub fn create(kind: Kind, server: Option<&Server>, folder: &Path) -> anyhow::Result<Self> {
        let (address, file) = match kind {
            Kind::Sqlite => {
                let file = folder.join("signpost.db");
                (format!("sqlite:{}", file.display()), Some(file))
            }
            Kind::Postgres => (server.context("no server runs")?.database()?, None),
        };
        let settings = StoreSettings::new(address.parse()?);
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(signpost_store::Store::open(&settings))?;
        Ok(Self { address, file })
    }

    /// Its tables.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub fn tables(&self) -> anyhow::Result<Box<dyn Tables>> {
        Ok(match &self.file {
            Some(file) => Box::new(SqliteTables::open(file)?),
            None => Box::new(PostgresTables::open(&self.address)?),
        })
    }
}
