//! What differs between two responses, path by path.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Largest number of different paths in one comparison.
pub const MAX_PATHS: usize = 4096;

/// How a value differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is only in the first document.
    Missing,
    /// It is only in the other document.
    Extra,
    /// It has another type.
    Type,
    /// It has the same type, but another value.
    Value,
}

impl Kind {
    /// All of them, in their order.
    pub const ALL: [Self; 4] = [Self::Missing, Self::Extra, Self::Type, Self::Value];
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Kinds(u8);

impl Kinds {
    /// Adds a kind.
    pub const fn insert(&mut self, kind: Kind) {
        self.0 |= 1 << kind as u8;
    }

    /// Whether the set has this kind.
    #[must_use]
    pub const fn contains(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// Adds the kinds of another set.
    pub const fn extend(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether the set has no kind: there is no difference.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

/// What was found at a path, which may lead to many values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    kinds: Kinds,
    shapes: Option<[String; 2]>,
}

impl Finding {
    /// The kinds of all differences.
    #[must_use]
    pub const fn kinds(&self) -> Kinds {
        self.kinds
    }

    /// What was on both sides of the first difference, for example `string(12)` and `absent`.
    #[must_use]
    pub const fn shapes(&self) -> Option<&[String; 2]> {
        self.shapes.as_ref()
    }
}

/// What was compared of two responses, and what differs. It has paths and shapes, but no values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    paths: BTreeMap<String, Finding>,
    others: Option<Kinds>,
    pub(crate) renames: Vec<(String, String)>,
}

impl Comparison {
    /// Notes that something was compared, for example `status`.
    pub fn see(&mut self, path: &str) {
        self.note(path, |_| (), |_| ());
    }

    /// Notes a difference, with the shapes of both sides: for example of `header location`.
    pub fn add(&mut self, path: &str, kind: Kind, shapes: [&str; 2]) {
        let note = |finding: &mut Finding| {
            finding.kinds.insert(kind);
            finding
                .shapes
                .get_or_insert_with(|| shapes.map(str::to_owned));
        };
        self.note(path, note, |kinds| kinds.insert(kind));
    }

    fn note(
        &mut self,
        path: &str,
        in_paths: impl FnOnce(&mut Finding),
        in_others: impl FnOnce(&mut Kinds),
    ) {
        // Most paths are there already: no copy of the text for a lookup.
        if let Some(finding) = self.paths.get_mut(path) {
            in_paths(finding);
        } else if self.paths.len() < MAX_PATHS {
            in_paths(self.paths.entry(path.to_owned()).or_default());
        } else {
            in_others(self.others.get_or_insert_default());
        }
    }

    /// All paths that were compared.
    pub fn paths(&self) -> impl Iterator<Item = (&str, &Finding)> {
        self.paths
            .iter()
            .map(|(path, finding)| (path.as_str(), finding))
    }

    /// What was found at a path.
    #[must_use]
    pub fn path(&self, path: &str) -> Option<&Finding> {
        self.paths.get(path)
    }

    /// The kinds of all differences at paths beyond [`MAX_PATHS`]. `None` if there are no such paths.
    #[must_use]
    pub const fn others(&self) -> Option<Kinds> {
        self.others
    }

    /// Pairs of a missing and an extra path of the same objects with equal values, wherever the first is missing.
    #[must_use]
    pub fn renames(&self) -> &[(String, String)] {
        &self.renames
    }

    /// Whether anything differs.
    #[must_use]
    pub fn differs(&self) -> bool {
        let others = self.others.unwrap_or_default();
        !others.is_empty() || self.paths.values().any(|finding| !finding.kinds.is_empty())
    }
}
