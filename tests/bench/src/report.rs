//! What was measured: as Markdown, as a chart, and as raw figures.

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
    progress::say,
    rounds::{Effort, Sample, Series},
};

/// All that a run found.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// What it was measured on.
    pub machine: Machine,
    /// Worker threads of each contestant.
    pub threads: usize,
    /// Whether little was measured, so that the figures mean nothing.
    pub is_quick: bool,
    /// How much was measured.
    pub effort: Effort,
    /// The rounds.
    pub series: Vec<Series>,
    /// Instructions in user space.
    pub instructions: Vec<Instructions>,
    /// Resident memory.
    pub memory: Vec<Memory>,
    /// How long all of it took.
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

    /// Microseconds on a processor for each request.
    pub fn cpu(&self, contestant: Contestant, case: Case) -> Option<f64> {
        self.median(contestant, case, |sample| sample.cpu_us)
    }

    /// Instructions for each request.
    pub fn instructions(&self, contestant: Contestant, case: Case) -> Option<f64> {
        let mut all = self.instructions.iter();
        all.find(|counted| counted.contestant == contestant && counted.case == case)
            .map(|counted| counted.count)
    }

    /// A contestant's memory.
    pub fn memory(&self, contestant: Contestant) -> Option<&Memory> {
        self.memory
            .iter()
            .find(|memory| memory.contestant == contestant)
    }

    /// The cases that were measured.
    pub fn cases(&self) -> Vec<Case> {
        let is_there = |case: &Case| self.series.iter().any(|series| series.case == *case);
        Case::ALL.into_iter().filter(is_there).collect()
    }

    /// The contestants that were measured.
    pub fn contestants(&self) -> Vec<Contestant> {
        let is_there =
            |one: &Contestant| self.series.iter().any(|series| series.contestant == *one);
        Contestant::ALL.into_iter().filter(is_there).collect()
    }
}

/// Writes `results.md`, `results.svg` and `results.json` into a folder.
///
/// # Errors
///
/// They cannot be written.
pub fn write(results: &Results, folder: &Path) -> anyhow::Result<()> {
    let raw = serde_json::to_string_pretty(results)?;
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(folder.join("results.md"), markdown(results)))
        .and_then(|()| fs::write(folder.join("results.svg"), chart::svg(results)))
        .and_then(|()| fs::write(folder.join("results.json"), raw + "\n"))
        .with_context(|| format!("cannot write into {}", folder.display()))?;
    Ok(say(&format!("written to {}", folder.display()))?)
}
