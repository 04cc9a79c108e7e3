//! Compares two documents: their operations, and of each what clients send and get.

mod operation;
mod security;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    document::Document,
    finding::{Action, Finding, Known, List, Place, Report, Step},
    schemas::{Difference, Direction, Schemas},
};

/// Limit of the findings of a report.
const MAX_FINDINGS: usize = 20_000;

const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace",
];

/// An operation of a document.
#[derive(Clone, Copy)]
struct Operation<'d> {
    document: &'d Document,
    /// As the document has it.
    path: &'d str,
    /// What the parameters of all operations of the path are in.
    item: &'d Value,
    value: &'d Value,
}

/// Operations by what identifies them: the path without the names of its variables, and the method.
type Operations<'d> = BTreeMap<(String, &'static str), Operation<'d>>;

/// Compares what two versions promise their clients.
///
/// `versions` are their names: a segment of a server's path that is one is left out, since the gateway serves it.
#[must_use]
pub fn compare(old: &Document, new: &Document, versions: [&str; 2]) -> Report {
    let mut comparison = Comparison {
        schemas: Schemas::new(old, new),
        report: Report::default(),
        operation: "*".to_owned(),
        new_paths: BTreeSet::new(),
    };
    let bases = [
        server_paths(old, versions[0]),
        server_paths(new, versions[1]),
    ];
    let (olds, mut news) = comparison.pair_paths([old, new], &bases);
    comparison.new_paths = news.keys().map(|(path, _)| path.clone()).collect();
    for ((path, method), operation) in &olds {
        comparison.begin(method, operation, &bases[0][0]);
        let other = match news.remove(&(path.clone(), *method)) {
            Some(other) => Some(other),
            None => comparison.find_moved(operation, (path, method), &olds, &mut news),
        };
        if let Some(other) = other {
            comparison.compare_operations(*operation, other);
        }
    }
    for ((_, method), operation) in news {
        comparison.operation = format!("{} {}", method.to_ascii_uppercase(), operation.path);
        comparison.add(Place::Operation, "operation-added", false, "is new");
    }
    for (name, _) in old.members(old.root(), "webhooks") {
        if new.root()["webhooks"].get(name).is_none() {
            comparison.operation = format!("webhook {name}");
            comparison.add(Place::Operation, "webhook-removed", true, "is gone");
        }
    }
    comparison.finish()
}

struct Comparison<'d> {
    schemas: Schemas<'d>,
    report: Report,
    /// The present operation.
    operation: String,
    /// Of all operations of the new document.
    new_paths: BTreeSet<String>,
}

impl<'d> Comparison<'d> {
    fn finish(mut self) -> Report {
        let findings = &mut self.report.findings;
        // Two types of content can have one schema.
        findings.dedup_by(|one, other| one == other);
        self.report.is_complete = self.schemas.is_complete && findings.len() <= MAX_FINDINGS;
        findings.truncate(MAX_FINDINGS);
        self.report
    }

    fn add(
        &mut self,
        place: Place,
        kind: &'static str,
        is_breaking: bool,
        text: impl Into<String>,
    ) {
        if self.report.findings.len() <= MAX_FINDINGS {
            self.report.findings.push(Finding {
                operation: self.operation.clone(),
                place,
                kind: kind.into(),
                is_breaking,
                text: text.into(),
                steps: Vec::new(),
            });
        }
    }

    /// Adds a step to the last finding.
    fn hint(&mut self, list: List, at: &str, action: Action) {
        let at = at.to_owned();
        if let Some(finding) = self.report.findings.last_mut() {
            finding.steps.push(Step { list, at, action });
        }
    }

    /// Compares two schemas; `place` makes the place of a path of it.
    fn compare_schemas(
        &mut self,
        direction: Direction,
        is_text: bool,
        [old, new]: [&'d Value; 2],
        place: impl Fn(String) -> Place,
    ) {
        (self.schemas.direction, self.schemas.is_text) = (direction, is_text);
        let present = |value: &'d Value| Some(value).filter(|value| !value.is_null());
        let values = |value| present(value).into_iter().collect::<Vec<_>>();
        let differences = self.schemas.compare(&values(old), &values(new));
        for difference in &*differences {
            let Difference {
                path,
                kind,
                effect,
                text,
                steps,
            } = difference.clone();
            if self.report.findings.len() > MAX_FINDINGS {
                break;
            }
            let steps = steps.into_iter().map(|mut step| {
                crate::hint::lift(&mut step, "$");
                step
            });
            self.report.findings.push(Finding {
                operation: self.operation.clone(),
                place: place(format!("${path}")),
                kind,
                is_breaking: effect.is_breaking(direction),
                text,
                steps: steps.collect(),
            });
        }
    }

    fn begin(&mut self, method: &str, operation: &Operation<'d>, base: &str) {
        let method = method.to_ascii_uppercase();
        self.operation = format!("{method} {}", operation.path);
        self.report.operations.push(Known {
            name: self.operation.clone(),
            method,
            path: format!("{base}{}", operation.path),
        });
    }

    /// The operations of both, by paths that can be compared.
    fn pair_paths(
        &mut self,
        [old, new]: [&'d Document; 2],
        [old_bases, new_bases]: &[Vec<String>; 2],
    ) -> (Operations<'d>, Operations<'d>) {
        let missing = old_bases.iter().find(|base| !new_bases.contains(base));
        let Some(missing) = missing else {
            return (operations(old, ""), operations(new, ""));
        };
        // A part of the server's path can have become a part of each path.
        let whole = (
            operations(old, &old_bases[0]),
            operations(new, &new_bases[0]),
        );
        if whole.0.keys().any(|key| whole.1.contains_key(key)) {
            return whole;
        }
        let text = format!("{} → {}", shown(missing), shown(&new_bases[0]));
        self.add(Place::Operation, "server-path-changed", true, text);
        self.hint(
            List::Request,
            shown(missing),
            Action::Path(shown(&new_bases[0]).to_owned()),
        );
        (operations(old, ""), operations(new, ""))
    }

    /// Reports an operation that is gone. The one with the same id, if only the beginning of the path differs.
    fn find_moved(
        &mut self,
        operation: &Operation<'d>,
        (path, method): (&str, &'static str),
        olds: &Operations<'d>,
        news: &mut Operations<'d>,
    ) -> Option<Operation<'d>> {
        let id = operation.value["operationId"].as_str();
        let is_moved = |((path, other), operation): &(&(String, &str), &Operation<'_>)| {
            id.is_some()
                && operation.value["operationId"].as_str() == id
                && *other == method
                && !olds.contains_key(&(path.clone(), method))
        };
        let Some(key) = news.iter().find(is_moved).map(|(key, _)| key.clone()) else {
            let kind = if self.new_paths.contains(path) {
                "operation-removed"
            } else {
                "path-removed"
            };
            self.add(Place::Operation, kind, true, "is gone");
            return None;
        };
        let other = news.remove(&key)?;
        self.add(
            Place::Operation,
            "operation-moved",
            true,
            format!("→ {}", other.path),
        );
        // The segments that both end with stay.
        let (from, to): (Vec<_>, Vec<_>) = (path.split('/').collect(), key.0.split('/').collect());
        let same = from
            .iter()
            .rev()
            .zip(to.iter().rev())
            .take_while(|(one, other)| one == other)
            .count();
        let (from, to) = (
            from[..from.len() - same].join("/"),
            to[..to.len() - same].join("/"),
        );
        if !from.contains('{') && !to.contains('{') && from.len() > 1 && to.len() > 1 {
            self.hint(List::Request, &from, Action::Path(to));
        }
        Some(other)
    }
}

fn shown(base: &str) -> &str {
    if base.is_empty() { "/" } else { base }
}

/// The paths of the servers, without a final `/`; of several hosts one can be the same.
fn server_paths(document: &Document, version: &str) -> Vec<String> {
    let servers = document.root()["servers"].as_array().into_iter().flatten();
    let mut paths: Vec<_> = servers
        .filter_map(|server| server_path(server, version))
        .collect();
    if paths.is_empty() {
        paths.push(String::new());
    }
    paths
}

fn server_path(server: &Value, version: &str) -> Option<String> {
    let mut url = server["url"].as_str()?.to_owned();
    for (name, variable) in server["variables"].as_object().into_iter().flatten() {
        url = url.replace(
            &format!("{{{name}}}"),
            variable["default"].as_str().unwrap_or_default(),
        );
    }
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
        None => &url,
    };
    let segments = path
        .split('/')
        .filter(|segment| !segment.is_empty() && *segment != version);
    Some(segments.map(|segment| format!("/{segment}")).collect())
}

fn operations<'d>(document: &'d Document, base: &str) -> Operations<'d> {
    let mut all = Operations::new();
    for (path, item) in document.members(document.root(), "paths") {
        let key = format!("{base}{}", with_variables(path, "{}"));
        for method in METHODS {
            let value = document.member(item, method);
            if value.is_object() {
                all.insert(
                    (key.clone(), method),
                    Operation {
                        document,
                        path,
                        item,
                        value,
                    },
                );
            }
        }
    }
    all
}

/// The path with `to` in place of its variables.
pub(crate) fn with_variables(path: &str, to: &str) -> String {
    let mut parts = path.split('{');
    let mut structure = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        structure.push_str(to);
        structure.push_str(part.split_once('}').map_or(part, |(_, rest)| rest));
    }
    structure
}

/// The names of a path's variables, in order.
fn variables(path: &str) -> Vec<&str> {
    let parts = path.split('{').skip(1);
    parts
        .filter_map(|part| Some(part.split_once('}')?.0))
        .collect()
}
