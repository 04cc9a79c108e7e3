//! The versions and their backends. CONTRACT 5.

mod address;
mod health;
mod idle_keys;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use gateway_protocol::version::Version;
use signpost_kit::config::{Invalid, Read, Section};

use self::{address::addresses, idle_keys::IdleKeys};
pub(crate) use self::{
    address::{BackendAddress, Place},
    health::HealthChecks,
};

/// An address is out for so long at most when no connection to it came about: then a request finds out whether it is
/// back, which may cost that one the time to connect.
const OUT_SECONDS: u64 = 2;

/// The versions that there are, and where requests go that name none of them.
#[derive(Clone, Debug)]
pub struct Versions {
    backends: Vec<Arc<Backend>>,
    default: usize,
    /// What becomes of a request that names a version that there is not.
    pub(crate) unknown: UnknownVersion,
    /// Keys that change nothing, and why.
    idle_keys: Vec<String>,
}

/// One version's backend.
#[derive(Clone, Debug)]
pub struct Backend {
    /// The version that it serves.
    pub(crate) version: Version,
    /// Its place among the versions, from 0.
    pub(crate) number: usize,
    /// Where it listens.
    pub(crate) upstream: Upstream,
}

/// Where a backend listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Upstream {
    /// At one address, whatever happens: there is nothing to choose.
    Fixed(SocketAddr),
    /// At any of several addresses, or of those that a name has, or at one that is checked.
    Balanced(Balancing),
}

/// How one of several addresses is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Balancing {
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
pub(crate) enum Balance {
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
pub(crate) enum UnknownVersion {
    /// It goes to the default route, as the convention says.
    Default,
    /// 400 `version_unknown`.
    Reject,
}

impl Versions {
    /// Those in `root`, of a gateway that listens at `own`.
    pub(super) fn read(root: &mut Section<'_>, own: [Option<SocketAddr>; 2]) -> Read<Self> {
        let own: Vec<_> = own.into_iter().flatten().collect();
        let mut idle_keys = Vec::new();
        let unknown = [
            ("default", UnknownVersion::Default),
            ("reject", UnknownVersion::Reject),
        ];
        let unknown = root.choice("unknown", &unknown, UnknownVersion::Default);
        let default: Read<Version> = root.parsed("default_version", "v1", "a version's name");
        let tables = root.sections("versions", |name, section| {
            let mut keys = IdleKeys::default();
            keys.note(section);
            let upstream = Upstream::read(section, &own, &mut keys)?;
            idle_keys.extend(keys.beside(&upstream, name));
            Ok(upstream)
        })?;
        let mut found = Vec::new();
        // A table with an invalid address is a table all the same, which has its own problem.
        let mut named = Vec::new();
        for (name, upstream) in tables {
            match name.parse() {
                Ok(version) => {
                    named.push(Version::clone(&version));
                    found.push(upstream.map(|upstream| (version, upstream)));
                }
                Err(error) => {
                    found.push(None);
                    let error: gateway_protocol::version::ParseVersionError = error;
                    let _ = root.problem(
                        "versions",
                        &format!("[versions.{name}]"),
                        &error.to_string(),
                    );
                }
            }
        }
        let default = default?;
        if !named.contains(&default) {
            let known: Vec<_> = named.iter().map(Version::as_str).collect();
            let allowed = if known.is_empty() {
                "a version with a [versions.NAME] table that has a backend".to_owned()
            } else {
                known.join(", ")
            };
            let found = format!("\"{default}\", which has no [versions.{default}]");
            return Err(root.problem("default_version", &found, &allowed));
        }
        let found: Option<Vec<_>> = found.into_iter().collect();
        let mut found = found.ok_or(Invalid)?;
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
        let default = backends
            .iter()
            .position(|backend| backend.version == default);
        Ok(Self {
            backends,
            default: default.ok_or(Invalid)?,
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
    pub(crate) fn named(&self, name: &[u8]) -> Option<&Arc<Backend>> {
        self.backends
            .iter()
            .find(|backend| backend.version.is_named_by(name))
    }

    /// The names of all of them.
    #[must_use]
    pub(crate) fn names(&self) -> Vec<Version> {
        let names = self.iter().map(|backend| backend.version.clone());
        names.collect()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Arc<Backend>> {
        self.backends.iter()
    }
}

impl Upstream {
    fn read(section: &mut Section<'_>, own: &[SocketAddr], keys: &mut IdleKeys) -> Read<Self> {
        let addresses = addresses(section, own);
        let modes = [
            ("round-robin", Balance::RoundRobin),
            ("least-connections", Balance::LeastConnections),
            ("hash-app", Balance::HashApp),
            ("hash-client", Balance::HashClient),
        ];
        let balance = section.choice("balance", &modes, Balance::RoundRobin);
        let is_wanted = section.has("health")
            || addresses
                .as_ref()
                .is_ok_and(|addresses| may_be_several(addresses));
        let health = section.section("health", |health| {
            keys.note_health(health);
            let out = health.seconds("out_seconds", 1..=3600, OUT_SECONDS);
            let checks = HealthChecks::read(health, is_wanted);
            Ok((out?, checks?))
        });
        let (addresses, balance, (out, checks)) = (addresses?, balance?, health?);
        Ok(match (&*addresses, &checks) {
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
                out,
            }),
        })
    }

    /// The one address, where there is nothing to choose.
    #[must_use]
    pub(crate) const fn fixed(&self) -> Option<SocketAddr> {
        match self {
            Self::Fixed(address) => Some(*address),
            Self::Balanced(_) => None,
        }
    }

    /// Whether some of it is at one of these addresses of this machine.
    #[must_use]
    pub(crate) fn is_at(&self, own: &[SocketAddr]) -> bool {
        match self {
            Self::Fixed(address) => Place::Address(*address).is_one_of(own),
            Self::Balanced(balancing) => {
                let mut addresses = balancing.addresses.iter();
                addresses.any(|address| address.place.is_one_of(own))
            }
        }
    }

    /// Whether some of it is, or may be, on another machine.
    #[must_use]
    pub(crate) fn is_remote(&self) -> bool {
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
    pub(crate) fn goes_by_app(&self) -> bool {
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
