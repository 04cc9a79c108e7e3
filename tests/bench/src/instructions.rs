//! Instructions per request in user space, counted by callgrind.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use anyhow::{Context, ensure};
use serde::Serialize;

use crate::{
    case::Case,
    contestant::{Contestant, Places, Running, Setup},
    field::Field,
    load::{Load, Until},
    process::{CALLGRIND_FILE, Manner},
    progress::say,
    requests::Requests,
    rounds::Effort,
};

/// The cases that instructions are counted in.
const COUNTED: [Case; 5] = [Case::W1, Case::W2, Case::W3, Case::W6, Case::W7];

/// Few, so that each request is served by itself.
const CONNECTIONS: usize = 4;

/// Just-in-time compilers have seen enough by then.
const WARM_UP: u64 = 3000;

/// One contestant's instructions of one case.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Instructions {
    /// The contestant.
    pub contestant: Contestant,
    /// The case.
    pub case: Case,
    /// Per request.
    pub count: f64,
}

/// Counts for every contestant, each started anew in callgrind.
///
/// # Errors
///
/// valgrind is not there, or an answer is not as it should be.
pub fn count(
    field: &Field,
    places: &Places,
    contestants: &[Contestant],
    cases: &[Case],
    effort: &Effort,
) -> anyhow::Result<Vec<Instructions>> {
    let mut all = Vec::new();
    for &contestant in contestants
        .iter()
        .filter(|contestant| contestant.is_proxy())
    {
        let is_counted = |case: &&Case| COUNTED.contains(case) && contestant.does(**case);
        let counted: Vec<Case> = cases.iter().filter(is_counted).copied().collect();
        let setup = |case: Case| contestant.setup(case.setup());
        let setups: BTreeSet<Setup> = counted.iter().map(|&case| setup(case)).collect();
        for of_setup in setups {
            say(&format!(
                "instructions of {} ({of_setup:?})",
                contestant.title()
            ))?;
            let running = field.start(places, contestant, of_setup, Manner::Callgrind)?;
            for &case in counted.iter().filter(|&&case| setup(case) == of_setup) {
                let count = count_case(field, &running, case, effort)
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
    field: &Field,
    running: &Running,
    case: Case,
    effort: &Effort,
) -> anyhow::Result<f64> {
    let warm_up = WARM_UP.max(case.warm_up());
    let requests = Requests::new(case, warm_up + effort.counted, &field.keys);
    let mut load = Load::new(running.address, CONNECTIONS, &requests)?;
    load.closed(Until::Requests(warm_up))?;
    let control = |arguments: &[&str]| control(running, arguments);
    control(&["-i", "on"])?;
    load.closed(Until::Requests(effort.counted))?;
    control(&["-i", "off"])?;
    // Writes what was counted so far, and begins at zero again.
    let before = dumps(running.folder.path())?;
    control(&["-d"])?;
    let after = dumps(running.folder.path())?;
    let dump = after
        .difference(&before)
        .next()
        .context("callgrind wrote no dump")?;
    let dump = fs::read_to_string(running.folder.path().join(dump))?;
    let totals = dump.lines().find_map(|line| line.strip_prefix("totals: "));
    let total: f64 = totals.context("a dump without totals")?.trim().parse()?;
    Ok(total / effort.counted as f64)
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

/// The dumps that are there: their names have a number behind.
fn dumps(folder: &Path) -> anyhow::Result<BTreeSet<String>> {
    let start = format!("{CALLGRIND_FILE}.");
    let names =
        fs::read_dir(folder)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter(|name| name.starts_with(&start)).collect())
}
