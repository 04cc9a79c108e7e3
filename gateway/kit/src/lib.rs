//! What every program of Signpost needs, shared by the gateway and the login service. Depends on the contract
//! (`gateway-protocol`) and the store, and on neither program.
//!
//! | module | subject |
//! | --- | --- |
//! | [`clock`] | the time, read in one place |
//! | [`command`] | output and exit codes of the commands |
//! | [`config`] | the configuration engine, and the keys that all programs share |
//! | [`reload`] | reloading the configuration of a running program |
//! | [`secret`] | secrets and their sources |
//! | [`service_manager`] | notifications to systemd |
//! | [`logging`] | log setup: format, filter, lines, reopening of files |
//! | [`feed_cache`] | a cache in front of the store, invalidated by its change feed |
//! | [`log_writer`] | outputs of the log that never block: a bounded queue and a thread that writes, for each |
//! | [`id_numbers`] | the numbers that ids are made of |
//! | [`flush`] | flush of a bounded queue that a thread empties |
//! | [`http_server`] | an HTTP/1.1 listener with timeouts and a limit on connections |
//! | [`management`] | the listener for health, readiness and metrics, on a thread of its own |
//! | [`metrics`] | metrics in the formats of Prometheus and OpenMetrics |
//! | [`spans`] | traces: sampled requests, their spans, and the export to a collector |
//! | [`descriptors`] | the limit on open files, with a reserve |
//! | [`rate_limit`] | rate limits per network or application |
//! | [`shutdown`] | graceful shutdown: its phases and signals |
//! | [`health`] | health check of a running program |
//! | [`origin`] | web origins (RFC 6454) |
//! | [`page`] | pages for browsers: layout and error page |
//! | [`once_a_minute`] | log lines limited to one a minute |

pub mod clock;
pub mod command;
pub mod config;
pub mod descriptors;
pub mod feed_cache;
pub mod flush;
pub mod health;
pub mod http_server;
pub mod id_numbers;
pub mod log_writer;
pub mod logging;
pub mod management;
pub mod metrics;
pub mod once_a_minute;
pub mod origin;
pub mod page;
pub mod rate_limit;
pub mod reload;
pub mod secret;
pub mod service_manager;
pub mod shutdown;
pub mod spans;
