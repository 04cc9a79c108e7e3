//! An application's client: signs its calls and sends them.

mod call;

use std::{net::Ipv4Addr, time::Duration};

use reqwest::{Client, ClientBuilder, Method, redirect};

pub use self::call::Call;
use crate::{response::Response, signer::Profile};

/// A client with its key.
#[derive(Clone, Debug)]
pub struct SignedClient {
    http: Client,
    base: String,
    /// The prefix of the headers, for example `Acme`.
    pub prefix: String,
    /// The application's ident, in multi-application mode.
    pub app: Option<String>,
    /// The application's key.
    pub key: String,
    /// How the application signs.
    pub profile: Profile,
}

impl SignedClient {
    /// A client of the gateway at `base`, an origin without a slash at its end.
    #[must_use]
    pub fn new(base: &str, key: &str) -> Self {
        Self {
            http: http_client(),
            base: base.to_owned(),
            prefix: "Acme".to_owned(),
            app: None,
            key: key.to_owned(),
            profile: Profile::default(),
        }
    }

    /// The same client, with a new connection for every call, so that no idle connection can fail.
    ///
    /// # Panics
    ///
    /// See [`http_client`].
    #[must_use]
    pub fn without_keep_alive(&self) -> Self {
        Self {
            http: http_client_without_keep_alive(),
            ..self.clone()
        }
    }

    /// The same client, for the application with this ident.
    #[must_use]
    pub fn with_app(&self, app: &str) -> Self {
        Self {
            app: Some(app.to_owned()),
            ..self.clone()
        }
    }

    /// The same client with another key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self {
            key: key.to_owned(),
            ..self.clone()
        }
    }

    /// The same client, with another sign profile.
    #[must_use]
    pub fn with_profile(&self, profile: Profile) -> Self {
        Self {
            profile,
            ..self.clone()
        }
    }

    /// A call with GET.
    pub fn get(&self, path: &str) -> Call<'_> {
        self.call(Method::GET, path)
    }

    /// A call with POST.
    pub fn post(&self, path: &str) -> Call<'_> {
        self.call(Method::POST, path)
    }

    /// The URL that starts a redirect login in a browser.
    ///
    /// A navigation cannot set a header, so in multi-application mode `app` is a parameter.
    #[must_use]
    pub fn login_url(&self, params: &[(&str, &str)]) -> String {
        let mut call = self.get("/login");
        if let Some(app) = &self.app {
            call = call.param("app", app);
        }
        params
            .iter()
            .fold(call, |call, (name, value)| call.param(name, value))
            .url()
    }

    /// A call with any method.
    pub fn call(&self, method: Method, path: &str) -> Call<'_> {
        let mut call = Call::new(self, method, path);
        if let Some(app) = &self.app {
            call = call.convention("App", app);
        }
        call
    }
}

/// A plain HTTP client: no redirects, no proxy, no cookies.
///
/// # Panics
///
/// When the TLS library behind it cannot start.
#[must_use]
pub fn http_client() -> Client {
    client_builder()
        .build()
        .expect("a client without options can be built")
}

/// The same, with a new connection for every request.
///
/// # Panics
///
/// See [`http_client`].
#[must_use]
pub fn http_client_without_keep_alive() -> Client {
    client_builder()
        .pool_max_idle_per_host(0)
        .build()
        .expect("a client with this option can be built")
}

fn client_builder() -> ClientBuilder {
    // Fails if another test has installed it already, which is just as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .timeout(Duration::from_secs(60))
        .tls_certs_only([])
        // As in browsers, a name below localhost is this machine (RFC 6761 section 6.3). Port 0 is the URL's own.
        .resolve("provider.localhost", (Ipv4Addr::LOCALHOST, 0).into())
}

/// Sends an unsigned GET.
///
/// # Panics
///
/// When no response comes.
pub async fn fetch(url: &str) -> Response {
    Response::read(
        http_client()
            .get(url)
            .send()
            .await
            .expect("the server answers"),
    )
    .await
}

/// Sends an unsigned POST of a form.
///
/// # Panics
///
/// When no response comes.
pub async fn send_form(url: &str, form: &str) -> Response {
    let request = http_client()
        .post(url)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form.to_owned());
    Response::read(request.send().await.expect("the server answers")).await
}
