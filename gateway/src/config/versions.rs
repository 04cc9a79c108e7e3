//! The versions and their backends. CONTRACT 5.

mod address;
mod health;
mod idle_keys;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use gateway_protocol::version::Version;

use self::{address::addresses, idle_keys::IdleKeys};
pub use self::{
    address::{BackendAddress, Place},
    health::HealthChecks,
};
use super::table::Section;

/// An address is out for so long at most when no connection to it came about: then a request finds out whether it is
/// back, which may cost that one the time to connect.
const OUT_SECONDS: usize = 2;

/// The versions that there are, and where requests go that name none of them.
#[derive(Clone, Debug)]
pub struct Versions {
    backends: Vec<Arc<Backend>>,
    default: usize,
    /// What becomes of a request that names a version that there is not.
    pub unknown: UnknownVersion,
    /// Keys that change nothing, and why.
    idle_keys: Vec<String>,
}

/// One version's backend.
#[derive(Clone, Debug)]
pub struct Backend {
    /// The version that it serves.
    pub version: Version,
    /// Its place among the versions, from 0.
    pub number: usize,
    /// Where it listens.
    pub upstream: Upstream,
}

/// Where a backend listens.
#[derive(Clone, Debug)]
pub enum Upstream {
    /// At one address, whatever happens: there is nothing to choose.
    Fixed(SocketAddr),
    /// At any of several addresses, or of those that a name has, or at one that is checked.
    Balanced(Balancing),
}

/// How one of several addresses is chosen.
#[derive(Clone, Debug)]
pub struct Balancing {
    /// The addresses. At least one; none twice.
    pub addresses: Vec<BackendAddress>,
    /// Which of them gets a request.
    pub balance: Balance,
    /// How they are checked; `None` where they are not.
    pub checks: Option<HealthChecks>,
    /// An address to which no connection came about gets no requests for so long at most. 1 s to 3600 s, default 2 s.
    pub out: Duration,
}

/// Which of several addresses gets a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// One after the other.
    RoundRobin,
    /// The one with the fewest requests under way.
    LeastConnections,
    /// Always the same for an application, as long as it is there.
    HashApp,
    /// Always the same for a client's address, as long as it is there.
    HashClient,
}

/// What becomes of a request that names a version that there is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownVersion {
    /// It goes to the default route, as the convention says.
    Default,
    /// 400 `version_unknown`.
    Reject,
}

impl Versions {
    /// Those in `root`, of a gateway that listens at `own`.
    pub(super) fn from_root(root: &mut Section<'_>, own: [Option<SocketAddr>; 2]) -> Option<Self> {
        let own: Vec<_> = own.into_iter().flatten().collect();
        let mut idle_keys = Vec::new();
        let unknown = [
            ("default", UnknownVersion::Default),
            ("reject", UnknownVersion::Reject),
        ];
        let unknown = root.choice("unknown", &unknown, UnknownVersion::Default);
        let default: Option<Version> = root.parsed("default_version", "v1");
        let mut found = Vec::new();
        // A table with a bad address is a table all the same, which has its own problem.
        let mut named = Vec::new();
        for (name, mut section) in root.sections("versions") {
            let version = name.parse();
            let keys = IdleKeys::of(&section);
            let upstream = Upstream::from_section(&mut section, &own);
            idle_keys.extend(
                upstream
                    .iter()
                    .flat_map(|upstream| keys.beside(upstream, &name)),
            );
            match version {
                Ok(version) => {
                    named.push(Version::clone(&version));
                    found.extend(upstream.map(|upstream| (version, upstream)));
                }
                Err(error) => root.problem(
                    "versions",
                    &format!("[versions.{name}]"),
                    &format!("{error}"),
                ),
            }
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        let backends: Vec<_> = (0..)
            .zip(found)
            .map(|(number, (version, upstream))| {
                Arc::new(Backend {
                    version,
                    number,
                    upstream,
                })
            })
            .collect();
        let default = default?;
        let place = backends
            .iter()
            .position(|backend| backend.version == default);
        if !named.contains(&default) {
            let known: Vec<_> = named.iter().map(Version::as_str).collect();
            let allowed = if known.is_empty() {
                "a version with a [versions.NAME] table that has a backend".to_owned()
            } else {
                known.join(", ")
            };
            root.problem(
                "default_version",
                &format!("\"{default}\", which has no [versions.{default}]"),
                &allowed,
            );
        }
        Some(Self {
            backends,
            default: place?,
            unknown: unknown?,
            idle_keys,
        })
    }

    /// What was written in vain.
    pub(super) fn warnings(&self) -> impl Iterator<Item = &str> {
        self.idle_keys.iter().map(String::as_str)
    }

    /// The backend of the default route.
    #[must_use]
    pub fn default(&self) -> &Arc<Backend> {
        &self.backends[self.default]
    }

    /// The backend of the version that `name` names, if there is one. There are few: no map is faster.
    #[must_use]
    pub fn named(&self, name: &[u8]) -> Option<&Arc<Backend>> {
        self.backends
            .iter()
            .find(|backend| backend.version.is_named_by(name))
    }

    /// The names of all of them.
    #[must_use]
    pub fn names(&self) -> Vec<Version> {
        let names = self.iter().map(|backend| backend.version.clone());
        names.collect()
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<Backend>> {
        self.backends.iter()
    }
}

impl Upstream {
    fn from_section(section: &mut Section<'_>, own: &[SocketAddr]) -> Option<Self> {
        let addresses = addresses(section, own);
        let modes = [
            ("round-robin", Balance::RoundRobin),
            ("least-connections", Balance::LeastConnections),
            ("hash-app", Balance::HashApp),
            ("hash-client", Balance::HashClient),
        ];
        let balance = section.choice("balance", &modes, Balance::RoundRobin);
        let health = section.optional_section("health");
        let is_wanted = health.is_some()
            || addresses
                .as_ref()
                .is_some_and(|addresses| may_be_several(addresses));
        let mut health = health.unwrap_or_else(|| section.section("health"));
        let out = health.seconds("out_seconds", 1..=3600, OUT_SECONDS);
        let checks = HealthChecks::from_section(health, is_wanted);
        let (addresses, balance, checks) = (addresses?, balance?, checks?);
        Some(match (&*addresses, &checks) {
            (
                [
                    BackendAddress {
                        place: Place::Address(address),
                        ..
                    },
                ],
                None,
            ) => Self::Fixed(*address),
            _ => Self::Balanced(Balancing {
                addresses,
                balance,
                checks,
                out: out?,
            }),
        })
    }

    /// The one address, where there is nothing to choose.
    #[must_use]
    pub const fn fixed(&self) -> Option<SocketAddr> {
        match self {
            Self::Fixed(address) => Some(*address),
            Self::Balanced(_) => None,
        }
    }

    /// Whether some of it is, or may be, on another machine.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        match self {
            Self::Fixed(address) => !address.ip().is_loopback(),
            Self::Balanced(balancing) => {
                balancing
                    .addresses
                    .iter()
                    .any(|address| match &address.place {
                        Place::Address(address) => !address.ip().is_loopback(),
                        Place::Name(host, _) => host != "localhost",
                    })
            }
        }
    }

    /// Whether requests are shared out by their application.
    #[must_use]
    pub fn goes_by_app(&self) -> bool {
        matches!(self, Self::Balanced(balancing) if balancing.balance == Balance::HashApp)
    }
}

/// Whether there may be something to choose: a name may stand for several addresses at any time.
fn may_be_several(addresses: &[BackendAddress]) -> bool {
    addresses.len() > 1
        || addresses
            .iter()
            .any(|address| matches!(address.place, Place::Name(..)))
}

#[cfg(test)]
mod tests;
