//! Signpost's gateway: verifies signed requests and forwards them to a backend by version.
//!
//! A request's way, top to bottom: [`http1`] reads and checks its head; [`gateway`] lists the phases, each in its own file
//! under [`phases`]; [`backend`] forwards it and relays the answer; [`observe`] records how it ended.
//!
//! | module | subject |
//! | --- | --- |
//! | [`config`] | the configuration file and what it means |
//! | [`syntax`] | the syntax of HTTP/1.1 messages |
//! | [`io`] | reading, writing and deadlines on a connection |
//! | [`request`] | a request as the phases see it |
//! | [`client`] | what the gateway asks of the client's side |
//! | [`http1`] | the client's side: strict HTTP/1.1 |
//! | [`gateway`] | the phases in order |
//! | [`phases`] | one file a phase |
//! | [`backend`] | the backend's side: pool, exchange, retries, relay |
//! | [`routing`] | which of a version's addresses gets a request |
//! | [`observe`] | how each request ended, and the access log |
//! | [`apps`] | applications: store, cache, keys at rest |
//! | [`replay`] | the replay memory |
//! | [`request_ids`] | request ids and trace ids |
//! | [`rejection`] | every reason not to serve a request |
//! | [`secret_refusals`] | backends that do not accept the gateway's secret |
//! | [`management`] | health and readiness |
//! | [`reload`] | taking on a changed configuration |
//! | [`server`] | the running program |
//! | [`drain`] | requests in flight, and how far a stop has come |
//! | [`stop`] | the orderly stop |
//! | [`descriptor_reserve`] | descriptors that clients cannot use up |
//! | [`cli`] | the commands |
//! | [`measured`] | what benchmarks, fuzz targets and `tests/` reach |

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "its modules are private, and its documentation is for those who change it"
)]

mod apps;
mod backend;
pub mod cli;
mod client;
mod config;
mod descriptor_reserve;
mod drain;
mod gateway;
mod http1;
mod io;
mod management;
#[doc(hidden)]
pub mod measured;
mod observe;
mod phases;
mod rejection;
mod reload;
mod replay;
mod request;
mod request_ids;
mod routing;
#[cfg(test)]
mod scripted;
mod secret_refusals;
mod server;
mod stop;
mod syntax;
