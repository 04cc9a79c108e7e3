//! Resident memory: idle, and with idle connections.

use anyhow::Context;
use serde::Serialize;

use crate::{
    case::Case,
    contestant::{Contestant, Environment, Setup},
    fleet::Fleet,
    load::{Load, Until},
    progress::print_line,
    requests::Requests,
    rounds::Effort,
};

/// Requests before memory is measured.
const WARM_UP: u64 = 20_000;

/// Connections opened at a time: fewer than any listen backlog holds.
const AT_A_TIME: usize = 64;

/// One contestant's memory, in KiB.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    /// The contestant.
    pub contestant: Contestant,
    /// After a warm-up, without connections.
    pub idle_kib: u64,
    /// With idle connections, each of which has served one request: their number, and KiB.
    pub connected: Vec<(usize, u64)>,
}

/// Measures every contestant, each newly started.
///
/// # Errors
///
/// When an answer is not as expected, or a connection does not stay open.
pub fn measure(
    fleet: &Fleet,
    environment: &Environment,
    contestants: &[Contestant],
    effort: &Effort,
) -> anyhow::Result<Vec<Memory>> {
    let proxies = contestants
        .iter()
        .copied()
        .filter(|contestant| contestant.is_proxy());
    proxies
        .map(|contestant| measure_one(fleet, environment, contestant, effort))
        .collect()
}

fn measure_one(
    fleet: &Fleet,
    environment: &Environment,
    contestant: Contestant,
    effort: &Effort,
) -> anyhow::Result<Memory> {
    print_line(&format!("memory of {}", contestant.title()))?;
    let running = fleet.start(
        environment,
        contestant,
        Setup::Single,
        environment.run_mode(),
    )?;
    let requests = Requests::new(Case::W1, 0, &fleet.keys);
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
    // Fails if a connection has been closed meanwhile.
    for load in &mut loads {
        load.each_once(AT_A_TIME)
            .with_context(|| format!("{} did not keep its connections open", contestant.title()))?;
    }
    Ok(Memory {
        contestant,
        idle_kib,
        connected,
    })
}
