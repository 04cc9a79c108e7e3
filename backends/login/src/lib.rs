//! Signpost's login service: what every version of it shares. CONTRACT 8 and 9.
//!
//! | module | subject |
//! | --- | --- |
//! | [`program`] | what the programs have in common: arguments, log, server, reload, stop |
//! | [`config`] | the configuration, parsed |
//! | [`service`] | a snapshot: one configuration, providers and limits; `state` outlives it: stores, caches, the stop |
//! | [`mod@router`] | every route; `handlers` has one file per endpoint, `middleware` every layer |
//! | [`views`] | what a version decides: its name, and how it shows an account |
//! | `flow` | the login flow, step by step, without HTTP |
//! | [`logins`], [`accounts`], [`credentials`], [`events`], [`applications`] | a noun each, with its store |
//! | [`oauth`] | the provider's side |
//! | `limits` | how much callers can start |
//! | [`return_to`] | where a login may send the browser in the end |
//! | `pages` | what people see in a browser |
//! | [`error`] | what can go wrong, and the code it is answered by |
//!
//! A version is a small crate of its own: its views, and a `main` that calls [`program::run`].

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
