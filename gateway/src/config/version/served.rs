//! A version: its own backend, its canaries, and its routes. CONTRACT 5.

use std::sync::Arc;

use signpost_kit::{
    clock::Timestamp,
    config::{Invalid, Read, Section},
};
use signpost_protocol::version::Version;

use super::{
    Reading,
    backend::{AccountRules, Backend, BackendName, Part},
    canaries::{StickyBy, read_canaries},
    life_cycle::{LifeCycle, Stage},
    routes::read_routes,
};
use crate::config::version::backend::upstream::{DefaultChecks, Upstream};

/// A version, and the backends of its requests.
#[derive(Clone, Debug)]
pub struct ServedVersion {
    own: Arc<Backend>,
    /// The paths with a backend of their own, longest first.
    routes: Vec<(Box<str>, Arc<Backend>)>,
    /// Each canary, and the end of its share of the requests: 0 to 100, ascending.
    canaries: Vec<(u8, Arc<Backend>)>,
    sticky_by: StickyBy,
}

impl ServedVersion {
    /// Reads the table of a version, and numbers its backends.
    pub(super) fn read(
        name: &str,
        section: &mut Section<'_>,
        reading: &mut Reading<'_>,
    ) -> Read<Self> {
        let upstream = Upstream::read(section, DefaultChecks::IfSeveral, reading);
        let canaries = read_canaries(section, reading);
        let routes = read_routes(section, reading);
        let life_cycle = LifeCycle::read(section, reading);
        let (upstream, routes, life_cycle) = (upstream?, routes?, life_cycle?);
        let (sticky_by, canaries) = canaries?;
        // `Versions` reports an invalid name.
        let version: Arc<Version> = Arc::new(name.parse().map_err(|_| Invalid)?);
        let mut add = |part, upstream, account| {
            let version = Arc::clone(&version);
            let backend = Arc::new(Backend {
                name: BackendName { version, part },
                number: reading.backends.len(),
                upstream,
                account,
                life_cycle: life_cycle.clone(),
            });
            reading.backends.push(Arc::clone(&backend));
            backend
        };
        let own = add(Part::Own, upstream, AccountRules::LOGIN);
        let mut end = 0;
        let canaries = canaries.into_iter().map(|(name, percent, upstream)| {
            end += percent;
            let part = Part::Canary(name);
            (end, add(part, upstream, AccountRules::LOGIN))
        });
        let canaries = canaries.collect();
        let routes = routes.into_iter().map(|(path, upstream, account)| {
            let path: Box<str> = path.into();
            (path.clone(), add(Part::Route(path), upstream, account))
        });
        let mut routes: Vec<_> = routes.collect();
        routes.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Ok(Self {
            own,
            routes,
            canaries,
            sticky_by,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Version {
        &self.own.name.version
    }

    /// The backend of requests that neither a route nor a canary takes.
    #[must_use]
    pub fn own(&self) -> &Arc<Backend> {
        &self.own
    }

    /// Its life cycle, if one is configured.
    #[must_use]
    pub(crate) fn life_cycle(&self) -> Option<&LifeCycle> {
        self.own.life_cycle.as_deref()
    }

    /// Where it is in its life cycle at this time.
    #[must_use]
    pub(crate) fn stage(&self, now: Timestamp) -> Stage {
        self.life_cycle()
            .map_or(Stage::Current, |life_cycle| life_cycle.stage(now))
    }

    /// All of its backends: its own, its canaries, and those of its routes, the longest path first.
    pub(crate) fn backends(&self) -> impl Iterator<Item = &Arc<Backend>> {
        let canaries = self.canaries.iter().map(|(_, backend)| backend);
        let routes = self.routes.iter().map(|(_, backend)| backend);
        std::iter::once(&self.own).chain(canaries).chain(routes)
    }

    /// The share of the requests without a route that a backend serves, in percent; `None` for that of a route.
    #[must_use]
    pub(crate) fn share(&self, backend: &Backend) -> Option<u8> {
        match backend.name.part {
            Part::Route(_) => None,
            Part::Own => Some(100 - self.canaries.last().map_or(0, |(end, _)| *end)),
            Part::Canary(_) => {
                let ends = self.canaries.iter().map(|(end, _)| *end);
                let mut canaries = self.canaries.iter().zip(std::iter::once(0).chain(ends));
                let found = canaries.find(|((_, canary), _)| canary.name == backend.name);
                found.map(|((end, _), start)| end - start)
            }
        }
    }

    /// The backend of the longest route that `path` is on; byte for byte, as sent.
    #[must_use]
    pub(crate) fn routed(&self, path: &str) -> Option<&Arc<Backend>> {
        let takes = |route: &str| path == route || route.ends_with('/') && path.starts_with(route);
        let mut routes = self.routes.iter();
        routes
            .find(|(route, _)| takes(route))
            .map(|(_, backend)| backend)
    }

    /// Whether a share of its requests goes to a canary.
    #[must_use]
    pub(crate) fn has_canaries(&self) -> bool {
        !self.canaries.is_empty()
    }

    /// Who keeps to a backend, if there are canaries.
    #[must_use]
    pub(crate) const fn sticky_by(&self) -> StickyBy {
        self.sticky_by
    }

    /// Whether each application keeps to a canary.
    #[must_use]
    pub(crate) fn splits_by_app(&self) -> bool {
        self.has_canaries() && self.sticky_by == StickyBy::App
    }

    /// The canary whose share has this place, from 0 to 99. A share that grows keeps the places that it had, as long as
    /// those before it in the file do not change.
    #[must_use]
    pub(crate) fn canary_at(&self, place: u8) -> Option<&Arc<Backend>> {
        let mut canaries = self.canaries.iter();
        canaries
            .find(|(end, _)| place < *end)
            .map(|(_, backend)| backend)
    }
}
