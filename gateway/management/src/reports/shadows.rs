//! What differs between two versions, and for whom: `signpost versions diff`, `signpost bridge check` and the API.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Serialize;
use signpost_bridge::{Draft, PathTally, Rename, Tally, tally::OTHER_APPS};
use signpost_kit::clock::Timestamp;
use signpost_protocol::version::Version;
use signpost_proxy::{
    Changes, Day, Method, PathPattern, ServedVersion, Shadow, as_rfc3339,
    hour_of_tallies as hour_of, proof_start, read_tallies,
};
use signpost_store::{Store, StoreError, tables::usage::count_users};
use tokio::sync::SemaphorePermit;
use utoipa::ToSchema;

use super::coverage::{Coverage, used_since_of};

/// What differs between two versions.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Diff {
    /// The version whose clients got the responses.
    pub version: String,
    /// The version that got the copies.
    pub to: String,
    /// The first hour of the report.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// Whether the changes of the version were applied.
    pub is_bridged: bool,
    /// Pairs of responses that were compared.
    pub pairs: u64,
    /// Paths in them: members of bodies, headers, the status.
    pub paths: usize,
    /// How many of these differ, without noise.
    pub differing_paths: usize,
    /// The routes, by method and path.
    pub routes: Vec<RouteDiff>,
    /// Entries of the configuration without a pair.
    pub unseen: Vec<String>,
    /// What clients used since then, and whether it is proven; only if the changes were applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// The applications.
    pub applications: AppsDiff,
    /// Its place among the reports of the API, until it is sent.
    #[serde(skip)]
    pub(crate) place: Option<Arc<SemaphorePermit<'static>>>,
}

/// What differs on a route.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RouteDiff {
    /// Its method and path.
    pub route: String,
    /// Pairs of responses that were compared.
    pub pairs: u64,
    /// How many of them differ; some of these may be due to what was later found to be noise.
    pub differing: u64,
    /// Paths in them.
    pub paths: usize,
    /// Pairs with paths beyond the limit, which are not told apart.
    pub beyond_limit: u64,
    /// Requests that could not be compared, since a response is larger than 64 KiB, broken off or encoded in an unknown way.
    pub uncompared: u64,
    /// The paths that differ.
    pub differences: Vec<PathDiff>,
    /// The paths that differ between two responses of the version itself.
    pub noise: Vec<PathDiff>,
    /// Values that have another name, place or form in the other version.
    pub renames: Vec<Rename>,
    /// The changes that these suggest.
    #[serde(skip)]
    pub draft: Draft,
}

/// What differs at a path.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PathDiff {
    /// The path: `$.items[].id`, `status`, `content-type`, `header NAME`, `body`, `response`, or `change NAME`.
    pub path: String,
    /// Pairs with it.
    pub seen: u64,
    /// Pairs in which only the version itself has it.
    pub missing: u64,
    /// Pairs in which only the other version has it.
    pub extra: u64,
    /// Pairs in which it has another type.
    #[serde(rename = "type")]
    pub other_type: u64,
    /// Pairs in which it has another value.
    pub value: u64,
    /// The last difference: the shape at the version, and at the other one.
    pub shapes: Option<[String; 2]>,
}

/// For whom something differs.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct AppsDiff {
    /// Applications that have used the version, in the days of the report.
    pub users: u64,
    /// Those with pairs.
    pub compared: usize,
    /// The idents of those with pairs that differ.
    pub differing: BTreeSet<String>,
    /// Whether there were more than can be told apart.
    pub has_more: bool,
}

/// Which report.
pub struct Wanted<'r> {
    /// The version whose clients got the responses.
    pub version: &'r ServedVersion,
    /// The version that got its copies: its shadow's, or an earlier shadow's.
    pub to: &'r Version,
    /// The changes that must have been applied; `None`: none.
    pub changes: Option<&'r Changes>,
    /// From when on; the whole hour counts.
    pub since: Timestamp,
}

impl Diff {
    /// Reads what all gateways of the store have found.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub async fn read(store: &Store, wanted: &Wanted<'_>) -> Result<Self, StoreError> {
        let mut since = hour_of(wanted.since);
        let digest = wanted.changes.map_or("", |changes| changes.digest());
        let version = wanted.version.name().as_str();
        if wanted.changes.is_some() {
            since = since.max(proof_start(store, version).await?);
        }
        let routes = read_tallies(store, (version, wanted.to.as_str(), digest), since).await?;
        let users = count_users(store, version, Day::at(wanted.since).number()).await?;
        let mut diff = Self::new(wanted, since, &routes, users);
        if wanted.changes.is_some() {
            let used = used_since_of(store, version, wanted.since).await?;
            diff.coverage = Some(Coverage::new(wanted.version, &used, &routes));
        }
        Ok(diff)
    }

    fn new(wanted: &Wanted<'_>, since: i64, routes: &BTreeMap<String, Tally>, users: u64) -> Self {
        let all: Vec<_> = routes
            .iter()
            .map(|(route, tally)| RouteDiff::new(route, tally))
            .collect();
        Self {
            version: wanted.version.name().to_string(),
            to: wanted.to.to_string(),
            since: Timestamp::from_millis(since),
            is_bridged: wanted.changes.is_some(),
            pairs: all.iter().map(|route| route.pairs).sum(),
            paths: all.iter().map(|route| route.paths).sum(),
            differing_paths: all.iter().map(|route| route.differences.len()).sum(),
            unseen: unseen(wanted, routes),
            coverage: None,
            applications: AppsDiff::new(routes, &all, users),
            routes: all,
            place: None,
        }
    }

    /// Whether pairs of every entry, and of all that clients used, were compared, and none differs; and nothing could not be
    /// compared.
    #[must_use]
    pub fn is_proof(&self) -> bool {
        let differs = |route: &RouteDiff| {
            !route.differences.is_empty() || route.beyond_limit > 0 || route.uncompared > 0
        };
        let is_covered = |coverage: &Coverage| coverage.uncovered.is_empty();
        self.pairs > 0
            && self.unseen.is_empty()
            && self.coverage.as_ref().is_none_or(is_covered)
            && !self.routes.iter().any(differs)
    }
}

/// Entries of the configuration without a compared pair: paths of changes, and of the shadow. If the version has
/// changes, paths with a route of their own are not compared: a bridge does not change them.
fn unseen(wanted: &Wanted<'_>, routes: &BTreeMap<String, Tally>) -> Vec<String> {
    let compared = routes.iter().filter(|(_, tally)| tally.pairs > 0);
    let seen = compared.filter_map(|(route, _)| {
        let (method, path) = route.split_once(' ')?;
        Some((method, path.parse::<PathPattern>().ok()?))
    });
    let seen: Vec<_> = seen.collect();
    let of_changes = wanted.changes.into_iter().flat_map(Changes::iter);
    let of_changes = of_changes.flat_map(|change| {
        let method = change.method().map_or("", Method::as_str);
        change.paths().map(move |path| (method, path))
    });
    let shadow = wanted.version.shadow().map(|shadow| &**shadow);
    let shadow = shadow.filter(|shadow| shadow.to == *wanted.to);
    let of_shadow = shadow.into_iter().flat_map(Shadow::entries);
    let of_shadow = of_shadow.map(|(method, path)| (method.as_str(), path));
    let is_beside =
        |path: &PathPattern| wanted.changes.is_some() && wanted.version.has_route_for(path);
    let is_named = |method: &str, path: &PathPattern| {
        let mut unproven = wanted.version.unproven().iter();
        unproven.any(|one| one.names(method, &path.to_string()))
    };
    let unseen = of_changes.chain(of_shadow).filter(|(method, path)| {
        let mut seen = seen.iter();
        !seen.any(|(seen_method, seen_path)| {
            seen_method.contains(method) && path.includes(seen_path)
        }) && !is_beside(path)
            && !is_named(method, path)
    });
    let unseen = unseen.map(|(method, path)| format!("{method} {path}").trim_start().to_owned());
    unseen.collect::<BTreeSet<_>>().into_iter().collect()
}

impl RouteDiff {
    fn new(route: &str, tally: &Tally) -> Self {
        let paths = |wants_noise: bool| {
            let differences = tally.differences();
            let wanted = differences.filter(move |(_, _, is_noise)| *is_noise == wants_noise);
            wanted
                .map(|(path, tally, _)| PathDiff::new(path, tally))
                .collect()
        };
        Self {
            route: route.to_owned(),
            pairs: tally.pairs,
            differing: tally.differing,
            paths: tally.paths.len(),
            beyond_limit: tally.others,
            uncompared: tally.uncompared,
            differences: paths(false),
            noise: paths(true),
            renames: tally.renames(),
            draft: tally.draft(),
        }
    }
}

impl PathDiff {
    fn new(path: &str, tally: &PathTally) -> Self {
        Self {
            path: path.to_owned(),
            seen: tally.seen,
            missing: tally.missing,
            extra: tally.extra,
            other_type: tally.other_type,
            value: tally.value,
            shapes: tally.shapes.clone(),
        }
    }
}

impl AppsDiff {
    /// Responses that differ by noise alone break no application, even if a pair was counted before its noise was known.
    fn new(routes: &BTreeMap<String, Tally>, diffs: &[RouteDiff], users: u64) -> Self {
        let mut compared = BTreeSet::new();
        let mut apps = Self {
            users,
            ..Self::default()
        };
        for (tally, diff) in routes.values().zip(diffs) {
            for (ident, counts) in &tally.apps {
                if ident == OTHER_APPS {
                    apps.has_more = true;
                    continue;
                }
                compared.insert(ident);
                if counts.differing > 0 && !diff.differences.is_empty() {
                    apps.differing.insert(ident.clone());
                }
            }
        }
        apps.compared = compared.len();
        apps
    }
}
