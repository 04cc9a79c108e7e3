//! End-to-end tests: each starts the built programs and calls them. One module per subject.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue fails at that line"
)]

// The sandbox provider on its own: it is as strict as real providers.
mod sandbox;

// The gateway in front of a recording backend.

// `time`, `sign`, sign profiles and hints.
mod signing;
// Replay protection.
mod replay;
// Every published test vector.
mod vectors;
// A rejected request never reaches a backend.
mod verification;
// Requests and answers arrive as sent.
mod forwarding;
// Strict HTTP parsing, limits and timeouts.
mod strictness;
// Answers of backends, as clients receive them.
mod responses;
// Malformed and hostile responses of backends.
mod hostile_responses;
// Reuse of idle connections to backends.
mod idle_connections;
// TLS to backends.
mod backend_tls;
// A backend process that is killed, exits or freezes during an exchange.
mod backend_faults;
// Request smuggling: bytes that two readers might parse differently.
mod desync;
// HTTP/2 at the gateway: good requests, malformed frames and heads, floods.
mod http2;
// Only the provider's callback passes unsigned.
mod unsigned_callback;
// The rate limit of unsigned requests for each client address.
mod address_limit;
// The listeners: TLS, the PROXY protocol, limits of connections.
mod listeners;
// Pages of other origins: CORS.
mod cors;
// Rate limits of applications, client addresses and paths, at one gateway and shared by several.
mod rate_limits;
// Metrics of requests: numbers, durations, clocks of clients.
mod metrics_requests;
// The access line of a rejected request: the reason and the client.
mod rejection_log;
// A client that does not read its responses.
mod unread_responses;

// The whole installation.

// Which version serves a request.
mod versions;
// Paths of a version that go to a backend of their own.
mod routes;
// A share of a version's requests goes to other processes of it.
mod canaries;
// Who uses which version: counts and report.
mod version_report;
// Versions that are deprecated, switched off for a while, or retired; and the list of versions.
mod life_cycle;
// Several addresses of a version: balancing, health, retries.
mod balancing;
// Login by redirect.
mod redirect_login;
// Login by polling.
mod polling_login;
// Requests that wait for the outcome of a polling login.
mod waiting_checks;
// The page of a polling login.
mod polling_page;
// Login and error pages in a real browser.
mod real_browser;
// Attacks on a login.
mod login_attacks;
// Floods of logins and callbacks.
mod login_floods;
// Where a login may send the browser.
mod return_to;
// A login is valid only for its application.
mod application_isolation;
// Faults of the provider.
mod provider_faults;
// Use and end of a credential.
mod sessions;
// Endpoints of a version's own: a person's events, by page.
mod events;
// Routes with accounts: the gateway checks the credential.
mod accounts;
// The example backends in other languages.
mod examples;
// Many applications, and the commands that manage them.
mod applications;
// Changing and importing applications.
mod administration;
// Invalid configuration.
mod configuration;
// Every key of every example, changed while the program runs.
mod every_key;
// Reload of the gateway's configuration.
mod reload_gateway;
// Reload of a backend's configuration.
mod reload_backend;
// Another user's process at the socket of the commands.
mod control_socket;
// Traces: spans of gateway and backend, at a collector that works, stalls, refuses or is gone.
mod tracing;
// A log whose reader stalls.
mod stalled_log;
// Logs in files: rotation, full disks, sampling, the fields of JSON.
mod log_files;
// Connections that clients leave open.
mod open_connections;
// Graceful shutdown: requests and logins in flight.
mod shutdown;
// An upgrade to a new process, and a stop, without loss under load.
mod upgrade;
// Warnings and rejected settings at the start.
mod warnings;
// A mixed load: forms, aborted requests, a short outage of a backend.
mod mixed_load;
// Idle memory and start time.
mod footprint;
// Metrics of the gateway's state: connections, protection, backends, operation.
mod metrics_state;
// The command line, and the log.
mod commands;
// The table of metrics, against what is served; what dashboard and alerts use of it.
mod metrics_table;
// The dashboard, the alerts and the metrics, read by a real Prometheus.
mod prometheus;
// Every problem code in every language.
mod codes;
// Metrics of the login service and of the store, and the listener that shows them.
mod metrics_login;
// Several gateways, several backends of each version.
mod topology;
// Outages of the store: stopped, killed or frozen Postgres, and recovery.
mod store_faults;
// Clients that disconnect during store calls.
mod cancelled_calls;
// Moving from SQLite to Postgres.
mod store_copy;
// Installation: containers, systemd, TLS in front.
mod deployment;
