//! Changes to begin with, as the configuration has them.

use std::collections::BTreeSet;

use signpost_bridge::JsonPath;

use signpost_management::reports::shadows::{Diff, PathDiff, RouteDiff};

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
            lines.push(format!("[[versions.{version}.changes]]"));
            let name = name(method, path);
            let further = (2..).map(|number| format!("{name}_{number}"));
            let mut free = [name.clone()].into_iter().chain(further);
            let name = free.find(|name| names.insert(name.clone())).unwrap_or(name);
            lines.push(format!("name = \"{name}\""));
            lines.push(format!("method = \"{method}\""));
            lines.push(format!("paths = [\"{path}\"]"));
            lines.push("response = [".to_owned());
            lines.extend(steps.iter().map(|step| format!("    {step}")));
            lines.push("]".to_owned());
        }
    }
    lines
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
