//! The targets of Signpost, and whether they are met.

use crate::{case::Case, contestant::Contestant, report::Results};

/// A target.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The figure that it limits.
    pub what: String,
    /// The measured figure, if any.
    pub reached: Option<f64>,
    /// The upper limit.
    pub bound: f64,
    /// The better figure to aim for.
    pub aim: f64,
    /// The unit of its figures.
    pub unit: Unit,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A ratio of two figures.
    Ratio,
    /// MiB.
    Mebibytes,
}

/// Whether a target is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The figure is at the aim or better.
    Aim,
    /// The figure is within the limit.
    Met,
    /// The figure exceeds the limit.
    Missed,
    /// The figure was not measured in this run.
    NotMeasured,
}

impl Target {
    /// Compares the measured figure with limit and aim.
    pub(super) fn verdict(&self) -> Verdict {
        match self.reached {
            None => Verdict::NotMeasured,
            Some(reached) if reached <= self.aim => Verdict::Aim,
            Some(reached) if reached <= self.bound => Verdict::Met,
            Some(_) => Verdict::Missed,
        }
    }
}

impl Verdict {
    /// Its text in the table.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Aim => "met, at the aim",
            Self::Met => "met",
            Self::Missed => "**missed**",
            Self::NotMeasured => "not measured",
        }
    }
}

impl Unit {
    /// Formats a figure.
    pub(super) fn write(self, figure: f64) -> String {
        match self {
            Self::Ratio => format!("{figure:.2}"),
            Self::Mebibytes => format!("{figure:.1} MiB"),
        }
    }
}

/// All targets, with the measured figures.
pub(super) fn all(results: &Results) -> Vec<Target> {
    use Case::{W1, W2, W3, W4, W5, W6, W7, W8, W9, W10, W11};
    use Contestant::{BarePingora, NginxLua, NginxMap, Signpost};
    let ratio = |case: Case, of: Contestant, to: Case, bound: f64, aim: f64| {
        let against = if of == Signpost {
            to.to_string()
        } else {
            of.title().to_owned()
        };
        Target {
            what: format!("{case}: CPU per request, against {against}"),
            reached: results
                .cpu(Signpost, case)
                .zip(results.cpu(of, to))
                .map(|(own, other)| own / other),
            bound,
            aim,
            unit: Unit::Ratio,
        }
    };
    let mut targets = vec![
        ratio(W1, BarePingora, W1, 0.70, 0.55),
        ratio(W1, NginxMap, W1, 1.00, 0.85),
        ratio(W2, NginxMap, W2, 1.05, 0.90),
        ratio(W2, NginxLua, W2, 0.80, 0.65),
        ratio(W3, NginxLua, W3, 0.85, 0.70),
        ratio(W4, NginxMap, W4, 1.00, 0.85),
        ratio(W5, BarePingora, W5, 0.90, 0.75),
        ratio(W6, Signpost, W2, 1.05, 1.02),
        ratio(W7, NginxLua, W7, 0.70, 0.50),
        ratio(W8, NginxMap, W8, 1.00, 0.90),
        ratio(W9, NginxMap, W9, 1.10, 1.00),
        ratio(W10, NginxMap, W10, 1.00, 0.90),
        ratio(W11, NginxMap, W11, 1.00, 0.90),
    ];
    for case in [W1, W2] {
        let p99 = |one| results.median(one, case, |sample| sample.p99_us);
        targets.push(Target {
            what: format!(
                "{case}: p99 at the fixed rate, against {}",
                NginxMap.title()
            ),
            reached: p99(Signpost)
                .zip(p99(NginxMap))
                .map(|(own, other)| own / other),
            bound: 1.2,
            aim: 1.0,
            unit: Unit::Ratio,
        });
    }
    let memory = results.memory(Signpost, W1);
    let mebibytes = |kib: u64| kib as f64 / 1024.0;
    let connected = memory.and_then(|memory| {
        let mut counts = memory.connected.iter();
        counts
            .find(|(count, _)| *count == 10_000)
            .map(|(_, kib)| mebibytes(*kib))
    });
    for (what, reached, bound, aim) in [
        (
            "resident with 10,000 idle connections",
            connected,
            100.0,
            60.0,
        ),
        (
            "resident when idle",
            memory.map(|memory| mebibytes(memory.idle_kib)),
            40.0,
            20.0,
        ),
    ] {
        targets.push(Target {
            what: what.to_owned(),
            reached,
            bound,
            aim,
            unit: Unit::Mebibytes,
        });
    }
    targets
}
