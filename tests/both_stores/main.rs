//! The whole installation, where its results can depend on the store: applications, logins, credentials, counts. These
//! tests run on SQLite and on Postgres. One module per subject.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue fails at that line"
)]

// Which version serves a request.
mod versions;
// Who uses which version: counts and report.
mod version_report;
// Endpoints that end before their version, and customers who need it longer.
mod version_ends;
// Copies of requests to another version, and what differs.
mod shadows;
// Login by redirect.
mod redirect_login;
// Login by polling.
mod polling_login;
// Requests that wait for the outcome of a polling login.
mod waiting_checks;
// Attacks on a login.
mod login_attacks;
// Floods of logins and callbacks.
mod login_floods;
// Where a login may send the browser.
mod return_to;
// A login is valid only for its application.
mod application_isolation;
// Use and end of a credential.
mod sessions;
// Logins that an operator ends.
mod ended_logins;
// Signing in to the console by the login service.
mod console_accounts;
// Renewal of a credential.
mod renewals;
// Endpoints of a version's own: a person's events, by page.
mod events;
// Routes with accounts: the gateway checks the credential.
mod accounts;
// Many applications, and the commands that manage them.
mod applications;
// Changing and importing applications.
mod administration;
// The management API, driven by its own description.
mod described_api;
// The versions of the login service, driven by their own descriptions.
mod wire_description;
// Kills of the gateway while its management API changes something.
mod api_kills;
// Events and reloads by the management APIs of two gateways.
mod api_streams;
// Rotations of the master key.
mod master_key;
// Several gateways, several backends of each version.
mod topology;
// Addresses of backends that are taken out by hand.
mod drains;
// The gateways of a store, as each describes itself.
mod gateways;
// Why a request was rejected, by all gateways of a store.
mod rejections;
// Outages of the store: stopped, killed or frozen Postgres, and recovery.
mod store_faults;
// A primary that fails over to another server.
mod failover;
// Poolers and limited engines between the programs and their Postgres.
mod fronts;
// A gateway during an outage of its Postgres: stale data, `/readyz`, the snapshot.
mod store_outage;
// Signatures that any number of gateways accept once.
mod shared_replays;
// Clients that disconnect during store calls.
mod cancelled_calls;
// Metrics of the login service and of the store, and the listener that shows them.
mod metrics_login;
// Stores and examples of earlier releases.
mod kept_releases;
