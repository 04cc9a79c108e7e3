//! The harness of the end-to-end tests.
//!
//! The tests know the programs only as a client, a browser, a provider or an operator would:
//! by their addresses, their configuration files and their command lines.
//!
//! - [`stack`] starts gateway, backends and sandbox provider as processes on free ports
//! - [`store`] is where they keep things, a file or a database of a Postgres server; [`postgres`] is such a server,
//!   [`rows`] what either of them answers
//! - [`program`] is one such process; [`port`] and [`folder`] are what it is given
//! - [`signed_client`] calls as an application would; [`signer`] is its own reading of the contract,
//!   which [`vectors`] are held against
//! - [`browser`] keeps cookies, reads pages and presses their buttons; [`html`] finds links and forms
//! - [`real_browser`] is a real one, for what an imitation cannot prove
//! - [`logins`] are whole logins, for tests that need one done
//! - [`crowd`] is many people at once, with a record of all that became of what they did
//! - [`answer`] is what any of them gets back
//! - [`raw_connection`] sends bytes as they are, for what no client library would send
//! - [`recording_backend`] stands in for a backend and keeps every byte it receives; [`scripted_backend`] answers with
//!   bytes that no backend should send
//! - [`faulty_backend`] is a backend that dies or freezes in the middle of an exchange
//! - [`waiting`] waits for a condition, never for a fixed time; [`clock`] is the one clock

pub mod answer;
pub mod browser;
pub mod clock;
pub mod crowd;
pub mod examples;
pub mod faulty_backend;
pub mod folder;
pub mod html;
pub mod logins;
pub mod port;
pub mod postgres;
pub mod program;
pub mod raw_connection;
pub mod real_browser;
pub mod recording_backend;
pub mod rows;
pub mod scripted_backend;
pub mod signed_client;
pub mod signer;
pub mod stack;
pub mod store;
pub mod vectors;
pub mod waiting;
