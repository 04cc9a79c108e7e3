//! What the repository ships beside the programs: images, units, examples, schemas, the metrics.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue fails at that line"
)]

// Installation: containers, systemd, TLS in front.
mod deployment;
// The documents.
mod documents;
// The JSON Schemas of the configuration files.
mod schema;
// The described metrics, against what is served; what dashboard and alerts use of them.
mod metrics_table;
// How the documents are written.
mod style;
