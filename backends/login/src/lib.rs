//! Signpost's login service: the code that all its versions share. CONTRACT 8 and 9.
//!
//! | module | subject |
//! | --- | --- |
//! | `secret` | 256-bit secrets: the base of tokens, tickets, cookies and credentials |
//! | `trace` | the spans of sampled requests |
//! | `json` | a provider's JSON: members, and where a user's fields are |
//! | [`config`] | the configuration, parsed |
//! | `records` | what the store holds: logins, accounts, credentials, events, applications |
//! | `error` | all errors, and their problem codes |
//! | `limits` | limits on what clients can start, and on requests that wait |
//! | `metrics` | what is counted |
//! | `provider` | calls to providers |
//! | `service` | a snapshot: one configuration, providers and limits; `service::state` outlives it: stores, caches, shutdown |
//! | `flow` | the login flow without routes and responses |
//! | `http` | routes, layers, handlers, and what a version's own endpoints are made of |
//! | [`program`] | the `main` of every version: arguments, log, server, reload, shutdown |
//!
//! Each imports only those above it; `gateway/tests/structure.rs` checks that.
//!
//! Each version is a small crate: a type that implements [`Version`], the handlers of its own endpoints, and a `main` that
//! calls [`program::run`]. [`own`] has an example with settings and state.
//!
//! # A version with an endpoint of its own
//!
//! `GET /greeting` (`times`) greets the user who is logged in. It passes every layer of the library: the gateway's secret,
//! limits, log, problems. Another method is 405 with `Allow`.
//!
//! ```
//! use axum::{Json, http::StatusCode};
//! use login::{
//!     Account, Endpoints, LoginError, Version,
//!     description::{Operation, number},
//!     problem::{OwnProblem, Text, Texts},
//!     request::{AuthenticatedUser, Parameters},
//!     views::View,
//! };
//! use serde::Serialize;
//! use utoipa::ToSchema;
//!
//! struct V9;
//!
//! impl Version for V9 {
//!     const NAME: &'static str = "v9";
//!     type Settings = ();
//!     type State = ();
//!
//!     fn endpoints() -> Endpoints<Self> {
//!         Endpoints::new().get("/greeting", greeting).described(
//!             Operation::new("Greets the user.")
//!                 .user()
//!                 .optional("times", number(0..=9), "How often; once by default.")
//!                 .returns::<Vec<String>>()
//!                 .problem(&NOTHING_TO_SAY),
//!         )
//!     }
//!
//!     fn account(account: &Account) -> impl View {
//!         AccountView { name: account.username.as_str() }
//!     }
//! }
//!
//! #[derive(Serialize, ToSchema)]
//! struct AccountView<'a> {
//!     name: &'a str,
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
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! // In a test of the version:
//! let service = login::testing::TestService::new::<V9>().await;
//! let greeting = service.logged_in("ada").get("/greeting").await;
//! assert_eq!(greeting.json(), serde_json::json!(["Hello ada"]));
//! # });
//! ```

pub mod config;
mod error;
mod flow;
mod http;
mod json;
mod limits;
mod metrics;
pub mod program;
mod provider;
mod records {
    //! What the store holds: a type each, with its statements.

    pub mod accounts;
    pub(crate) mod applications;
    pub(crate) mod credentials;
    pub mod events;
    pub(crate) mod logins;
    pub(crate) mod own;
}
mod secret;
mod service;
pub mod testing;
mod trace;

pub use signpost_kit::clock::Timestamp;
pub use signpost_protocol::{
    app::{AppId, AppIdent},
    language::Language,
    request_id::RequestId,
};

/// The store, for tables of a version's own, and what their migrations and statements are made of.
pub mod store {
    pub use signpost_store::{
        Batch, Column, FromRow, Migration, Parsed, Row, Schema, StoreError, Value, from_row,
        migrations, values,
    };

    pub use crate::records::own::{Migrations, OwnStore, Sweep, Sweeps};
}

pub use self::{
    error::{LoginError, ParamRule, problem},
    http::{
        Endpoints, EndpointsError, EndpointsOf, HandlerContext, Own, Routes, Version, Versions,
        description, own, request, views,
    },
    records::{
        accounts::{self, Account},
        events,
    },
    service::Service,
};

/// What reads the keys that a version has of its own: [`own::OwnSettings`].
pub mod settings {
    pub use signpost_kit::{
        config::{Invalid, Read, Section, Value},
        read_all,
        secret::Secret,
    };
}
