//! Backends: their addresses, and those that an operator takes out for a time, at all gateways of a store. They get no new
//! requests, and their requests in flight finish.
//!
//! This decides what is drained; `routing::drained` applies it at each gateway.

use std::{net::SocketAddr, time::Duration};

use clap::Args;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use signpost_kit::clock::Timestamp;
use signpost_proxy::{
    AddressHealth, AddressStatus, BackendStatus, DrainedAddress, as_rfc3339, availability,
    parse_short_duration, rfc3339,
};
use signpost_store::{
    Changed, FromRow, Row, Store, StoreError,
    tables::audit::{Action, Audit, Author, Entry},
    values,
};
use utoipa::ToSchema;

use super::{
    Context, Face, Input, Operation, Output, Result,
    input::{List, NamedPage, Text, not_allowed},
    problem::{ApiError, Code},
};
use crate::administration::rules::Reason;

/// Limits of a draining: it ends by itself.
const MIN_DURATION: Duration = Duration::from_secs(1);
const MAX_DURATION: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Limit of a change's attempts: one fails if another operator changes the same backend concurrently.
const MAX_ATTEMPTS: usize = 64;

pub(super) fn all<F: Face>(face: F) -> F {
    face.add(&LIST).add(&DRAIN).add(&UNDRAIN)
}

/// A backend, as the gateway that was called sees it.
#[derive(Serialize, ToSchema)]
pub(crate) struct BackendItem {
    /// Its name: for example `v2`, or `v2 (canary next)`.
    pub backend: String,
    /// Its addresses; those of names as last resolved.
    pub addresses: Vec<AddressItem>,
    /// Requests in flight to addresses that a reload has removed.
    leaving: usize,
}

/// An address of a backend.
#[derive(Serialize, ToSchema)]
pub(crate) struct AddressItem {
    #[serde(flatten)]
    pub status: AddressStatus,
    /// When it gets requests again, if an operator has drained it.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub drained_until: Option<Timestamp>,
}

/// Lists the backends.
pub(crate) const LIST: Operation<(), NamedPage, List<BackendItem>> = Operation::read(
    "/api/v1/backends",
    "Lists the backends with their addresses.",
    |context, (), page| Box::pin(list(context, page)),
);

async fn list(context: &Context, page: NamedPage) -> Result<List<BackendItem>> {
    let drained = drained_at(&context.store, context.caller.at).await?;
    let items = context.backends().into_iter().map(|backend| {
        let addresses = backend.addresses.into_iter().map(|status| {
            let mut drained = drained.iter().filter(|one| one.backend == backend.backend);
            let drained = drained.find(|one| one.address.to_string() == status.address);
            AddressItem {
                status,
                drained_until: drained.map(|drained| drained.until),
            }
        });
        BackendItem {
            addresses: addresses.collect(),
            backend: backend.backend,
            leaving: backend.leaving,
        }
    });
    Ok(page.of(items.collect(), |item| &item.backend)?)
}

/// An address to take out.
#[derive(Args, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainInput {
    /// The backend's name.
    #[arg(help = BACKEND_HELP)]
    pub backend: String,
    /// An IP address and a port.
    #[arg(help = ADDRESS_HELP)]
    #[serde(deserialize_with = "address")]
    #[schema(value_type = String)]
    pub address: SocketAddr,
    /// After this time it gets requests again.
    #[arg(long = "for", value_name = "DURATION", value_parser = seconds, help = "For how long, 1 second to 7 days: 10m, 1h30m or 2d")]
    #[schema(minimum = 1, maximum = 604_800)]
    pub seconds: u64,
    /// Also if the backend has no other address that is available: its requests are rejected then.
    #[arg(long)]
    #[serde(default)]
    pub force: bool,
    /// Why, for the audit: up to 200 characters.
    #[arg(long, value_name = "TEXT")]
    #[schema(value_type = Option<String>)]
    pub reason: Option<Text<Reason>>,
}

const BACKEND_HELP: &str =
    "The backend, as versions list shows it: for example v2, or \"v2 (canary next)\"";
const ADDRESS: &str = "an IP address and a port";
const ADDRESS_HELP: &str = "Its address, as versions list shows it: an IP address and a port";

fn seconds(text: &str) -> Result<u64, &'static str> {
    let duration = parse_short_duration(text).as_ref().map(Duration::as_secs);
    duration.ok_or("allowed: a duration as 10m, 1h30m, 2d")
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let address = String::deserialize(deserializer)?.parse();
    address.map_err(|_| not_allowed(ADDRESS))
}

/// The address that a field of a form has.
pub(crate) fn address_of(text: &str) -> Result<SocketAddr, ApiError> {
    let address = text.parse();
    address.map_err(|_| ApiError::invalid("address", ADDRESS))
}

impl Input for DrainInput {}
impl Output for DrainedAddress {}

/// Drains an address.
pub(crate) const DRAIN: Operation<(), DrainInput, DrainedAddress> = Operation::change(
    "/api/v1/backends/drain",
    "Takes an address of a backend out, at all gateways within a second: it gets no new requests, those in flight finish, \
     and it comes back by itself. An address that is drained already is drained for this time from now on.",
    |context, (), input| Box::pin(async move { drain(context, &context.backends(), input).await }),
);

/// Drains an address, or changes the end of its drain. `backends` are the configured backends.
///
/// # Errors
///
/// There is no such address, the time is out of its limits, or no other address is left and it is not forced.
pub async fn drain(
    context: &Context,
    backends: &[BackendStatus],
    input: DrainInput,
) -> Result<DrainedAddress> {
    let at = context.caller.at;
    let new = DrainedAddress {
        backend: input.backend,
        address: input.address,
        until: at.plus(Duration::from_secs(input.seconds)),
        is_forced: input.force,
    };
    let author = context.author(input.reason);
    add(&context.store, &new, backends, &author, at).await?;
    Ok(new)
}

/// An address that gets requests again.
#[derive(Args, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UndrainInput {
    /// The backend's name.
    #[arg(help = BACKEND_HELP)]
    pub backend: String,
    /// An IP address and a port.
    #[arg(help = ADDRESS_HELP)]
    #[serde(deserialize_with = "address")]
    #[schema(value_type = String)]
    pub address: SocketAddr,
    /// Why, for the audit: up to 200 characters.
    #[arg(long, value_name = "TEXT")]
    #[schema(value_type = Option<String>)]
    pub reason: Option<Text<Reason>>,
}

impl Input for UndrainInput {}

/// What is no longer drained.
#[derive(Serialize, ToSchema)]
pub struct Undrained {
    /// The backend's name.
    pub backend: String,
    /// An IP address and a port.
    #[schema(value_type = String)]
    pub address: SocketAddr,
}

impl Output for Undrained {}

/// Ends a draining.
pub const UNDRAIN: Operation<(), UndrainInput, Undrained> = Operation::change(
    "/api/v1/backends/undrain",
    "Ends the draining of an address before its time.",
    |context, (), input| Box::pin(undrain(context, input)),
);

async fn undrain(context: &Context, input: UndrainInput) -> Result<Undrained> {
    let (backend, address, at) = (input.backend, input.address, context.caller.at);
    let author = context.author(input.reason);
    end(&context.store, &backend, address, &author, at).await?;
    Ok(Undrained { backend, address })
}

/// A backend's row: what a change has read, and replaces.
struct DrainedBackend {
    addresses: Vec<DrainedAddress>,
    stored: String,
}

/// An address as it is stored: with its end, and whether it is forced.
type StoredAddress = (SocketAddr, i64, bool);

impl FromRow for DrainedBackend {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        let (backend, stored): (String, String) = (row.get("backend")?, row.get("addresses")?);
        let addresses: Vec<StoredAddress> =
            serde_json::from_str(&stored).map_err(|_| StoreError::Malformed("addresses"))?;
        let address = |(address, until, is_forced)| DrainedAddress {
            backend: backend.clone(),
            address,
            until: Timestamp::from_millis(until),
            is_forced,
        };
        let addresses = addresses.into_iter().map(address).collect();
        Ok(Self { addresses, stored })
    }
}

/// Why a draining is not changed.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    /// No backend has the name.
    #[error("no backend has this name; there are: {known}")]
    UnknownBackend {
        /// The names that there are.
        known: String,
    },
    /// The backend has no such address.
    #[error("the backend does not have this address; it has: {known}")]
    UnknownAddress {
        /// The addresses that it has.
        known: String,
    },
    /// It would end too soon or too late.
    #[error("an address is drained for 1 second to 7 days")]
    Duration,
    /// No other address would serve the backend's requests.
    #[error(
        "no other address of the backend is available and not drained: its requests would be rejected"
    )]
    NoOtherAddress,
    /// There is nothing to end.
    #[error("this address of the backend is not drained")]
    NotDrained,
    /// The store failed.
    #[error("the store is unavailable")]
    Store(#[from] StoreError),
}

impl From<DrainError> for ApiError {
    fn from(error: DrainError) -> Self {
        match error {
            DrainError::UnknownBackend { known } | DrainError::UnknownAddress { known } => {
                Self::from(Code::AddressNotFound).member("known", known)
            }
            DrainError::Duration => Self::invalid("seconds", "1 to 604800"),
            DrainError::NoOtherAddress => Code::LastAddress.into(),
            DrainError::NotDrained => Code::NotDrained.into(),
            DrainError::Store(error) => error.into(),
        }
    }
}

/// All drained addresses that are stored, also those whose draining has ended.
///
/// # Errors
///
/// The store is unavailable; the same holds for the other functions.
pub async fn all_drained(store: &Store) -> Result<Vec<DrainedAddress>, StoreError> {
    let query = "SELECT backend, addresses FROM drains ORDER BY backend";
    let rows: Vec<DrainedBackend> = store.rows(query, Vec::new()).await?;
    Ok(rows.into_iter().flat_map(|row| row.addresses).collect())
}

/// The addresses whose draining has not ended.
async fn drained_at(store: &Store, now: Timestamp) -> Result<Vec<DrainedAddress>, StoreError> {
    let mut all = all_drained(store).await?;
    all.retain(|one| one.until > now);
    Ok(all)
}

async fn add(
    store: &Store,
    new: &DrainedAddress,
    backends: &[BackendStatus],
    author: &Author,
    at: Timestamp,
) -> Result<(), DrainError> {
    if !(MIN_DURATION..=MAX_DURATION).contains(&new.until.since(at)) {
        return Err(DrainError::Duration);
    }
    let addresses = addresses_with(new, backends)?;
    change(store, &new.backend, at, |drained| {
        if !new.is_forced && !leaves_another(new, addresses, drained) {
            return Err(DrainError::NoOtherAddress);
        }
        let old = take(drained, new.address);
        drained.push(new.clone());
        Ok(audit(
            Action::DrainBackend,
            old.as_ref(),
            Some(new),
            author,
            at,
        ))
    })
    .await
}

async fn end(
    store: &Store,
    backend: &str,
    address: SocketAddr,
    author: &Author,
    at: Timestamp,
) -> Result<(), DrainError> {
    change(store, backend, at, |drained| {
        let old = take(drained, address).ok_or(DrainError::NotDrained)?;
        Ok(audit(Action::UndrainBackend, Some(&old), None, author, at))
    })
    .await
}

/// Changes what is drained of a backend and has not ended, if nothing else has changed it since `change` has seen it.
async fn change(
    store: &Store,
    backend: &str,
    at: Timestamp,
    change: impl Fn(&mut Vec<DrainedAddress>) -> Result<Audit, DrainError>,
) -> Result<(), DrainError> {
    let query = "SELECT backend, addresses FROM drains WHERE backend = $1";
    let replace = "INSERT INTO drains (backend, addresses, until) VALUES ($1, $2, $3) \
                   ON CONFLICT (backend) DO UPDATE \
                   SET addresses = excluded.addresses, until = excluded.until \
                   WHERE drains.addresses = $4";
    let delete = "DELETE FROM drains WHERE backend = $1 AND addresses = $2";
    for _ in 0..MAX_ATTEMPTS {
        let row: Option<DrainedBackend> = store.row(query, values![backend]).await?;
        let (drained, stored) = row.map(|row| (row.addresses, row.stored)).unzip();
        let mut drained: Vec<_> = drained.unwrap_or_default();
        drained.retain(|one| one.until > at);
        let changed = Changed::Drain(change(&mut drained)?);
        let last = drained.iter().map(|one| one.until).max();
        let addresses = drained.iter();
        let addresses = addresses.map(|one| (one.address, one.until.as_millis(), one.is_forced));
        let addresses: Vec<StoredAddress> = addresses.collect();
        let (sql, values) = match last {
            Some(last) => (
                replace,
                values![backend, json!(addresses).to_string(), last, stored],
            ),
            None => (delete, values![backend, stored]),
        };
        if store.change(changed, (sql, "''"), values).await? > 0 {
            return Ok(());
        }
    }
    Err(StoreError::Busy.into())
}

/// Deletes the rows in which all has ended before this time.
pub async fn delete_ended(store: &Store, before: Timestamp) -> Result<(), StoreError> {
    let delete = "DELETE FROM drains WHERE until < $1";
    store.execute(delete, values![before]).await.map(drop)
}

fn take(drained: &mut Vec<DrainedAddress>, address: SocketAddr) -> Option<DrainedAddress> {
    let index = drained.iter().position(|one| one.address == address)?;
    Some(drained.remove(index))
}

/// The addresses of the backend, which must have the one to drain.
fn addresses_with<'b>(
    new: &DrainedAddress,
    backends: &'b [BackendStatus],
) -> Result<&'b [AddressStatus], DrainError> {
    let joined = |names: Vec<&str>| names.join(", ");
    let mut found = backends.iter();
    let Some(backend) = found.find(|one| one.backend == new.backend) else {
        let known = backends.iter().map(|one| &*one.backend).collect();
        return Err(DrainError::UnknownBackend {
            known: joined(known),
        });
    };
    let address = new.address.to_string();
    if !backend.addresses.iter().any(|one| one.address == address) {
        let known = backend.addresses.iter().map(|one| &*one.address).collect();
        return Err(DrainError::UnknownAddress {
            known: joined(known),
        });
    }
    Ok(&backend.addresses)
}

/// Whether another address would serve the backend's requests, as far as this gateway knows.
fn leaves_another(
    new: &DrainedAddress,
    addresses: &[AddressStatus],
    drained: &[DrainedAddress],
) -> bool {
    let address = new.address.to_string();
    let is_drained = |one: &AddressStatus| {
        let mut drained = drained.iter();
        drained.any(|drained| drained.address.to_string() == one.address)
    };
    let others = addresses.iter().cloned();
    let others = others.filter(|one| one.address != address && !is_drained(one));
    let others: Vec<_> = others
        .map(|one| match one.health {
            // The store knows better: this gateway has not read it yet.
            AddressHealth::Drained => AddressStatus {
                health: AddressHealth::Unchecked,
                ..one
            },
            _ => one,
        })
        .collect();
    availability(&others) != Some(false)
}

/// What the audit says of a change.
fn audit(
    action: Action,
    old: Option<&DrainedAddress>,
    new: Option<&DrainedAddress>,
    author: &Author,
    at: Timestamp,
) -> Audit {
    let mut changes = Map::new();
    let mut change = |name: &str, value: &dyn Fn(&DrainedAddress) -> Value| {
        let (old, new) = (old.map(value), new.map(value));
        if old != new {
            changes.insert(name.to_owned(), json!([old, new]));
        }
    };
    change("until", &|one| rfc3339(one.until).into());
    change("forced", &|one| one.is_forced.into());
    let subject = old.or(new);
    let subject = subject.map(|one| format!("{} {}", one.backend, one.address));
    let entry = Entry {
        subject: subject.unwrap_or_default(),
        revision: 0,
        changes: Value::Object(changes).to_string(),
    };
    Audit::of_one(at, author.clone(), action, entry)
}

#[cfg(test)]
mod both_stores {
    use signpost_store::{
        tables::audit::{self, Filter},
        testing::TestStore,
    };

    use super::*;
    use crate::administration::apps::both_stores::author;

    const NOW: Timestamp = Timestamp::from_millis(1_793_491_200_000);

    fn at(seconds: u64) -> Timestamp {
        NOW.plus(Duration::from_secs(seconds))
    }

    fn backends() -> Vec<BackendStatus> {
        let address = |address: &str, health| AddressStatus {
            address: address.to_owned(),
            health,
            in_flight: None,
        };
        let backend = |name: &str, addresses| BackendStatus {
            backend: name.to_owned(),
            addresses,
            leaving: 0,
            responses: Default::default(),
        };
        let (healthy, unhealthy) = (AddressHealth::Healthy, AddressHealth::Unhealthy);
        vec![
            backend(
                "v1",
                vec![
                    address("127.0.0.1:1", healthy),
                    // It was drained until a moment ago.
                    address("127.0.0.1:2", AddressHealth::Drained),
                    address("127.0.0.1:3", unhealthy),
                ],
            ),
            backend("v2", vec![address("127.0.0.1:4", healthy)]),
        ]
    }

    fn address(backend: &str, port: u16, until: Timestamp) -> DrainedAddress {
        DrainedAddress {
            backend: backend.to_owned(),
            address: ([127, 0, 0, 1], port).into(),
            until,
            is_forced: false,
        }
    }

    #[tokio::test]
    async fn an_address_is_drained_for_a_time_and_each_change_has_its_audit_row() {
        let test = TestStore::chosen();
        let store = test.open().await;
        let drain =
            async |new: &DrainedAddress, at| add(&store, new, &backends(), &author(), at).await;
        let one = address("v1", 1, at(60));
        drain(&one, NOW).await.unwrap();
        assert_eq!(
            drained_at(&store, NOW).await.unwrap(),
            std::slice::from_ref(&one)
        );
        // Another one must be left, and one that is unhealthy does not count.
        let two = address("v1", 2, at(60));
        assert!(matches!(
            drain(&two, NOW).await,
            Err(DrainError::NoOtherAddress)
        ));
        let forced = DrainedAddress {
            is_forced: true,
            ..two.clone()
        };
        drain(&forced, NOW).await.unwrap();
        // It is drained for longer, and is not forced any more once the first one is back.
        let longer = address("v1", 2, at(600));
        drain(&longer, at(60)).await.unwrap();
        assert_eq!(drained_at(&store, at(60)).await.unwrap(), [longer]);
        let undrain = async |at| {
            let address = two.address;
            end(&store, "v1", address, &author(), at).await
        };
        undrain(at(61)).await.unwrap();
        assert!(matches!(undrain(at(62)).await, Err(DrainError::NotDrained)));
        delete_ended(&store, at(61)).await.unwrap();
        assert_eq!(all_drained(&store).await.unwrap(), []);
        let rows = audit::page(&store, Filter::default(), 9).await.unwrap();
        let rows = rows.iter().rev();
        let rows: Vec<_> = rows
            .map(|row| format!("{} {} {}", row.action, row.entry.subject, row.entry.changes))
            .collect();
        let expected = [
            r#"backend.drain v1 127.0.0.1:1 {"forced":[null,false],"until":[null,"2026-11-01T00:01:00Z"]}"#,
            r#"backend.drain v1 127.0.0.1:2 {"forced":[null,true],"until":[null,"2026-11-01T00:01:00Z"]}"#,
            r#"backend.drain v1 127.0.0.1:2 {"forced":[null,false],"until":[null,"2026-11-01T00:10:00Z"]}"#,
            r#"backend.undrain v1 127.0.0.1:2 {"forced":[false,null],"until":["2026-11-01T00:10:00Z",null]}"#,
        ];
        assert_eq!(rows, expected);
    }

    #[tokio::test]
    async fn of_many_drainings_at_once_one_address_is_left() {
        let test = TestStore::chosen();
        let stores = [test.open().await, test.open().await];
        for round in 0..10 {
            let store = |number: usize| &stores[number % 2];
            let at_once = (0..16).map(async |number: usize| {
                let port = if number % 4 < 2 { 1 } else { 2 };
                let new = address("v1", port, at(60));
                let drained = add(store(number), &new, &backends(), &author(), NOW).await;
                match drained {
                    Ok(()) => true,
                    Err(DrainError::NoOtherAddress) => false,
                    Err(error) => panic!("round {round}: {error}"),
                }
            });
            let drained = futures_util::future::join_all(at_once).await;
            assert_eq!(drained.iter().filter(|is_drained| **is_drained).count(), 8);
            let left = all_drained(store(0)).await.unwrap();
            assert_eq!(left.len(), 1, "round {round}: {left:?}");
            let back = end(store(1), "v1", left[0].address, &author(), NOW).await;
            back.unwrap();
            assert_eq!(all_drained(store(0)).await.unwrap(), []);
        }
    }

    #[tokio::test]
    async fn what_cannot_be_drained_changes_nothing() {
        let test = TestStore::chosen();
        let store = test.open().await;
        for (new, expected) in [
            (address("v1", 1, NOW), "1 second to 7 days"),
            (address("v1", 1, at(7 * 86_400 + 1)), "1 second to 7 days"),
            (
                address("v1", 9, at(1)),
                "it has: 127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3",
            ),
            (address("v3", 1, at(1)), "there are: v1, v2"),
            (address("v2", 4, at(1)), "no other address"),
        ] {
            let error = add(&store, &new, &backends(), &author(), NOW).await;
            let error = error.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(all_drained(&store).await.unwrap(), []);
        let rows = audit::page(&store, Filter::default(), 9).await.unwrap();
        assert!(rows.is_empty());
    }
}
