//! Routes: paths whose requests go to a backend of their own, of one version, or of several. CONTRACT 5.

use std::sync::Arc;

use signpost_kit::{
    config::{
        Read, Section,
        shared_keys::{GATEWAY_SECRET, gateway_secret},
    },
    secret::Secret,
};
use signpost_protocol::version::Version;

use super::{
    Reading,
    backend::{AccountRules, Backend, BackendName, Part},
    canaries::{OwnCanaries, StickyBy, Tester, read_canaries},
    request_rules::{OwnRules, RequestRules},
};
use crate::config::{
    path_pattern::PathPattern,
    readers::check_unique,
    sign::Unsigned,
    version::backend::upstream::{DefaultChecks, Upstream},
};

/// Limit of a list of routes: each request is compared with the routes of its version, and with the common ones.
const MAX_ROUTES: usize = 256;
const KEY: &str = "routes";
const ALLOWED: &str = "each path once; give one route several backends instead";

/// A route as the file has it.
pub(super) struct Route {
    pub(super) path: PathPattern,
    pub(super) upstream: Upstream,
    pub(super) account: AccountRules,
    pub(super) secret: Option<Secret>,
    /// Its own rule.
    pub(super) unsigned: Option<Unsigned>,
    /// Its own rules for requests.
    pub(super) rules: OwnRules,
    pub(super) canaries: OwnCanaries,
}

/// A route of several versions.
pub(super) struct CommonRoute {
    pub(super) path: PathPattern,
    /// Its versions; `None`: all.
    versions: Option<Vec<Version>>,
    pub(super) backend: Arc<Backend>,
    /// Its own rule.
    pub(super) unsigned: Option<Unsigned>,
    /// Its own rules for requests.
    pub(super) rules: OwnRules,
    pub(super) sticky_by: StickyBy,
    /// Its canaries, with their shares.
    pub(super) canaries: Vec<(u8, Option<Tester>, Arc<Backend>)>,
}

impl Route {
    fn read(
        section: &mut Section<'_>,
        around: &RequestRules,
        reading: &mut Reading<'_>,
    ) -> Read<Self> {
        let path = section.required("path", PathPattern::ALLOWED);
        let upstream = Upstream::read(section, DefaultChecks::IfSeveral, reading);
        let account = AccountRules::read(section, AccountRules::ROUTE);
        let secret = gateway_secret(section, GATEWAY_SECRET);
        let unsigned = Unsigned::read_optional(section);
        let rules = OwnRules::read(section, around);
        let canaries = read_canaries(section, reading);
        Ok(Self {
            path: path?,
            upstream: upstream?,
            account: account?,
            secret: secret?,
            unsigned: unsigned?,
            rules: rules?,
            canaries: canaries?,
        })
    }
}

impl CommonRoute {
    /// Whether it is for requests of this version.
    pub(super) fn is_of(&self, version: &Version) -> bool {
        let versions = self.versions.as_deref();
        versions.is_none_or(|versions| versions.contains(version))
    }
}

/// Reads the routes of a version, in the order of the file.
pub(super) fn read_routes(
    section: &mut Section<'_>,
    around: &RequestRules,
    reading: &mut Reading<'_>,
) -> Read<Vec<Route>> {
    let routes = section.tables(KEY, MAX_ROUTES, |section| {
        Route::read(section, around, reading)
    })?;
    let paths = routes.iter().map(|(value, route)| (value, &route.path));
    check_unique(paths, ALLOWED)?;
    Ok(routes.into_iter().map(|(_, route)| route).collect())
}

/// Reads the routes of all or several versions, and numbers their backends. `known` has the names of all versions.
pub(super) fn read_common_routes(
    root: &mut Section<'_>,
    known: &[Version],
    reading: &mut Reading<'_>,
) -> Read<Vec<CommonRoute>> {
    let routes = root.tables(KEY, MAX_ROUTES, |section| {
        let route = Route::read(section, &RequestRules::USUAL, reading);
        let versions = read_versions(section, known);
        Ok((route?, versions?))
    })?;
    let mut common: Vec<CommonRoute> = Vec::new();
    for (value, (route, versions)) in routes {
        // Other versions may have another route for the path. Two routes of one version would leave the choice to their
        // order.
        let mut versions_of = versions.as_deref().unwrap_or(known).iter();
        if let Some(version) = versions_of.find(|version| {
            let mut before = common.iter();
            before.any(|before| before.path == route.path && before.is_of(version))
        }) {
            let twice = format!("\"{}\" twice for {version}", route.path);
            return Err(value.problem(&twice, ALLOWED));
        }
        let part = Part::CommonRoute {
            path: route.path.clone(),
            versions: versions.clone().unwrap_or_default().into(),
        };
        let named = |part| BackendName {
            version: None,
            part,
        };
        let (account, secret) = (route.account, route.secret);
        let backend = reading.add(named(part.clone()), route.upstream, account, secret.clone());
        let canaries = route.canaries.canaries.into_iter().map(|canary| {
            let name = named(Part::Canary {
                name: canary.name,
                of: Box::new(part.clone()),
            });
            let secret = canary.secret.or_else(|| secret.clone());
            let backend = reading.add(name, canary.upstream, account, secret);
            (canary.percent, canary.tester, backend)
        });
        common.push(CommonRoute {
            path: route.path,
            versions,
            backend,
            unsigned: route.unsigned,
            rules: route.rules,
            sticky_by: route.canaries.sticky_by,
            canaries: canaries.collect(),
        });
    }
    Ok(common)
}

/// Reads `versions`, sorted; `None`: all.
fn read_versions(section: &mut Section<'_>, known: &[Version]) -> Read<Option<Vec<Version>>> {
    const KEY: &str = "versions";
    let names: Vec<_> = known.iter().map(Version::as_str).collect();
    let allowed = format!("versions with a table: {}", names.join(", "));
    let known_version = |text: &str| text.parse().ok().filter(|version| known.contains(version));
    let mut versions = section.list(KEY, &[], &allowed, known_version)?;
    versions.sort();
    versions.dedup();
    match (section.has(KEY), versions.is_empty()) {
        (false, _) => Ok(None),
        (true, false) => Ok(Some(versions)),
        (true, true) => Err(section.problem(
            KEY,
            "an empty list",
            "at least one version; without the key, all",
        )),
    }
}
