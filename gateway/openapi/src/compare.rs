//! Compares two documents: their operations, and of each what clients send and get.

mod operation;
mod security;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    document::Document,
    finding::{Finding, Known, Report, Step},
    schemas::{Difference, Direction, Schemas},
};

/// Limit of the findings of a report.
const MAX_FINDINGS: usize = 20_000;

const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace",
];

/// Where findings of an operation itself are.
const ITSELF: &str = "operation";

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
    };
    let bases = [
        server_paths(old, versions[0]),
        server_paths(new, versions[1]),
    ];
    let (olds, mut news) = comparison.pair_paths([old, new], &bases);
    let paths: BTreeSet<_> = news.keys().map(|(path, _)| path.clone()).collect();
    for ((path, method), operation) in &olds {
        comparison.begin(method, operation, &bases[0][0]);
        let other = news.remove(&(path.clone(), *method));
        if let Some(other) =
            other.or_else(|| comparison.find_moved(*operation, (path, method), &olds, &mut news))
        {
            comparison.compare_operations(*operation, other);
        } else {
            let kind = if paths.contains(path) {
                "operation-removed"
            } else {
                "path-removed"
            };
            comparison.add(ITSELF, kind, true);
        }
    }
    for ((_, method), operation) in news {
        comparison.operation = format!("{} {}", method.to_ascii_uppercase(), operation.path);
        comparison.add(ITSELF, "operation-added", false);
    }
    for (name, _) in old.members(old.root(), "webhooks") {
        if new.root()["webhooks"].get(name).is_none() {
            comparison.operation = format!("webhook {name}");
            comparison.add(ITSELF, "webhook-removed", true);
        }
    }
    let mut report = comparison.report;
    report.is_complete = comparison.schemas.is_complete && report.findings.len() <= MAX_FINDINGS;
    report.findings.truncate(MAX_FINDINGS);
    report
}

struct Comparison<'d> {
    schemas: Schemas<'d>,
    report: Report,
    /// The present operation.
    operation: String,
}

impl<'d> Comparison<'d> {
    fn begin(&mut self, method: &str, operation: &Operation<'d>, base: &str) {
        let method = method.to_ascii_uppercase();
        self.operation = format!("{method} {}", operation.path);
        self.report.operations.push(Known {
            name: self.operation.clone(),
            method,
            path: format!("{base}{}", operation.path),
        });
    }

    /// Adds a finding whose kind says it all.
    fn add(&mut self, place: &str, kind: &'static str, is_breaking: bool) {
        self.explain(place, kind, is_breaking, "");
    }

    fn explain(&mut self, place: &str, kind: &'static str, is_breaking: bool, detail: &str) {
        self.push(Finding {
            place: place.to_owned(),
            kind: kind.into(),
            is_breaking,
            text: detail.to_owned(),
            ..Finding::default()
        });
    }

    /// Adds what it means that a flag is set now.
    fn became(&mut self, place: &str, flags: [&Value; 2], kind: &'static str, is_breaking: bool) {
        if flags[0] != true && flags[1] == true {
            self.add(place, kind, is_breaking);
        }
    }

    fn push(&mut self, mut finding: Finding) {
        finding.operation.clone_from(&self.operation);
        let words = finding.kind.replace('-', " ");
        finding.text = match &*finding.text {
            "" => words,
            detail => format!("{words}: {detail}"),
        };
        if self.report.findings.len() <= MAX_FINDINGS {
            self.report.findings.push(finding);
        }
    }

    /// Adds a step to the last finding.
    fn hint(&mut self, list: &'static str, keys: &[(&'static str, Value)]) {
        let keys = keys.to_vec();
        let last = self.report.findings.last_mut();
        last.expect("just added").steps.push(Step { list, keys });
    }

    /// Compares two schemas; null stands for none.
    fn compare_schemas(
        &mut self,
        direction: Direction,
        is_text: bool,
        schemas: [&'d Value; 2],
        place: &str,
    ) {
        let is_value = place.starts_with("parameter") || place.contains(" header ");
        (self.schemas.direction, self.schemas.is_text) = (direction, is_text);
        let [old, new] =
            schemas.map(|value| Vec::from_iter(Some(value).filter(|value| !value.is_null())));
        for difference in self.schemas.compare(&old, &new).iter().cloned() {
            let Difference {
                path,
                kind,
                effect,
                text,
                mut steps,
            } = difference;
            steps.iter_mut().for_each(|step| step.lift("$"));
            let path = match &*path {
                "" if is_value => String::new(),
                path => format!(" ${path}"),
            };
            self.push(Finding {
                place: format!("{place}{path}"),
                kind,
                is_breaking: effect.is_breaking(direction),
                text,
                steps,
                ..Finding::default()
            });
        }
    }

    /// The operations of both, by paths that can be compared.
    fn pair_paths(
        &mut self,
        [old, new]: [&'d Document; 2],
        [old_bases, new_bases]: &[Vec<String>; 2],
    ) -> (Operations<'d>, Operations<'d>) {
        let both = (operations(old, ""), operations(new, ""));
        let Some(missing) = old_bases.iter().find(|base| !new_bases.contains(base)) else {
            return both;
        };
        // A part of the server's path can have become a part of each path.
        let whole = (
            operations(old, &old_bases[0]),
            operations(new, &new_bases[0]),
        );
        if whole.0.keys().any(|key| whole.1.contains_key(key)) {
            return whole;
        }
        let shown = |base: &str| {
            if base.is_empty() {
                "/".to_owned()
            } else {
                base.to_owned()
            }
        };
        let (from, to) = (shown(missing), shown(&new_bases[0]));
        self.explain(
            ITSELF,
            "server-path-changed",
            true,
            &format!("{from} → {to}"),
        );
        both
    }

    /// The operation with the same id at another path.
    fn find_moved(
        &mut self,
        old: Operation<'d>,
        (path, method): (&str, &'static str),
        olds: &Operations<'d>,
        news: &mut Operations<'d>,
    ) -> Option<Operation<'d>> {
        let id = old.value["operationId"].as_str()?;
        let mut others = news.iter().filter(|(key, new)| {
            new.value["operationId"] == id && key.1 == method && !olds.contains_key(*key)
        });
        let key = others.next()?.0.clone();
        let new = news.remove(&key)?;
        self.explain(ITSELF, "operation-moved", true, new.path);
        // The segments that both end with stay.
        let [from, to] = [path, &key.0].map(|path| path.split('/').collect::<Vec<_>>());
        let ends = from.iter().rev().zip(to.iter().rev());
        let same = ends.take_while(|(one, other)| one == other).count();
        let [from, to] = [from, to].map(|path| path[..path.len() - same].join("/"));
        if from.len() > 1 && to.len() > 1 && !from.contains('{') && !to.contains('{') {
            self.hint("request", &[("path", from.into()), ("to", to.into())]);
        }
        Some(new)
    }
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
        for method in METHODS {
            let value = document.member(item, method);
            if value.is_object() {
                let key = (format!("{base}{}", with_variables(path, "{}")), method);
                all.insert(
                    key,
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

impl Known {
    /// A path that a client can send.
    #[must_use]
    pub fn sample(&self) -> String {
        with_variables(&self.path, "1")
    }

    /// Its path as requests are counted by it.
    #[must_use]
    pub fn counted(&self) -> String {
        with_variables(&self.path, "*")
    }
}

/// The path with `to` in place of its variables.
fn with_variables(path: &str, to: &str) -> String {
    let mut parts = path.split('{');
    let start = parts.next().unwrap_or_default().to_owned();
    parts.fold(start, |path, part| {
        path + to + part.split_once('}').map_or(part, |(_, rest)| rest)
    })
}

/// The names of a path's variables, in order.
fn variables(path: &str) -> Vec<&str> {
    path.split('{')
        .skip(1)
        .filter_map(|part| Some(part.split_once('}')?.0))
        .collect()
}
