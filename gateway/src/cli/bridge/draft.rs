//! Changes to begin with, as the configuration has them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use signpost_bridge::JsonPath;
use signpost_management::reports::shadows::{Diff, PathDiff, RouteDiff};
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
        let (steps, notes) = of_route(route, to);
        if steps.is_empty() && notes.is_empty() {
            continue;
        }
        let (method, path) = route.route.split_once(' ').unwrap_or(("GET", &route.route));
        lines.push(String::new());
        lines.extend(notes.iter().map(|note| format!("# {note}")));
        if !steps.is_empty() {
            lines.extend(head(version, method, path, &mut names));
            lines.extend(list("response", steps.into_iter()));
        }
    }
    lines
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
    let breaking: Vec<_> = report
        .findings
        .iter()
        .filter(|one| one.is_breaking)
        .collect();
    for findings in breaking.chunk_by(|one, other| one.operation == other.operation) {
        lines.push(String::new());
        let operation = &findings[0].operation;
        let known = report
            .operations
            .iter()
            .find(|known| known.name == *operation);
        let (groups, notes) = of_operation(findings);
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

/// The steps that change the other version's responses, and what is left to a person.
fn of_route(route: &RouteDiff, to: &str) -> (Vec<String>, Vec<String>) {
    let (mut steps, mut notes, mut done) = (Vec::new(), Vec::new(), BTreeSet::new());
    for rename in &route.renames {
        let (Some(own), true) = (member(&rename.from), is_path(&rename.to)) else {
            continue;
        };
        if done.contains(&rename.from) || done.contains(&rename.to) {
            continue;
        }
        done.extend([rename.from.clone(), rename.to.clone()]);
        steps.push(format!(
            "{{ rename = \"{}\", to = \"{own}\" }}, # equal in {} of {}",
            rename.to, rename.equal, rename.of
        ));
    }
    for diff in &route.differences {
        if done.contains(&diff.path) {
            continue;
        }
        let is_below = done.iter().any(|done| is_part(&diff.path, done));
        match diff {
            _ if is_below => {}
            PathDiff {
                path,
                extra,
                missing: 0,
                other_type: 0,
                value: 0,
                ..
            } if *extra > 0 && member(path).is_some() => {
                done.insert(path.clone());
                steps.push(format!("{{ remove = \"{path}\" }},"));
            }
            diff => notes.push(note(diff, to)),
        }
    }
    (steps, notes)
}

fn note(diff: &PathDiff, to: &str) -> String {
    let PathDiff {
        path,
        missing,
        extra,
        other_type,
        value,
        ..
    } = diff;
    let [here, there] = diff.shapes.clone().unwrap_or_default();
    format!(
        "{path}: missing in {to} {missing}, only there {extra}, another type {other_type}, another value {value}; {here}, there {there}"
    )
}

fn is_path(path: &str) -> bool {
    path.parse::<JsonPath>().is_ok() && !path.contains('*')
}

/// The name of the member that a path ends with.
fn member(path: &str) -> Option<&str> {
    let (_, name) = path.rsplit_once('.').filter(|_| is_path(path))?;
    (!name.ends_with(']')).then_some(name)
}

/// Whether `path` leads to a part of the value at `of`.
fn is_part(path: &str, of: &str) -> bool {
    path.strip_prefix(of)
        .is_some_and(|rest| rest.starts_with(['.', '[']))
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
