//! Signpost's login service: the code that all its versions share. CONTRACT 8 and 9.
//!
//! | module | subject |
//! | --- | --- |
//! | `secret` | 256-bit secrets: the base of tokens, tickets, cookies and credentials |
//! | `trace` | the spans of sampled requests |
//! | [`config`] | the configuration, parsed |
//! | `records` | what the store holds: logins, accounts, credentials, events, applications |
//! | `error` | all errors, and their problem codes |
//! | `limits` | limits on what clients can start, and on requests that wait |
//! | `metrics` | what is counted |
//! | `provider` | calls to providers |
//! | `service` | a snapshot: one configuration, providers and limits; `service::state` outlives it: stores, caches, shutdown |
//! | `flow` | the login flow without HTTP |
//! | `http` | routes, layers, handlers, and what a version's own endpoints are made of |
//! | [`program`] | the `main` of every version: arguments, log, server, reload, shutdown |
//!
//! Each imports only those above it; `gateway/tests/structure.rs` checks that.
//!
//! Each version is a small crate: its views, its own endpoints if it has any, and a `main` that calls [`program::run`].
//!
//! # A version with an endpoint of its own
//!
//! `GET /greeting` (`times`) greets the user who is logged in. It passes every layer of the library: the gateway's secret,
//! limits, log, problems. Another method is 405 with `Allow`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use axum::{Json, http::StatusCode};
//! use login::{
//!     Account, Endpoints, EndpointsError, LoginError, Routes, Service, Views,
//!     problem::{OwnProblem, Text, Texts},
//!     request::{AuthenticatedUser, Parameters},
//! };
//! use serde::Serialize;
//!
//! struct V9;
//!
//! impl Views for V9 {
//!     const VERSION: &'static str = "v9";
//!     type Account = AccountView;
//! }
//!
//! #[derive(Serialize)]
//! struct AccountView {
//!     name: String,
//! }
//!
//! impl From<&Account> for AccountView {
//!     fn from(account: &Account) -> Self {
//!         Self { name: account.username.as_str().to_owned() }
//!     }
//! }
//!
//! /// The routes of this version: what its `main` gives to `login::program::run`.
//! fn router(service: Arc<Service>) -> Result<Routes, EndpointsError> {
//!     login::router::<V9>(service, endpoints())
//! }
//!
//! fn endpoints() -> Endpoints {
//!     Endpoints::new().get("/greeting", greeting)
//! }
//!
//! async fn greeting(
//!     user: AuthenticatedUser,
//!     parameters: Parameters,
//! ) -> Result<Json<Vec<String>>, LoginError> {
//!     let times = parameters.number("times", 0..=9)?.unwrap_or(1);
//!     if times == 0 {
//!         return Err(LoginError::from(&NOTHING_TO_SAY));
//!     }
//!     let name = user.account().username.as_str();
//!     Ok(Json((0..times).map(|_| format!("Hello {name}")).collect()))
//! }
//!
//! static NOTHING_TO_SAY: OwnProblem = OwnProblem::new(
//!     "nothing_to_say",
//!     StatusCode::CONFLICT,
//!     Texts {
//!         en: Text { title: "Nothing to say", detail: "Ask for at least one greeting." },
//!         zh_cn: Text { title: "无话可说", detail: "请至少请求一次问候。" },
//!         zh_tw: Text { title: "無話可說", detail: "請至少要求一次問候。" },
//!         ja: Text { title: "言うことがありません", detail: "挨拶を1回以上求めてください。" },
//!         ko: Text { title: "할 말이 없습니다", detail: "인사를 한 번 이상 요청하세요." },
//!     },
//! );
//!
//! // In a test of the version: a path of the library, or one that appears twice, is an error.
//! endpoints().check::<V9>().unwrap();
//! assert!(Endpoints::new().post("/user", async || "mine").check::<V9>().is_err());
//! ```

pub mod config;
mod error;
mod flow;
mod http;
mod limits;
mod metrics;
pub mod program;
mod provider;
mod records;
mod secret;
mod service;
#[cfg(test)]
mod testing;
mod trace;

pub use signpost_kit::{clock::Timestamp, release};
pub use signpost_protocol::{
    app::{AppId, AppIdent},
    language::Language,
    request_id::RequestId,
};

pub use self::{
    error::{LoginError, ParamRule, problem},
    http::{Endpoints, EndpointsError, HandlerContext, Routes, Views, request, router},
    records::{
        accounts::{self, Account},
        events,
    },
    service::Service,
};
