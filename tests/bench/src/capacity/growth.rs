//! The gateway's start time and memory by the number of applications. Neither may grow with it; memory grows with the
//! cache's limit.

use end_to_end::folder::Folder;
use serde::Serialize;

use super::{
    applications,
    effort::Effort,
    installation::{Applications, Installation},
    plan::Environment,
    store::{Kind, Store},
    work::LookUp,
};
use crate::{
    load::workers::{self, Served, Until},
    progress::print_line,
    rounds::median,
    usage::Watched,
};

/// Limit on applications that send requests.
const MAX_CALLERS: usize = 100_000;

/// The gateway with a number of applications in the store.
#[derive(Clone, Debug, Serialize)]
pub struct Growth {
    /// The kind of store.
    pub store: Kind,
    /// Number of applications in the store.
    pub applications: usize,
    /// Median time from the program's start until it is ready, in milliseconds.
    pub start_ms: f64,
    /// Resident memory after the start, in KiB.
    pub idle_kib: u64,
    /// Number of applications that sent requests.
    pub calling: usize,
    /// The result of all requests, from the first on: most are of an application that is not cached.
    pub served: Served,
    /// Resident memory after the requests, in KiB.
    pub served_kib: u64,
}

/// Measures the gateway with `count` applications.
///
/// # Errors
///
/// When a program does not start, or a response is not as expected.
pub fn measure(
    kind: Kind,
    count: usize,
    effort: &Effort,
    environment: &Environment<'_>,
) -> anyhow::Result<Growth> {
    print_line(&format!("{}, {count} applications: filling", kind.title()))?;
    let folder = Folder::create();
    let store = Store::create(kind, environment.server, folder.path())?;
    let master_key = folder.path().join("master.key");
    let calling = count.min(MAX_CALLERS).min(effort.look_ups);
    let mut tables = store.tables()?;
    let callers = applications::insert(count, calling, &master_key, &mut *tables)?;
    drop(tables);

    print_line(&format!("{}, {count} applications", kind.title()))?;
    let multi = Applications::Multi(&master_key);
    let installation = Installation::configure(environment.programs, &store.address, multi)?;
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
    let watched = environment.watching_the_store(kind, watched);
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
