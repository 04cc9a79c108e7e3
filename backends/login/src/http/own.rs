//! What a version has of its own: settings, state, tasks and metrics.
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//!
//! use axum::Json;
//! use login::{
//!     Endpoints, LoginError, Own, Version,
//!     own::{Counter, OwnSettings, OwnState, Start, StartError},
//!     settings::{Read, Section, read_all},
//! };
//!
//! struct V9;
//!
//! impl Version for V9 {
//!     const NAME: &'static str = "v9";
//!     type Settings = Settings;
//!     type State = State;
//!
//!     fn endpoints() -> Endpoints<Self> {
//!         Endpoints::new().get("/next", next)
//!     }
//! }
//!
//! /// `[own]` of its file.
//! struct Settings {
//!     first: u64,
//! }
//!
//! impl OwnSettings for Settings {
//!     const EXAMPLE: &'static str = "[own]\n# The first number.\nfirst = 1\n";
//!
//!     fn read(own: &mut Section<'_>) -> Read<Self> {
//!         read_all!(Settings { first: own.number("first", 1..=100, 1) })
//!     }
//! }
//!
//! struct State {
//!     given: AtomicU64,
//!     /// `signpost_own_v9_numbers_total` in `/metrics`.
//!     numbers: Counter,
//! }
//!
//! impl OwnState<Settings> for State {
//!     async fn start(start: &Start<Settings>) -> Result<Self, StartError> {
//!         let stopping = start.stopping();
//!         start.spawn(async {
//!             // What it does until then.
//!             stopping.await;
//!         });
//!         Ok(Self {
//!             given: AtomicU64::new(0),
//!             numbers: start.counter("numbers", "Numbers that were given")?,
//!         })
//!     }
//! }
//!
//! async fn next(own: Own<V9>) -> Result<Json<u64>, LoginError> {
//!     own.state.numbers.add(1);
//!     Ok(Json(own.settings.first + own.state.given.fetch_add(1, Relaxed)))
//! }
//! ```

use std::{error::Error, sync::Arc};

use signpost_kit::config::{Read, Section};
use tokio::sync::watch;

pub use crate::metrics::own::{Counter, Histogram, MetricError};
use crate::{metrics::own, service::Service};

/// The settings of a version: the keys in the table `[own]` of its file, in `login-all`'s in `[own.NAME]`. They are read as
/// all others: a problem names file, line and key, `check` and `reload` report it with all others, `keys` lists them. A
/// reload applies every key, at once with all others.
pub trait OwnSettings: Sized + Send + Sync + 'static {
    /// An example that explains each key in a comment above it, for the command `keys`: usually the version's file, by
    /// `include_str!`.
    const EXAMPLE: &'static str;

    /// Reads the keys. [`read_all`](crate::settings::read_all) reads all before the first problem ends it.
    ///
    /// # Errors
    ///
    /// A value is invalid. The reader that found it has recorded why.
    fn read(own: &mut Section<'_>) -> Read<Self>;
}

/// No settings: a table `[own]` is unknown.
impl OwnSettings for () {
    const EXAMPLE: &'static str = "";

    fn read(_: &mut Section<'_>) -> Read<Self> {
        Ok(())
    }
}

/// Why a state cannot be made: any error, or a text by `.into()`.
pub type StartError = Box<dyn Error + Send + Sync>;

/// The state of a version with the settings `S`: made once for a process, before the first request, and dropped with it. A reload keeps it.
/// What a client can add to it needs a bound.
pub trait OwnState<S: OwnSettings>: Sized + Send + Sync + 'static {
    /// Makes it.
    ///
    /// # Errors
    ///
    /// The program does not start, and says why.
    fn start(start: &Start<S>) -> impl Future<Output = Result<Self, StartError>> + Send;
}

/// No state.
impl<S: OwnSettings> OwnState<S> for () {
    async fn start(_: &Start<S>) -> Result<Self, StartError> {
        Ok(())
    }
}

/// What a state is made of.
pub struct Start<S> {
    version: &'static str,
    service: Arc<Service>,
    settings: watch::Receiver<Arc<S>>,
}

impl<S: OwnSettings> Start<S> {
    pub(super) const fn new(
        version: &'static str,
        service: Arc<Service>,
        settings: watch::Receiver<Arc<S>>,
    ) -> Self {
        Self {
            version,
            service,
            settings,
        }
    }

    /// The service, under the configuration of the start.
    #[must_use]
    pub const fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// The settings, for a task: `borrow` is the present ones, `changed` waits for a reload.
    #[must_use]
    pub fn settings(&self) -> watch::Receiver<Arc<S>> {
        self.settings.clone()
    }

    /// Makes a counter, which `/metrics` shows as `signpost_own_VERSION_NAME_total`. `help` is one sentence.
    ///
    /// # Errors
    ///
    /// `name` is not 1 to 64 of `[a-z0-9_]` with a letter first, ends in `_total`, or is another metric's.
    pub fn counter(&self, name: &'static str, help: &'static str) -> Result<Counter, MetricError> {
        self.add(name, help, own::counter())
    }

    /// Makes a counter for each word of a label, for example `let [hit, miss] = start.counters("lookups", "Lookups",
    /// "result", ["hit", "miss"])?;`.
    ///
    /// # Errors
    ///
    /// As [`Self::counter`]; or `label` is no such name.
    pub fn counters<const N: usize>(
        &self,
        name: &'static str,
        help: &'static str,
        label: &'static str,
        words: [&'static str; N],
    ) -> Result<[Counter; N], MetricError> {
        self.add(name, help, own::counters(label, words)?)
    }

    /// Makes a histogram of durations, which `/metrics` shows as `signpost_own_VERSION_NAME`.
    ///
    /// # Errors
    ///
    /// As [`Self::counter`]; or `name` does not end in `_seconds`.
    pub fn histogram(
        &self,
        name: &'static str,
        help: &'static str,
    ) -> Result<Histogram, MetricError> {
        self.add(name, help, own::histogram(name)?)
    }

    fn add<T>(
        &self,
        name: &'static str,
        help: &'static str,
        metric: (T, own::Samples),
    ) -> Result<T, MetricError> {
        let metrics = &self.service.state.metrics.own;
        metrics.add(self.version, name, help, metric)
    }

    /// Spawns a task. The end of the process waits for it as for a request in flight, within
    /// `shutdown.grace_seconds`; so it ends soon after [`Self::stopping`].
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.service.state.tasks.spawn(task);
    }

    /// Waits until the process stops: it accepts no more requests, and those in flight may finish.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + 'static + use<S> {
        // Only the state: the service is of the start, and a task must not keep its configuration.
        let state = Arc::clone(&self.service.state);
        async move { state.wait_until_closing().await }
    }
}

#[cfg(test)]
mod both_stores;
