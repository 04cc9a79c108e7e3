//! Signpost's gateway: verifies signed requests and forwards them to a backend by version.
//!
//! The folders stand in the order in which they import each other: each uses those above it only
//! (`tests/structure.rs`).
//!
//! | folder | subject |
//! | --- | --- |
//! | [`wire`] | syntax of HTTP/1.1; reads, writes and timers of both sides |
//! | [`tls`] | certificates, server names, client certificates; the listeners' and the backends' side |
//! | [`request`] | the nouns of a request: head, ids, rejection, quotas, the client |
//! | [`config`] | the configuration file, parsed and checked |
//! | [`directory`] | who may call: applications, accounts |
//! | [`limits`] | rates, the replay memory, connections |
//! | [`phases`] | one file for each phase, in the contract's order |
//! | [`upstream`] | chooses an address, sends, retries, relays |
//! | [`observe`] | outcome, access log, spans, metrics of requests, usage |
//! | [`gateway`] | a request from its head to its end: receive, forward, relay, respond, record |
//! | [`downstream`] | the clients' side: listeners, HTTP/1.1, HTTP/2 |
//! | [`doctor`] | examines a request that a client has sent |
//! | [`operations`] | what operators do: one list, whose faces are the API, the console and the commands |
//! | [`api`] | the management API: routes, roles, problems, its description |
//! | [`process`] | start, stop, reload, upgrade, readiness, scrape |
//! | [`cli`] | the commands |

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "its modules are private, and its documentation is for its developers"
)]

mod api;
pub mod cli;
mod config;
mod console;
mod directory;
mod doctor;
mod downstream;
mod gateway;
mod limits;
mod observe;
mod operations;
mod phases;
mod process;
mod request;
mod shadow;
mod tls;
mod upstream;
mod wire;

/// Items exported to the crate's benchmark, its tests in `tests/`, and the crates `bench` and `fuzz`; not for programs.
///
/// Everything else is private to the crate, so that the compiler finds unused code.
#[doc(hidden)]
pub mod measured {
    pub use crate::{
        config::{Applications, Config, MasterKey, OwnRate, ResponseHeaders, Versions},
        directory::{
            accounts::{
                Account, CredentialClaims, directory::AccountDirectory, store::AccountStore,
            },
            apps::{
                App, AppState,
                directory::{AppDirectory, CachedApps},
                seal::{Sealer, Slot, new_app_ident, new_app_key},
                store::{AppStore, AppStoreError},
            },
        },
        downstream::http1::{
            exchange::Http1Exchange,
            head::{HeadFault, ReadHead, RequestScanner, peek_request_line, read_head},
            response::Recipient,
            stream::{ClientConnection, ReceiveOutcome},
        },
        gateway::{Gateway, State, receive::receive, request::Received},
        limits::replay::{ReplayLimits, ReplayMemory},
        phases::{
            origin::Peer,
            route::{Wanted, route},
            verify::{VerifiedRequest, Verifier},
        },
        request::{
            BodyLength, HeadLimits, Headers, Method, RawHeaders, Target, client::ConnectionInfo,
            drain::Drain,
        },
        upstream::{
            backend::backend_head::{
                BackendHead, MalformedResponse, ResponseBody, ResponseScanner,
            },
            routing::{Balancer, attempts::Attempts},
        },
        wire::syntax::chunked::ChunkDecoder,
    };
}
