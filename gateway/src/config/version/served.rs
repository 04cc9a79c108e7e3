//! A version: its own backend, its canaries, and its routes. CONTRACT 5.

use std::sync::Arc;

use signpost_kit::{
    clock::Timestamp,
    config::{
        Invalid, Read, Section,
        shared_keys::{GATEWAY_SECRET, gateway_secret},
    },
};
use signpost_protocol::version::Version;

use super::{
    Reading,
    backend::{AccountRules, Backend, BackendName, Part},
    canaries::{StickyBy, read_canaries},
    life_cycle::{LifeCycle, Stage},
    routes::{CommonRoute, read_routes},
};
use crate::config::{
    path_pattern::PathPattern,
    response_headers::ResponseHeaders,
    sign::Unsigned,
    version::backend::upstream::{DefaultChecks, Upstream},
};

/// A version, and the backends of its requests.
#[derive(Debug)]
pub struct ServedVersion {
    name: Arc<Version>,
    /// Its index among all versions, from 0.
    pub(crate) number: usize,
    life_cycle: Option<LifeCycle>,
    /// Its own backend, its canaries, and those of its routes, common ones last.
    destinations: Vec<Destination>,
    /// The paths with a backend of their own, by [`PathPattern::precedence`].
    routes: Vec<(PathPattern, BackendIndex)>,
    /// Each canary, and the end of its share of the requests: 0 to 100, ascending.
    canaries: Vec<(u8, BackendIndex)>,
    sticky_by: StickyBy,
    response_headers: ResponseHeaders,
}

/// A backend, and how it takes unsigned requests of the version.
#[derive(Debug)]
struct Destination {
    backend: Arc<Backend>,
    unsigned: Unsigned,
}

/// The index of a backend in its version. Small, since each request has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackendIndex(u16);

impl BackendIndex {
    /// That of the version's own backend.
    pub(crate) const OWN: Self = Self(0);

    /// That of the destination which a version gets next: they are far fewer than 65,536.
    fn next(destinations: &[Destination]) -> Self {
        Self(u16::try_from(destinations.len()).unwrap_or_default())
    }
}

impl ServedVersion {
    /// Reads the table of a version, and numbers its backends.
    pub(super) fn read(
        name: &str,
        section: &mut Section<'_>,
        reading: &mut Reading<'_>,
    ) -> Read<Self> {
        let upstream = Upstream::read(section, DefaultChecks::IfSeveral, reading);
        let secret = gateway_secret(section, GATEWAY_SECRET);
        let unsigned = Unsigned::read(section, reading.gateway.unsigned);
        let canaries = read_canaries(section, reading);
        let routes = read_routes(section, reading);
        let life_cycle = LifeCycle::read(section, reading);
        let names = reading.gateway.names;
        let response_headers =
            section.section("headers", |section| ResponseHeaders::read(section, names));
        let (upstream, routes, life_cycle) = (upstream?, routes?, life_cycle?);
        let (secret, unsigned, (sticky_by, canaries)) = (secret?, unsigned?, canaries?);
        // `Versions` reports an invalid name.
        let name: Arc<Version> = Arc::new(name.parse().map_err(|_| Invalid)?);
        let of_routes = unsigned.of_routes(reading.gateway.unsigned);
        let mut destinations = Vec::new();
        let mut add = |part, upstream, account, secret, unsigned| {
            let index = BackendIndex::next(&destinations);
            let version = Some(Arc::clone(&name));
            let name = BackendName { version, part };
            let backend = reading.add(name, upstream, account, secret);
            destinations.push(Destination { backend, unsigned });
            index
        };
        let account = AccountRules::LOGIN;
        add(Part::Own, upstream, account, secret.clone(), unsigned);
        let mut end = 0;
        let canaries = canaries.into_iter().map(|canary| {
            end += canary.percent;
            let secret = canary.secret.or_else(|| secret.clone());
            let part = Part::Canary(canary.name);
            (end, add(part, canary.upstream, account, secret, unsigned))
        });
        let canaries = canaries.collect();
        let routes = routes.into_iter().map(|route| {
            let part = Part::Route(route.path.clone());
            let unsigned = route.unsigned.unwrap_or(of_routes);
            let index = add(part, route.upstream, route.account, route.secret, unsigned);
            (route.path, index)
        });
        let routes = routes.collect();
        Ok(Self {
            name,
            number: 0,
            life_cycle,
            destinations,
            routes,
            canaries,
            sticky_by,
            response_headers: response_headers?.beside(&reading.gateway.response_headers),
        })
    }

    /// Adds the routes of several versions whose paths it has no route for. `unsigned` is the gateway's rule. Returns the
    /// same version with its number.
    pub(super) fn complete(
        mut self,
        number: usize,
        common: &[CommonRoute],
        unsigned: Unsigned,
    ) -> Self {
        self.number = number;
        let of_routes = self.unsigned(BackendIndex::OWN).of_routes(unsigned);
        for route in common.iter().filter(|route| route.is_of(&self.name)) {
            if self.routes.iter().all(|(path, _)| *path != route.path) {
                let index = BackendIndex::next(&self.destinations);
                self.destinations.push(Destination {
                    backend: Arc::clone(&route.backend),
                    unsigned: route.unsigned.unwrap_or(of_routes),
                });
                self.routes.push((route.path.clone(), index));
            }
        }
        self.routes.sort_by_key(|(path, _)| path.precedence());
        self
    }

    /// Its name; the same object for all of its requests.
    #[must_use]
    pub fn name(&self) -> &Arc<Version> {
        &self.name
    }

    /// The backend of requests that neither a route nor a canary takes.
    #[must_use]
    pub fn own(&self) -> &Arc<Backend> {
        self.backend(BackendIndex::OWN)
    }

    /// The backend of an index, which is one of this version's.
    #[must_use]
    pub(crate) fn backend(&self, index: BackendIndex) -> &Arc<Backend> {
        &self.destinations[usize::from(index.0)].backend
    }

    /// How the backend of an index takes unsigned requests of this version. A route without a rule of its own is at least
    /// as strict as its version and as the gateway.
    #[must_use]
    pub(crate) fn unsigned(&self, index: BackendIndex) -> Unsigned {
        self.destinations[usize::from(index.0)].unsigned
    }

    /// The backends that accept unsigned requests though no key says so.
    pub(super) fn accepting_by_default(&self) -> impl Iterator<Item = &Arc<Backend>> {
        let destinations = self.destinations.iter();
        let accepting = destinations.filter(|one| one.unsigned == Unsigned::Unset);
        accepting.map(|one| &one.backend)
    }

    /// The fixed headers of its responses: the gateway's and its own.
    #[must_use]
    pub const fn response_headers(&self) -> &ResponseHeaders {
        &self.response_headers
    }

    /// Its life cycle, if one is configured.
    #[must_use]
    pub(crate) fn life_cycle(&self) -> Option<&LifeCycle> {
        self.life_cycle.as_ref()
    }

    /// Where it is in its life cycle at this time.
    #[must_use]
    pub(crate) fn stage(&self, now: Timestamp) -> Stage {
        self.life_cycle()
            .map_or(Stage::Current, |life_cycle| life_cycle.stage(now))
    }

    /// All of its backends: its own, its canaries, and those of its routes. Other versions have those of common routes, too.
    pub(crate) fn backends(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.destinations.iter().map(|one| &one.backend)
    }

    /// The share of the requests without a route that a backend serves, in percent; `None` for that of a route.
    #[must_use]
    pub(crate) fn share(&self, backend: &Backend) -> Option<u8> {
        match backend.name.part {
            Part::Route(_) | Part::CommonRoute { .. } => None,
            Part::Own => Some(100 - self.canaries.last().map_or(0, |(end, _)| *end)),
            Part::Canary(_) => {
                let ends = self.canaries.iter().map(|(end, _)| *end);
                let mut canaries = self.canaries.iter().zip(std::iter::once(0).chain(ends));
                let found =
                    canaries.find(|((_, canary), _)| self.backend(*canary).name == backend.name);
                found.map(|((end, _), start)| end - start)
            }
        }
    }

    /// The backend of the longest route that takes `path`; byte for byte, as sent.
    #[must_use]
    pub(crate) fn routed(&self, path: &str) -> Option<BackendIndex> {
        let mut routes = self.routes.iter();
        let found = routes.find(|(pattern, _)| pattern.takes(path));
        found.map(|(_, index)| *index)
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
    pub(crate) fn canary_at(&self, place: u8) -> Option<BackendIndex> {
        let mut canaries = self.canaries.iter();
        canaries
            .find(|(end, _)| place < *end)
            .map(|(_, index)| *index)
    }
}
