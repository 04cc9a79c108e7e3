//! How often each path was called, so that a test can check that a call was not made.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{Json, extract::State};
use serde_json::{Map, Value, json};

use crate::Sandbox;

/// Number of calls of one provider since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// The page was requested.
    pub authorize: Counter,
    /// Allow or Deny was pressed.
    pub decide: Counter,
    /// The token endpoint was called.
    pub token: Counter,
    /// The profile, the user record or the userinfo was requested.
    pub profile: Counter,
    /// The discovery document was requested.
    pub discovery: Counter,
    /// The keys were requested.
    pub keys: Counter,
}

impl Counts {
    fn read(&self) -> Map<String, Value> {
        let counts = [
            ("authorize", &self.authorize),
            ("decide", &self.decide),
            ("token", &self.token),
            ("profile", &self.profile),
            ("discovery", &self.discovery),
            ("keys", &self.keys),
        ];
        let members = counts.map(|(name, counter)| (name.to_owned(), counter.read().into()));
        members.into_iter().collect()
    }
}

/// A counter that is never reset.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// `GET /_sandbox/counts`: Bitbucket's counts, and an object of counts for each provider below a prefix.
pub async fn show(State(sandbox): State<Arc<Sandbox>>) -> Json<Value> {
    let mut counts = Map::new();
    counts.insert("elsewhere".to_owned(), sandbox.elsewhere.read().into());
    for provider in &sandbox.providers {
        let own = provider.counts.read();
        if provider.shape.prefix().is_empty() {
            counts.extend(own);
        } else {
            counts.insert(provider.shape.name().to_owned(), own.into());
        }
    }
    Json(counts.into())
}

/// `GET /_sandbox/elsewhere`: the target of the fault `redirect`. A correct caller never requests it.
pub async fn elsewhere(State(sandbox): State<Arc<Sandbox>>) -> Json<Value> {
    sandbox.elsewhere.add_one();
    Json(
        json!({ "access_token": "elsewhere", "token_type": "bearer", "uuid": "{elsewhere}", "id": 1 }),
    )
}

/// `GET /readyz`
pub async fn ready() -> &'static str {
    "ready\n"
}
