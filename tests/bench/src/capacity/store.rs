//! A new, migrated store of either kind. The Postgres server is durable: it loses no committed data.

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

/// Settings that `scripts/postgres` turns off for tests, and a real server has on.
const DURABLE: [&str; 3] = ["fsync", "full_page_writes", "synchronous_commit"];

/// Timeout until a server applies new settings.
const SETTINGS_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause between two checks of the settings.
const INTERVAL: Duration = Duration::from_millis(20);

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A SQLite file, as the programs use it: WAL, `synchronous = FULL`.
    Sqlite,
    /// A database of a Postgres server on this machine.
    Postgres,
}

impl Kind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    /// Its title in the tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "Postgres",
        }
    }
}

/// The temporary server of `scripts/postgres run`, made as durable as a real one.
pub struct Server {
    /// The administrator address, with the password.
    address: String,
    /// Its process id.
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
    /// Turns the durability settings of the shared server on.
    ///
    /// # Errors
    ///
    /// When the server is unreachable, or does not apply the settings in time.
    ///
    /// # Panics
    ///
    /// When there is no shared server.
    pub fn prepare() -> anyhow::Result<Self> {
        let address = shared_server();
        let session = session(&address)?;
        for setting in DURABLE {
            query(&session, &format!("ALTER SYSTEM SET {setting} = on"))?;
        }
        query(&session, "SELECT pg_reload_conf()")?;
        for setting in DURABLE {
            wait_until_on(&session, setting)?;
        }
        let folder = PathBuf::from(query(&session, "SHOW data_directory")?);
        let file = fs::read_to_string(folder.join("postmaster.pid"))?;
        let id = file.lines().next().context("postmaster.pid is empty")?;
        Ok(Self {
            id: id.parse()?,
            version: query(&session, "SHOW server_version")?,
            address,
        })
    }

    /// Creates a database, and returns its address.
    fn database(&self) -> anyhow::Result<String> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("capacity_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        session(&self.address)?
            .try_query(&format!("CREATE DATABASE {name}"))
            .map_err(|cause| anyhow!("cannot create a database: {cause:?}"))?;
        let (server, _) = self
            .address
            .rsplit_once('/')
            .context("the address has no path")?;
        // Without TLS, whose cost is not measured here.
        Ok(format!("{server}/{name}?sslmode=disable"))
    }
}

fn session(address: &str) -> anyhow::Result<Session> {
    Session::try_open(address).map_err(|cause| anyhow!("cannot connect: {cause:?}"))
}

/// Runs a statement, and returns the first value of its result, or an empty text.
fn query(session: &Session, sql: &str) -> anyhow::Result<String> {
    let response = session.try_query(sql);
    let rows = response.map_err(|cause| anyhow!("{sql}: {cause:?}"))?;
    Ok(rows.values().next().unwrap_or_default().to_owned())
}

fn wait_until_on(session: &Session, setting: &str) -> anyhow::Result<()> {
    let started = Instant::now();
    while query(session, &format!("SHOW {setting}"))? != "on" {
        ensure!(
            started.elapsed() < SETTINGS_TIMEOUT,
            "{setting} is still off"
        );
        thread::sleep(INTERVAL);
    }
    Ok(())
}

/// A new, migrated store. A file is removed with its folder, a database with its server.
pub struct Store {
    /// Its address, as in the `store` setting.
    pub address: String,
    file: Option<PathBuf>,
}

impl Store {
    /// Creates a store; a SQLite file is in `folder`.
    ///
    /// # Errors
    ///
    /// When it cannot be created, or a migration fails.
    pub fn create(kind: Kind, server: Option<&Server>, folder: &Path) -> anyhow::Result<Self> {
        let (address, file) = match kind {
            Kind::Sqlite => {
                let file = folder.join("signpost.db");
                (format!("sqlite:{}", file.display()), Some(file))
            }
            Kind::Postgres => (
                server
                    .context("no Postgres server is running")?
                    .database()?,
                None,
            ),
        };
        let settings = StoreSettings::new(address.parse()?);
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(signpost_store::Store::open(&settings))?;
        Ok(Self { address, file })
    }

    /// Opens its tables.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub fn tables(&self) -> anyhow::Result<Box<dyn Tables>> {
        Ok(match &self.file {
            Some(file) => Box::new(SqliteTables::open(file)?),
            None => Box::new(PostgresTables::open(&self.address)?),
        })
    }
}
