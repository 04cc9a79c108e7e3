//! The gateway's start and memory by the number of applications: neither may grow with it, only with the cache's bound.

use end_to_end::folder::Folder;
use serde::Serialize;

use super::{
    applications,
    effort::Effort,
    installation::{Applications, Installation},
    plan::Place,
    store::{Kind, Store},
    work::LookUp,
};
use crate::{
    load::workers::{self, Served, Until},
    progress::say,
    rounds::median,
    usage::Watched,
};

/// Most applications that call.
const CALLING: usize = 100_000;

/// The gateway with so many applications in the store.
#[derive(Clone, Debug, Serialize)]
pub struct Growth {
    /// Where they are.
    pub store: Kind,
    /// How many.
    pub applications: usize,
    /// From the program's start until it says that it is ready; the median.
    pub start_ms: f64,
    /// Resident memory then.
    pub idle_kib: u64,
    /// Of how many applications requests came.
    pub calling: usize,
    /// The requests, from the first on: most are of an application that is not remembered.
    pub served: Served,
    /// Resident memory after them.
    pub served_kib: u64,
}

/// Looks at it with so many applications.
///
/// # Errors
///
/// A program does not start, or an answer is not as it should be.
pub fn measure(
    kind: Kind,
    count: usize,
    effort: &Effort,
    place: &Place<'_>,
) -> anyhow::Result<Growth> {
    say(&format!("{}, {count} applications: filling", kind.title()))?;
    let folder = Folder::create();
    let store = Store::create(kind, place.server, folder.path())?;
    let master_key = folder.path().join("master.key");
    let calling = count.min(CALLING).min(effort.look_ups);
    let mut tables = store.tables()?;
    let callers = applications::settle(count, calling, &master_key, &mut *tables)?;
    drop(tables);

    say(&format!("{}, {count} applications", kind.title()))?;
    let multi = Applications::Multi(&master_key);
    let installation = Installation::configure(place.programs, &store.address, multi)?;
    let mut starts = Vec::new();
    for _ in 1..effort.starts {
        let (gateway, time) = installation.start_gateway()?;
        starts.push(time.as_secs_f64() * 1000.0);
        gateway.end()?;
    }
    let (gateway, time) = installation.start_gateway()?;
    starts.push(time.as_secs_f64() * 1000.0);
    let idle_kib = gateway.resident_kib()?;

    let v1 = installation.start_v1()?;
    let watched = Watched::default()
        .and("gateway", gateway.id())
        .and("v1", v1.id());
    let watched = place.watching_the_store(kind, watched);
    let workers = LookUp::workers(
        effort.workers,
        installation.gateway,
        callers,
        effort.look_ups,
    );
    let served = workers::run(workers, Until::Done, &watched)?;
    Ok(Growth {
        store: kind,
        applications: count,
        start_ms: median(starts),
        idle_kib,
        calling,
        served,
        served_kib: gateway.resident_kib()?,
    })
}
