//! The versions and their backends. CONTRACT 5.

mod backend;
mod bridge;
mod canaries;
mod changes;
mod endpoints;
mod life_cycle;
mod placed;
mod request_rules;
mod routes;
mod served;
mod shadow;
mod steps;
mod unproven;

use std::{net::SocketAddr, sync::Arc};

use http::HeaderName;
use signpost_kit::{
    clock::Timestamp,
    config::{
        Invalid, Read, Section,
        shared_keys::{GATEWAY_SECRET, gateway_secret},
    },
    secret::Secret,
};
use signpost_protocol::{header::HeaderNames, version::Version};

pub(crate) use self::{
    backend::{AccountCheck, AccountRules, BackendIndex, BackendName, Balance, HealthChecks},
    canaries::StickyBy,
    changes::{Change, ChangedPath, HeaderChange, ParamEffect, RequestChange, may_change},
    request_rules::{Bodies, RequestRules},
    served::Paths,
};
pub use self::{
    backend::{Backend, BackendAddress, HostPort, Part, Upstream},
    changes::Changes,
    endpoints::Endpoint,
    life_cycle::{
        Extension, LifeCycle, Stage, as_rfc3339, parse_short_duration, parse_since, rfc3339,
    },
    placed::Placed,
    served::ServedVersion,
    shadow::Shadow,
};
use self::{
    placed::Places,
    routes::{CommonRoute, read_common_routes},
};
use super::{
    path_pattern::PathPattern,
    response_headers::ResponseHeaders,
    sign::{SignConfig, Unsigned},
};
use crate::request::{Methods, Target};

/// The configured versions, and the routing of requests that name none of them.
#[derive(Clone, Debug)]
pub struct Versions {
    /// Ordered by name; by their numbers.
    all: Vec<Arc<ServedVersion>>,
    /// The backends of all versions, by their numbers.
    backends: Vec<Arc<Backend>>,
    default: usize,
    default_canary: Option<DefaultCanary>,
    /// How requests for an unknown version are handled.
    pub unknown: UnknownVersion,
    /// Where requests can name a version, beside the header.
    places: Places,
    /// The methods that any of its backends accepts.
    pub(crate) methods: Methods,
    /// Whether any of them takes more than GET, and POST with a form.
    pub(crate) has_own_rules: bool,
    /// Warnings about keys without effect, and keys that other users may read.
    pub(super) warnings: Vec<String>,
}

/// A version that gets a share of the requests that name none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DefaultCanary {
    /// Its number.
    pub version: usize,
    /// Its share, in percent.
    pub percent: u8,
    /// Who keeps to a version.
    pub sticky_by: StickyBy,
}

/// How requests for an unknown version are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownVersion {
    /// Sends it on the default route. CONTRACT 5.
    Default,
    /// Rejects it: 400 `version_unknown`.
    Reject,
}

/// What the gateway's other tables say about all versions.
pub(super) struct GatewayRules<'a> {
    /// The addresses that the gateway listens on.
    pub own: &'a [SocketAddr],
    /// How it takes unsigned requests.
    pub unsigned: Unsigned,
    /// Whether it has rules of paths in `always_signed`, beside the default.
    pub always_signs: bool,
    /// The names of the convention headers, if they are valid.
    pub names: Option<&'a HeaderNames>,
    /// Its fixed headers of responses.
    pub response_headers: ResponseHeaders,
    /// Whether it has a store.
    pub has_store: bool,
}

impl<'a> GatewayRules<'a> {
    /// The rules of the tables that are valid. The others are reported already: the defaults take their place, so that one run
    /// reports all problems.
    pub(super) fn new(
        own: &'a [SocketAddr],
        sign: Option<&SignConfig>,
        (names, response_headers): (Option<&'a HeaderNames>, Option<&ResponseHeaders>),
        has_store: bool,
    ) -> Self {
        Self {
            own,
            unsigned: sign.map_or(Unsigned::Unset, |sign| sign.unsigned),
            always_signs: sign.is_some_and(SignConfig::always_signs),
            names,
            response_headers: response_headers.cloned().unwrap_or_default(),
            has_store,
        }
    }
}

/// What the versions of a file share while they are read.
struct Reading<'a> {
    gateway: GatewayRules<'a>,
    warnings: Vec<String>,
    /// The `gateway_secret` of the whole file.
    secret: Option<Secret>,
    /// Whether that is the secret of a backend.
    uses_secret: bool,
    /// The backends so far, by their numbers.
    backends: Vec<Arc<Backend>>,
}

impl Reading<'_> {
    /// Numbers a backend. Without a `secret` of its own, it gets the whole file's secret, unless it gets only
    /// copies, or is a converter.
    fn add(
        &mut self,
        name: BackendName,
        upstream: Upstream,
        account: AccountRules,
        secret: Option<Secret>,
    ) -> Arc<Backend> {
        let default = self
            .secret
            .as_ref()
            .filter(|_| !matches!(name.part, Part::Shadow | Part::Converter(_)));
        let secret = secret.or_else(|| {
            self.uses_secret |= default.is_some();
            default.cloned()
        });
        let backend = Arc::new(Backend {
            name,
            number: self.backends.len(),
            upstream,
            account,
            secret,
        });
        self.backends.push(Arc::clone(&backend));
        backend
    }

    /// Warns of a key.
    fn has_no_effect(&mut self, section: &Section<'_>, key: &str, why: &str) {
        let table = section.table_path();
        self.warnings
            .push(format!("{table}.{key} has no effect: {why}"));
    }

    /// Warns of common routes that no version takes.
    fn warn_of_useless_routes(&mut self, all: &[Arc<ServedVersion>], common: &[CommonRoute]) {
        for (index, route) in common.iter().enumerate() {
            let mut backends = all.iter().flat_map(|version| version.backends());
            if !backends.any(|backend| backend.number == route.backend.number) {
                self.warnings.push(format!(
                    "routes[{index}] has no effect: each of its versions has its own route for {}",
                    route.path
                ));
            }
        }
    }

    /// Warns of versions whose backends may resolve a path to another one than the gateway's rules were for.
    fn warn_of_paths(&mut self, all: &[Arc<ServedVersion>], always_signs: bool) {
        let passing = all
            .iter()
            .filter(|version| version.has_rules_to_pass(always_signs));
        self.warnings.extend(passing.map(|version| {
            format!(
                "versions.{}.paths is as_sent: a path such as \"//orders\" passes always_signed, and account and unsigned \
                 of routes, if a backend resolves it; prefer canonical",
                version.name()
            )
        }));
    }
}

impl Versions {
    /// Reads the versions in `root`.
    pub(super) fn read(root: &mut Section<'_>, gateway: GatewayRules<'_>) -> Read<Self> {
        let (of_gateway, always_signs) = (gateway.unsigned, gateway.always_signs);
        let secret = gateway_secret(root, GATEWAY_SECRET);
        let mut reading = Reading {
            gateway,
            warnings: Vec::new(),
            // If the secret is invalid, the versions are read without it, so that their problems are reported, too.
            secret: secret.clone().ok().flatten(),
            uses_secret: false,
            backends: Vec::new(),
        };
        let unknown = [
            ("default", UnknownVersion::Default),
            ("reject", UnknownVersion::Reject),
        ];
        let unknown = root.choice("unknown", &unknown, UnknownVersion::Default);
        let default: Read<Version> = root.parsed("default_version", "v1", "a version's name");
        let tables = root.sections("versions", |name, section| {
            ServedVersion::read(name, section, &mut reading)
        })?;
        let named = names(&tables, root);
        // After all names are known: a common route may name versions.
        let common = read_common_routes(root, &named, &mut reading);
        let default = default.and_then(|default| check_default(default, &named, root));
        let default_canary = read_default_canary(root, &named);
        let default = default?;
        let all: Option<Vec<_>> = tables.into_iter().map(|(_, version)| version).collect();
        let mut all = all.ok_or(Invalid)?;
        all.sort_by(|version, other| version.name().cmp(other.name()));
        // After the sort, which settles the numbers.
        let default = all.iter().position(|version| **version.name() == default);
        let common = common?;
        let numbered = all.into_iter().enumerate();
        let complete =
            numbered.map(|(number, version)| version.complete(number, &common, of_gateway));
        // Last: a bridge takes over the other version's routes, common ones included.
        let all = bridged(complete.collect(), root)?;
        let own = all
            .iter()
            .map(|one| (one.number, &**one.name(), one.own_places()));
        let places = Places::of(own, root)?;
        let default_canary = default_canary?;
        let default_canary = default_canary.and_then(|(name, percent, sticky_by)| {
            let found = all.iter().find(|version| **version.name() == name)?;
            Some(DefaultCanary {
                version: found.number,
                percent,
                sticky_by,
            })
        });
        let rules = || all.iter().flat_map(|version| version.all_rules());
        let methods = rules().fold(Methods::USUAL, |all, rules| all.and(rules.methods));
        let has_own_rules = rules().any(|rules| !rules.takes_usual());
        reading.warn_of_useless_routes(&all, &common);
        reading.warn_of_paths(&all, always_signs);
        if secret?.is_some() && !reading.uses_secret {
            let warning = "gateway_secret has no effect: every backend has one in its own table";
            reading.warnings.push(warning.to_owned());
        }
        Ok(Self {
            all,
            backends: reading.backends,
            default: default.ok_or(Invalid)?,
            default_canary,
            unknown: unknown?,
            places,
            methods,
            has_own_rules,
            warnings: reading.warnings,
        })
    }

    /// The version of the default route.
    #[must_use]
    pub fn default(&self) -> &Arc<ServedVersion> {
        &self.all[self.default]
    }

    /// The version that gets a share of the requests that name none.
    pub(crate) const fn default_canary(&self) -> Option<&DefaultCanary> {
        self.default_canary.as_ref()
    }

    /// The version that `name` names. Versions are few: no map is faster than this loop.
    #[must_use]
    pub fn named(&self, name: &[u8]) -> Option<&Arc<ServedVersion>> {
        self.iter().find(|version| version.name().is_named_by(name))
    }

    /// The largest body that any of its backends takes, in bytes.
    pub(super) fn largest_body(&self) -> u64 {
        let rules = self.iter().flat_map(|version| version.all_rules());
        let others = rules.filter(|rules| rules.bodies != Bodies::Form);
        others.map(|rules| rules.max_body).max().unwrap_or_default()
    }

    /// The versions that host and path name. Takes the prefix off the target's compared path.
    pub fn place(&self, target: &mut Target<'_>) -> Placed {
        match self.places.is_empty() {
            true => Placed::default(),
            false => self.places.find(target),
        }
    }

    /// The version of a number.
    pub(crate) fn at(&self, number: usize) -> &Arc<ServedVersion> {
        &self.all[number]
    }

    /// All versions, ordered by name.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<ServedVersion>> {
        self.all.iter()
    }

    /// The names of all versions.
    #[must_use]
    pub fn names(&self) -> Vec<Version> {
        self.iter()
            .map(|version| (**version.name()).clone())
            .collect()
    }

    /// The names of the versions that are not retired at this time.
    #[must_use]
    pub fn names_in_service(&self, now: Timestamp) -> Vec<Version> {
        let versions = self.in_service(now);
        versions.map(|version| (**version.name()).clone()).collect()
    }

    /// The versions that are not retired at this time.
    pub(crate) fn in_service(&self, now: Timestamp) -> impl Iterator<Item = &Arc<ServedVersion>> {
        let versions = self.iter();
        versions.filter(move |version| version.stage(now) != Stage::Retired)
    }

    /// The header fields that the life cycle of any version adds to responses.
    #[must_use]
    pub(crate) fn life_cycle_fields(&self) -> Vec<HeaderName> {
        let cycles = self.iter().flat_map(|version| {
            let endpoints = version.endpoints().iter().map(|one| &one.life_cycle);
            version.life_cycle().into_iter().chain(endpoints)
        });
        let mut names: Vec<HeaderName> =
            cycles.flat_map(|one| one.field_names()).cloned().collect();
        names.sort_by(|name, other| name.as_str().cmp(other.as_str()));
        names.dedup();
        names
    }

    /// The backends of all versions, by their numbers.
    pub fn backends(&self) -> std::slice::Iter<'_, Arc<Backend>> {
        self.backends.iter()
    }

    /// A warning of backends that take POSTs of strangers, for which neither a signature nor an account is asked, though no key
    /// says that this is meant. A login service needs it.
    pub(super) fn unsigned_warning(&self, sign: &SignConfig) -> Option<String> {
        let accepting = self
            .iter()
            .flat_map(|version| version.accepting_by_default());
        let open = accepting.filter(|backend| {
            let part = match &backend.name.part {
                Part::Canary { of, .. } => of,
                part => part,
            };
            let paths = match part {
                Part::Own | Part::Canary { .. } | Part::Shadow | Part::Converter(_) => {
                    &PathPattern::all()
                }
                Part::Route(path) | Part::CommonRoute { path, .. } => path,
            };
            backend.account.check != AccountCheck::Required && !sign.signs_posts(paths)
        });
        let mut names: Vec<_> = open.map(|backend| backend.name.to_string()).collect();
        names.sort();
        names.dedup();
        let names = (!names.is_empty()).then(|| names.join(", "))?;
        Some(format!(
            "unsigned is accept by default for {names}: anyone can send it POSTs without parameters in the name of any \
             application; set reject, or accept for a login service"
        ))
    }

    /// Whether a route asks for accounts.
    #[must_use]
    pub fn check_accounts(&self) -> bool {
        let mut backends = self.backends();
        backends.any(|backend| backend.account.check != AccountCheck::None)
    }
}

/// The names of all tables, sorted; reports names that no version can have. Tables with an invalid address count: the
/// address is reported on its own.
fn names<T>(tables: &[(String, T)], root: &Section<'_>) -> Vec<Version> {
    let mut names = Vec::new();
    for (name, _) in tables {
        match name.parse::<Version>() {
            Ok(version) => names.push(version),
            Err(error) => {
                let table = format!("[versions.{name}]");
                let _ = root.problem("versions", &table, &error.to_string());
            }
        }
    }
    names.sort();
    names
}

/// The version of the default route, if it has a table.
fn check_default(default: Version, named: &[Version], root: &Section<'_>) -> Read<Version> {
    if named.contains(&default) {
        return Ok(default);
    }
    let known: Vec<_> = named.iter().map(Version::as_str).collect();
    let allowed = match known[..] {
        [] => "a version with a [versions.NAME] table that has a backend".to_owned(),
        _ => known.join(", "),
    };
    let unknown = format!("\"{default}\", which has no [versions.{default}]");
    Err(root.problem("default_version", &unknown, &allowed))
}

/// Reads `default_canary`.
fn read_default_canary(
    root: &mut Section<'_>,
    named: &[Version],
) -> Read<Option<(Version, u8, StickyBy)>> {
    root.optional_section("default_canary", |section| {
        let names: Vec<_> = named.iter().map(Version::as_str).collect();
        let allowed = format!("a version with a table: {}", names.join(", "));
        let known = |text: &str| text.parse().ok().filter(|version| named.contains(version));
        let version = section.optional_by("version", &allowed, known)?;
        let version = version.ok_or_else(|| section.missing("version", &allowed));
        let percent = section.required_number("percent", &(0..=100));
        let sticky_by = canaries::read_sticky_by(section);
        Ok((version?, percent?, sticky_by?))
    })
}

/// Joins each version with a bridge, or with a shadow, to the other one, which must have a backend of its own.
fn bridged(all: Vec<ServedVersion>, root: &Section<'_>) -> Read<Vec<Arc<ServedVersion>>> {
    let (mut joined, mut all) = (Ok(()), all);
    for index in 0..all.len() {
        let (bridge, shadow) = (all[index].bridge(), all[index].shadow());
        let (key, to) = match (bridge, shadow) {
            (Some(bridge), _) => ("bridge", (*bridge.to).clone()),
            (None, Some(shadow)) => ("shadow.to", shadow.to.clone()),
            (None, None) => continue,
        };
        // No chain of bridges: each would change a request again, and a circle would never end.
        let others = all.iter().filter(|version| version.bridge().is_none());
        let others = others.filter(|version| **version.name() != **all[index].name());
        if !others.clone().any(|version| **version.name() == to) {
            let names: Vec<_> = others.map(|version| version.name().as_str()).collect();
            let key = format!("versions.{}.{key}", all[index].name());
            let allowed = format!("a version with a backend of its own: {}", names.join(", "));
            joined = Err(root.problem(&key, &format!("\"{to}\""), &allowed));
            continue;
        }
        if key == "bridge"
            && let Some(other) = all.iter().position(|version| **version.name() == to)
            // The two differ: a version is not among its own others.
            && let Ok([version, other]) = all.get_disjoint_mut([index, other])
        {
            version.bridge_to(other);
        }
    }
    joined.map(|()| all.into_iter().map(Arc::new).collect())
}

#[cfg(test)]
mod tests;
