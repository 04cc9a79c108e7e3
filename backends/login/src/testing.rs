//! Tests of a version: its endpoints behind all layers, over a store of the test's own.
//!
//! ```
//! use login::testing::TestService;
//! # use login::Version;
//! # struct V9;
//! # impl Version for V9 { const NAME: &'static str = "v9"; type Settings = (); type State = (); }
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let service = TestService::new::<V9>().await;
//! let user = service.logged_in("ada").get("/user").await;
//! assert_eq!((user.status, &user.json()["username"]), (200, &"ada".into()));
//! assert_eq!(service.get("/user").await.problem(), "authorization_missing");
//! # });
//! ```
//!
//! Such a test stands in a module with the name `both_stores`: `SIGNPOST_TEST_STORE` chooses SQLite or Postgres.

mod client;
#[cfg(test)]
mod fixtures;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::HeaderMap;
use serde_json::Value;
use signpost_kit::{
    clock::{Clock as _, ManualClock, Timestamp},
    config::keys::testing::assert_explained,
    log::show_errors_in_test,
    metrics::Metrics,
    server::shutdown::Phase,
};
use signpost_protocol::app::AppId;
use signpost_store::{Store, testing::TestStore as Database, values};
use tokio::sync::Mutex as AsyncMutex;

pub use self::client::{TestClient, TestRequest, TestResponse};
#[cfg(test)]
pub(crate) use self::fixtures::{
    Faults, TestStore, config, config_text_with_provider, parse, try_store,
};
use crate::{
    config::Config,
    http::{Configured, Routes, Version, Versions, document_and_routes},
    program,
    records::{
        accounts::{Account, AccountId, User, Username},
        credentials::{CredentialClaims, NewCredential, random_credential},
    },
    service::Service,
};

/// Above the text of a test's configuration. Nothing calls the provider.
const CONFIG: &str = "prefix = \"Acme\"\nproviders.sandbox = { kind = \"bitbucket\", url = \"http://127.0.0.1:1\", \
     client_id = \"id\", client_secret = \"secret\" }\n";

/// Reads a configuration file of a version, and checks that its [example](crate::own::OwnSettings::EXAMPLE) explains each
/// key of its own, with the default.
///
/// # Panics
///
/// The file is invalid, or a key is not explained.
#[must_use]
pub fn example<V: Version>(file: &str) -> Config {
    example_of(&Versions::one::<V>(), file)
}

/// As [`example`], of several versions.
///
/// # Panics
///
/// As [`example`].
#[must_use]
pub fn example_of(versions: &Versions, file: &str) -> Config {
    let examples = versions.examples();
    let keys = Config::keys(|root| versions.read(root), &examples);
    let examples: Vec<_> = examples.iter().map(String::as_str).collect();
    assert_explained(&keys, &examples);
    let loaded = Config::load(Path::new(file), |root| versions.read(root));
    loaded.unwrap_or_else(|error| panic!("{error}")).config.0
}

/// The document of a version, `GET /openapi.json`. It describes each endpoint, and nothing else.
///
/// # Panics
///
/// An endpoint is not [described](crate::Endpoints::described), or a type of its response is missing.
#[must_use]
pub fn description<V: Version>() -> Value {
    let (config, _) = read(&Versions::one::<V>(), "");
    let written = document_and_routes::<V>(&config);
    let (document, routes) = written.unwrap_or_else(|error| panic!("{error}"));
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for method in ["get", "post"] {
            if item.get(method).is_some() {
                described.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    assert_eq!(described, routes, "described, and served");
    for reference in document.to_string().split(r##""$ref":"#"##).skip(1) {
        let pointer = reference.split('"').next().unwrap_or_default();
        assert!(document.pointer(pointer).is_some(), "there is no {pointer}");
    }
    document
}

/// An account of the provider `bitbucket`, created 5 ms after 1970 began.
///
/// # Panics
///
/// The name is none that a provider has.
#[must_use]
pub fn account(username: &str) -> Account {
    Account {
        id: AccountId::new(7),
        username: self::username(username),
        provider: "bitbucket".to_owned(),
        display_name: None,
        email: None,
        created_at: Timestamp::from_millis(5),
    }
}

/// A user without a display name.
pub(crate) fn user(username: &str) -> User {
    User {
        username: self::username(username),
        display_name: None,
        email: None,
    }
}

fn username(name: &str) -> Username {
    Username::new(name.to_owned()).expect("a name that a provider can have")
}

/// A service for one test, without a network, with a store and a clock of its own. Requests reach it as a gateway forwards
/// them.
pub struct TestService {
    versions: Versions,
    snapshot: Mutex<(Arc<Service>, Routes)>,
    clock: ManualClock,
    /// Those that clients have used, by ident.
    applications: AsyncMutex<BTreeMap<String, AppId>>,
    // Last: it is removed when nothing uses it any more.
    _database: Database,
}

impl TestService {
    /// The service of a version, with the default settings.
    ///
    /// # Panics
    ///
    /// As [`Self::of`].
    pub async fn new<V: Version>() -> Self {
        Self::with::<V>("").await
    }

    /// The service of a version with these lines of TOML in its configuration, for example `[own]` and keys.
    ///
    /// # Panics
    ///
    /// As [`Self::of`].
    pub async fn with<V: Version>(toml: &str) -> Self {
        Self::of(Versions::one::<V>(), toml).await
    }

    /// The service of these versions.
    ///
    /// # Panics
    ///
    /// The configuration is invalid, or a version cannot start.
    pub async fn of(versions: Versions, toml: &str) -> Self {
        let started = Self::try_of(versions, toml).await;
        started.unwrap_or_else(|error| panic!("{error:#}"))
    }

    pub(crate) async fn try_of(versions: Versions, toml: &str) -> anyhow::Result<Self> {
        show_errors_in_test();
        let (config, configured) = read(&versions, toml);
        let database = Database::chosen();
        let (store, clock) = (database.open().await, ManualClock::default());
        // An error means that another test has installed one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let service = Service::new(config, &store, Arc::new(clock.clone()));
        let service = service.expect("an HTTP client can be created");
        let routes = configured.routes(&service).await?;
        Ok(Self {
            versions,
            snapshot: Mutex::new((service, routes)),
            clock,
            applications: AsyncMutex::default(),
            _database: database,
        })
    }

    /// Replaces the configuration, as a reload does: requests from now on use it, and state stays.
    ///
    /// # Panics
    ///
    /// The configuration is invalid.
    pub async fn reload(&self, toml: &str) {
        let (config, configured) = read(&self.versions, toml);
        let service = self.service().reloaded(config).expect("a client");
        let routes = configured.routes(&service).await;
        let routes = routes.unwrap_or_else(|error| panic!("{error:#}"));
        *self.lock() = (service, routes);
    }

    /// Stops, as a program does: tasks are told so, and this waits until they have ended.
    pub async fn stop(&self) {
        let state = Arc::clone(&self.service().state);
        state.phase.send_replace(Phase::Closing);
        state.tasks.close();
        state.tasks.wait().await;
    }

    /// Moves the clock, which stands still otherwise.
    pub fn advance(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    /// Deletes the rows whose time has come, as a program does once a minute.
    ///
    /// # Panics
    ///
    /// The store is unavailable.
    pub async fn sweep(&self) {
        let swept = program::sweep(&self.service()).await;
        swept.expect("the store is available");
    }

    /// The service under the present configuration.
    pub fn service(&self) -> Arc<Service> {
        Arc::clone(&self.lock().0)
    }

    fn routes(&self) -> Routes {
        self.lock().1.clone()
    }

    /// What `/metrics` shows of requests, logins and versions.
    pub fn metrics(&self) -> String {
        let counted = Arc::clone(&self.service().state.metrics);
        let metrics = Metrics::default().with(move |scrape| counted.write(scrape));
        metrics.response(&HeaderMap::new()).into_body()
    }

    /// A client in which this user is logged in. The account is created with its first request.
    pub fn logged_in(&self, username: &str) -> TestClient<'_> {
        TestClient::new(self, Some(user(username)))
    }

    /// A GET by a client without a login.
    pub fn get(&self, target: &str) -> TestRequest<'_> {
        self.client().get(target)
    }

    /// A POST by a client without a login.
    pub fn post<const N: usize>(&self, path: &str, form: [(&str, &str); N]) -> TestRequest<'_> {
        self.client().post(path, form)
    }

    fn client(&self) -> TestClient<'_> {
        TestClient::new(self, None)
    }

    /// The id of an application, which is created if there is none.
    async fn application(&self, ident: &str) -> AppId {
        let mut all = self.applications.lock().await;
        if let Some(id) = all.get(ident) {
            return *id;
        }
        let store = self.service().state.database.clone();
        let id = insert_application(&store, ident, "[]").await;
        all.insert(ident.to_owned(), id);
        id
    }

    /// Creates the account if there is none, and returns a credential, as the last step of a login.
    async fn log_in(&self, user: &User, application: AppId) -> String {
        let (service, now) = (self.service(), self.clock.now());
        let (state, config) = (&service.state, service.config());
        let provider = &config.providers.all[0];
        let account = state.accounts.find_or_create(&provider.name, user, now);
        let credential = random_credential();
        let logged_in = CredentialClaims {
            account: account.await.expect("the store is available").0,
            application,
            expires_at: now.plus(config.lifetimes.credential),
        };
        let new = NewCredential {
            hash: credential.hash(),
            login: credential.login_hash(),
            logged_in,
            created_at: now,
            outcome: None,
        };
        let stored = state.credentials.insert(new).await;
        stored.expect("the store is available");
        credential.encode().to_string()
    }

    fn lock(&self) -> MutexGuard<'_, (Arc<Service>, Routes)> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(versions: &Versions, toml: &str) -> (Config, Configured) {
    let text = format!("{CONFIG}{toml}");
    let parsed = Config::parse(Path::new("test.toml"), &text, |root| versions.read(root));
    parsed.unwrap_or_else(|error| panic!("{error}")).config
}

/// Inserts an application as the gateway does.
async fn insert_application(store: &Store, name: &str, origins: &str) -> AppId {
    // SQLite numbers parameters by their first appearance.
    let insert = "INSERT INTO applications (ident, name, state, created_at, key_sealed, return_to_origins) \
                  VALUES ($1, $1, 'active', 0, $2, $3) RETURNING id";
    let inserted = store.write(insert, values![name, &[0], origins]).await;
    let id = inserted.expect("the store is available").pop();
    AppId::new(id.map(|(id,)| id).expect("a new ident"))
}
