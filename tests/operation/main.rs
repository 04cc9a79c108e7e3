//! Operation: commands, configuration, reload, upgrade, stop, logs, traces, metrics. One module per subject.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue fails at that line"
)]

// The developer's card, pasted into a shell.
mod card;
// The command line, and the log.
mod commands;
// Invalid configuration.
mod configuration;
// OpenAPI documents of two versions, compared.
mod contracts;
// What the programs print for reference.
mod console;
mod reference;
// A night of incidents, as each face tells of them.
mod night;
// Every key of every example, changed while the program runs.
mod every_key;
// Warnings and rejected settings at the start.
mod warnings;
// Reload of the gateway's configuration.
mod reload_gateway;
// Reload of a backend's configuration.
mod reload_backend;
// Another user's process at the socket of the commands.
mod control_socket;
// Graceful shutdown: requests and logins in flight.
mod shutdown;
// An upgrade to a new process, and a stop, without loss under load.
mod upgrade;
// A log whose reader stalls.
mod stalled_log;
// Logs in files: rotation, full disks, sampling, the fields of JSON.
mod log_files;
// Traces: spans of gateway and backend, at a collector that works, stalls, refuses or is gone.
mod tracing;
// Metrics of the gateway's state: connections, protection, backends, operation.
mod metrics_state;
// The dashboard, the alerts and the metrics, read by a real Prometheus.
mod prometheus;
// TLS and client certificates of the management listener.
mod management_tls;
// The management API's listener: other sites, slow clients, floods, a stop.
mod management_api_listener;
// Connections that clients leave open.
mod open_connections;
// A mixed load: forms, aborted requests, a short outage of a backend.
mod mixed_load;
// Idle memory and start time.
mod footprint;
