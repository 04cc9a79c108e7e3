//! Resident memory: idle, and with idle connections.

use anyhow::Context;
use serde::Serialize;

use crate::{
    case::Case,
    contestant::{Contestant, Environment},
    fleet::Fleet,
    load::{Load, Until},
    progress::print_line,
    requests::Requests,
    rounds::Effort,
};

/// The cases in which memory is measured: one for each transport with keep-alive connections, and one with many
/// applications.
const MEASURED: [Case; 4] = [Case::W1, Case::W3, Case::W8, Case::W10];

/// Requests before memory is measured.
const WARM_UP: u64 = 20_000;

/// Connections opened at a time: fewer than any listen backlog holds.
const AT_A_TIME: usize = 64;

/// One contestant's memory in one case, in KiB.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    /// The contestant.
    pub contestant: Contestant,
    /// The case.
    pub case: Case,
    /// After a warm-up, without connections.
    pub idle_kib: u64,
    /// With idle connections, each of which has served one request: their number, and KiB.
    pub connected: Vec<(usize, u64)>,
}

/// Measures every contestant in each of these cases that has figures for memory, each newly started.
///
/// # Errors
///
/// When a response is not as expected, or a connection does not stay open.
pub fn measure(
    fleet: &Fleet,
    environment: &Environment,
    contestants: &[Contestant],
    cases: &[Case],
    effort: &Effort,
) -> anyhow::Result<Vec<Memory>> {
    let mut all = Vec::new();
    for case in MEASURED.into_iter().filter(|case| cases.contains(case)) {
        for &contestant in contestants {
            if contestant.is_proxy() && contestant.takes_part_in(case) {
                all.push(measure_one(fleet, environment, contestant, case, effort)?);
            }
        }
    }
    Ok(all)
}

fn measure_one(
    fleet: &Fleet,
    environment: &Environment,
    contestant: Contestant,
    case: Case,
    effort: &Effort,
) -> anyhow::Result<Memory> {
    print_line(&format!("memory of {} in {case}", contestant.title()))?;
    let setup = contestant.setup(case.setup());
    let running = fleet.start(environment, contestant, setup, environment.run_mode())?;
    let requests = Requests::new(case, 0, &fleet.keys)?;
    Load::new(running.address, case.connections(), &requests)?.closed(Until::Requests(WARM_UP))?;
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
        case,
        idle_kib,
        connected,
    })
}
