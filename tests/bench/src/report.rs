//! The results: as Markdown, as a chart, and as raw figures.

mod chart;
mod table;
mod targets;
#[cfg(test)]
mod tests;

use std::{fs, path::Path};

use anyhow::Context;
use serde::Serialize;

pub use self::table::markdown;
use crate::{
    case::Case,
    contestant::Contestant,
    instructions::Instructions,
    machine::Machine,
    memory::Memory,
    progress::print_line,
    ramp::Step,
    rounds::{Effort, Sample, Series},
};

/// The results of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// The machine of the run.
    pub machine: Machine,
    /// Worker threads of each contestant.
    pub threads: usize,
    /// Whether it was a `--quick` run, whose figures mean nothing.
    pub is_quick: bool,
    /// How much was measured.
    pub effort: Effort,
    /// The rounds, by case and contestant.
    pub series: Vec<Series>,
    /// Instructions in user space.
    pub instructions: Vec<Instructions>,
    /// Resident memory.
    pub memory: Vec<Memory>,
    /// The ramp, by case, load and contestant.
    pub ramp: Vec<Step>,
    /// Duration of the run in seconds.
    pub seconds: u64,
}

impl Results {
    /// The rounds of a contestant in a case.
    pub fn series(&self, contestant: Contestant, case: Case) -> Option<&Series> {
        let mut all = self.series.iter();
        all.find(|series| series.contestant == contestant && series.case == case)
    }

    /// The median of a figure of a contestant in a case.
    pub fn median(
        &self,
        contestant: Contestant,
        case: Case,
        figure: impl Fn(&Sample) -> f64,
    ) -> Option<f64> {
        self.series(contestant, case)
            .map(|series| series.median(figure))
    }

    /// Microseconds of processor time per request.
    pub fn cpu(&self, contestant: Contestant, case: Case) -> Option<f64> {
        self.median(contestant, case, |sample| sample.cpu_us)
    }

    /// Instructions per request.
    pub fn instructions(&self, contestant: Contestant, case: Case) -> Option<f64> {
        let mut all = self.instructions.iter();
        all.find(|counted| counted.contestant == contestant && counted.case == case)
            .map(|counted| counted.count)
    }

    /// A contestant's memory in a case.
    pub fn memory(&self, contestant: Contestant, case: Case) -> Option<&Memory> {
        let mut all = self.memory.iter();
        all.find(|memory| memory.contestant == contestant && memory.case == case)
    }

    /// The cases that were measured.
    pub fn cases(&self) -> Vec<Case> {
        let ramp = self.ramp.iter().map(|step| &step.series);
        let cases: Vec<_> = self.series.iter().chain(ramp).map(|one| one.case).collect();
        let is_measured = |case: &Case| cases.contains(case);
        Case::ALL.into_iter().filter(is_measured).collect()
    }

    /// The contestants that were measured.
    pub fn contestants(&self) -> Vec<Contestant> {
        let is_measured =
            |one: &Contestant| self.series.iter().any(|series| series.contestant == *one);
        Contestant::ALL.into_iter().filter(is_measured).collect()
    }
}

/// Writes `results.md`, `results.svg` and `results.json` into a folder; of a ramp alone, `ramp.md` and `ramp.json`.
///
/// # Errors
///
/// When they cannot be written.
pub fn write(results: &Results, folder: &Path) -> anyhow::Result<()> {
    let raw = serde_json::to_string_pretty(results)? + "\n";
    let mut files = if results.series.is_empty() {
        vec![("ramp.json", raw)]
    } else {
        vec![("results.json", raw), ("results.svg", chart::svg(results))]
    };
    let tables = files[0].0.replace("json", "md");
    files.push((&tables, markdown(results)));
    fs::create_dir_all(folder)
        .and_then(|()| {
            files
                .iter()
                .try_for_each(|(name, text)| fs::write(folder.join(name), text))
        })
        .with_context(|| format!("cannot write into {}", folder.display()))?;
    Ok(print_line(&format!("written to {}", folder.display()))?)
}
