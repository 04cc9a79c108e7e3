//! Signpost's gateway: verifies signed requests and forwards them to a backend by version.
//!
//! A request's way, top to bottom: [`downstream`] reads and checks it; [`gateway`] lists the phases up to its
//! route, each in its own file under [`phases`]; by [`proxying`], pingora forwards it and brings the answer back.
//!
//! | module | subject |
//! | --- | --- |
//! | [`config`] | the configuration file and what it means |
//! | [`downstream`] | strict HTTP/1 framing on the client's side |
//! | [`gateway`] | the phases in order |
//! | [`proxying`] | forwarding by pingora, and the phases behind the route |
//! | [`phases`] | one file a phase |
//! | [`balance`] | which of a version's addresses gets a request |
//! | [`upstream`] | connections to backends |
//! | [`stall`] | writes that make no progress |
//! | [`apps`] | applications: store, cache, keys at rest |
//! | [`replay`] | the replay memory |
//! | [`rejection`] | every reason not to serve a request |
//! | [`secret_refusals`] | backends that do not accept the gateway's secret |
//! | [`management`] | health and readiness |
//! | [`logging`] | how the log is written |
//! | [`server`] | the running program |
//! | [`drain`] | its orderly stop |
//! | [`descriptor_reserve`] | descriptors that clients cannot use up |
//! | [`cli`] | the commands |

pub mod apps;
pub mod balance;
pub mod cli;
pub mod clock;
pub mod config;
pub mod descriptor_reserve;
pub mod downstream;
pub mod drain;
pub mod gateway;
pub mod logging;
pub mod management;
pub mod phases;
pub mod proxying;
pub mod rejection;
pub mod replay;
pub mod request;
pub mod request_context;
pub mod request_ids;
pub mod secret_refusals;
pub mod server;
pub mod stall;
pub mod upstream;
