//! An OAuth 2.0 provider of Bitbucket's shape, for the demo and the tests only.
//!
//! It has no passwords and no store: any visitor can log in as any user. It checks what a real provider checks, so that
//! a mistake in our exchange shows here.
//!
//! - [`authorize`] is the page: pick a user, allow or deny (RFC 6749 section 4.1.1)
//! - [`token`] exchanges a code (RFC 6749 section 4.1.3, RFC 7636 section 4.6)
//! - [`profile`] is the profile of the access token's user
//! - [`user`] lists the users, with and without a fault
//! - [`fault`] is what the provider does wrong for them
//! - [`grant`] stores codes and access tokens; [`redirect_uri`] is the provider's rule for the callback
//! - [`counts`] counts the calls of each path, for tests

pub mod authorize;
pub mod counts;
pub mod fault;
pub mod grant;
pub mod page;
pub mod parameters;
pub mod profile;
pub mod redirect_uri;
pub mod token;
pub mod user;

use std::{io, sync::Arc, time::Duration};

use axum::{
    Router,
    routing::{get, post},
};
use tokio::net::TcpListener;
use url::Url;

use crate::{counts::Counts, fault::PeerSocket, grant::Grants};

/// The only registered client, and how the provider behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The client's id.
    pub client_id: String,
    /// The client's secret at the token endpoint.
    pub client_secret: String,
    /// The registered callback. See [`redirect_uri`].
    pub callback: Url,
    /// Sent as `iss` with every redirect to the callback, if set (RFC 9207).
    pub issuer: Option<String>,
    /// Lifetime of an authorization code.
    pub code_lifetime: Duration,
    /// Delay of the answers with the fault `slow`: longer than the timeout of any client.
    pub slowness: Duration,
}

/// State shared by the handlers.
#[derive(Debug)]
pub struct Sandbox {
    /// The registered client.
    pub settings: Settings,
    /// Issued codes and access tokens.
    pub grants: Grants,
    /// Number of calls by path.
    pub counts: Counts,
}

/// Serves the provider until the future is dropped.
///
/// # Errors
///
/// When the listener fails permanently.
pub async fn serve(listener: TcpListener, settings: Settings) -> io::Result<()> {
    let sandbox = Sandbox {
        grants: Grants::new(settings.code_lifetime),
        counts: Counts::default(),
        settings,
    };
    let service = router(Arc::new(sandbox)).into_make_service_with_connect_info::<PeerSocket>();
    axum::serve(listener, service).await
}

fn router(sandbox: Arc<Sandbox>) -> Router {
    Router::new()
        .route(
            "/site/oauth2/authorize",
            get(authorize::show).post(authorize::decide),
        )
        .route("/site/oauth2/access_token", post(token::exchange))
        .route("/2.0/user", get(profile::show))
        .route("/readyz", get(counts::ready))
        .route("/_sandbox/counts", get(counts::show))
        .route(
            "/_sandbox/elsewhere",
            get(counts::elsewhere).post(counts::elsewhere),
        )
        .with_state(sandbox)
}
