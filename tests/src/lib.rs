//! The harness of the end-to-end tests.
//!
//! The tests use the programs only as a client, a browser, a provider or an operator does:
//! through their addresses, configuration files and command lines.
//!
//! - [`stack`] starts gateway, backends and sandbox provider as processes on free ports
//! - [`store`] is their database, a SQLite file or a database on a Postgres server; [`postgres`] is such a server,
//!   [`rows`] are query results of either kind
//! - [`program`] is one such process; [`port`] gives it a free port, [`folder`] a temporary folder
//! - [`signed_client`] calls as an application does; [`signer`] is written from the contract alone, and is checked
//!   against the [`vectors`]
//! - [`browser`] keeps cookies, reads pages and presses their buttons; [`html`] finds links and forms
//! - [`real_browser`] is headless Chromium, for what an imitation cannot prove
//! - [`openid_provider`] is the certified `oidc-provider`, which tests can make misbehave
//! - [`logins`] are whole logins, for tests that need a logged-in user
//! - [`crowd`] is many simulated users at once, with a record of every outcome
//! - [`certificates`] issues certificates for TLS
//! - [`response`] is a received HTTP response; [`metrics`] are the values that a program shows at `/metrics`
//! - [`raw_connection`] sends bytes as they are, for what no client library sends
//! - [`http2_client`] speaks HTTP/2; [`raw_http2`] sends single frames as they are
//! - [`recording_backend`] stands in for a backend and keeps every byte it receives; [`scripted_backend`] answers with
//!   bytes that no backend should send
//! - `listener` accepts the connections of such a server within a test
//! - [`otlp_collector`] stands in for a collector of traces, and keeps every span
//! - [`forward_proxy`] is the only way to servers that it alone knows
//! - [`framework`] is a server of another language, such as the examples in `backends/examples`
//! - [`faulty_backend`] is a backend process that is killed or frozen in the middle of an exchange
//! - [`examples`] reads the files in `conf/`; [`documents`] reads the Markdown files; [`versions`] lists `backends/`
//! - [`observe`] reads the files in `conf/observe`: the table of metrics, the dashboard, the rules;
//!   [`prometheus`] is a real Prometheus that scrapes the programs
//! - [`project_copy`] is a copy of the project that a test may change, tag and build
//! - [`namespaces`] of the kernel, for a test that has processes or disks of its own; [`machine`] is a systemd in them
//! - [`metrics`] scrapes a program, and parses what it shows
//! - [`random`] are numbers for generated requests and loads
//! - [`kept`] is what each release leaves behind: a store and example files, which later programs must open
//! - [`waiting`] waits for a condition, never for a fixed time; [`clock`] is the only clock

pub mod browser;
pub mod certificates;
pub mod client_library;
pub mod clock;
pub mod crowd;
pub mod documents;
pub mod examples;
pub mod faulty_backend;
pub mod folder;
pub mod forward_proxy;
pub mod framework;
pub mod html;
pub mod http2_client;
pub mod kept;
mod listener;
pub mod logins;
pub mod machine;
pub mod metrics;
pub mod namespaces;
pub mod observe;
pub mod openid_provider;
pub mod otlp_collector;
pub mod port;
pub mod postgres;
pub mod program;
pub mod project_copy;
pub mod prometheus;
pub mod random;
pub mod raw_connection;
pub mod raw_http2;
pub mod real_browser;
pub mod recording_backend;
pub mod response;
pub mod rows;
pub mod scripted_backend;
pub mod signed_client;
pub mod signer;
pub mod stack;
pub mod store;
pub mod vectors;
pub mod versions;
pub mod waiting;
