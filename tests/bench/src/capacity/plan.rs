//! All cells, one after the other, each store and each size anew.

use std::{path::Path, sync::Arc};

use anyhow::Context;
use end_to_end::folder::Folder;
use gateway::measured::new_app_key;
use serde::Serialize;

use super::{
    caller::Caller,
    effort::Effort,
    growth::{self, Growth},
    installation::{Applications, Installation},
    people::People,
    store::{Kind, Server, Store},
    work::{self, Operation},
};
use crate::{
    load::workers::{self, Served},
    progress::say,
    usage::Watched,
};

/// What all cells need.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The folder of the programs.
    pub programs: &'a Path,
    /// The Postgres, where one is measured.
    pub server: Option<&'a Server>,
}

impl Place<'_> {
    /// With the store's own process among those that are watched, where it has one.
    pub fn watching_the_store(&self, kind: Kind, watched: Watched) -> Watched {
        match (kind, self.server) {
            (Kind::Postgres, Some(server)) => watched.and("Postgres", server.id),
            _ => watched,
        }
    }
}

/// One operation on one store with so many accounts.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// What was done.
    pub operation: Operation,
    /// On what.
    pub store: Kind,
    /// With how many accounts.
    pub accounts: usize,
    /// What came out.
    pub served: Served,
}

/// Measures the operations with each number of accounts.
///
/// # Errors
///
/// A program does not start, or an answer is not as it should be.
pub fn operations(kind: Kind, effort: &Effort, place: &Place<'_>) -> anyhow::Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for accounts in effort.accounts {
        cells.extend(with_accounts(kind, accounts, effort, place)?);
    }
    Ok(cells)
}

/// Looks at the gateway with each number of applications.
///
/// # Errors
///
/// A program does not start, or an answer is not as it should be.
pub fn growth(kind: Kind, effort: &Effort, place: &Place<'_>) -> anyhow::Result<Vec<Growth>> {
    let counts = effort.applications.iter();
    counts
        .map(|&count| growth::measure(kind, count, effort, place))
        .collect()
}

fn with_accounts(
    kind: Kind,
    accounts: usize,
    effort: &Effort,
    place: &Place<'_>,
) -> anyhow::Result<Vec<Cell>> {
    let title = kind.title();
    say(&format!("{title}, {accounts} accounts: filling"))?;
    let folder = Folder::create();
    let store = Store::create(kind, place.server, folder.path())?;
    let people = People::settle(accounts, &mut *store.tables()?)?;
    let caller = Caller {
        app: None,
        key: new_app_key()?.expose().to_owned(),
    };
    let single = Applications::Single(&caller);
    let installation = Installation::configure(place.programs, &store.address, single)?;
    let provider = installation.start_provider()?;
    let v1 = installation.start_v1()?;
    let (gateway, _) = installation.start_gateway()?;
    let watched = Watched::default()
        .and("gateway", gateway.id())
        .and("v1", v1.id())
        .and("provider", provider.id());
    let watched = place.watching_the_store(kind, watched);
    let place = work::Place {
        gateway: installation.gateway,
        provider: installation.provider,
        caller,
        people: Arc::new(people),
    };
    let measure = |operation: Operation| {
        say(&format!(
            "{title}, {accounts} accounts: {}",
            operation.title()
        ))?;
        let workers = work::workers(operation, effort.workers, &place)?;
        let served = workers::run(workers, effort.cell(), &watched);
        Ok(Cell {
            operation,
            store: kind,
            accounts,
            served: served.with_context(|| format!("{title}, {}", operation.title()))?,
        })
    };
    Operation::ALL.into_iter().map(measure).collect()
}
