//! Which of the requests that clients used have a proof: `signpost bridge check`, and the warning before a switch.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;
use signpost_bridge::Tally;
use signpost_kit::clock::Timestamp;
use signpost_protocol::version::Version;
use signpost_proxy::{
    Day, PathPattern, ServedVersion, as_rfc3339, hour_of_tallies as hour_of, proof_start,
    read_tallies,
};
use signpost_store::{
    Store, StoreError,
    tables::usage::{OfPaths, read_paths},
};
use utoipa::ToSchema;

use super::paths::PathUsage;

/// Limit of what a line names.
pub(super) const MAX_SHOWN: usize = 20;

/// Pairs that are enough for a path with more requests.
const ENOUGH_PAIRS: u64 = 10;

/// What clients used of a version, and whether that is proven.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct Coverage {
    /// Methods and paths that were used, without those on the version's own routes: a bridge does not change them.
    pub used: usize,
    /// Those of them with enough pairs.
    pub proven: usize,
    /// Those without.
    pub uncovered: Vec<Uncovered>,
    /// Those that the configuration names as unproven.
    pub unproven: Vec<NamedUnproven>,
}

/// Requests without a proof.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Uncovered {
    /// Method and path.
    pub request: String,
    /// Requests of the days of the report.
    pub requests: u64,
    /// Applications that sent them.
    pub applications: u64,
    /// When the last one was counted.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub last_seen: Timestamp,
    /// Pairs that were compared.
    pub pairs: u64,
    /// Requests that were not copied: there were too many at a time, or the client left.
    pub dropped: u64,
    /// Copies that the other version refused.
    pub refused: u64,
    /// Requests that could not be compared: a response is too large, broken off or encoded in an unknown way.
    pub uncompared: u64,
    #[serde(skip)]
    told: String,
}

/// Requests that the configuration names as unproven.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NamedUnproven {
    /// Method and path, as the configuration has them.
    pub request: String,
    /// Why, as the configuration says.
    pub reason: String,
    /// Requests of the days of the report.
    pub requests: u64,
    /// When the last one was counted; null if there was none.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_seen: Option<Timestamp>,
}

impl Coverage {
    /// Reads what clients used since a time of a version that shall be bridged, or is since then, and its pairs with the
    /// present changes.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub async fn read(
        store: &Store,
        version: &ServedVersion,
        to: &Version,
        (used_since, pairs_since): (Timestamp, Timestamp),
    ) -> Result<Self, StoreError> {
        let name = version.name().as_str();
        let used = used_since_of(store, name, used_since).await?;
        if used.is_empty() {
            return Ok(Self::new(version, &used, &BTreeMap::new()));
        }
        let since = hour_of(pairs_since).max(proof_start(store, name).await?);
        let digest = version.changes().map_or("", |changes| changes.digest());
        let routes = read_tallies(store, (name, to.as_str(), digest), since).await?;
        Ok(Self::new(version, &used, &routes))
    }

    /// What these tallies prove.
    pub(super) fn new(
        version: &ServedVersion,
        used: &[PathUsage],
        routes: &BTreeMap<String, Tally>,
    ) -> Self {
        let unproven = version.unproven().iter().map(|one| NamedUnproven {
            request: format!("{} {}", one.method.as_str(), one.path),
            reason: one.reason.to_string(),
            requests: 0,
            last_seen: None,
        });
        let mut coverage = Self {
            unproven: unproven.collect(),
            ..Self::default()
        };
        for path in used.iter().filter(|path| !version.is_routed(&path.path)) {
            coverage.used += 1;
            let mut named = version.unproven().iter().zip(&mut coverage.unproven);
            if let Some((_, named)) = named.find(|(one, _)| one.names(&path.method, &path.path)) {
                named.requests += path.requests;
                named.last_seen = named.last_seen.max(Some(path.last_seen));
                continue;
            }
            match Uncovered::of(path, routes) {
                Some(uncovered) => coverage.uncovered.push(uncovered),
                None => coverage.proven += 1,
            }
        }
        coverage
            .uncovered
            .sort_by_key(|one| std::cmp::Reverse(one.requests));
        coverage
    }

    /// For people: the requests without enough pairs, or without any.
    pub(super) fn uncovered(&self, is_paired: bool) -> Vec<String> {
        let uncovered = self.uncovered.iter();
        let uncovered = uncovered.filter(|one| (one.pairs > 0) == is_paired);
        uncovered.map(ToString::to_string).collect()
    }

    /// For people: how much is proven, what is not, and what is named as unproven, in a line each.
    pub fn lines(&self) -> Vec<String> {
        let used = number_of(self.used as u64, "path");
        let mut lines = vec![format!("{} of {used} that clients used", self.proven)];
        for (is_paired, what) in [
            (false, "requests without a pair"),
            (true, "requests without enough pairs"),
        ] {
            let uncovered = self.uncovered(is_paired);
            if !uncovered.is_empty() {
                lines.push(format!("{what}: {}", shown(uncovered.iter(), MAX_SHOWN)));
            }
        }
        lines.extend(self.unproven.iter().map(|named| {
            let requests = number_of(named.requests, "request");
            format!("unproven: {}, {requests}: {}", named.request, named.reason)
        }));
        lines
    }
}

/// The paths that a version's own backends have served since a time; whole days count.
pub(super) async fn used_since_of(
    store: &Store,
    version: &str,
    since: Timestamp,
) -> Result<Vec<PathUsage>, StoreError> {
    let of = OfPaths {
        day: Day::at(since).number(),
        since: since.as_millis(),
        version: Some(version),
        application: None,
        is_own: true,
    };
    read_paths(store, &of).await
}

impl Uncovered {
    /// Why the requests of a path have no proof; `None` if they have one.
    fn of(path: &PathUsage, routes: &BTreeMap<String, Tally>) -> Option<Self> {
        // The response to a HEAD has the head of that to a GET, and nothing else to compare.
        let method = if path.method == "HEAD" {
            "GET"
        } else {
            &*path.method
        };
        let covers = |route: &str| {
            let (of, pattern) = route.split_once(' ')?;
            let pattern: PathPattern = pattern.parse().ok()?;
            Some(of == method && pattern.covers(&path.path))
        };
        let mut all = Self {
            request: format!("{} {}", path.method, path.path),
            requests: path.requests,
            applications: path.applications,
            last_seen: path.last_seen,
            pairs: 0,
            dropped: 0,
            refused: 0,
            uncompared: 0,
            told: told(path),
        };
        let tallies = routes
            .iter()
            .filter(|(route, _)| covers(route) == Some(true));
        for (_, tally) in tallies {
            all.pairs += tally.pairs;
            all.dropped += tally.dropped;
            all.refused += tally.refused;
            all.uncompared += tally.uncompared;
        }
        let is_proven = all.pairs > 0
            && all.pairs >= all.requests.min(ENOUGH_PAIRS)
            && all.refused == 0
            && all.uncompared == 0;
        (!is_proven).then_some(all)
    }
}

/// In one line: `POST /orders 312 by 4 applications`.
impl fmt::Display for Uncovered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.told)?;
        let counts = [
            (self.pairs, "pairs"),
            (self.dropped, "dropped"),
            (self.refused, "refused"),
            (self.uncompared, "not comparable"),
        ];
        let counts = counts.into_iter().filter(|(number, _)| *number > 0);
        let counts: Vec<_> = counts
            .map(|(number, what)| format!("{number} {what}"))
            .collect();
        match counts.is_empty() {
            true => Ok(()),
            false => write!(formatter, " ({})", counts.join(", ")),
        }
    }
}

/// How often a path was used.
pub(super) fn told(path: &PathUsage) -> String {
    let applications = match path.applications {
        0 => String::new(),
        number => format!(" by {}", number_of(number, "application")),
    };
    format!(
        "{} {} {}{applications}",
        path.method, path.path, path.requests
    )
}

/// A number of something that has a regular plural.
pub fn number_of(number: u64, what: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {what}{end}")
}

/// The first ones, and how many there are more.
pub fn shown(texts: impl ExactSizeIterator<Item: fmt::Display>, max: usize) -> String {
    let more = texts.len().saturating_sub(max);
    let first: Vec<_> = texts.take(max).map(|text| text.to_string()).collect();
    match more {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use signpost_proxy::testing::versions;

    use super::*;

    fn used(request: &str, requests: u64) -> PathUsage {
        let (method, path) = request.split_once(' ').unwrap();
        PathUsage {
            version: "v1".to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            requests,
            client_errors: 0,
            server_errors: 0,
            bridged: 0,
            applications: 2,
            last_seen: Timestamp::from_millis(0),
            users: Vec::new(),
            ends: Vec::new(),
        }
    }

    #[test]
    fn what_is_used_is_proven_named_or_uncovered() {
        let versions = versions(
            "[versions.v1]\nbackend = '127.0.0.1:1'\nroutes = [{ path = '/own/**', backend = '127.0.0.1:3' }]\n\
             unproven = [{ request = 'DELETE /orders/**', reason = 'tested' }]\n[versions.v2]\nbackend = '127.0.0.1:2'\n",
        );
        let paths = [
            used("GET /orders/**", 500),
            used("HEAD /orders/*/lines", 5),
            used("POST /orders", 312),
            used("GET /few", 9),
            used("GET /refused", 20),
            used("GET /large", 20),
            used("GET /own/*", 7),
            used("DELETE /orders/*", 3),
            used("GET other", 1),
        ];
        // Pairs, dropped, refused, not comparable.
        let routes = [
            ("GET /orders/**", [10, 0, 0, 0]),
            ("POST /order", [99, 0, 0, 0]),
            ("GET /few", [8, 4, 0, 0]),
            ("GET /refused", [19, 0, 1, 0]),
            ("GET /large", [18, 0, 0, 2]),
        ];
        let routes = routes.map(|(route, [pairs, dropped, refused, uncompared])| {
            let mut tally = Tally::default();
            (tally.pairs, tally.dropped) = (pairs, dropped);
            (tally.refused, tally.uncompared) = (refused, uncompared);
            (route.to_owned(), tally)
        });
        let routes = BTreeMap::from(routes);
        let coverage = Coverage::new(versions.named(b"v1").unwrap(), &paths, &routes);
        let expected = [
            "2 of 8 paths that clients used",
            "requests without a pair: POST /orders 312 by 2 applications, GET other 1 by 2 applications",
            "requests without enough pairs: GET /refused 20 by 2 applications (19 pairs, 1 refused), \
             GET /large 20 by 2 applications (18 pairs, 2 not comparable), GET /few 9 by 2 applications (8 pairs, 4 dropped)",
            "unproven: DELETE /orders/**, 3 requests: tested",
        ];
        assert_eq!(coverage.lines(), expected);
    }
}
