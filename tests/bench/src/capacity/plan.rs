//! All cells, one after the other, each with a new store.

use std::{path::Path, sync::Arc};

use anyhow::Context;
use end_to_end::folder::Folder;
use serde::Serialize;
use signpost_proxy::measured::new_app_key;

use super::{
    caller::Caller,
    effort::Effort,
    growth::{self, Growth},
    installation::{Applications, Installation},
    login::Step,
    people::People,
    store::{Kind, Server, Store},
    work::{self, Logins, Operation},
};
use crate::{
    load::workers::{self, Served, Until},
    progress::print_line,
    usage::Watched,
};

/// The programs and the server that all cells use.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a> {
    /// The folder of the programs.
    pub programs: &'a Path,
    /// The Postgres server, if Postgres is measured.
    pub server: Option<&'a Server>,
}

impl Environment<'_> {
    /// Adds the store's own process to the watched ones, if it has one.
    pub fn watching_the_store(&self, kind: Kind, watched: Watched) -> Watched {
        match (kind, self.server) {
            (Kind::Postgres, Some(server)) => watched.and("Postgres", server.id),
            _ => watched,
        }
    }
}

/// One operation on one store with a number of accounts.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The operation.
    pub operation: Operation,
    /// The kind of store.
    pub store: Kind,
    /// Number of accounts.
    pub accounts: usize,
    /// The result.
    pub served: Served,
}

/// One request of logins on one store.
#[derive(Clone, Debug, Serialize)]
pub struct StepCell {
    /// The request.
    pub step: Step,
    /// The kind of store.
    pub store: Kind,
    /// The result.
    pub served: Served,
}

/// Measures the operations with each number of accounts, and with the smallest number each request of a login alone.
///
/// # Errors
///
/// When a program does not start, or a response is not as expected.
pub fn operations(
    kind: Kind,
    effort: &Effort,
    environment: &Environment<'_>,
) -> anyhow::Result<(Vec<Cell>, Vec<StepCell>)> {
    let (mut cells, mut steps) = (Vec::new(), Vec::new());
    for &accounts in &effort.accounts {
        let (of_these, each) = with_accounts(kind, accounts, effort, environment)?;
        cells.extend(of_these);
        if steps.is_empty() {
            steps = each;
        }
    }
    Ok((cells, steps))
}

/// Measures the gateway with each number of applications.
///
/// # Errors
///
/// When a program does not start, or a response is not as expected.
pub fn growth(
    kind: Kind,
    effort: &Effort,
    environment: &Environment<'_>,
) -> anyhow::Result<Vec<Growth>> {
    let counts = effort.applications.iter();
    counts
        .map(|&count| growth::measure(kind, count, effort, environment))
        .collect()
}

fn with_accounts(
    kind: Kind,
    accounts: usize,
    effort: &Effort,
    environment: &Environment<'_>,
) -> anyhow::Result<(Vec<Cell>, Vec<StepCell>)> {
    let title = kind.title();
    print_line(&format!("{title}, {accounts} accounts: filling"))?;
    let folder = Folder::create();
    let store = Store::create(kind, environment.server, folder.path())?;
    let people = People::insert(accounts, &mut *store.tables()?)?;
    let caller = Caller {
        app: None,
        key: new_app_key()?.expose().to_owned(),
    };
    let single = Applications::Single(&caller);
    let installation = Installation::configure(environment.programs, &store.address, single)?;
    let provider = installation.start_provider()?;
    let v1 = installation.start_v1()?;
    let (gateway, _) = installation.start_gateway()?;
    let watched = Watched::default()
        .and("gateway", gateway.id())
        .and("v1", v1.id())
        .and("provider", provider.id());
    let watched = environment.watching_the_store(kind, watched);
    let shared = work::Shared {
        gateway: installation.gateway,
        provider: installation.provider,
        caller,
        people: Arc::new(people),
    };
    let measure = |operation: Operation| {
        print_line(&format!(
            "{title}, {accounts} accounts: {}",
            operation.title()
        ))?;
        let workers = work::workers(operation, effort.workers, &shared)?;
        let served = workers::run(workers, effort.cell(), &watched);
        Ok(Cell {
            operation,
            store: kind,
            accounts,
            served: served.with_context(|| format!("{title}, {}", operation.title()))?,
        })
    };
    let operations = effort.operations.iter().copied();
    let cells = operations.map(measure).collect::<anyhow::Result<_>>()?;
    Ok((cells, steps(kind, effort, &shared, &watched)?))
}

/// Measures each request of some logins alone: all of them take one step before the first takes the next.
fn steps(
    kind: Kind,
    effort: &Effort,
    shared: &work::Shared,
    watched: &Watched,
) -> anyhow::Result<Vec<StepCell>> {
    let mut before = Logins::of(&shared.people, effort.stepping);
    let measure = |step: Step| {
        let after = Logins::default();
        let workers = work::steppers(step, effort.workers, shared, (&before, &after));
        before = after;
        Ok(StepCell {
            step,
            store: kind,
            served: workers::run(workers, Until::Done, watched)?,
        })
    };
    Step::ALL.into_iter().map(measure).collect()
}
