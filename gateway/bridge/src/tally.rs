//! Counts of many comparisons: of one route, by one gateway or by several.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    comparison::{Comparison, Finding, Kind, Kinds, MAX_PATHS},
    path::{form, up},
};

/// Largest number of pairs of paths that are counted as possible renames.
pub const MAX_RENAMES: usize = 1024;

/// Largest number of applications that are counted one by one.
pub const MAX_APPS: usize = 4096;

/// The entry in [`Tally::apps`] of all applications beyond [`MAX_APPS`]. No application has this ident.
pub const OTHER_APPS: &str = "";

/// A rename is one only if its first path is missing in at least as many pairs.
const MIN_MISSING: u64 = 50;

/// A rename is one only if its values are equal in more than this percentage of the pairs.
const MIN_EQUAL_PERCENT: u128 = 99;

/// What differs by itself in one pair can differ in so many between two versions: there are few samples of noise.
const NOISE_FACTOR: u128 = 3;

/// Counts of comparisons. A pair is two responses to the same request.
///
/// Tallies are stored as JSON: unknown fields are ignored, those that are zero or empty are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// Pairs that were compared.
    #[serde(skip_serializing_if = "is_zero")]
    pub pairs: u64,
    /// Pairs that differ, at a path that was not known as noise at that time.
    #[serde(skip_serializing_if = "is_zero")]
    pub differing: u64,
    /// Pairs of two responses of the same version: how often noise was looked for.
    #[serde(skip_serializing_if = "is_zero")]
    pub noise_pairs: u64,
    /// Requests that could not be compared, since a response is too large or encoded.
    #[serde(skip_serializing_if = "is_zero")]
    pub uncompared: u64,
    /// Requests that were not copied: there were too many at a time, or a client left before its response was complete.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// Copies that the other version refused.
    #[serde(skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// What was found at each path, for [`MAX_PATHS`] paths at most.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<String, PathTally>,
    /// Pairs with further paths, which are not counted one by one. In a merged tally there may be more of them.
    #[serde(skip_serializing_if = "is_zero")]
    pub others: u64,
    /// By missing path, then by extra path: pairs in which their values are equal.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) renames: BTreeMap<String, BTreeMap<String, u64>>,
    /// By ident, at most [`MAX_APPS`] and [`OTHER_APPS`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub apps: BTreeMap<String, AppTally>,
}

/// Counts of pairs with a path, and of those that differ there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathTally {
    /// Pairs with the path in at least one response.
    #[serde(skip_serializing_if = "is_zero")]
    pub seen: u64,
    /// Pairs with [`Kind::Missing`].
    #[serde(skip_serializing_if = "is_zero")]
    pub missing: u64,
    /// Pairs with [`Kind::Extra`].
    #[serde(skip_serializing_if = "is_zero")]
    pub extra: u64,
    /// Pairs with [`Kind::Type`].
    #[serde(rename = "type", skip_serializing_if = "is_zero")]
    pub other_type: u64,
    /// Pairs with [`Kind::Value`].
    #[serde(skip_serializing_if = "is_zero")]
    pub value: u64,
    /// Pairs of two responses of the same version that differ.
    #[serde(skip_serializing_if = "is_zero")]
    pub noise: u64,
    /// How these differ: a difference of another kind is none that comes by itself.
    #[serde(skip_serializing_if = "Kinds::is_empty")]
    noise_kinds: Kinds,
    /// Both sides of the last difference that was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shapes: Option<[String; 2]>,
}

/// Counts of an application's pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AppTally {
    /// As [`Tally::pairs`].
    #[serde(skip_serializing_if = "is_zero")]
    pub pairs: u64,
    /// As [`Tally::differing`].
    #[serde(skip_serializing_if = "is_zero")]
    pub differing: u64,
}

/// A value that has another name, place or form in the other version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = RenamedPath))]
pub struct Rename {
    /// Its path in the version.
    pub from: String,
    /// Its path in the other version: the same one, if a number is a text, or a text a number.
    pub to: String,
    /// Pairs in which the values are equal.
    pub equal: u64,
    /// Pairs in which the other version has not the former, or has another type.
    pub of: u64,
}

impl Tally {
    /// Counts a comparison of both versions' responses to a request of this application, if the request names one.
    pub fn add(&mut self, comparison: &Comparison, app: Option<&str>) {
        let (mut differs, mut has_others) = (false, false);
        if let Some(kinds) = comparison.others() {
            has_others = true;
            differs = !kinds.is_empty();
        }
        for (path, finding) in comparison.paths() {
            let differs_here = !finding.kinds().is_empty();
            // With this pair, which is counted below: its differences are counted here.
            let (pairs, noise_pairs) = (self.pairs.saturating_add(1), self.noise_pairs);
            match self.path(path) {
                Some(tally) => {
                    tally.add(finding);
                    differs |= differs_here && !tally.is_noise(pairs, noise_pairs);
                }
                None => {
                    differs |= differs_here;
                    has_others = true;
                }
            }
        }
        for (from, to) in comparison.renames() {
            self.add_rename(from, to, 1);
        }
        add(&mut self.others, u64::from(has_others));
        add(&mut self.pairs, 1);
        add(&mut self.differing, u64::from(differs));
        if let Some(app) = app {
            let differing = u64::from(differs);
            self.add_app(
                app,
                AppTally {
                    pairs: 1,
                    differing,
                },
            );
        }
    }

    /// Counts a comparison of two responses of the same version: what differs between them is noise, such as a time.
    pub fn add_noise(&mut self, comparison: &Comparison) {
        add(&mut self.noise_pairs, 1);
        for (path, finding) in comparison.paths() {
            if !finding.kinds().is_empty()
                && let Some(tally) = self.path(path)
            {
                add(&mut tally.noise, 1);
                tally.noise_kinds.extend(finding.kinds());
                // What comes and goes is now here, now there.
                if [Kind::Missing, Kind::Extra]
                    .into_iter()
                    .any(|kind| finding.kinds().contains(kind))
                {
                    tally.noise_kinds.insert(Kind::Missing);
                    tally.noise_kinds.insert(Kind::Extra);
                }
            }
        }
    }

    /// Adds the counts of another tally of the same route.
    pub fn merge(&mut self, other: Self) {
        let mut without_room = 0;
        for (path, counts) in other.paths {
            match self.path(&path) {
                Some(tally) => tally.merge(counts),
                // Counts do not say which pairs they are of: there are at least as many as at any one of these paths.
                None => without_room = counts.seen.max(without_room),
            }
        }
        for (from, targets) in other.renames {
            for (to, equal) in targets {
                self.add_rename(&from, &to, equal);
            }
        }
        for (app, counts) in other.apps {
            self.add_app(&app, counts);
        }
        add(&mut self.others, other.others.max(without_room));
        add(&mut self.pairs, other.pairs);
        add(&mut self.differing, other.differing);
        add(&mut self.noise_pairs, other.noise_pairs);
        add(&mut self.uncompared, other.uncompared);
        add(&mut self.dropped, other.dropped);
        add(&mut self.refused, other.refused);
    }

    /// How many counts of paths, applications and renames it has.
    #[must_use]
    pub fn len(&self) -> usize {
        let renames: usize = self.renames.values().map(BTreeMap::len).sum();
        self.paths.len() + self.apps.len() + renames
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The renames that the counts show: a path is missing in at least 50 pairs, or has another type, and in more than 99 %
    /// of them the values are equal.
    #[must_use]
    pub fn renames(&self) -> Vec<Rename> {
        let mut renames = Vec::new();
        for (from, targets) in &self.renames {
            for (to, &equal) in targets {
                let of = match form(from, to) {
                    Some(path) => self.paths.get(path).map_or(0, |tally| tally.other_type),
                    // What is in a missing object is missing with it.
                    None => up(from)
                        .find_map(|path| self.paths.get(path))
                        .map_or(0, |tally| tally.missing),
                };
                let is_certain = u128::from(equal) * 100 > u128::from(of) * MIN_EQUAL_PERCENT;
                if of >= MIN_MISSING && is_certain {
                    let (from, to) = (from.clone(), to.clone());
                    renames.push(Rename {
                        from,
                        to,
                        equal,
                        of,
                    });
                }
            }
        }
        renames
    }

    /// The paths at which pairs differ, each with whether it is noise.
    pub fn differences(&self) -> impl Iterator<Item = (&str, &PathTally, bool)> {
        let differing = self.paths.iter().filter(|(_, tally)| tally.differs());
        differing.map(|(path, tally)| {
            let is_noise = tally.is_noise(self.pairs, self.noise_pairs);
            (path.as_str(), tally, is_noise)
        })
    }

    /// The counts of a path. `None` if there is no room for it.
    fn path(&mut self, path: &str) -> Option<&mut PathTally> {
        if !self.paths.contains_key(path) {
            if self.paths.len() >= MAX_PATHS {
                return None;
            }
            self.paths.insert(path.to_owned(), PathTally::default());
        }
        self.paths.get_mut(path)
    }

    fn add_rename(&mut self, from: &str, to: &str, equal: u64) {
        if let Some(count) = self.renames.get_mut(from).and_then(|all| all.get_mut(to)) {
            return add(count, equal);
        }
        let known: usize = self.renames.values().map(BTreeMap::len).sum();
        if known < MAX_RENAMES {
            let targets = self.renames.entry(from.to_owned()).or_default();
            targets.insert(to.to_owned(), equal);
        }
    }

    fn add_app(&mut self, app: &str, counts: AppTally) {
        let known = self.apps.len() - usize::from(self.apps.contains_key(OTHER_APPS));
        let has_room = self.apps.contains_key(app) || known < MAX_APPS;
        let app = if has_room { app } else { OTHER_APPS };
        let tally = self.apps.entry(app.to_owned()).or_default();
        add(&mut tally.pairs, counts.pairs);
        add(&mut tally.differing, counts.differing);
    }
}

impl PathTally {
    /// Whether any pair differs here.
    #[must_use]
    pub const fn differs(&self) -> bool {
        self.missing != 0 || self.extra != 0 || self.other_type != 0 || self.value != 0
    }

    /// Whether noise explains the differences: responses of the same version differ here in each way in which responses
    /// of both versions do, and among `noise_pairs` at least a third as often as these among `pairs`.
    fn is_noise(&self, pairs: u64, noise_pairs: u64) -> bool {
        let counts = [self.missing, self.extra, self.other_type, self.value];
        let explains = |count: u64| {
            // A stored tally may have any count: their products exceed `u64`.
            let differing = u128::from(count) * u128::from(noise_pairs);
            differing <= u128::from(self.noise) * u128::from(pairs) * NOISE_FACTOR
        };
        let kinds = Kind::ALL.into_iter().zip(counts);
        let mut differing = kinds.filter(|(_, count)| *count > 0);
        self.noise != 0
            && differing.all(|(kind, count)| self.noise_kinds.contains(kind) && explains(count))
    }

    fn add(&mut self, finding: &Finding) {
        let has = |kind| u64::from(finding.kinds().contains(kind));
        self.merge(Self {
            seen: 1,
            missing: has(Kind::Missing),
            extra: has(Kind::Extra),
            other_type: has(Kind::Type),
            value: has(Kind::Value),
            noise: 0,
            noise_kinds: Kinds::default(),
            shapes: finding.shapes().cloned(),
        });
    }

    fn merge(&mut self, other: Self) {
        add(&mut self.seen, other.seen);
        add(&mut self.missing, other.missing);
        add(&mut self.extra, other.extra);
        add(&mut self.other_type, other.other_type);
        add(&mut self.value, other.value);
        add(&mut self.noise, other.noise);
        self.noise_kinds.extend(other.noise_kinds);
        self.shapes = other.shapes.or(self.shapes.take());
    }
}

/// Adds to a count, which a stored tally may have at any value.
const fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests;
