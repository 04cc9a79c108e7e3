//! A version: its own backend, its canaries, and its routes. CONTRACT 5.

use std::sync::Arc;

use signpost_kit::{
    clock::Timestamp,
    config::{
        Invalid, Read, Section,
        shared_keys::{GATEWAY_SECRET, gateway_secret},
    },
    secret::Secret,
};
use signpost_protocol::version::Version;

use super::{
    Reading,
    backend::{AccountCheck, AccountRules, Backend, BackendIndex, BackendName, Part},
    bridge::{check_no_backend, read_bridge, read_changes},
    canaries::{OwnCanaries, Split, StickyBy, Tester, read_canaries},
    changes::Changes,
    endpoints::{Endpoint, read_endpoints},
    life_cycle::{LifeCycle, Stage},
    placed::OwnPlaces,
    request_rules::{Bodies, OwnRules, RequestRules},
    routes::{CommonRoute, Route, read_routes},
    shadow::{Shadow, read_shadow},
    unproven::{Unproven, read_unproven},
};
use crate::{
    config::{
        path_pattern::PathPattern,
        response_headers::ResponseHeaders,
        sign::Unsigned,
        version::backend::upstream::{DefaultChecks, Upstream},
    },
    request::Method,
};

/// A version, and the backends of its requests.
#[derive(Debug)]
pub struct ServedVersion {
    name: Arc<Version>,
    /// Its index among all versions, from 0.
    pub number: usize,
    life_cycle: Option<Arc<LifeCycle>>,
    /// The paths with a life cycle of their own; of several that take a request, the first holds.
    endpoints: Box<[Endpoint]>,
    /// Its own backend, its canaries, and the backends of its routes, common ones last.
    destinations: Vec<Destination>,
    /// The paths with a backend of their own, by [`PathPattern::precedence`].
    routes: Vec<(PathPattern, BackendIndex)>,
    response_headers: ResponseHeaders,
    /// Changes that turn its requests and responses into another version's.
    changes: Option<Arc<Changes>>,
    /// The version whose backends serve its requests; `None` if it has a backend of its own.
    bridge: Option<Bridge>,
    /// The version that gets copies of its requests.
    shadow: Option<Arc<Shadow>>,
    /// What may stay without a proof.
    unproven: Box<[Unproven]>,
    /// How its table takes unsigned requests.
    unsigned: Unsigned,
    /// Which paths it takes.
    paths: Paths,
    /// What it takes of requests, where no route has another rule.
    rules: RequestRules,
    /// Where a request can name it, beside the header.
    places: OwnPlaces,
}

/// Which paths a version takes. CONTRACT 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// Paths that every reader understands alike.
    Canonical,
    /// All, as they were sent.
    AsSent,
}

/// A version whose backends serve the requests of another one.
#[derive(Debug)]
pub struct Bridge {
    /// Its name.
    pub to: Arc<Version>,
    /// The number of its backends, which are the first of the bridged version.
    backends: usize,
    /// Routes of the target version, by path.
    routes: Vec<(PathPattern, BackendIndex)>,
}

/// A backend, and what it takes of the version's requests.
#[derive(Clone, Debug)]
struct Destination {
    backend: Arc<Backend>,
    unsigned: Unsigned,
    rules: RequestRules,
    /// How its requests are split, if it has canaries.
    split: Option<Arc<Split>>,
}

impl ServedVersion {
    /// Reads the table of a version, and numbers its backends.
    pub(super) fn read(
        name: &str,
        section: &mut Section<'_>,
        reading: &mut Reading<'_>,
    ) -> Read<Self> {
        let bridge = read_bridge(section);
        // What is invalid is reported already.
        let own = match bridge {
            Ok(None) => OwnBackends::read(section, reading).map(Some),
            Ok(Some(_)) | Err(Invalid) => check_no_backend(section).map(|()| None),
        };
        let unsigned = Unsigned::read(section, reading.gateway.unsigned);
        let paths = [("canonical", Paths::Canonical), ("as_sent", Paths::AsSent)];
        let paths = section.choice("paths", &paths, Paths::Canonical);
        let own_rules = OwnRules::read(section, &RequestRules::USUAL);
        let rules = own_rules.map(|own| own.within(&RequestRules::USUAL));
        let places = OwnPlaces::read(section);
        // What is invalid is reported; routes are read nevertheless.
        let around = rules.as_ref().copied().unwrap_or(RequestRules::USUAL);
        let routes = read_routes(section, &around, reading);
        let life_cycle = LifeCycle::read(section, reading);
        let known = life_cycle.as_ref().ok().and_then(Option::as_ref);
        let endpoints = read_endpoints(section, known, reading);
        let names = reading.gateway.names;
        let response_headers =
            section.section("headers", |section| ResponseHeaders::read(section, names));
        let name: Read<Version> = name.parse().map_err(|_| Invalid);
        let shadow = read_shadow(section, name.as_ref().ok(), reading);
        let is_used = !matches!((&bridge, &shadow), (Ok(None), Ok(None)));
        let changes = read_changes(section, (name.as_ref().ok(), is_used), reading);
        let has_changes = matches!(&changes, Ok(Some(_)) | Err(Invalid));
        let unproven = read_unproven(section, has_changes, reading);
        let (bridge, own, routes, life_cycle) = (bridge?, own?, routes?, life_cycle?);
        let (unsigned, shadow, changes) = (unsigned?, shadow?, changes?);
        let (rules, places, endpoints) = (rules?, places?, endpoints?);
        if let (Some(_), Some(_)) = (&bridge, &shadow) {
            let both = "it beside bridge";
            return Err(section.problem("shadow", both, "a version with a backend of its own"));
        }
        // `Versions` reports an invalid name.
        let name = Arc::new(name?);
        let of_routes = unsigned.of_routes(reading.gateway.unsigned);
        let mut numbering = Numbering {
            version: Arc::clone(&name),
            reading,
            rules,
            destinations: Vec::new(),
        };
        if let Some(own) = own {
            numbering.add_own(own, unsigned);
        }
        let routes = routes.into_iter();
        let routes = routes.map(|route| numbering.add_route(route, of_routes));
        let routes = routes.collect();
        let bridge = bridge.map(|to| Bridge {
            to: Arc::new(to),
            backends: 0,
            routes: Vec::new(),
        });
        Ok(Self {
            name,
            number: 0,
            life_cycle: life_cycle.map(Arc::new),
            endpoints,
            destinations: numbering.destinations,
            routes,
            response_headers: response_headers?.beside(&reading.gateway.response_headers),
            unsigned,
            paths: paths?,
            rules,
            places,
            changes: changes.map(Arc::new),
            unproven: unproven?.into(),
            bridge,
            shadow: shadow.map(Arc::new),
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
        let of_routes = self.unsigned.of_routes(unsigned);
        for route in common.iter().filter(|route| route.is_of(&self.name)) {
            // A version's own route is an exception from a common one.
            if self.routes.iter().any(|(path, _)| *path == route.path) {
                continue;
            }
            let add = |destinations: &mut Vec<_>, backend: &Arc<Backend>| {
                let index = BackendIndex::nth(destinations.len());
                destinations.push(Destination {
                    backend: Arc::clone(backend),
                    unsigned: route.unsigned.unwrap_or(of_routes),
                    rules: route.rules.within(&self.rules),
                    split: None,
                });
                index
            };
            let index = add(&mut self.destinations, &route.backend);
            let canaries = route.canaries.iter().map(|(percent, tester, backend)| {
                let index = add(&mut self.destinations, backend);
                (*percent, tester.clone(), index)
            });
            let split = split(route.sticky_by, canaries.collect());
            self.destinations[index.position()].split = split;
            self.routes.push((route.path.clone(), index));
        }
        self.routes.sort_by_key(|(path, _)| path.precedence());
        self
    }

    /// Has the backends of `other` serve what its own routes do not take. Both are complete.
    pub(super) fn bridge_to(&mut self, other: &Self) {
        let Some(bridge) = &mut self.bridge else {
            return;
        };
        // A request that is rejected at the other version is rejected here, too.
        let served = other.destinations.iter().map(|served| Destination {
            backend: Arc::clone(&served.backend),
            unsigned: served.unsigned.max(self.unsigned),
            // What its own clients may send is for this version to say.
            rules: self.rules,
            split: served.split.clone(),
        });
        // The other version's backends go first. So `BackendIndex::OWN` is its own backend, and a comparison of numbers
        // tells whether a request takes the bridge; the indices of this version's routes move up.
        let mut own = std::mem::take(&mut self.destinations);
        bridge.backends = other.destinations.len();
        for destination in &mut own {
            let moved = destination.split.as_deref().map(|split| {
                let mut split = split.clone();
                split.move_up(bridge.backends);
                Arc::new(split)
            });
            destination.split = moved;
        }
        self.destinations = served.chain(own).collect();
        bridge.routes.clone_from(&other.routes);
        for (_, index) in &mut self.routes {
            index.move_up(bridge.backends);
        }
        // The backends of the other version rely on its rule, whoever's clients call them.
        if other.paths == Paths::Canonical {
            self.paths = Paths::Canonical;
        }
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
    pub fn backend(&self, index: BackendIndex) -> &Arc<Backend> {
        &self.destinations[index.position()].backend
    }

    /// How the backend of an index takes unsigned requests of this version. A route without a rule of its own is at least
    /// as strict as its version and as the gateway.
    #[must_use]
    pub fn unsigned(&self, index: BackendIndex) -> Unsigned {
        self.destinations[index.position()].unsigned
    }

    /// What the backend of an index takes of this version's requests.
    #[must_use]
    pub(crate) fn rules(&self, index: BackendIndex) -> &RequestRules {
        &self.destinations[index.position()].rules
    }

    /// Whether it takes JSON by POST where no route has another rule.
    #[must_use]
    pub fn takes_json(&self) -> bool {
        self.rules.bodies != Bodies::Form && self.rules.methods.has(Method::Post)
    }

    /// What each of its backends takes.
    pub(super) fn all_rules(&self) -> impl Iterator<Item = &RequestRules> {
        let destinations = self.destinations.iter();
        destinations.map(|destination| &destination.rules)
    }

    /// Where a request can name it.
    pub(super) const fn own_places(&self) -> &OwnPlaces {
        &self.places
    }

    /// The backends that accept unsigned requests though no key says so.
    pub(super) fn accepting_by_default(&self) -> impl Iterator<Item = &Arc<Backend>> {
        let destinations = self.destinations.iter();
        let accepting = destinations.filter(|destination| destination.unsigned == Unsigned::Unset);
        accepting.map(|destination| &destination.backend)
    }

    /// The fixed headers of its responses: the gateway's and its own.
    #[must_use]
    pub const fn response_headers(&self) -> &ResponseHeaders {
        &self.response_headers
    }

    /// The version whose backend has this index: another one, if the request takes the bridge.
    #[must_use]
    pub(crate) fn serving(&self, index: BackendIndex) -> &Arc<Version> {
        let bridge = self.bridge.as_ref();
        let bridge = bridge.filter(|bridge| index.position() < bridge.backends);
        bridge.map_or(&self.name, |bridge| &bridge.to)
    }

    /// Whether the backend of an index is another version's.
    #[must_use]
    pub fn is_bridged(&self, index: BackendIndex) -> bool {
        let bridge = self.bridge.as_ref();
        bridge.is_some_and(|bridge| index.position() < bridge.backends)
    }

    /// The bridge to the backends of another version.
    #[must_use]
    pub const fn bridge(&self) -> Option<&Bridge> {
        self.bridge.as_ref()
    }

    /// Changes that turn its requests and responses into another version's.
    #[must_use]
    pub fn changes(&self) -> Option<&Arc<Changes>> {
        self.changes.as_ref()
    }

    /// What may stay without a proof.
    #[must_use]
    pub const fn unproven(&self) -> &[Unproven] {
        &self.unproven
    }

    /// The version that gets copies of its requests.
    #[must_use]
    pub fn shadow(&self) -> Option<&Arc<Shadow>> {
        self.shadow.as_ref()
    }

    /// Its life cycle, if one is configured.
    #[must_use]
    pub fn life_cycle(&self) -> Option<&Arc<LifeCycle>> {
        self.life_cycle.as_ref()
    }

    /// Whether it or a path of it has a life cycle.
    #[must_use]
    pub fn ends(&self) -> bool {
        self.life_cycle.is_some() || !self.endpoints.is_empty()
    }

    /// The paths with a life cycle of their own: those for the fewest requests first.
    #[must_use]
    pub const fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    fn endpoint(&self, method: Method, path: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|one| one.takes(method, path))
    }

    /// The life cycle of a request: its endpoint's, which has the version's dates, too; otherwise the version's.
    pub(crate) fn life_cycle_of(&self, method: Method, path: &str) -> Option<&Arc<LifeCycle>> {
        let of_endpoint = self.endpoint(method, path).map(|one| &one.life_cycle);
        of_endpoint.or(self.life_cycle.as_ref())
    }

    /// Where it is in its life cycle at this time.
    #[must_use]
    pub fn stage(&self, now: Timestamp) -> Stage {
        self.life_cycle()
            .map_or(Stage::Current, |life_cycle| life_cycle.stage(now))
    }

    /// Own backend, canaries, routes. A common route's backend appears in several versions.
    pub fn backends(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.destinations
            .iter()
            .map(|destination| &destination.backend)
    }

    /// The share of the version's or a route's requests that a backend serves, in percent; `None` if it serves all of them.
    #[must_use]
    pub fn share(&self, backend: &Backend) -> Option<u8> {
        let mut indices = (0..).map(BackendIndex::nth).zip(&self.destinations);
        let (index, found) = indices.find(|(_, one)| one.backend.number == backend.number)?;
        match (&found.split, &backend.name.part) {
            (Some(split), _) => Some(split.share(None)),
            (None, Part::Own) => Some(100),
            (None, _) => {
                let splits = self
                    .destinations
                    .iter()
                    .filter_map(|one| one.split.as_deref());
                let mut splits = splits.filter(|split| split.has(index));
                splits.next().map(|split| split.share(Some(index)))
            }
        }
    }

    /// How the requests of a backend are split, if it has canaries.
    pub(crate) fn split(&self, index: BackendIndex) -> Option<&Split> {
        self.destinations[index.position()].split.as_deref()
    }

    /// Which paths it takes.
    #[must_use]
    pub const fn paths(&self) -> Paths {
        self.paths
    }

    /// Whether it takes ambiguous paths, and one of its backends has a rule that its own lacks, or `always_signed` one: such a
    /// path can pass the rule.
    pub(super) fn has_rules_to_pass(&self, always_signs: bool) -> bool {
        let own = self.unsigned(BackendIndex::OWN);
        let mut destinations = self.destinations.iter();
        self.paths == Paths::AsSent
            && destinations.any(|destination| {
                let asks_account = destination.backend.account.check != AccountCheck::None;
                let asks_sign = always_signs || destination.unsigned == Unsigned::Reject;
                asks_account || (asks_sign && own != Unsigned::Reject)
            })
    }

    /// The backend of the longest route that takes `path`, in the form in which paths are compared.
    #[must_use]
    pub fn routed(&self, path: &str) -> Option<BackendIndex> {
        routed(&self.routes, path)
    }

    /// The entry that a request is counted by: the path of the route that takes it, otherwise of a change or of the shadow,
    /// otherwise of an endpoint.
    #[must_use]
    pub(crate) fn pattern<'p>(&'p self, method: Method, path: &'p str) -> Option<&'p PathPattern> {
        let route = self.routes.iter().find(|(route, _)| route.takes(path));
        match route {
            Some((route, _)) => Some(route),
            None => {
                let of_endpoint = || self.endpoint(method, path).map(|one| &one.path);
                self.compared_by(method, path).or_else(of_endpoint)
            }
        }
    }

    /// The path of a change or of the shadow that takes a request: of several, the one for the fewest requests. So what a
    /// change is for is told apart, and each change has its own proof.
    #[must_use]
    pub(crate) fn compared_by<'p>(
        &'p self,
        method: Method,
        path: &'p str,
    ) -> Option<&'p PathPattern> {
        // A HEAD has the head of a GET.
        let method = if method == Method::Head {
            Method::Get
        } else {
            method
        };
        let shadow = self.shadow.as_ref();
        let entry = shadow.and_then(|shadow| shadow.entry(method, path));
        let changes = self.changes.iter();
        let of_changes = changes.flat_map(|changes| changes.patterns(method, path));
        of_changes
            .chain(entry)
            .min_by_key(|pattern| pattern.precedence())
    }

    /// Whether one of its routes takes every path of a pattern.
    #[must_use]
    pub fn has_route_for(&self, paths: &PathPattern) -> bool {
        self.routes.iter().any(|(route, _)| route.includes(paths))
    }

    /// Whether one of its routes takes every request that is counted by this path.
    #[must_use]
    pub fn is_routed(&self, counted: &str) -> bool {
        self.routes.iter().any(|(route, _)| route.covers(counted))
    }

    /// Whether each application keeps to a canary.
    #[must_use]
    pub(crate) fn splits_by_app(&self) -> bool {
        let mut splits = self
            .destinations
            .iter()
            .filter_map(|one| one.split.as_deref());
        splits.any(|split| split.sticky_by() == StickyBy::App)
    }
}

impl Bridge {
    /// The backend of the longest route of the other version that takes `path`, which is the path there.
    #[must_use]
    pub fn routed(&self, path: &str) -> Option<BackendIndex> {
        routed(&self.routes, path)
    }
}

fn routed(routes: &[(PathPattern, BackendIndex)], path: &str) -> Option<BackendIndex> {
    // Sorted by precedence, so the first route that takes the path is the longest.
    let mut routes = routes.iter();
    let route = routes.find(|(pattern, _)| pattern.takes(path));
    route.map(|(_, index)| *index)
}

/// Numbers the backends of a version.
struct Numbering<'r, 'g> {
    version: Arc<Version>,
    reading: &'r mut Reading<'g>,
    rules: RequestRules,
    destinations: Vec<Destination>,
}

impl Numbering<'_, '_> {
    fn add(
        &mut self,
        part: Part,
        upstream: Upstream,
        (account, unsigned, rules): (AccountRules, Unsigned, RequestRules),
        secret: Option<Secret>,
    ) -> BackendIndex {
        let index = BackendIndex::nth(self.destinations.len());
        let version = Some(Arc::clone(&self.version));
        let name = BackendName { version, part };
        let backend = self.reading.add(name, upstream, account, secret);
        self.destinations.push(Destination {
            backend,
            unsigned,
            rules,
            split: None,
        });
        index
    }

    /// Adds a route and its canaries. `of_routes` is the rule for unsigned requests of a route that has none of its own.
    fn add_route(&mut self, route: Route, of_routes: Unsigned) -> (PathPattern, BackendIndex) {
        let part = Part::Route(route.path.clone());
        let unsigned = route.unsigned.unwrap_or(of_routes);
        let rules = (route.account, unsigned, route.rules.within(&self.rules));
        let index = self.add(part, route.upstream, rules, route.secret.clone());
        self.add_canaries(index, route.canaries, rules, route.secret.as_ref());
        (route.path, index)
    }

    /// Adds the version's own backend, then its canaries.
    fn add_own(&mut self, own: OwnBackends, unsigned: Unsigned) {
        let rules = (own.account, unsigned, self.rules);
        let index = self.add(Part::Own, own.upstream, rules, own.secret.clone());
        self.add_canaries(index, own.canaries, rules, own.secret.as_ref());
    }

    /// Adds the canaries of a backend.
    fn add_canaries(
        &mut self,
        of: BackendIndex,
        own: OwnCanaries,
        rules: (AccountRules, Unsigned, RequestRules),
        secret: Option<&Secret>,
    ) {
        let of = of.position();
        let canaries = own.canaries.into_iter().map(|canary| {
            let secret = canary.secret.or_else(|| secret.cloned());
            let part = Part::Canary {
                name: canary.name,
                of: Box::new(self.destinations[of].backend.name.part.clone()),
            };
            let index = self.add(part, canary.upstream, rules, secret);
            (canary.percent, canary.tester, index)
        });
        let split = split(own.sticky_by, canaries.collect());
        self.destinations[of].split = split;
    }
}

/// How requests are split among canaries with these shares, at most 100 percent together; `None` without canaries.
fn split(
    sticky_by: StickyBy,
    canaries: Vec<(u8, Option<Tester>, BackendIndex)>,
) -> Option<Arc<Split>> {
    let (mut end, mut shares, mut testers) = (0, Vec::new(), Vec::new());
    for (percent, tester, index) in canaries {
        end += percent;
        shares.push((end, index));
        testers.extend(tester.map(|tester| (tester, index)));
    }
    let split = Split {
        sticky_by,
        canaries: shares,
        testers,
    };
    (!split.canaries.is_empty()).then(|| Arc::new(split))
}

/// A version's own backend, and its canaries.
struct OwnBackends {
    upstream: Upstream,
    account: AccountRules,
    secret: Option<Secret>,
    canaries: OwnCanaries,
}

impl OwnBackends {
    fn read(section: &mut Section<'_>, reading: &mut Reading<'_>) -> Read<Self> {
        let upstream = Upstream::read(section, DefaultChecks::IfSeveral, reading);
        let account = AccountRules::read(section, AccountRules::LOGIN);
        let secret = gateway_secret(section, GATEWAY_SECRET);
        let canaries = read_canaries(section, reading);
        let (upstream, account, secret) = (upstream?, account?, secret?);
        Ok(Self {
            upstream,
            account,
            secret,
            canaries: canaries?,
        })
    }
}
