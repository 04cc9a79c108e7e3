//! The versions of a process: each with its own settings and state, which only its own type knows.

use std::{any::TypeId, pin::Pin, sync::Arc};

use anyhow::Context as _;
use signpost_kit::config::{Read, Section};
use signpost_protocol::version::Version as VersionName;
use signpost_store::Schema;
use tokio::sync::{OnceCell, watch};

use super::{
    Own, Version,
    own::{OwnSettings, OwnState, Start},
    router::{Routes, check, name_of, router},
};
use crate::{config::Config, service::Service};

/// The table of the keys that a version has of its own.
const OWN: &str = "own";

/// Joins the routes of several versions.
type Choose = fn(&Config, Vec<(VersionName, Routes)>) -> Routes;

/// The versions that a program serves. Each has its own state, made at the start. Clones share it.
#[derive(Clone)]
#[must_use]
pub struct Versions {
    all: Vec<AnyVersion>,
    /// `None` for a single version.
    choose: Option<Choose>,
}

impl Versions {
    /// One version.
    pub fn one<V: Version>() -> Self {
        let all = vec![AnyVersion::of::<V>()];
        Self { all, choose: None }
    }

    /// Several versions. `choose` gets the routes of each, in the order of [`Self::with`].
    pub fn choosing(choose: Choose) -> Self {
        Self {
            all: Vec::new(),
            choose: Some(choose),
        }
    }

    /// Adds a version.
    pub fn with<V: Version>(mut self) -> Self {
        self.all.push(AnyVersion::of::<V>());
        self
    }

    /// Reads their keys: of one version `[own]`, of several `[own.NAME]`.
    pub(crate) fn read(&self, root: &mut Section<'_>) -> Read<Configured> {
        let read_all = |table: &mut Section<'_>| {
            let read_version = |version: &AnyVersion| {
                let key = self.choose.map_or(OWN, |_| version.name);
                (version.read_keys)(table, key)
            };
            let all: Vec<_> = self.all.iter().map(read_version).collect();
            all.into_iter().collect()
        };
        let has_tables = self.all.iter().any(|version| version.has_settings);
        let versions = match self.choose {
            Some(_) if has_tables => root.section(OWN, read_all)?,
            _ => read_all(root)?,
        };
        Ok(Configured {
            versions,
            choose: self.choose,
        })
    }

    /// The examples that explain their keys.
    pub(crate) fn examples(&self) -> Vec<String> {
        let example = |version: &AnyVersion| match self.choose {
            None => version.example.to_owned(),
            Some(_) => {
                let table = format!("[{OWN}.{}", version.name);
                version.example.replace("[own", &table)
            }
        };
        self.all.iter().map(example).collect()
    }
}

/// The versions of a process with their settings under one configuration.
pub(crate) struct Configured {
    versions: Vec<MakeRoutes>,
    choose: Option<Choose>,
}

impl Configured {
    /// The routes under this configuration. The first call makes the states.
    ///
    /// # Errors
    ///
    /// A version's name or endpoints cannot be served, or its state cannot be made.
    pub(crate) async fn routes(self, service: &Arc<Service>) -> anyhow::Result<Routes> {
        let mut all = Vec::new();
        for make_routes in self.versions {
            all.push(make_routes(Arc::clone(service)).await?);
        }
        Ok(match self.choose {
            Some(choose) => choose(service.config(), all),
            None => all.remove(0).1,
        })
    }
}

/// A version of any type.
#[derive(Clone)]
struct AnyVersion {
    name: &'static str,
    has_settings: bool,
    example: &'static str,
    read_keys: Arc<ReadKeys>,
}

/// Reads a version's keys in the table with this name, if it has keys.
type ReadKeys = dyn Fn(&mut Section<'_>, &str) -> Read<MakeRoutes> + Send + Sync;

/// Makes the routes of a version under the configuration whose keys were read.
type MakeRoutes = Box<dyn FnOnce(Arc<Service>) -> MadeRoutes + Send + Sync>;
type MadeRoutes = Pin<Box<dyn Future<Output = anyhow::Result<(VersionName, Routes)>> + Send>>;

impl AnyVersion {
    fn of<V: Version>() -> Self {
        let has_settings = TypeId::of::<V::Settings>() != TypeId::of::<()>();
        // Filled by the first configuration, and shared with all that follow.
        let process = Arc::new(OnceCell::new());
        let read_keys = move |outer: &mut Section<'_>, key: &str| {
            let settings = match has_settings {
                true => outer.section(key, V::Settings::read)?,
                // Reads nothing, so that the table is unknown.
                false => V::Settings::read(outer)?,
            };
            let (process, settings) = (Arc::clone(&process), Arc::new(settings));
            let make_routes: MakeRoutes =
                Box::new(|service| Box::pin(routes::<V>(process, settings, service)));
            Ok(make_routes)
        };
        Self {
            name: V::NAME,
            has_settings,
            example: V::Settings::EXAMPLE,
            read_keys: Arc::new(read_keys),
        }
    }
}

/// What a version has for a process.
struct Started<V: Version> {
    state: Arc<V::State>,
    /// The settings of the current configuration, for tasks.
    settings: watch::Sender<Arc<V::Settings>>,
}

/// The routes of a version under a configuration. The first call for a process makes the state.
async fn routes<V: Version>(
    process: Arc<OnceCell<Started<V>>>,
    settings: Arc<V::Settings>,
    service: Arc<Service>,
) -> anyhow::Result<(VersionName, Routes)> {
    let endpoints = V::endpoints();
    check::<V>(&endpoints)?;
    let name = name_of::<V>()?;
    let start = async || {
        // Before the state: its start may read the tables.
        let tables = prepare_tables::<V>(&service).await;
        tables.with_context(|| format!("version {name} cannot use its tables"))?;
        let sender = watch::Sender::new(Arc::clone(&settings));
        let start = Start::new(V::NAME, Arc::clone(&service), sender.subscribe());
        let state = V::State::start(&start).await;
        let state = state.map_err(anyhow::Error::from_boxed);
        let state = state.with_context(|| format!("version {name} cannot start"))?;
        anyhow::Ok(Started {
            state: Arc::new(state),
            settings: sender,
        })
    };
    let started = process.get_or_try_init(start).await?;
    started.settings.send_replace(Arc::clone(&settings));
    let own = Own {
        settings,
        state: Arc::clone(&started.state),
    };
    let routes = router::<V>(Arc::clone(&service), own, endpoints)?;
    Ok((name, routes))
}

/// Migrates a version's tables, and has them swept.
async fn prepare_tables<V: Version>(service: &Service) -> anyhow::Result<()> {
    let (store, config) = (&service.state.database, service.config());
    if let Some(schema) = const { schema::<V>() } {
        store.migrate(&schema, &config.store.program).await?;
    }
    for sweep in V::SWEEPS {
        // Here and not in the sweeper: a misspelt column ends the start, instead of failing each minute.
        sweep.check(V::NAME, store).await?;
    }
    service.state.sweep(V::SWEEPS);
    Ok(())
}

const fn schema<V: Version>() -> Option<Schema<'static>> {
    if V::MIGRATIONS.is_empty() {
        None
    } else {
        Some(Schema::new(V::NAME, V::MIGRATIONS).needs(V::NEEDS))
    }
}
