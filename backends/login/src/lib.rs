//! Signpost's login service: the code that all its versions share. CONTRACT 8 and 9.
//!
//! | module | subject |
//! | --- | --- |
//! | [`program`] | the `main` of every version: arguments, log, server, reload, shutdown |
//! | [`config`] | the configuration, parsed |
//! | [`service`] | a snapshot: one configuration, providers and limits; `state` outlives it: stores, caches, shutdown |
//! | [`mod@router`] | all routes; `handlers` has one file for each endpoint, `middleware` the layers |
//! | [`views`] | the part that differs by version: its name, and the JSON of an account |
//! | `flow` | the login flow without HTTP |
//! | [`logins`], [`accounts`], [`credentials`], [`events`], [`applications`] | a type each, with its store |
//! | [`oauth`] | calls to providers |
//! | `limits` | limits on what clients can start |
//! | [`return_to`] | where a finished login may redirect the browser to |
//! | `pages` | the pages that users see in a browser |
//! | [`error`] | all errors, and their problem codes |
//!
//! Each version is a small crate: its views, and a `main` that calls [`program::run`].

pub mod accounts;
pub mod applications;
pub mod config;
pub mod credentials;
pub mod error;
pub mod events;
mod flow;
mod handlers;
mod limits;
pub mod logins;
mod middleware;
pub mod oauth;
mod pages;
pub mod program;
mod request;
pub mod return_to;
pub mod router;
mod secret;
pub mod service;
mod state;
#[cfg(test)]
mod testing;
pub mod views;

pub use signpost_kit::clock::Timestamp;

pub use self::{accounts::Account, router::router, service::Service, views::Views};
