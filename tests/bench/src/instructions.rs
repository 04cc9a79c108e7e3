//! Instructions per request in user space, counted by callgrind.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use anyhow::{Context, ensure};
use serde::Serialize;

use crate::{
    case::{Case, Transport},
    contestant::{Contestant, Environment, Running, Setup},
    fleet::Fleet,
    load::{Load, Until},
    process::{CALLGRIND_FILE, RunMode},
    progress::print_line,
    requests::Requests,
    rounds::Effort,
};

/// The cases in which instructions are counted. How many reads a download of W4 takes differs too much.
const COUNTED: [Case; 12] = [
    Case::W1,
    Case::W2,
    Case::W3,
    Case::W5,
    Case::W6,
    Case::W7,
    Case::W8,
    Case::W9,
    Case::W10,
    Case::W11,
    Case::W12,
    Case::W13,
];

/// Few connections, so that requests are served one by one.
const CONNECTIONS: usize = 4;

/// Enough requests for just-in-time compilers to finish.
const WARM_UP: u64 = 3000;

/// How many times as many requests of a contestant with traces are counted: one in a hundred is sampled, and batches of
/// spans are exported every second.
pub const TRACED_FACTOR: u64 = 20;

/// One contestant's instructions in one case.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Instructions {
    /// The contestant.
    pub contestant: Contestant,
    /// The case.
    pub case: Case,
    /// Instructions per request.
    pub count: f64,
}

/// Counts for every contestant, each newly started under callgrind.
///
/// # Errors
///
/// When valgrind is missing, or a response is not as expected.
pub fn count(
    fleet: &Fleet,
    environment: &Environment,
    contestants: &[Contestant],
    cases: &[Case],
    effort: &Effort,
) -> anyhow::Result<Vec<Instructions>> {
    let mut all = Vec::new();
    for &contestant in contestants
        .iter()
        .filter(|contestant| contestant.is_proxy())
    {
        let is_counted = |case: &&Case| COUNTED.contains(case) && contestant.takes_part_in(**case);
        let counted: Vec<Case> = cases.iter().filter(is_counted).copied().collect();
        let setup = |case: Case| contestant.setup(case.setup());
        let setups: BTreeSet<Setup> = counted.iter().map(|&case| setup(case)).collect();
        for of_setup in setups {
            print_line(&format!(
                "instructions of {} ({of_setup:?})",
                contestant.title()
            ))?;
            let running = fleet.start(environment, contestant, of_setup, RunMode::Callgrind)?;
            for &case in counted.iter().filter(|&&case| setup(case) == of_setup) {
                let count = count_case(fleet, &running, case, effort)
                    .with_context(|| format!("{} in {case}", contestant.title()))?;
                all.push(Instructions {
                    contestant,
                    case,
                    count,
                });
            }
        }
    }
    Ok(all)
}

fn count_case(
    fleet: &Fleet,
    running: &Running,
    case: Case,
    effort: &Effort,
) -> anyhow::Result<f64> {
    // No contestant with a just-in-time compiler takes part over TLS.
    let warm_up = match case.transport() {
        Transport::Http => WARM_UP.max(case.warm_up()),
        _ => case.warm_up(),
    };
    let counted = match running.contestant {
        Contestant::SignpostTraced => TRACED_FACTOR * effort.counted,
        _ => effort.counted,
    };
    let requests = Requests::new(case, warm_up + counted, &fleet.keys)?;
    let mut load = Load::new(running.address, CONNECTIONS, &requests)?;
    load.closed(Until::Requests(warm_up))?;
    let control = |arguments: &[&str]| control(running, arguments);
    control(&["-i", "on"])?;
    load.closed(Until::Requests(counted))?;
    control(&["-i", "off"])?;
    // Dumps the count, and resets it.
    let before = dumps(running.folder.path())?;
    control(&["-d"])?;
    let after = dumps(running.folder.path())?;
    let dump = after
        .difference(&before)
        .next()
        .context("callgrind wrote no dump")?;
    let dump = fs::read_to_string(running.folder.path().join(dump))?;
    let totals = dump.lines().find_map(|line| line.strip_prefix("totals: "));
    let total: f64 = totals.context("the dump has no totals")?.trim().parse()?;
    Ok(total / counted as f64)
}

fn control(running: &Running, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("callgrind_control")
        .args(arguments)
        .arg(running.process.id().to_string())
        .output()
        .context("callgrind_control (valgrind) does not start")?;
    ensure!(
        output.status.success(),
        "callgrind_control {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// The names of the existing dumps.
fn dumps(folder: &Path) -> anyhow::Result<BTreeSet<String>> {
    let start = format!("{CALLGRIND_FILE}.");
    let names =
        fs::read_dir(folder)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter(|name| name.starts_with(&start)).collect())
}
