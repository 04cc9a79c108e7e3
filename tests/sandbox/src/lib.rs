//! A sign-in provider of Bitbucket's shape, for the demo and the tests only.
//!
//! It has no passwords and no store: whoever opens its page may be anybody. What it is strict about
//! is what a real provider is strict about, so that a mistake in our exchange shows here.
//!
//! - [`authorize`] is the page: pick a user, allow or deny (RFC 6749 section 4.1.1)
//! - [`token`] exchanges a code (RFC 6749 section 4.1.3, RFC 7636 section 4.6)
//! - [`profile`] says who the bearer is
//! - [`user`] lists the users, and which of them make the provider misbehave
//! - [`fault`] is the misbehaviour itself
//! - [`grant`] remembers codes and access tokens; [`redirect_uri`] is the provider's rule for them
//! - [`counts`] tells a test how often each address was called

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

/// What the one client of this provider registered, and how the provider behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The client's public name.
    pub client_id: String,
    /// The client's password at the token endpoint.
    pub client_secret: String,
    /// The registered callback. See [`redirect_uri`].
    pub callback: Url,
    /// Sent as `iss` with every answer of the page, when there is one (RFC 9207).
    pub issuer: Option<String>,
    /// How long a code can be exchanged. Bitbucket's is short, too.
    pub code_lifetime: Duration,
    /// How long a slow user keeps the caller waiting; longer than any client should.
    pub slowness: Duration,
}

/// Everything that the handlers share.
#[derive(Debug)]
pub struct Sandbox {
    /// The registered client.
    pub settings: Settings,
    /// Codes and access tokens given out.
    pub grants: Grants,
    /// Calls so far.
    pub counts: Counts,
}

/// Serves the provider until the task is dropped.
///
/// # Errors
///
/// When the listener fails for good.
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
