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

#[cfg(test)]
mod fixtures;

use std::{
    future::IntoFuture,
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::body::{Body, to_bytes};
use http::{HeaderMap, Request, header::CONTENT_TYPE};
use serde_json::Value;
use signpost_kit::{
    clock::{Clock as _, ManualClock, Timestamp},
    metrics::Metrics,
    server::shutdown::Phase,
};
use signpost_protocol::{app::AppId, header::X_GATEWAY_APP_ID};
use signpost_store::testing::TestStore as Database;
use tokio::sync::OnceCell;
use url::form_urlencoded::Serializer;

#[cfg(test)]
pub(crate) use self::fixtures::{TestStore, config, config_text_with_provider, parse};
use crate::{
    config::Config,
    http::{Configured, Routes, Version, Versions},
    program,
    records::{
        accounts::{Account, AccountId, Username},
        credentials::{CredentialClaims, NewCredential, random_credential},
    },
    service::{Service, Stores},
};

/// Above the text of a test's configuration. Nothing calls the provider.
const CONFIG: &str = "prefix = \"Acme\"\nproviders.sandbox = { kind = \"bitbucket\", auth_url = \"http://127.0.0.1:1\", \
     api_url = \"http://127.0.0.1:1\", client_id = \"id\", client_secret = \"secret\" }\n";

const FORM: &str = "application/x-www-form-urlencoded";

/// Limit of a response's body: far above what an endpoint answers.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Reads a configuration file of a version.
///
/// # Panics
///
/// It is invalid.
#[must_use]
pub fn example<V: Version>(file: &str) -> Config {
    example_of(&Versions::one::<V>(), file)
}

/// Reads a configuration file of several versions.
///
/// # Panics
///
/// It is invalid.
#[must_use]
pub fn example_of(versions: &Versions, file: &str) -> Config {
    let loaded = Config::load(Path::new(file), |root| versions.read(root));
    loaded.unwrap_or_else(|error| panic!("{error}")).config.0
}

/// An account of the provider kind `bitbucket`, created 5 ms after 1970 began.
///
/// # Panics
///
/// The name is none that a provider has.
#[must_use]
pub fn account(username: &str) -> Account {
    Account {
        id: AccountId::new(7),
        username: self::username(username),
        kind: "bitbucket".to_owned(),
        created_at: Timestamp::from_millis(5),
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
        let (config, configured) = read(&versions, toml);
        let database = Database::chosen();
        let (store, clock) = (database.open().await, ManualClock::default());
        // An error means that another test has installed one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let service = Service::new(config, Stores::new(&store), Arc::new(clock.clone()));
        let service = service.expect("an HTTP client can be created");
        let routes = configured.routes(&service).await?;
        Ok(Self {
            versions,
            snapshot: Mutex::new((service, routes)),
            clock,
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
        let service = self.service().reloaded(config);
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

    /// What `/metrics` shows of requests, logins and versions.
    pub fn metrics(&self) -> String {
        let counted = Arc::clone(&self.service().state.metrics);
        let metrics = Metrics::default().with(move |scrape| counted.write(scrape));
        metrics.response(&HeaderMap::new()).into_body()
    }

    /// A client in which this user is logged in. The account is created with its first request.
    pub fn logged_in(&self, username: &str) -> TestClient<'_> {
        let login = TestLogin {
            username: self::username(username),
            authorization: OnceCell::new(),
        };
        TestClient {
            service: self,
            login: Some(Arc::new(login)),
        }
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
        TestClient {
            service: self,
            login: None,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Arc<Service>, Routes)> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(versions: &Versions, toml: &str) -> (Config, Configured) {
    let text = format!("{CONFIG}{toml}");
    let parsed = Config::parse(Path::new("test.toml"), &text, |root| versions.read(root));
    parsed.unwrap_or_else(|error| panic!("{error}")).config
}

/// A client of the service: the single application's.
#[derive(Clone)]
pub struct TestClient<'s> {
    service: &'s TestService,
    login: Option<Arc<TestLogin>>,
}

struct TestLogin {
    username: Username,
    /// The credential, from the first request on.
    authorization: OnceCell<String>,
}

impl<'s> TestClient<'s> {
    /// A GET. `target` can have a query.
    #[must_use]
    pub fn get(&self, target: &str) -> TestRequest<'s> {
        self.request("GET", target, String::new())
    }

    /// A POST with a form.
    #[must_use]
    pub fn post<const N: usize>(&self, path: &str, form: [(&str, &str); N]) -> TestRequest<'s> {
        let form = Serializer::new(String::new()).extend_pairs(form).finish();
        self.request("POST", path, form)
    }

    fn request(&self, method: &'static str, target: &str, form: String) -> TestRequest<'s> {
        TestRequest {
            client: self.clone(),
            method,
            target: target.to_owned(),
            is_signed: !form.is_empty() || target.contains('?'),
            form,
            headers: Vec::new(),
        }
    }

    async fn authorization(&self) -> Option<&str> {
        let login = self.login.as_ref()?;
        let log_in = || self.service.log_in(&login.username);
        Some(login.authorization.get_or_init(log_in).await)
    }
}

impl TestService {
    /// Creates the account if there is none, and returns a credential, as the last step of a login.
    async fn log_in(&self, username: &Username) -> String {
        let (service, now) = (self.service(), self.clock.now());
        let (state, config) = (&service.state, service.config());
        let provider = &config.providers.all[0];
        let account = state
            .accounts
            .find_or_create(&provider.name, &provider.kind, username, now);
        let credential = random_credential();
        let logged_in = CredentialClaims {
            account: account.await.expect("the store is available").0,
            application: AppId::SINGLE,
            expires_at: now.plus(config.lifetimes.credential),
        };
        let new = NewCredential {
            hash: credential.hash(),
            logged_in,
            created_at: now,
        };
        let stored = state.credentials.store.insert(new).await;
        stored.expect("the store is available");
        credential.encode().to_string()
    }
}

/// A request, which `.await` sends. One with parameters is signed, as a gateway accepts no other.
#[must_use]
pub struct TestRequest<'s> {
    client: TestClient<'s>,
    method: &'static str,
    target: String,
    form: String,
    is_signed: bool,
    headers: Vec<(&'static str, String)>,
}

impl<'s> TestRequest<'s> {
    /// Signs it, though it has no parameters.
    pub fn signed(mut self) -> Self {
        self.is_signed = true;
        self
    }

    /// Does not sign it, though it has parameters, as on the gateway's `sign.callback_paths`.
    pub fn unsigned(mut self) -> Self {
        self.is_signed = false;
        self
    }

    /// Adds a header, for example `acme-x-language`.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    async fn send(self) -> TestResponse {
        let mut target = self.target;
        if self.is_signed {
            // The service trusts the gateway, which has verified it.
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str("time=1&sign=verified");
        }
        let mut request = Request::builder().method(self.method).uri(target);
        request = request.header(X_GATEWAY_APP_ID, AppId::SINGLE.get());
        let service = self.client.service.service();
        if let Some(authorization) = self.client.authorization().await {
            request = request.header(&service.config().headers.authorization, authorization);
        }
        if !self.form.is_empty() {
            request = request.header(CONTENT_TYPE, FORM);
        }
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(self.form)).expect("a valid target");
        let routes = self.client.service.lock().1.clone();
        let (parts, body) = routes.serve(request).await.into_parts();
        let body = to_bytes(body, MAX_BODY_BYTES).await.expect("a short body");
        TestResponse {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8(body.into()).expect("text"),
        }
    }
}

impl<'s> IntoFuture for TestRequest<'s> {
    type Output = TestResponse;
    type IntoFuture = Pin<Box<dyn Future<Output = TestResponse> + Send + 's>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// The response to a request.
#[derive(Debug)]
pub struct TestResponse {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: String,
}

impl TestResponse {
    /// The body, parsed.
    ///
    /// # Panics
    ///
    /// It is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.body);
        parsed.unwrap_or_else(|_| panic!("not JSON: {} {}", self.status, self.body))
    }

    /// The code of the problem; empty if it is none.
    ///
    /// # Panics
    ///
    /// As [`Self::json`].
    #[must_use]
    pub fn problem(&self) -> String {
        let code = self.json()["code"].as_str().map(str::to_owned);
        code.unwrap_or_default()
    }
}
