//! Signpost's gateway: verifies signed requests and forwards them to a backend by version.
//!
//! Request flow: [`http1`] reads and checks the head; [`gateway`] runs the phases, each in its own file under
//! [`phases`]; [`backend`] forwards the request and relays the answer; [`observe`] records the outcome.
//!
//! | module | subject |
//! | --- | --- |
//! | [`config`] | the configuration file, parsed and checked |
//! | [`syntax`] | the syntax of HTTP/1.1 messages |
//! | [`io`] | reading, writing and deadlines on a connection |
//! | [`request`] | a request as the phases see it |
//! | [`client`] | the interface to the client's connection |
//! | [`listeners`] | accepting connections: PROXY protocol, TLS, limits |
//! | [`tls`] | certificates, client certificates, session resumption |
//! | [`open_connections`] | the number of connections, in all and by address |
//! | [`http1`] | the client's side: strict HTTP/1.1 |
//! | [`http2`] | the client's side: HTTP/2, judged by the rules of HTTP/1.1 |
//! | [`current`] | the current gateway, as one connection sees it |
//! | [`gateway`] | runs the phases in order |
//! | [`phases`] | one file per phase |
//! | [`backend`] | the backend's side: pool, exchange, retries, relay |
//! | [`backend_tls`] | TLS to backends |
//! | [`routing`] | load balancing: which of a version's addresses gets a request |
//! | [`per_thread`] | what each thread counts on its own |
//! | [`observe`] | the outcome of each request, the access log, and the metrics of requests |
//! | [`usage`] | counts requests by version and application |
//! | [`accounts`] | the accounts of users: store, cache |
//! | [`apps`] | applications: store, cache, keys at rest |
//! | [`replay`] | the replay memory |
//! | [`request_ids`] | request ids and trace ids |
//! | [`quotas`] | what the rate limits leave to a request |
//! | [`rate_limits`] | the debts of the rate limits |
//! | [`rate_sharing`] | adds up the debts of all gateways in the store |
//! | [`rejection`] | every reason to reject a request |
//! | [`secret_rejections`] | backends that reject the gateway's secret |
//! | [`certificate_watch`] | changed TLS files, and certificates that expire |
//! | [`management`] | health, readiness and metrics |
//! | [`metrics`] | what `/metrics` shows |
//! | [`reload`] | reloading the configuration |
//! | [`server`] | starts and runs the server |
//! | [`drain`] | requests in flight, and the phase of a shutdown |
//! | [`sockets`] | the listening sockets |
//! | [`upgrade`] | handing the listening sockets to a new process |
//! | [`stop`] | the graceful shutdown |
//! | [`cli`] | the commands |
//! | [`measured`] | items exported to benchmarks, fuzz targets and `tests/` |

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "its modules are private, and its documentation is for its developers"
)]

mod accounts;
mod apps;
mod backend;
mod backend_tls;
mod certificate_watch;
pub mod cli;
mod client;
mod config;
mod current;
mod drain;
mod gateway;
mod http1;
mod http2;
mod io;
mod listeners;
mod management;
#[doc(hidden)]
pub mod measured;
mod metrics;
mod observe;
mod open_connections;
mod per_thread;
mod phases;
mod quotas;
mod rate_limits;
mod rate_sharing;
mod rejection;
mod reload;
mod replay;
mod request;
mod request_ids;
mod routing;
#[cfg(test)]
mod scripted;
mod secret_rejections;
mod server;
mod sockets;
mod stop;
mod syntax;
mod tls;
mod upgrade;
mod usage;
