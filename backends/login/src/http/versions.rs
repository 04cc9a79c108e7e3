//! The versions of a process: each with its own settings and state, which only its own type knows.

use std::{any::TypeId, sync::Arc};

use anyhow::Context as _;
use async_trait::async_trait;
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
pub struct Versions {
    all: Vec<Arc<dyn AnyVersion>>,
    /// `None` for a single version.
    choose: Option<Choose>,
}

impl Versions {
    /// One version.
    #[must_use]
    pub fn one<V: Version>() -> Self {
        let none = Self {
            all: Vec::new(),
            choose: None,
        };
        none.with::<V>()
    }

    /// Several versions. `choose` gets the routes of each, in the order of [`Self::with`].
    #[must_use]
    pub fn choosing(choose: Choose) -> Self {
        Self {
            all: Vec::new(),
            choose: Some(choose),
        }
    }

    /// Adds a version.
    #[must_use]
    pub fn with<V: Version>(mut self) -> Self {
        self.all.push(Arc::new(OfProcess::<V>::default()));
        self
    }

    /// Reads their keys: of one version `[own]`, of several `[own.NAME]`.
    pub(crate) fn read(&self, root: &mut Section<'_>) -> Read<Configured> {
        let read = |table: &mut Section<'_>| {
            let key = |version: &dyn AnyVersion| self.choose.map_or(OWN, |_| version.name());
            let all = self.all.iter();
            let all: Vec<_> = all
                .map(|version| Arc::clone(version).read(table, key(&**version)))
                .collect();
            all.into_iter().collect()
        };
        let has_tables = self.all.iter().any(|version| version.has_settings());
        let versions = match self.choose {
            Some(_) if has_tables => root.section(OWN, read)?,
            _ => read(root)?,
        };
        Ok(Configured {
            versions,
            choose: self.choose,
        })
    }

    /// The examples that explain their keys.
    pub(crate) fn examples(&self) -> Vec<String> {
        let example = |version: &Arc<dyn AnyVersion>| match self.choose {
            None => version.example().to_owned(),
            Some(_) => {
                let table = format!("[{OWN}.{}", version.name());
                version.example().replace("[own", &table)
            }
        };
        self.all.iter().map(example).collect()
    }
}

/// The versions of a process with their settings under one configuration.
pub(crate) struct Configured {
    versions: Vec<Box<dyn AnyConfigured>>,
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
        for version in self.versions {
            all.push(version.routes(service).await?);
        }
        Ok(match self.choose {
            Some(choose) => choose(service.config(), all),
            None => all.remove(0).1,
        })
    }
}

/// A version of any type.
trait AnyVersion: Send + Sync {
    fn name(&self) -> &'static str;

    fn has_settings(&self) -> bool;

    fn example(&self) -> &'static str;

    /// Reads its keys in the table with the name `key`, if it has keys.
    fn read(self: Arc<Self>, outer: &mut Section<'_>, key: &str) -> Read<Box<dyn AnyConfigured>>;
}

/// A version of any type with its settings under one configuration.
#[async_trait]
trait AnyConfigured: Send {
    async fn routes(
        self: Box<Self>,
        service: &Arc<Service>,
    ) -> anyhow::Result<(VersionName, Routes)>;
}

/// What a version has for a process.
struct OfProcess<V: Version>(OnceCell<Started<V>>);

impl<V: Version> Default for OfProcess<V> {
    fn default() -> Self {
        Self(OnceCell::new())
    }
}

struct Started<V: Version> {
    state: Arc<V::State>,
    /// The settings of the current configuration, for tasks.
    settings: watch::Sender<Arc<V::Settings>>,
}

struct WithSettings<V: Version> {
    version: Arc<OfProcess<V>>,
    settings: Arc<V::Settings>,
}

impl<V: Version> AnyVersion for OfProcess<V> {
    fn name(&self) -> &'static str {
        V::NAME
    }

    fn has_settings(&self) -> bool {
        TypeId::of::<V::Settings>() != TypeId::of::<()>()
    }

    fn example(&self) -> &'static str {
        V::Settings::EXAMPLE
    }

    fn read(self: Arc<Self>, outer: &mut Section<'_>, key: &str) -> Read<Box<dyn AnyConfigured>> {
        let settings = if self.has_settings() {
            outer.section(key, V::Settings::read)?
        } else {
            // Reads nothing, so that the table is unknown.
            V::Settings::read(outer)?
        };
        Ok(Box::new(WithSettings {
            version: self,
            settings: Arc::new(settings),
        }))
    }
}

#[async_trait]
impl<V: Version> AnyConfigured for WithSettings<V> {
    async fn routes(
        self: Box<Self>,
        service: &Arc<Service>,
    ) -> anyhow::Result<(VersionName, Routes)> {
        let Self { version, settings } = *self;
        let endpoints = V::endpoints();
        check::<V>(&endpoints)?;
        let name = name_of::<V>()?;
        let start = async || {
            let tables = prepare_tables::<V>(service).await;
            tables.with_context(|| format!("version {name} cannot use its tables"))?;
            let sender = watch::Sender::new(Arc::clone(&settings));
            let start = Start::new(V::NAME, Arc::clone(service), sender.subscribe());
            let state = V::State::start(&start).await;
            let state = state.map_err(anyhow::Error::from_boxed);
            let state = state.with_context(|| format!("version {name} cannot start"))?;
            anyhow::Ok(Started {
                state: Arc::new(state),
                settings: sender,
            })
        };
        let started = version.0.get_or_try_init(start).await?;
        started.settings.send_replace(Arc::clone(&settings));
        let own = Own {
            settings,
            state: Arc::clone(&started.state),
        };
        let routes = router::<V>(Arc::clone(service), own, endpoints)?;
        Ok((name, routes))
    }
}

/// Migrates a version's tables, and has them swept.
async fn prepare_tables<V: Version>(service: &Service) -> anyhow::Result<()> {
    let (store, config) = (&service.state.database, service.config());
    if let Some(schema) = const { schema::<V>() } {
        store.migrate(&schema, &config.store.program).await?;
    }
    for sweep in V::SWEEPS {
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
