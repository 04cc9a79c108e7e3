//! What clients must show to be let in.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Comparison, ITSELF, Operation};

/// What must be shown, and the scopes that it needs.
type Requirement = BTreeMap<String, BTreeSet<String>>;

impl<'d> Comparison<'d> {
    /// Each way in must still be one: clients know only theirs.
    pub(super) fn compare_security(&mut self, old: Operation<'d>, new: Operation<'d>) {
        let (before, after) = (requirements(old), requirements(new));
        let lets_in = |new: &Requirement, old: &Requirement| {
            new.iter()
                .all(|(scheme, scopes)| old.get(scheme).is_some_and(|had| scopes.is_subset(had)))
        };
        for old in before
            .iter()
            .filter(|old| !after.iter().any(|new| lets_in(new, old)))
        {
            let kind = match after.iter().any(|new| new.keys().eq(old.keys())) {
                true => "security-scope-added",
                false => "security-removed",
            };
            let now = after.iter().map(shown).collect::<Vec<_>>().join(" or ");
            self.explain(ITSELF, kind, true, &format!("{} → {now}", shown(old)));
        }
    }
}

/// The alternatives; an empty one if nothing must be shown.
fn requirements(of: Operation<'_>) -> Vec<Requirement> {
    let root = of.document.root();
    let list = of.value["security"]
        .as_array()
        .or_else(|| root["security"].as_array());
    let mut all: Vec<Requirement> = Vec::new();
    for requirement in list.into_iter().flatten().filter_map(Value::as_object) {
        let read = requirement.iter().map(|(name, scopes)| {
            let scopes = scopes.as_array().into_iter().flatten();
            let scopes = scopes
                .filter_map(|scope| Some(scope.as_str()?.to_owned()))
                .collect();
            let schemes = of.document.member(&root["components"], "securitySchemes");
            (scheme(of.document.member(schemes, name), name), scopes)
        });
        all.push(read.collect());
    }
    if all.is_empty() {
        all.push(Requirement::new());
    }
    all
}

/// What a scheme is, whatever the document calls it.
fn scheme(scheme: &Value, name: &str) -> String {
    let text = |key: &str| {
        scheme[key]
            .as_str()
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    match scheme["type"].as_str() {
        Some("apiKey") => format!("{} {}", text("in"), text("name")),
        Some("http") => format!("http {}", text("scheme")),
        Some(other) => other.to_owned(),
        None => name.to_owned(),
    }
}

fn shown(requirement: &Requirement) -> String {
    let all: Vec<_> = requirement
        .iter()
        .map(|(scheme, scopes)| match scopes.len() {
            0 => scheme.clone(),
            _ => format!(
                "{scheme} ({})",
                scopes.iter().cloned().collect::<Vec<_>>().join(", ")
            ),
        })
        .collect();
    match all.len() {
        0 => "nothing".to_owned(),
        _ => all.join(" and "),
    }
}
