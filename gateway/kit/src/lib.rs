//! What every program of Signpost needs, shared by the gateway and the login service. Depends on the contract
//! (`signpost-protocol`) and the store, and on neither program.
//!
//! | module | subject |
//! | --- | --- |
//! | [`cache`] | a cache in front of the store, invalidated by its change feed |
//! | [`clock`] | the time, read in one place |
//! | [`command`] | output and exit codes of the commands |
//! | [`config`] | the configuration engine, and the keys that all programs share |
//! | [`limits`] | rate limits by network or application |
//! | [`log`] | the log: format, filter, lines, and outputs that never block |
//! | [`metrics`] | metrics in the formats of Prometheus and OpenMetrics |
//! | [`page`] | pages for browsers: layout and error page |
//! | [`reload`] | reloading the configuration of a running program |
//! | [`secret`] | secrets and their sources |
//! | [`server`] | listeners, health, shutdown, open files |
//! | [`task`] | tasks that are repeated on the store, and their log |
//! | [`trace`] | traces: sampled requests, their spans, and the export to a collector |

pub mod cache;
pub mod clock;
#[cfg(feature = "operators")]
pub mod command;
pub mod config;
pub mod limits;
pub mod log;
pub mod metrics;
pub mod page;
pub mod reload;
pub mod secret;
pub mod server;
pub mod task;
pub mod trace;

pub use signpost_protocol::label_enum;
