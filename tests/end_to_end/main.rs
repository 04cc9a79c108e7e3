//! End-to-end tests: each starts the built programs and calls them. One module per subject.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails at that very place"
)]

// The sandbox provider on its own: what it is strict about, a real one is strict about.
mod sandbox;

// The gateway in front of a recording backend.

// `time`, `sign`, profiles, hints, the replay memory.
mod signing;
// The replay memory.
mod replay;
// Every published vector.
mod vectors;
// What is refused reaches no backend.
mod verification;
// What passes arrives as sent.
mod forwarding;
// HTTP's strictness, limits and times.
mod strictness;
// What a backend answers, and what of it a client sees.
mod answers;
// Malformed and hostile answers of a backend.
mod hostile_answers;
// Idle connections to backends, which must be found again.
mod idle_connections;
// A backend's process that ends or freezes, at every moment of an exchange.
mod backend_faults;
// Bytes that could be read in two ways.
mod desync;
// The provider's redirect, and nothing but it, passes unsigned.
mod unsigned_way;
// How often unsigned requests may come from one address.
mod address_limit;
// What a log says of a request that was refused, and who it says sent it.
mod why_rejected;
// A client that reads nothing.
mod unread_answers;

// The whole installation.

// Which version serves a request.
mod versions;
// Several addresses of a version.
mod balancing;
// Logging in by redirect.
mod redirect_login;
// Logging in by polling.
mod polling_login;
// The page of a polling login.
mod polling_page;
// The same by a person in a real browser.
mod real_browser;
// What somebody with bad intentions would try on a login.
mod login_attacks;
// Strangers who begin logins in masses.
mod login_floods;
// Where a login may send the browser.
mod return_to;
// A login belongs to its application.
mod applications_apart;
// Whatever the provider does wrong.
mod provider_faults;
// What a credential is good for, and how it ends.
mod sessions;
// Many applications, and the commands that manage them.
mod applications;
// Changing applications, and bringing them along.
mod administration;
// Wrong configuration.
mod configuration;
// Every key of every example, changed while the program runs.
mod every_key;
// The gateway takes on a changed configuration while it runs.
mod reload_gateway;
// A backend takes on a changed configuration while it runs.
mod reload_backend;
// A log that nobody reads.
mod stalled_log;
// Connections that somebody leaves open.
mod open_connections;
// What becomes of everything in flight when a program is told to stop.
mod orderly_stop;
// What both programs warn of, and refuse, before anything is served.
mod warnings;
// Everything at once for a while: forms, aborted requests, a backend that is down for a moment.
mod mixed_load;
// Memory and start.
mod footprint;
// The command line, and the log.
mod commands;
// Every problem code in every language.
mod codes;
// Several gateways, several backends of each version.
mod topology;
// The store away, stopped, killed, frozen, and back.
mod store_faults;
// Clients that leave while the store works for them.
mod cancelled_calls;
// Moving from SQLite to Postgres.
mod store_copy;
// What installs it elsewhere: containers and systemd.
mod deployment;
