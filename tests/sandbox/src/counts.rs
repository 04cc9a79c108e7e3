//! How often each address was called: what a test asks to know that something did not happen.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{Json, extract::State};
use serde_json::{Value, json};

use crate::Sandbox;

/// Calls since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// The page was shown.
    pub authorize: Counter,
    /// Allow or Deny was pressed.
    pub decide: Counter,
    /// A code was offered for exchange.
    pub token: Counter,
    /// A profile was asked for.
    pub profile: Counter,
    /// Somebody followed a redirect that must not be followed.
    pub elsewhere: Counter,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// `GET /_sandbox/counts`
pub async fn show(State(sandbox): State<Arc<Sandbox>>) -> Json<Value> {
    let counts = &sandbox.counts;
    Json(json!({
        "authorize": counts.authorize.read(),
        "decide": counts.decide.read(),
        "token": counts.token.read(),
        "profile": counts.profile.read(),
        "elsewhere": counts.elsewhere.read(),
    }))
}

/// `GET /_sandbox/elsewhere`: where a redirect fault points to. Nobody should come here.
pub async fn elsewhere(State(sandbox): State<Arc<Sandbox>>) -> Json<Value> {
    sandbox.counts.elsewhere.add_one();
    Json(json!({ "access_token": "elsewhere", "token_type": "bearer", "uuid": "{elsewhere}" }))
}

/// `GET /readyz`
pub async fn ready() -> &'static str {
    "ready\n"
}
