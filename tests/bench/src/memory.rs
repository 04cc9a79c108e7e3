//! Resident memory: idle, and with idle connections.

use anyhow::Context;
use serde::Serialize;

use crate::{
    case::Case,
    contestant::{Contestant, Places, Setup},
    field::Field,
    load::{Load, Until},
    progress::say,
    requests::Requests,
    rounds::Effort,
};

/// Requests before memory is looked at.
const WARM_UP: u64 = 20_000;

/// Connections that are opened at a time: fewer than any backlog holds.
const AT_A_TIME: usize = 64;

/// One contestant's memory, in KiB.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    /// The contestant.
    pub contestant: Contestant,
    /// After a warm-up, without connections.
    pub idle_kib: u64,
    /// With so many idle connections, each of which has served one request: number and KiB.
    pub connected: Vec<(usize, u64)>,
}

/// Looks at every contestant, each started anew for it.
///
/// # Errors
///
/// An answer is not as it should be, or a connection does not stay open.
pub fn measure(
    field: &Field,
    places: &Places,
    contestants: &[Contestant],
    effort: &Effort,
) -> anyhow::Result<Vec<Memory>> {
    let proxies = contestants
        .iter()
        .copied()
        .filter(|contestant| contestant.is_proxy());
    proxies
        .map(|contestant| look_at(field, places, contestant, effort))
        .collect()
}

fn look_at(
    field: &Field,
    places: &Places,
    contestant: Contestant,
    effort: &Effort,
) -> anyhow::Result<Memory> {
    say(&format!("memory of {}", contestant.title()))?;
    let running = field.start(places, contestant, Setup::Single, places.manner())?;
    let requests = Requests::new(Case::W1, 0, &field.keys);
    Load::new(running.address, Case::W1.connections(), &requests)?
        .closed(Until::Requests(WARM_UP))?;
    let idle_kib = running.process.resident_kib()?;
    let mut loads = Vec::new();
    let mut open = 0;
    let mut connected = Vec::new();
    for count in effort.idle {
        let mut load = Load::new(running.address, count - open, &requests)?;
        load.each_once(AT_A_TIME)?;
        loads.push(load);
        open = count;
        connected.push((count, running.process.resident_kib()?));
    }
    // Had one been closed meanwhile, this would fail.
    for load in &mut loads {
        load.each_once(AT_A_TIME)
            .with_context(|| format!("{} did not keep its connections", contestant.title()))?;
    }
    Ok(Memory {
        contestant,
        idle_kib,
        connected,
    })
}
