//! Changes that the counts of comparisons suggest.

use std::{collections::BTreeSet, fmt, ops::Bound};

use crate::{
    operation::{Container, Effect, Operation},
    path::{JsonPath, form, up},
    tally::{PathTally, Rename, Tally},
};

/// Changes of the other version's responses.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// In their order, each with what shows it.
    pub steps: Vec<(Operation, String)>,
    /// What no step makes up for: the path, and what may.
    pub open: Vec<(String, Advice)>,
}

/// What may make up for a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// A step of the closed list: its key.
    Step(&'static str),
    /// A converter: no step can do it.
    Converter,
    /// Counts do not tell.
    Look,
}

impl fmt::Display for Advice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(key) => write!(formatter, "a step, {key}"),
            Self::Converter => formatter.write_str("a converter"),
            Self::Look => formatter.write_str("look at it"),
        }
    }
}

impl Tally {
    /// The changes that the counts suggest. A member of the other version stays as long as an old one may be made of it.
    #[must_use]
    pub fn draft(&self) -> Draft {
        let renames = self.renames();
        let groups = renames.chunk_by(|one, other| one.from == other.from);
        let (mut forms, mut moves): (Vec<_>, Vec<_>) = groups
            .filter_map(nearest)
            .partition(|one| form(&one.from, &one.to).is_some());
        // What is in a value, before the value; and what stays in its place last.
        moves.sort_by(|one, other| {
            (&other.to, other.is_elsewhere()).cmp(&(&one.to, one.is_elsewhere()))
        });
        forms.sort_by(|one, other| other.to.cmp(&one.to));
        let (mut draft, mut done) = (Draft::default(), BTreeSet::new());
        for (at, rename) in moves.iter().enumerate() {
            let mut later = moves[at + 1..].iter();
            let is_last = !later.any(|later| up(&rename.to).any(|to| to == later.to));
            draft.add(rename.moved(is_last), rename, &mut done);
        }
        for rename in forms {
            let here = form(&rename.from, &rename.to).and_then(|path| self.paths.get(path));
            draft.add(rename.formed(here), rename, &mut done);
        }
        self.leave_open(&mut draft, &done);
        draft
    }

    /// Adds what no step makes up for, and removes what nothing old may be made of.
    fn leave_open(&self, draft: &mut Draft, done: &BTreeSet<String>) {
        let is_done = |path: &str| up(path).any(|path| done.contains(path));
        // An object comes into being with all that is in it.
        let is_built = |path: &str| {
            let after = (Bound::Excluded(path), Bound::Unbounded);
            let inner = self.renames.range::<str, _>(after).map(|(from, _)| from);
            let inner = inner.take_while(|from| from.starts_with(path));
            let is_in = |from: &&String| from[path.len()..].starts_with(['.', '[']);
            let mut inner = inner.filter(is_in).peekable();
            inner.peek().is_some() && inner.all(|from| done.contains(from))
        };
        let (mut extra, mut open) = (Vec::new(), Vec::new());
        for (path, tally, _) in self.differences().filter(|(_, _, is_noise)| !is_noise) {
            let is_only = tally.other_type + tally.value == 0;
            match (tally.missing, tally.extra) {
                (_, 0) | (0, _) if is_only && is_done(path) => {}
                (_, 0) if is_only && is_built(path) => {}
                (0, 0) if tally.value == 0 && is_done(path) => {}
                (0, _) if is_only && member(path).is_some() => extra.push(path),
                _ => open.push((path.to_owned(), advice(path, tally))),
            }
        }
        for path in extra {
            match member(path).filter(|_| open.is_empty()) {
                Some((path, _)) => {
                    let effect = Effect::Remove;
                    draft
                        .steps
                        .push((Operation { path, effect }, "only there".to_owned()));
                }
                None => draft.open.push((
                    path.to_owned(),
                    Advice::Step("remove, unless an old member is made of it"),
                )),
            }
        }
        draft.open.splice(0..0, open);
    }
}

impl Draft {
    fn add(&mut self, operation: Option<Operation>, rename: &Rename, done: &mut BTreeSet<String>) {
        if let Some(operation) = operation.filter(|operation| operation.check().is_ok()) {
            let because = format!("equal in {} of {}", rename.equal, rename.of);
            self.steps.push((operation, because));
            done.extend([rename.from.clone(), rename.to.clone()]);
        }
    }
}

impl Rename {
    /// Whether it is in another object.
    fn is_elsewhere(&self) -> bool {
        kinship(&self.from, &self.to) != 1
    }

    /// The step that moves it; if its value is needed again, copies it.
    fn moved(&self, is_last: bool) -> Option<Operation> {
        let ((path, _), (to, name)) = (member(&self.to)?, member(&self.from)?);
        let effect = match is_last {
            false => Effect::Copy { to },
            true if self.is_elsewhere() => Effect::Move { to },
            true => Effect::Rename {
                to: name.to_owned(),
            },
        };
        Some(Operation { path, effect })
    }

    /// The step that gives it its form.
    fn formed(&self, tally: Option<&PathTally>) -> Option<Operation> {
        let (from, to) = (&self.from, &self.to);
        let container = |rest: &str| match rest.strip_prefix('.') {
            Some(name) => Container::Object(name.to_owned()),
            None => Container::Array,
        };
        let effect = match (to.strip_prefix(&**from), from.strip_prefix(&**to)) {
            (Some(""), _) => match tally?.shapes.as_ref()?[0] == "number" {
                true => Effect::ToNumber,
                false => Effect::ToText,
            },
            (Some(rest), _) => Effect::Unwrap {
                within: container(rest),
            },
            (_, Some(rest)) => Effect::Wrap {
                within: container(rest),
            },
            _ => return None,
        };
        let path = place(form(from, to)?)?;
        Some(Operation { path, effect })
    }
}

/// The origin that is the nearest one; none if two are.
fn nearest(origins: &[Rename]) -> Option<&Rename> {
    let kinship = |one: &Rename| kinship(&one.from, &one.to);
    let best = origins.iter().map(kinship).min()?;
    let mut nearest = origins.iter().filter(|one| kinship(one) == best);
    nearest.next().filter(|_| nearest.next().is_none())
}

/// 0: members of the same name; 1: of the same object; 2: others.
pub(crate) fn kinship(from: &str, to: &str) -> u8 {
    let [(of, name), (other, other_name)] =
        [from, to].map(|path| path.rsplit_once('.').unwrap_or((path, "")));
    match (name == other_name, of == other) {
        (true, _) => 0,
        (_, true) => 1,
        _ => 2,
    }
}

fn place(path: &str) -> Option<JsonPath> {
    path.parse().ok().filter(|_| !path.contains('*'))
}

/// The path of a member, and its name.
fn member(path: &str) -> Option<(JsonPath, &str)> {
    let (_, name) = path
        .rsplit_once('.')
        .filter(|(_, name)| !name.ends_with(']'))?;
    Some((place(path)?, name))
}

fn advice(path: &str, tally: &PathTally) -> Advice {
    let shapes = tally.shapes.as_ref();
    let are = |kind: &str| {
        shapes.is_some_and(|shapes| shapes.iter().all(|shape| shape.starts_with(kind)))
    };
    match path {
        "status" => Advice::Step("status"),
        "content-type" => Advice::Step("set_header"),
        _ if path.starts_with("header ") => Advice::Step("set_header"),
        _ if !path.starts_with('$') || tally.missing > 0 || are("string") => Advice::Look,
        _ => Advice::Converter,
    }
}

#[cfg(test)]
mod tests;
