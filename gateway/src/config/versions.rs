//! The versions and their backends. CONTRACT 5.

mod address;
mod health;
mod tls;
mod unused_keys;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use gateway_protocol::version::Version;
use signpost_kit::config::{Invalid, Read, Section};

use self::{address::addresses, tls::with_tls, unused_keys::UnusedKeys};
pub(crate) use self::{
    address::{BackendAddress, HostPort},
    health::HealthChecks,
};
use crate::backend_tls::Endpoint;

/// Default of `health.out_seconds`, the longest ejection after a failed connect. Then a request tests the address, and
/// may have to wait for the connect timeout.
const DEFAULT_OUT_SECONDS: u64 = 2;

/// The configured versions, and the routing of requests that name none of them.
#[derive(Clone, Debug)]
pub struct Versions {
    backends: Vec<Arc<Backend>>,
    default: usize,
    /// How requests for an unknown version are handled.
    pub(crate) unknown: UnknownVersion,
    /// Warnings about keys without effect, and keys that other users may read.
    warnings: Vec<String>,
}

/// One version's backend.
#[derive(Clone, Debug)]
pub struct Backend {
    /// The version that it serves.
    pub(crate) version: Version,
    /// Its index among the versions, from 0.
    pub(crate) number: usize,
    /// The address or addresses that it listens on.
    pub(crate) upstream: Upstream,
}

/// The address or addresses of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Upstream {
    /// One address without health checks: nothing to choose from.
    Fixed(Endpoint),
    /// Several addresses, a host name, or one address with health checks.
    Balanced(Balancing),
}

/// Load balancing of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Balancing {
    /// The addresses: at least one, without duplicates.
    pub addresses: Vec<BackendAddress>,
    /// How an address is chosen for a request.
    pub balance: Balance,
    /// Settings of health checks; `None`: no checks.
    pub checks: Option<HealthChecks>,
    /// Longest ejection of an address after a failed connect. 1 s to 3600 s, default 2 s.
    pub out: Duration,
}

/// How an address is chosen for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balance {
    /// One after the other.
    RoundRobin,
    /// The address with the fewest requests in flight.
    LeastConnections,
    /// The same address for an application, as long as it is available.
    HashApp,
    /// The same address for a client IP, as long as it is available.
    HashClient,
}

/// How requests for an unknown version are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownVersion {
    /// Sends it on the default route. CONTRACT 5.
    Default,
    /// Rejects it: 400 `version_unknown`.
    Reject,
}

impl Versions {
    /// Reads the versions in `root`. `own` are the addresses that the gateway listens on.
    pub(super) fn read(root: &mut Section<'_>, own: &[SocketAddr]) -> Read<Self> {
        let mut warnings = Vec::new();
        let unknown = [
            ("default", UnknownVersion::Default),
            ("reject", UnknownVersion::Reject),
        ];
        let unknown = root.choice("unknown", &unknown, UnknownVersion::Default);
        let default: Read<Version> = root.parsed("default_version", "v1", "a version's name");
        let tables = root.sections("versions", |name, section| {
            let mut keys = UnusedKeys::default();
            keys.record(section);
            let upstream = Upstream::read(section, own, &mut keys, &mut warnings)?;
            warnings.extend(keys.warnings(&upstream, name));
            Ok(upstream)
        })?;
        let mut found = Vec::new();
        // Includes tables with an invalid address: that is reported on its own.
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
            warnings,
        })
    }

    /// Warnings about keys without effect, and about files.
    pub(super) fn warnings(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(String::as_str)
    }

    /// The backend of the default route.
    #[must_use]
    pub fn default(&self) -> &Arc<Backend> {
        &self.backends[self.default]
    }

    /// The backend of the version that `name` names. Versions are few: no map is faster than this loop.
    #[must_use]
    pub(crate) fn named(&self, name: &[u8]) -> Option<&Arc<Backend>> {
        self.backends
            .iter()
            .find(|backend| backend.version.is_named_by(name))
    }

    /// The names of all versions.
    #[must_use]
    pub(crate) fn names(&self) -> Vec<Version> {
        let names = self.iter().map(|backend| backend.version.clone());
        names.collect()
    }

    /// All backends, ordered by version.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Arc<Backend>> {
        self.backends.iter()
    }
}

impl Upstream {
    fn read(
        section: &mut Section<'_>,
        own: &[SocketAddr],
        keys: &mut UnusedKeys,
        warnings: &mut Vec<String>,
    ) -> Read<Self> {
        let addresses = addresses(section, own);
        let addresses = with_tls(section, addresses, warnings);
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
                .is_ok_and(|addresses| may_have_several(addresses));
        let health = section.section("health", |health| {
            keys.record_health(health);
            let out = health.seconds("out_seconds", 1..=3600, DEFAULT_OUT_SECONDS);
            let checks = HealthChecks::read(health, is_wanted);
            Ok((out?, checks?))
        });
        let (addresses, balance, (out, checks)) = (addresses?, balance?, health?);
        Ok(match (&*addresses, &checks) {
            (
                [
                    BackendAddress {
                        host_port: HostPort::Address(address),
                        tls,
                        ..
                    },
                ],
                None,
            ) => Self::Fixed(Endpoint {
                address: *address,
                tls: tls.clone(),
            }),
            _ => Self::Balanced(Balancing {
                addresses,
                balance,
                checks,
                out,
            }),
        })
    }

    /// The endpoint of an [`Upstream::Fixed`].
    #[must_use]
    pub(crate) const fn fixed(&self) -> Option<&Endpoint> {
        match self {
            Self::Fixed(endpoint) => Some(endpoint),
            Self::Balanced(_) => None,
        }
    }

    /// Whether one of its addresses is in `own`, addresses of this machine.
    #[must_use]
    pub(crate) fn is_at(&self, own: &[SocketAddr]) -> bool {
        match self {
            Self::Fixed(endpoint) => HostPort::Address(endpoint.address).is_one_of(own),
            Self::Balanced(balancing) => {
                let mut addresses = balancing.addresses.iter();
                addresses.any(|address| address.host_port.is_one_of(own))
            }
        }
    }

    /// Whether one of its addresses is, or may be, on another machine.
    #[must_use]
    pub(crate) fn is_remote(&self) -> bool {
        match self {
            Self::Fixed(endpoint) => !endpoint.address.ip().is_loopback(),
            Self::Balanced(balancing) => {
                balancing
                    .addresses
                    .iter()
                    .any(|address| match &address.host_port {
                        HostPort::Address(address) => !address.ip().is_loopback(),
                        HostPort::Name(host, _) => host != "localhost",
                    })
            }
        }
    }

    /// Whether requests reach it through TLS.
    #[must_use]
    pub(crate) fn has_tls(&self) -> bool {
        match self {
            Self::Fixed(endpoint) => endpoint.tls.is_some(),
            // All addresses of a version have the same scheme.
            Self::Balanced(balancing) => balancing.addresses.iter().any(|one| one.tls.is_some()),
        }
    }

    /// Whether the address is chosen by application.
    #[must_use]
    pub(crate) fn balances_by_app(&self) -> bool {
        matches!(self, Self::Balanced(balancing) if balancing.balance == Balance::HashApp)
    }
}

/// Whether the backend may have several addresses: a name may resolve to several at any time.
fn may_have_several(addresses: &[BackendAddress]) -> bool {
    addresses.len() > 1
        || addresses
            .iter()
            .any(|address| matches!(address.host_port, HostPort::Name(..)))
}

#[cfg(test)]
mod tests;
