//! What an operator meets: everything that the management listener serves, and what the commands share with it.
//!
//! | folder | subject |
//! | --- | --- |
//! | [`administration`] | decides and audits changes: applications, tokens, logins, the master key |
//! | [`reports`] | what is read of versions, requests and gateways |
//! | [`doctor`] | examines a request that a client has sent |
//! | [`operations`] | what operators do: one list, whose faces are the API, the console and the commands; drained addresses |
//! | [`api`] | the management API: routes, roles, problems, its description |
//! | [`console`] | the pages for a browser |
//! | [`readiness`] | what `/readyz` says |
//!
//! It reaches the proxy by the facade of `signpost-proxy` only.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "its documentation is for its developers"
)]

pub mod administration;
pub mod api;
pub mod console;
pub mod doctor;
pub mod operations;
pub mod readiness;
pub mod reports {
    //! What is read of versions, requests and gateways, for operators.

    pub mod coverage;
    pub mod gateways;
    pub mod inspect;
    pub mod paths;
    pub mod rejections;
    pub mod retirement;
    pub mod shadows;
    pub mod traffic;
    pub mod usage;
    pub mod versions;
}

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use signpost_kit::reload::ReloadHandle;
use signpost_proxy::{ConsoleSettings, Gateway, StoredApps};

/// What the management listener serves to operators: the API, and the console if it is configured.
///
/// # Errors
///
/// The console cannot open its client of the login service.
pub fn router(
    apps: StoredApps,
    current: &Arc<ArcSwap<Gateway>>,
    reload: ReloadHandle,
    console: Option<ConsoleSettings>,
    has_tls: bool,
) -> anyhow::Result<Router> {
    let application = console.as_ref().and_then(|settings| settings.application);
    let api = Arc::new(api::Api::new(apps, current, reload, application));
    let Some(settings) = console else {
        return Ok(api::router(&api));
    };
    let accounts = console::Accounts::new(settings, has_tls)?;
    Ok(console::router(&api, accounts, current))
}
