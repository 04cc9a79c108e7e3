//! What every program of Signpost has. The gateway and the login service share it; it depends on neither, but on the contract
//! (`gateway-protocol`) and the store.
//!
//! | module | subject |
//! | --- | --- |
//! | [`clock`] | the time, read in one place |
//! | [`command`] | what commands print, and their exit codes |
//! | [`config`] | the configuration engine, and the keys that every program has |
//! | [`reload`] | taking on a changed configuration while the program runs |
//! | [`secret`] | secrets, and where they come from |
//! | [`logging`] | how every program logs |
//! | [`feed_cache`] | a cache in front of the store, invalidated by its change feed |
//! | [`log_writer`] | a log that never blocks: a bounded queue and one thread that writes |
//! | [`http_server`] | an HTTP/1.1 listener with timeouts and a limit on connections |
//! | [`descriptors`] | the limit on open files, and a reserve below it |
//! | [`rate_limit`] | how often a network or an application may do something |
//! | [`shutdown`] | the phases of an orderly stop, and the signals that begin it |
//! | [`health`] | asking a running program whether it can serve |
//! | [`origin`] | an origin of the web |
//! | [`page`] | what a browser is shown: the frame of a page, the page of a problem |
//! | [`once_a_minute`] | log lines that an attacker could otherwise repeat at will |

pub mod clock;
pub mod command;
pub mod config;
pub mod descriptors;
pub mod feed_cache;
pub mod health;
pub mod http_server;
pub mod log_writer;
pub mod logging;
pub mod once_a_minute;
pub mod origin;
pub mod page;
pub mod rate_limit;
pub mod reload;
pub mod secret;
pub mod shutdown;
