//! Extractors: what a handler gets to know about its request.
//!
//! | extractor | what | if the request has none |
//! | --- | --- | --- |
//! | [`SignedApplication`] | the application, whose signature the gateway has verified | 403 `sign_missing` |
//! | [`ClaimedApplication`] | the application that the request names; anyone can name it, unless the request is signed | 403 `gateway_required` |
//! | [`AuthenticatedUser`] | the logged-in account, by a valid credential of this application | 401 |
//! | `Option<AuthenticatedUser>` | the same; `None` without a credential, 401 with an invalid one | `None` |
//! | [`Parameters`] | the parameters of query and form | none of them |
//! | [`RequestInfo`] | language, request id, the client's address | always there |
//! | `State<Arc<Service>>` | the [service](crate::Service): clock, a user's events | always there |
//! | [`Own<V>`](crate::Own) | the settings and the state of the version `V` | always there |
//!
//! They may appear in any order. All reject by [`LoginError`](crate::LoginError), so as the library's own endpoints do.
//!
//! **A request without parameters is unsigned**, GET or POST, unless the gateway asks for a signature (CONTRACT 3 and 9).
//! So [`SignedApplication`] is for endpoints that act for an application. [`AuthenticatedUser`] needs no signature: the
//! credential proves the application, too.

mod application;
mod info;
mod parameters;
mod user;

pub use self::{
    application::{ClaimedApplication, SignedApplication},
    info::RequestInfo,
    parameters::Parameters,
    user::AuthenticatedUser,
};
pub(crate) use self::{
    application::{client_version, named_application, required_application},
    parameters::{BufferedBody, MAX_PARAMETERS},
    user::SentCredential,
};
