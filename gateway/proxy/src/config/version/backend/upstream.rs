//! The address or addresses of a backend, and how one is chosen.

use std::{net::SocketAddr, time::Duration};

use signpost_kit::config::{Read, Section};

use super::{
    address::{self, BackendAddress, HostPort, addresses},
    health::HealthChecks,
    tls::with_tls,
};
use crate::{config::version::Reading, tls::backend::Endpoint};

/// The values of `balance`.
const BALANCES: [(&str, Balance); 4] = [
    ("round-robin", Balance::RoundRobin),
    ("least-connections", Balance::LeastConnections),
    ("hash-app", Balance::HashApp),
    ("hash-client", Balance::HashClient),
];
/// Keys that only health checks use.
const CHECK_KEYS: [&str; 4] = [
    "path",
    "interval_seconds",
    "timeout_seconds",
    "unhealthy_after",
];

/// Default of `health.out_seconds`, the longest ejection after a failed connect. Then a request tests the address, and
/// may have to wait for the connect timeout.
const DEFAULT_OUT_SECONDS: u64 = 2;

/// Default of `idle_seconds`: less than the 120 s of the login service, so that the gateway closes first.
const DEFAULT_IDLE_SECONDS: u16 = 90;

/// Of a converter: less than the 5 s of Node, and of most simple servers.
const DEFAULT_CONVERTER_IDLE_SECONDS: u16 = 4;

/// Which health checks a backend has if the file says nothing of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefaultChecks {
    /// Checks if there may be several addresses.
    IfSeveral,
    /// Checks always.
    Always,
}

/// The address or addresses of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The addresses: at least one, without duplicates.
    pub addresses: Vec<BackendAddress>,
    /// The endpoint of one IP address without health checks: there is nothing to choose from.
    pub fixed: Option<Endpoint>,
    /// How an address is chosen for a request.
    pub balance: Balance,
    /// Settings of health checks; `None`: no checks.
    pub checks: Option<HealthChecks>,
    /// Longest ejection of an address after a failed connect.
    pub out: Duration,
    /// A connection that was idle for this many seconds is not used again. Not a `Duration`, which needs
    /// 16 bytes: the future of every request has it several times.
    pub idle_seconds: u16,
}

/// How an address is chosen for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// One after the other.
    RoundRobin,
    /// The address with the fewest requests in flight.
    LeastConnections,
    /// The same address for an application, as long as it is available.
    HashApp,
    /// The same address for a client IP, as long as it is available.
    HashClient,
}

impl Upstream {
    /// Whether requests are sent alike: of one fixed endpoint, the other settings have no effect.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.fixed, &other.fixed) {
            (Some(endpoint), Some(other)) => endpoint == other,
            _ => self == other,
        }
    }

    /// Reads the keys of a backend in the table of a version, of a route or of a canary.
    pub(in crate::config::version) fn read(
        section: &mut Section<'_>,
        default_checks: DefaultChecks,
        reading: &mut Reading<'_>,
    ) -> Read<Self> {
        let addresses = addresses(section, reading.gateway.own);
        let addresses = with_tls(section, addresses);
        let balance = section.choice("balance", &BALANCES, Balance::RoundRobin);
        let is_one = !addresses.as_deref().is_ok_and(may_have_several);
        let is_wanted = default_checks == DefaultChecks::Always || section.has("health") || !is_one;
        let health = section.section("health", |health| {
            let has_out = health.has("out_seconds");
            let has_check_keys = CHECK_KEYS.into_iter().any(|key| health.has(key));
            let out = health.seconds("out_seconds", 1..=3600, DEFAULT_OUT_SECONDS);
            let checks = HealthChecks::read(health, is_wanted);
            Ok((out?, checks?, has_out, has_check_keys))
        });
        let idle_seconds = section.number("idle_seconds", 1..=3600, DEFAULT_IDLE_SECONDS);
        let (addresses, balance, idle_seconds) = (addresses?, balance?, idle_seconds?);
        let (out, checks, has_out, has_check_keys) = health?;
        if is_one && section.has("balance") {
            reading.has_no_effect(section, "balance", "there is one address");
        }
        if is_one && has_out {
            let why = "there is one address, which is always tried";
            reading.has_no_effect(section, "health.out_seconds", why);
        }
        if checks.is_none() && has_check_keys {
            let why = "health checks are off (active = false)";
            reading.has_no_effect(section, "health", why);
        }
        let fixed = match &*addresses {
            // A checked address has a state, even if there is no other one to choose.
            [address] if checks.is_none() => address.endpoint(),
            _ => None,
        };
        Ok(Self {
            addresses,
            fixed,
            balance,
            checks,
            out,
            idle_seconds,
        })
    }

    /// Reads the address of a converter; `None` if there is none.
    pub(in crate::config::version) fn converter(
        section: &mut Section<'_>,
        reading: &Reading<'_>,
    ) -> Read<Option<Self>> {
        let address = address::converter(section, reading.gateway.own)?;
        Ok(address.map(|address| Self {
            fixed: address.endpoint(),
            addresses: vec![address],
            balance: Balance::RoundRobin,
            checks: None,
            out: Duration::from_secs(DEFAULT_OUT_SECONDS),
            idle_seconds: DEFAULT_CONVERTER_IDLE_SECONDS,
        }))
    }

    /// Whether one of its addresses is in `own`, addresses of this machine.
    #[must_use]
    pub fn is_at(&self, own: &[SocketAddr]) -> bool {
        let mut addresses = self.addresses.iter();
        addresses.any(|address| address.host_port.is_one_of(own))
    }

    /// Whether one of its addresses is, or may be, on another machine.
    #[must_use]
    pub(crate) fn is_remote(&self) -> bool {
        self.addresses
            .iter()
            .any(|address| match &address.host_port {
                HostPort::Address(address) => !address.ip().is_loopback(),
                HostPort::Name(host, _) => host != "localhost",
            })
    }

    /// Whether requests reach it through TLS. All of its addresses have the same scheme.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.addresses.iter().any(|address| address.tls.is_some())
    }

    /// Whether the address is chosen by application.
    #[must_use]
    pub(crate) fn balances_by_app(&self) -> bool {
        self.fixed.is_none() && self.balance == Balance::HashApp
    }
}

/// Whether the backend may have several addresses: a name may resolve to several at any time.
fn may_have_several(addresses: &[BackendAddress]) -> bool {
    let is_name = |address: &BackendAddress| matches!(address.host_port, HostPort::Name(..));
    addresses.len() > 1 || addresses.iter().any(is_name)
}
