//! The wire contract of Signpost as types: what clients, the gateway and the backends must agree on.
//!
//! No I/O, no async, no clock and no database: the time is an argument, and the caller has already read the bytes. One
//! module for each subject:
//!
//! | module | subject |
//! | --- | --- |
//! | [`header`] | header names, derived from the configured prefix |
//! | [`form`] | which body is a form |
//! | [`param`] | the pairs of a query and a form body, borrowed from the request |
//! | [`sign`] | sign profiles, the canonical string, signing, comparing, explaining a mismatch |
//! | [`app`] | an application's public ident and internal id |
//! | [`credential`] | the credential of a logged-in user, and its hash |
//! | [`version`] | version names, and the source of a version |
//! | [`challenge`] | whom the ticket of a login is for |
//! | [`cookies`] | Signpost's own cookies, and which backends have them |
//! | [`language`] | the five languages, and how one is selected |
//! | [`text`] | every text that a user may see, one Fluent file per language |
//! | [`malformed`] | where a request is malformed, and how |
//! | [`problem`] | error codes, their status, and RFC 9457 problem details |
//! | [`log_text`] | method, path and ident as log lines show them, with a limited length |
//! | [`request_id`] | the identifier of a request in all programs |

#[macro_use]
mod macros;

pub mod app;
pub mod challenge;
pub mod cookies;
pub mod credential;
pub mod form;
pub mod header;
pub mod language;
pub mod log_text;
pub mod malformed;
pub mod param;
pub mod problem;
pub mod request_id;
pub mod sign;
pub mod text;
pub mod version;
mod word;

pub use self::word::{ParseError, is_word, parse_digits};
