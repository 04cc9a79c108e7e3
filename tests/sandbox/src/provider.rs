//! One provider: a shape, and what it has issued and counted.

use std::sync::Arc;

use axum::http::{HeaderMap, header};

use crate::{Settings, counts::Counts, grant::Grants, key::Keyring, shape::Shape};

/// A provider at a prefix of its own. A code of one is unknown to the others.
#[derive(Debug)]
pub struct Provider {
    /// The registered client, the same for every provider.
    pub settings: Arc<Settings>,
    /// What tells it apart.
    pub shape: &'static dyn Shape,
    /// Issued codes and access tokens.
    pub grants: Grants,
    /// Number of calls by path.
    pub counts: Counts,
    /// The keys of its ID tokens, if it is an `OpenID` provider.
    pub keys: Option<Keyring>,
}

impl Provider {
    /// Makes a provider that has issued nothing yet.
    #[must_use]
    pub fn new(settings: Arc<Settings>, shape: &'static dyn Shape) -> Self {
        Self {
            grants: Grants::new(settings.code_lifetime),
            counts: Counts::default(),
            keys: shape
                .openid()
                .map(|openid| Keyring::new(openid.algorithms())),
            settings,
            shape,
        }
    }

    /// Its address as the caller writes it, so that no option is needed for it.
    #[must_use]
    pub fn url(&self, headers: &HeaderMap) -> String {
        let host = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok())
            .unwrap_or("localhost");
        format!("http://{host}{}", self.shape.prefix())
    }
}
