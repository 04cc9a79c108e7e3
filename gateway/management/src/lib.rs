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
pub mod reports;
