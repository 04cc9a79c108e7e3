//! Compares two JSON bodies: which paths they have, and at which they differ.
//!
//! Numbers are compared as text: 1 and 1.0 differ. Strings are compared after their escapes are decoded. The order of an
//! object's members does not count; if an object has a member twice, the last one does.

use std::{borrow::Cow, collections::BTreeMap};

use crate::{
    comparison::{Comparison, Kind},
    draft::kinship,
    path::{JsonPath, Step},
    raw::{self, JsonType},
    shown::{self, HIDDEN, PathText},
};

/// Containers that are nested deeper are compared by their text.
const MAX_DEPTH: usize = 32;

/// Largest number of places that one missing value may have come from.
const MAX_ORIGINS: usize = 4;

/// Largest number of renames that are found in two documents.
const MAX_RENAMES: usize = 256;

/// Levels, and values, of a missing or an extra object that are looked for one by one.
const MAX_LEVELS: usize = 3;
const MAX_LEAVES: usize = 64;

/// What two documents may cost in the search for renames: bytes of the values that are compared. Items of arrays that would
/// cost more are passed over.
const RENAME_BYTES: usize = 4 << 20;

/// What a comparison of values costs in addition to their bytes.
const RENAME_BYTES_OF_VALUE: usize = 16;

/// The shape of a missing value.
const ABSENT: &str = "absent";

/// The shape of a body that is not JSON.
const NOT_JSON: &str = "not JSON";

/// Compares two bodies, but not what is at an ignored path or below it. In an ignored path, `*` also stands for each
/// member whose name is not shown.
#[must_use]
pub fn compare(body: &[u8], other: &[u8], ignore: &[JsonPath]) -> Comparison {
    let mut walk = Walk::new();
    if ignore.iter().any(|path| path.steps().is_empty()) {
        return walk.comparison;
    }
    match (raw::value(body), raw::value(other)) {
        (Some(value), Some(other)) => walk.values(value, other, &Ignored::all(ignore)),
        (Some(value), None) => walk.differ(Kind::Type, [&shown::shape(value), NOT_JSON]),
        (None, Some(other)) => walk.differ(Kind::Type, [NOT_JSON, &shown::shape(other)]),
        (None, None) if body == other => walk.see(),
        (None, None) => walk.differ(Kind::Value, [NOT_JSON, NOT_JSON]),
    }
    walk.finish()
}

/// The ignored paths that lead to the value being compared or on from there.
struct Ignored<'i> {
    paths: Vec<&'i JsonPath>,
    /// Number of their steps that lead here. This is also the depth of the value.
    depth: usize,
}

impl<'i> Ignored<'i> {
    fn all(paths: &'i [JsonPath]) -> Self {
        let paths = paths.iter().collect();
        Self { paths, depth: 0 }
    }

    /// Those that lead on by this step. `None` if what it leads to is ignored.
    fn below(&self, is_next: impl Fn(&Step) -> bool) -> Option<Self> {
        let depth = self.depth + 1;
        let leads_on = |path: &&&JsonPath| path.steps().get(self.depth).is_some_and(&is_next);
        let paths: Vec<_> = self.paths.iter().filter(leads_on).copied().collect();
        let is_ignored = paths.iter().any(|path| path.steps().len() == depth);
        (!is_ignored).then_some(Self { paths, depth })
    }
}

/// The name of a member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name<'d> {
    Decoded(Cow<'d, str>),
    /// The text of a name that is no Unicode text.
    Text(&'d str),
}

impl<'d> Name<'d> {
    fn of(text: &'d str) -> Self {
        raw::decoded(text).map_or(Self::Text(text), Self::Decoded)
    }

    fn shown(&self) -> &str {
        match self {
            Self::Decoded(name) => shown::name(name),
            Self::Text(_) => HIDDEN,
        }
    }

    fn is(&self, step: &Step) -> bool {
        match (step, self) {
            (Step::Items, _) => false,
            (Step::Member(wanted), Self::Decoded(name)) if wanted == name => true,
            (Step::Member(wanted), _) => wanted == HIDDEN && self.shown() == HIDDEN,
        }
    }
}

/// The members of an object. The last one of a name counts.
fn by_name(object: &str) -> BTreeMap<Name<'_>, &str> {
    let members = raw::members(object).unwrap_or_default();
    let members = members.into_iter();
    members.map(|(key, value)| (Name::of(key), value)).collect()
}

/// Whether two values at this depth are equal.
fn are_equal(value: &str, other: &str, depth: usize) -> bool {
    if value == other {
        return true;
    }
    match (JsonType::of(value), JsonType::of(other)) {
        (JsonType::String, JsonType::String) => are_equal_strings(value, other),
        (JsonType::Array, JsonType::Array) if depth < MAX_DEPTH => {
            let items = |array| raw::items(array).unwrap_or_default();
            let (array, other) = (items(value), items(other));
            let mut pairs = array.iter().zip(&other);
            array.len() == other.len()
                && pairs.all(|(item, other)| are_equal(item, other, depth + 1))
        }
        (JsonType::Object, JsonType::Object) if depth < MAX_DEPTH => {
            let (object, other) = (by_name(value), by_name(other));
            let mut pairs = object.iter().zip(&other);
            object.len() == other.len()
                && pairs.all(|((name, value), (other_name, other))| {
                    name == other_name && are_equal(value, other, depth + 1)
                })
        }
        _ => false,
    }
}

fn are_equal_strings(string: &str, other: &str) -> bool {
    let decoded = raw::decoded(string).zip(raw::decoded(other));
    string == other || decoded.is_some_and(|(text, other)| text == other)
}

/// A member that only one of two objects has.
#[derive(Clone)]
struct Lone<'d> {
    path: String,
    value: &'d str,
}

impl<'d> Lone<'d> {
    /// The values in an object; `None` if there are too many, or no path names one.
    fn leaves(&self, levels: usize) -> Option<Vec<Self>> {
        if levels == 0 || JsonType::of(self.value) != JsonType::Object {
            return Some(vec![self.clone()]);
        }
        let mut leaves = Vec::new();
        for (key, value) in raw::members(self.value)? {
            let name = Name::of(key);
            let name = Some(name.shown()).filter(|name| *name != HIDDEN)?;
            let path = format!("{}.{name}", self.path);
            leaves.extend(Self { path, value }.leaves(levels - 1)?);
        }
        (leaves.len() <= MAX_LEAVES).then_some(leaves)
    }

    /// Whether the same value elsewhere is hardly chance.
    fn is_telling(&self) -> bool {
        let is_few =
            |value: &str| matches!(value, "null" | "true" | "false" | "\"\"" | "[]" | "{}");
        self.value.len() > 1 && !is_few(self.value)
    }

    fn is_from(&self, other: &Self) -> bool {
        let is_near = kinship(&self.path, &other.path) < 2;
        (is_near || self.is_telling()) && are_equal(self.value, other.value, 0)
    }
}

/// The way through both documents.
struct Walk<'d> {
    comparison: Comparison,
    path: PathText,
    /// Members that only the one, and only the other body has, of the present item of an array: steps move values in it.
    lone: [Vec<Lone<'d>>; 2],
    /// How often the values of a missing and an extra path were equal.
    equal: BTreeMap<(String, String), usize>,
    /// How often a path is missing.
    missing: BTreeMap<String, usize>,
    bytes_left: usize,
}

impl<'d> Walk<'d> {
    fn new() -> Self {
        Self {
            comparison: Comparison::default(),
            path: PathText::root(),
            lone: Default::default(),
            equal: BTreeMap::new(),
            missing: BTreeMap::new(),
            bytes_left: RENAME_BYTES,
        }
    }

    fn finish(mut self) -> Comparison {
        self.find_renames();
        for ((from, to), times) in self.equal {
            // Equal wherever it is missing: a value that is equal only here and there is no rename.
            if self.missing.get(&from) == Some(&times) {
                self.comparison.renames.push((from, to));
            }
        }
        self.comparison
    }

    fn see(&mut self) {
        self.comparison.see(self.path.as_str());
    }

    fn differ(&mut self, kind: Kind, shapes: [&str; 2]) {
        self.comparison.add(self.path.as_str(), kind, shapes);
    }

    fn values(&mut self, value: &'d str, other: &'d str, ignored: &Ignored<'_>) {
        self.see();
        let (value_type, other_type) = (JsonType::of(value), JsonType::of(other));
        let is_read = ignored.depth < MAX_DEPTH;
        let is_equal = match value_type {
            _ if value_type != other_type => {
                self.find_form(value, other);
                let shapes = [value, other].map(shown::shape);
                return self.differ(Kind::Type, [&shapes[0], &shapes[1]]);
            }
            JsonType::Object if is_read => return self.objects(value, other, ignored),
            JsonType::Array if is_read => return self.arrays(value, other, ignored),
            JsonType::String => are_equal_strings(value, other),
            _ => value == other,
        };
        if !is_equal {
            let shapes = [value, other].map(shown::shape);
            self.differ(Kind::Value, [&shapes[0], &shapes[1]]);
        }
    }

    fn arrays(&mut self, array: &'d str, other: &'d str, ignored: &Ignored<'_>) {
        let Some(ignored) = ignored.below(|step| *step == Step::Items) else {
            return;
        };
        let items = |array| raw::items(array).unwrap_or_default();
        let (array, other) = (items(array), items(other));
        let mark = self.path.push_items();
        for (item, other) in array.iter().zip(&other) {
            let outside = std::mem::take(&mut self.lone);
            self.values(item, other, &ignored);
            self.find_renames();
            self.lone = outside;
        }
        // Once for an array, however many items it lacks: all of them have the same path.
        if let Some(missing) = array.get(other.len()) {
            self.differ(Kind::Missing, [&shown::shape(missing), ABSENT]);
        }
        if let Some(extra) = other.get(array.len()) {
            self.differ(Kind::Extra, [ABSENT, &shown::shape(extra)]);
        }
        self.path.reset(mark);
    }

    fn objects(&mut self, object: &'d str, other: &'d str, ignored: &Ignored<'_>) {
        let mut extra = by_name(other);
        let mut missing = Vec::new();
        for (name, value) in by_name(object) {
            let Some(other) = extra.remove(&name) else {
                missing.push((name, value));
                continue;
            };
            if let Some(ignored) = ignored.below(|step| name.is(step)) {
                let mark = self.path.push_member(name.shown());
                self.values(value, other, &ignored);
                self.path.reset(mark);
            }
        }
        self.lone_members(Kind::Missing, missing, ignored);
        self.lone_members(Kind::Extra, extra, ignored);
    }

    /// Notes members that only one of two objects has, without the ignored ones, and keeps those that a path names.
    fn lone_members(
        &mut self,
        kind: Kind,
        members: impl IntoIterator<Item = (Name<'d>, &'d str)>,
        ignored: &Ignored<'_>,
    ) {
        for (name, value) in members {
            if ignored.below(|step| name.is(step)).is_none() {
                continue;
            }
            let mark = self.path.push_member(name.shown());
            let shape = shown::shape(value);
            match kind {
                Kind::Missing => self.differ(kind, [&shape, ABSENT]),
                _ => self.differ(kind, [ABSENT, &shape]),
            }
            if name.shown() != HIDDEN && !self.path.is_cut() {
                let path = self.path.as_str().to_owned();
                self.lone[usize::from(kind == Kind::Extra)].push(Lone { path, value });
            }
            self.path.reset(mark);
        }
    }

    /// Counts the missing members, and the extra ones with an equal value, of the whole or of all that is in it.
    fn find_renames(&mut self) {
        let [missing, extra] = std::mem::take(&mut self.lone);
        let inner = |lone: &Lone<'d>| match JsonType::of(lone.value) {
            JsonType::Object => lone.leaves(MAX_LEVELS).unwrap_or_default(),
            _ => Vec::new(),
        };
        let extra: Vec<_> = extra
            .into_iter()
            .flat_map(|lone| [inner(&lone), vec![lone]].concat())
            .collect();
        let bytes = |all: &[Lone<'_>]| -> usize {
            let bytes = all.iter().map(|lone| lone.value.len());
            bytes.map(|bytes| bytes + RENAME_BYTES_OF_VALUE).sum()
        };
        let cost = missing.len() * bytes(&extra) + extra.len() * 2 * bytes(&missing);
        let Some(bytes_left) = self.bytes_left.checked_sub(cost) else {
            return;
        };
        self.bytes_left = bytes_left;
        for from in missing {
            let inner = inner(&from);
            let all_from = |all: &[Lone<'d>]| {
                !all.is_empty()
                    && all
                        .iter()
                        .all(|from| extra.iter().any(|to| from.is_from(to)))
            };
            let parts = if !all_from(std::slice::from_ref(&from)) && all_from(&inner) {
                inner
            } else {
                vec![from]
            };
            for from in parts {
                let origins = extra.iter().filter(|to| from.is_from(to));
                let mut origins: Vec<_> = origins.map(|to| to.path.as_str()).collect();
                origins.sort_by_key(|to| kinship(&from.path, to));
                self.count_equal(&from.path, origins.into_iter().take(MAX_ORIGINS));
            }
        }
    }

    /// Counts values of other types that are the same in another form: a number as a text, or in an array or an object.
    fn find_form(&mut self, value: &'d str, other: &'d str) {
        let cost = 2 * (value.len() + other.len()) + RENAME_BYTES_OF_VALUE;
        let Some(bytes_left) = self
            .bytes_left
            .checked_sub(cost)
            .filter(|_| !self.path.is_cut())
        else {
            return;
        };
        self.bytes_left = bytes_left;
        let path = self.path.as_str().to_owned();
        let parts = |container: &'d str| {
            let items = raw::items(container).map(|items| match *items {
                [item] => vec![(format!("{path}[]"), item)],
                _ => Vec::new(),
            });
            let members = || {
                let members = by_name(container).into_iter();
                members
                    .map(|(name, value)| (format!("{path}.{}", name.shown()), value))
                    .collect()
            };
            items.unwrap_or_else(members)
        };
        match (JsonType::of(value), JsonType::of(other)) {
            (JsonType::Number, JsonType::String) | (JsonType::String, JsonType::Number) => {
                let digits = |text: &'d str| raw::decoded(text).unwrap_or(Cow::Borrowed(text));
                let is_same = digits(value) == digits(other);
                self.count_equal(&path, is_same.then_some(&*path).into_iter());
            }
            (JsonType::Null, _) | (_, JsonType::Null) => {}
            (_, JsonType::Array | JsonType::Object) => {
                let mut parts = parts(other);
                parts.retain(|(_, part)| are_equal(value, part, 0));
                self.count_equal(&path, parts.iter().map(|(to, _)| &**to).take(MAX_ORIGINS));
            }
            (JsonType::Array | JsonType::Object, _) => {
                if let [(from, part)] = &*parts(value) {
                    let is_same = are_equal(part, other, 0);
                    self.count_equal(from, is_same.then_some(&*path).into_iter());
                }
            }
            _ => {}
        }
    }

    /// Counts a value that the other body lacks, and where it has an equal one.
    fn count_equal<'t>(&mut self, from: &str, origins: impl Iterator<Item = &'t str>) {
        *self.missing.entry(from.to_owned()).or_default() += 1;
        for to in origins {
            let paths = (from.to_owned(), to.to_owned());
            if let Some(times) = self.equal.get_mut(&paths) {
                *times += 1;
            } else if self.equal.len() < MAX_RENAMES {
                self.equal.insert(paths, 1);
            }
        }
    }
}

#[cfg(test)]
mod tests;
