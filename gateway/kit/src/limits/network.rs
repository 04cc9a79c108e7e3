//! Rate limits of client networks.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Instant,
};

use super::{
    Rate, RateExceeded,
    debts::{Debts, Pace},
};

/// A rate limiter with a rate for each client network, and a higher one for each site.
#[derive(Debug)]
pub struct NetworkLimiter {
    network: Pace,
    site: Pace,
    debts: Arc<Debts>,
}

impl NetworkLimiter {
    /// Creates a limiter without debts. No later call may have an earlier time than `now`.
    #[must_use]
    pub fn new(network: Rate, site: Rate, now: Instant) -> Self {
        Self {
            network: Pace::new(network),
            site: Pace::new(site),
            debts: Arc::new(Debts::new(now)),
        }
    }

    /// A limiter with other rates and the same debts, as `RateLimiter::with_rate`.
    #[must_use]
    pub fn with_rates(&self, network: Rate, site: Rate) -> Self {
        Self {
            network: Pace::new(network),
            site: Pace::new(site),
            debts: Arc::clone(&self.debts),
        }
    }

    /// The number of networks and sites with a debt, for the metrics: less than a millisecond's work, with one set locked at a time.
    #[must_use]
    pub fn keys_with_debt(&self, now: Instant) -> usize {
        self.debts.keys_with_debt(now)
    }

    /// Counts an event of `client`. Costs no allocation, and the locks of one set or two.
    ///
    /// # Errors
    ///
    /// Its network, or the IPv6 /48 around it, has used up its burst. A rejected event counts against neither, so that
    /// a network in a /48 takes no more than its own share.
    pub fn count(&self, client: IpAddr, now: Instant) -> Result<(), RateExceeded> {
        let network = Network::from_client(client);
        self.debts.take(&network, self.network, now)?;
        match Network::from_site(client) {
            // An IPv4 address is its own site, which has been counted.
            site if site == network => Ok(()),
            site => self
                .debts
                .take(&site, self.site, now)
                .inspect_err(|_| self.debts.give_back(&network, self.network)),
        }
    }
}

/// A network of clients that share one rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    /// Prefix length in bits: a /64 and the /48 around it can have the same address.
    prefix: u8,
}

impl Network {
    /// The client's network: an IPv4 address, or an IPv6 /64, which one household or machine has at least.
    #[must_use]
    pub fn from_client(client: IpAddr) -> Self {
        Self::with_prefix(client, 64)
    }

    /// The client's site: an IPv4 address, or an IPv6 /48.
    #[must_use]
    pub fn from_site(client: IpAddr) -> Self {
        Self::with_prefix(client, 48)
    }

    fn with_prefix(client: IpAddr, prefix: u8) -> Self {
        match client.to_canonical() {
            IpAddr::V4(address) => Self {
                address: address.into(),
                prefix: 32,
            },
            IpAddr::V6(address) => Self {
                address: Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - prefix)))
                    .into(),
                prefix,
            },
        }
    }
}

/// CIDR notation.
impl std::fmt::Display for Network {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix)
    }
}
