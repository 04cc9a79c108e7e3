//! The whole installation: gateway, login service and provider, as clients and people use them, where it does not matter
//! which store they have. One module per subject.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue fails at that line"
)]

// The sandbox provider on its own: it is as strict as real providers.
mod sandbox;
// Paths of one or several versions that go to a backend of their own.
mod routes;
// Each backend has a secret of its own.
mod backend_secrets;
// A version moves to another address.
mod shift;
// A share of a version's requests goes to other processes of it.
mod canaries;
// Versions that are deprecated, switched off for a while, or retired; and the list of versions.
mod life_cycle;
// Several addresses of a version: balancing, health, retries.
mod balancing;
// The page of a polling login.
mod polling_page;
// Login and error pages in a real browser.
mod real_browser;
// Faults of the provider.
mod provider_faults;
// Each kind of provider, and the page to choose one.
mod providers;
// Calls to a provider by a forward proxy.
mod forward_proxy;
// Logins by OpenID Connect.
mod openid;
// The example backends in other languages.
mod examples;
// The example APIs of JSON, whose programs know nothing of Signpost.
mod json_apis;
// Every problem code in every language.
mod codes;
// The client libraries: vectors, calls, logins, the first call.
mod clients;
// Clients that generators make of a version's description; Postman.
mod generated_clients;
// A login in a terminal.
mod login_in_terminal;
// Sign Doctor in a terminal.
mod doctor;
mod doctor_agrees;
// Typical mistakes of client programs, and the response to each.
mod mistakes;
// Backup and restore of a SQLite database.
mod backup;
// The example of a bridge between versions 1 and 2.
mod bridges;
// A bridge with a converter, in each language of the examples.
mod converters;
// Moving from SQLite to Postgres.
mod store_copy;
