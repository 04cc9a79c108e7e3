//! The metrics that the programs describe, by their command `metrics`.

use std::{collections::BTreeSet, path::Path};

use serde_json::Value;

use crate::program::{Program, output_text};

/// A metric of a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Documented {
    /// Its name, as in Prometheus' text format.
    pub name: String,
    /// Its type in that format, where an `info` is a gauge.
    pub kind: String,
    /// The names of its labels.
    pub labels: BTreeSet<String>,
}

/// The metrics of a program, in their order.
///
/// # Panics
///
/// When one is malformed, or a name occurs twice.
#[must_use]
pub fn documented_by(program: Program) -> Vec<Documented> {
    let printed = program.run(Path::new("/"), &["metrics", "--json"]);
    let metrics: Vec<Value> = serde_json::from_str(&output_text(&printed)).expect("a list");
    let mut names = BTreeSet::new();
    let documented = |metric: &Value| {
        let text = |member: &str| {
            let text = metric[member].as_str().filter(|text| !text.is_empty());
            text.unwrap_or_else(|| panic!("{member} of {metric}"))
        };
        assert!(names.insert(text("name").to_owned()), "{metric} twice");
        assert!(text("meaning").ends_with('.'), "{metric}");
        let labels = metric["labels"].as_array().expect("a list");
        let labels = labels
            .iter()
            .map(|label| label.as_str().expect("a name").to_owned());
        let kind = text("type");
        assert!(
            ["counter", "gauge", "histogram", "info"].contains(&kind),
            "{metric}"
        );
        Documented {
            name: text("name").to_owned(),
            kind: if kind == "info" { "gauge" } else { kind }.to_owned(),
            labels: labels.collect(),
        }
    };
    metrics.iter().map(documented).collect()
}

/// The metrics of all programs.
#[must_use]
pub fn documented() -> BTreeSet<Documented> {
    let programs = [Program::Gateway, Program::V1].into_iter();
    programs.flat_map(documented_by).collect()
}
