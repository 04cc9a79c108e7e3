//! The whole installation: gateway, login service, provider and store, as clients and people use them. One module per subject.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue fails at that line"
)]

// The sandbox provider on its own: it is as strict as real providers.
mod sandbox;
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
// Every problem code in every language.
mod codes;
// Several gateways, several backends of each version.
mod topology;
// Outages of the store: stopped, killed or frozen Postgres, and recovery.
mod store_faults;
// Clients that disconnect during store calls.
mod cancelled_calls;
// Moving from SQLite to Postgres.
mod store_copy;
