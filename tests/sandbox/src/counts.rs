//! How often each path was called, so that a test can check that a call was not made.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{Json, extract::State};
use serde_json::{Value, json};

use crate::Sandbox;

/// Number of calls since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// The page was requested.
    pub authorize: Counter,
    /// Allow or Deny was pressed.
    pub decide: Counter,
    /// The token endpoint was called.
    pub token: Counter,
    /// The profile was requested.
    pub profile: Counter,
    /// A caller followed a redirect that must not be followed.
    pub elsewhere: Counter,
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

/// `GET /_sandbox/elsewhere`: the target of the fault `redirect`. A correct caller never requests it.
pub async fn elsewhere(State(sandbox): State<Arc<Sandbox>>) -> Json<Value> {
    sandbox.counts.elsewhere.add_one();
    Json(json!({ "access_token": "elsewhere", "token_type": "bearer", "uuid": "{elsewhere}" }))
}

/// `GET /readyz`
pub async fn ready() -> &'static str {
    "ready\n"
}
