//! Changes to begin with, as the configuration has them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use signpost_bridge::{Container, Effect, JsonPath, Operation};
use signpost_management::reports::shadows::{Diff, PathDiff};
use signpost_openapi::{Finding, Report, Step};

/// The tables, line by line. What the counts do not tell stands in comments.
pub(super) fn lines(diff: &Diff) -> Vec<String> {
    let (version, to) = (&diff.version, &diff.to);
    let mut lines = vec![format!(
        "# What {} pairs of responses show. Read each change, then check it: signpost bridge check {version}",
        diff.pairs
    )];
    let mut names = BTreeSet::new();
    for route in &diff.routes {
        let draft = &route.draft;
        if draft.steps.is_empty() && draft.open.is_empty() {
            continue;
        }
        let (method, path) = route.route.split_once(' ').unwrap_or(("GET", &route.route));
        lines.push(String::new());
        for (path, advice) in &draft.open {
            let mut differences = route.differences.iter();
            let counts = differences.find(|diff| diff.path == *path);
            let counts = counts.map_or_else(String::new, |diff| counts_of(diff, to));
            lines.push(format!("# {path}: {advice}{counts}"));
        }
        if !draft.steps.is_empty() {
            lines.extend(head(version, method, path, &mut names));
            let steps = draft.steps.iter();
            let steps = steps.map(|(step, because)| format!("{}, # {because}", shown(step)));
            lines.extend(list("response", steps));
        }
    }
    lines
}

/// A step as the configuration has it.
fn shown(Operation { path, effect }: &Operation) -> String {
    let within = |within: &Container| match within {
        Container::Array => "[]".to_owned(),
        Container::First => "[0]".to_owned(),
        Container::Object(name) => name.clone(),
    };
    let (key, beside) = match effect {
        Effect::Rename { to } => ("rename", Some(("to", to.clone()))),
        Effect::Move { to } => ("move", Some(("to", to.to_string()))),
        Effect::Copy { to } => ("copy", Some(("to", to.to_string()))),
        Effect::Wrap { within: to } => ("wrap", Some(("in", within(to)))),
        Effect::Unwrap { within: to } => ("unwrap", Some(("in", within(to)))),
        Effect::ToText => ("to_text", None),
        Effect::ToNumber => ("to_number", None),
        // The counts suggest no other one.
        _ => ("remove", None),
    };
    let beside = beside.map(|(key, value)| format!(", {key} = \"{value}\""));
    format!("{{ {key} = \"{path}\"{} }}", beside.unwrap_or_default())
}

/// The beginning of a change, with a name that no other one has.
fn head(version: &str, method: &str, path: &str, names: &mut BTreeSet<String>) -> [String; 4] {
    let name = name(method, path);
    let further = (2..).map(|number| format!("{name}_{number}"));
    let mut free = [name.clone()].into_iter().chain(further);
    let name = free.find(|name| names.insert(name.clone())).unwrap_or(name);
    [
        format!("[[versions.{version}.changes]]"),
        format!("name = \"{name}\""),
        format!("method = \"{method}\""),
        format!("paths = [\"{path}\"]"),
    ]
}

fn list(key: &str, steps: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let steps = steps.map(|step| format!("    {step}"));
    [format!("{key} = [")]
        .into_iter()
        .chain(steps)
        .chain(["]".to_owned()])
}

/// The tables, by what differs between two OpenAPI documents.
pub(super) fn lines_by_documents(report: &Report, version: &str) -> Vec<String> {
    let begin =
        "# What two OpenAPI documents show. Read each change: renames and moves are guesses.";
    let mut lines = vec![begin.to_owned()];
    let mut names = BTreeSet::new();
    for findings in report.broken() {
        lines.push(String::new());
        let operation = &findings[0].operation;
        let known = report.known(operation);
        let (groups, notes) = of_operation(&findings);
        lines.extend(notes.iter().map(|note| format!("# {operation}, {note}")));
        for ((status, group), known) in groups.into_iter().zip(known.into_iter().cycle()) {
            let path = pattern(&known.path);
            if path.len() < known.path.len() && !known.path.ends_with('}') {
                lines.push(format!("# {path} takes more than {}", known.path));
            }
            lines.extend(head(version, &known.method, &path, &mut names));
            lines.extend(status.map(|status| format!("status = [\"{status}\"]")));
            for (key, steps) in group {
                lines.extend(list(key, steps.into_iter().map(|step| format!("{step},"))));
            }
        }
    }
    lines
}

/// The steps of a change by their list; a change for each status of responses, by default for 2xx.
type Groups<'f> = BTreeMap<Option<String>, BTreeMap<&'static str, Vec<&'f Step>>>;

/// The steps for an operation, and what is left to a person.
fn of_operation<'f>(findings: &[&'f Finding]) -> (Groups<'f>, Vec<String>) {
    let (mut groups, mut notes) = (Groups::new(), Vec::new());
    for finding in findings {
        let status = finding
            .status
            .as_ref()
            .filter(|status| !status.starts_with('2'));
        let is_valid = |step: &&Step| is_valid(finding, step);
        let mut steps = finding.steps.iter().filter(is_valid).peekable();
        if steps.peek().is_none() {
            let advice = advice(&finding.kind);
            notes.push(format!("{}: {}. {advice}", finding.place, finding.text));
        }
        for step in steps {
            let group = groups
                .entry(status.map(|status| status.to_lowercase()))
                .or_default();
            let list = group.entry(step.list).or_default();
            if !list.contains(&step) {
                list.push(step);
            }
        }
    }
    (groups, notes)
}

/// Whether the configuration can have a step.
fn is_valid(finding: &Finding, step: &Step) -> bool {
    let is_place = |(key, at): &(&str, Value)| match (*key, at.as_str()) {
        ("to", Some(to)) if step.keys[0].0 == "move" => is_path(to),
        ("to" | "in" | "value" | "status", _) => true,
        (_, at) => step.list == "request" || at.is_some_and(is_path),
    };
    finding.status.as_deref() != Some("default") && step.keys.iter().all(is_place)
}

/// The path of an operation as that of a change: all below its first variable.
fn pattern(path: &str) -> String {
    let Some((before, _)) = path.split_once('{') else {
        return path.to_owned();
    };
    before[..before.rfind('/').map_or(0, |at| at + 1)].to_owned()
}

fn advice(kind: &str) -> &'static str {
    match kind {
        "path-removed"
        | "operation-removed"
        | "property-removed"
        | "required-property-added"
        | "required-parameter-added"
        | "request-body-added"
        | "request-body-removed"
        | "media-type-removed"
        | "parameter-moved"
        | "type-changed" => "No step can do that: a converter",
        _ => "Look at it",
    }
}

/// How it differs.
fn counts_of(diff: &PathDiff, to: &str) -> String {
    let counts = [
        (diff.missing, format!("missing in {to}")),
        (diff.extra, "only there".to_owned()),
        (diff.other_type, "of another type".to_owned()),
        (diff.value, "of another value".to_owned()),
    ];
    let counts = counts.iter().filter(|(number, _)| *number > 0);
    let counts: Vec<_> = counts
        .map(|(number, how)| format!("{number} {how}"))
        .collect();
    let [here, there] = diff.shapes.clone().unwrap_or_default();
    format!(". {}; {here}, there {there}", counts.join(", "))
}

fn is_path(path: &str) -> bool {
    path.parse::<JsonPath>().is_ok() && !path.contains('*')
}

/// A name of `[a-z0-9_]`.
fn name(method: &str, path: &str) -> String {
    let text = format!("{method}{path}").to_ascii_lowercase();
    let letters = text.chars().map(|letter| match letter {
        'a'..='z' | '0'..='9' => letter,
        _ => '_',
    });
    let name: String = letters.take(60).collect();
    name.trim_end_matches('_').to_owned()
}
