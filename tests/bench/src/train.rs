//! Runs the cases with instrumented programs, which write their profile when they exit.

use anyhow::Context;

use crate::{
    case::Case,
    contestant::{Contestant, Environment},
    fleet::Fleet,
    load::{Load, Until},
    progress::print_line,
    requests::Requests,
};

/// Requests of each case: enough that the start has little weight in the profile.
const REQUESTS: u64 = 40_000;

/// Requests of W4: a download does the work of many.
const DOWNLOADS: u64 = 1000;

/// Requests of W9 and W12: a handshake, too.
const HANDSHAKES: u64 = 5000;

/// Trains Signpost and bare pingora.
///
/// # Errors
///
/// When one does not do the work, or does not exit.
pub fn train(environment: &Environment, contestants: &[Contestant]) -> anyhow::Result<()> {
    let mut fleet = Fleet::new(environment)?;
    fleet.start_all(environment, contestants, &Case::ALL)?;
    for case in Case::ALL {
        let count = match case {
            Case::W4 => DOWNLOADS,
            Case::W9 | Case::W12 => HANDSHAKES,
            _ => REQUESTS,
        };
        for &contestant in contestants
            .iter()
            .filter(|contestant| contestant.takes_part_in(case))
        {
            print_line(&format!(
                "training {} in {case}: {}",
                contestant.title(),
                case.title()
            ))?;
            let requests = Requests::new(case, count, &fleet.keys)?;
            let target = fleet.target(contestant, case);
            Load::new(target.address, case.connections(), &requests)?
                .closed(Until::Requests(count))
                .with_context(|| format!("{} in {case}", contestant.title()))?;
        }
    }
    fleet.stop_all()
}
