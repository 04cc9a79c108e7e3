//! OAuth 2.0 and `OpenID` providers, for the demo and the tests only.
//!
//! They have no passwords and no store: any visitor can log in as any user. They check what real providers check, so
//! that a mistake in our exchange shows here. Bitbucket's is at the root, the others are below a prefix of their own.
//!
//! - [`shape`] is what tells the providers apart, with links to where it is documented
//! - [`provider`] is one of them: a shape, and what it has issued
//! - [`authorize`] is the page: pick a user, allow or deny (RFC 6749 section 4.1.1)
//! - [`token`] exchanges a code (RFC 6749 section 4.1.3, RFC 7636 section 4.6)
//! - [`profile`] is the record of the access token's user
//! - [`openid`] serves discovery documents and keys; [`id_token`] issues ID tokens, [`key`] signs them
//! - [`user`] lists the users, with and without a fault
//! - [`fault`] is what a provider does wrong for them, [`refusal`] the errors that it reports
//! - [`grant`] stores codes and access tokens; [`redirect_uri`] has the rules for the callback
//! - [`counts`] counts the calls of each path, for tests

pub mod authorize;
mod clock;
pub mod counts;
pub mod fault;
pub mod grant;
pub mod id_token;
pub mod key;
pub mod openid;
pub mod page;
pub mod parameters;
pub mod profile;
pub mod provider;
pub mod redirect_uri;
pub mod refusal;
pub mod shape;
#[cfg(test)]
mod tests;
pub mod token;
pub mod user;

use std::{io, sync::Arc, time::Duration};

use axum::{
    Router,
    routing::{get, post},
};
use tokio::net::TcpListener;
use url::Url;

use crate::{counts::Counter, fault::PeerSocket, provider::Provider};

/// The only registered client, and how the providers behave.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The client's id.
    pub client_id: String,
    /// The client's secret at the token endpoint.
    pub client_secret: String,
    /// The registered callback. See [`redirect_uri`].
    pub callback: Url,
    /// Sent as `iss` with every redirect to the callback, if set (RFC 9207). Default: what the shape sends.
    pub issuer: Option<String>,
    /// Lifetime of an authorization code.
    pub code_lifetime: Duration,
    /// Delay of the answers with the fault `slow`: longer than the timeout of any client.
    pub slowness: Duration,
}

/// All providers.
#[derive(Debug)]
pub struct Sandbox {
    /// One for each shape.
    pub providers: Vec<Arc<Provider>>,
    /// A caller followed a redirect that must not be followed.
    pub elsewhere: Counter,
}

/// Serves the providers until the future is dropped.
///
/// # Errors
///
/// When the listener fails permanently.
pub async fn serve(listener: TcpListener, settings: Settings) -> io::Result<()> {
    let service = router(settings).into_make_service_with_connect_info::<PeerSocket>();
    axum::serve(listener, service).await
}

fn router(settings: Settings) -> Router {
    let settings = Arc::new(settings);
    let providers: Vec<_> = shape::ALL
        .into_iter()
        .map(|shape| Arc::new(Provider::new(Arc::clone(&settings), shape)))
        .collect();
    let routes: Vec<_> = providers.iter().cloned().map(provider_routes).collect();
    let sandbox = Sandbox {
        providers,
        elsewhere: Counter::default(),
    };
    let own = Router::new()
        .route("/readyz", get(counts::ready))
        .route("/_sandbox/counts", get(counts::show))
        .route(
            "/_sandbox/elsewhere",
            get(counts::elsewhere).post(counts::elsewhere),
        )
        .with_state(Arc::new(sandbox));
    routes.into_iter().fold(own, Router::merge)
}

fn provider_routes(provider: Arc<Provider>) -> Router {
    let shape = provider.shape;
    let at = |path: &str| format!("{}{path}", shape.prefix());
    let paths = shape.paths();
    let mut routes = Router::new()
        .route(
            &at(paths.authorize),
            get(authorize::show).post(authorize::decide),
        )
        .route(&at(paths.token), post(token::exchange))
        .route(&at(paths.user), get(profile::show));
    if let Some(openid) = shape.openid() {
        routes = routes
            .route(&at(openid.discovery_path()), get(openid::discovery))
            .route(&at(openid.keys_path()), get(openid::keys))
            .route(
                &format!("/{}/rotate-keys", shape.name()),
                post(openid::rotate_keys),
            );
    }
    routes.with_state(provider)
}
