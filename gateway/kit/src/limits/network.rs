//! Networks of clients.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    num::NonZeroU32,
};

/// The limits of an IPv6 /48 (one site), as a multiple of the limits of one of its 65,536 networks. Providers assign
/// /48s by the thousand, so a site needs limits of its own; and a home line has up to 256 networks, or all.
pub const SITE_FACTOR: NonZeroU32 = NonZeroU32::new(4).expect("it is not 0");

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
        Self::with_prefixes(client, 32, 64)
    }

    /// What is shown of a client's address: an IPv4 /24, or an IPv6 /48. An office or a provider's customers of one place
    /// often leave by several addresses, and one of them alone would say which household it is.
    #[must_use]
    pub fn around(client: IpAddr) -> Self {
        Self::with_prefixes(client, 24, 48)
    }

    /// The client's network, and the site around it; an IPv4 address has none.
    #[must_use]
    pub fn and_site(client: IpAddr) -> (Self, Option<Self>) {
        let (network, site) = (Self::from_client(client), Self::from_site(client));
        (network, (site != network).then_some(site))
    }

    /// The client's site: an IPv4 address, or an IPv6 /48.
    #[must_use]
    pub fn from_site(client: IpAddr) -> Self {
        Self::with_prefixes(client, 32, 48)
    }

    fn with_prefixes(client: IpAddr, v4: u8, v6: u8) -> Self {
        // An IPv4 client of an IPv6 socket is `::ffff:192.0.2.1`: all of IPv4 would be one /64.
        match client.to_canonical() {
            IpAddr::V4(address) => Self {
                address: Ipv4Addr::from_bits(address.to_bits() & (u32::MAX << (32 - v4))).into(),
                prefix: v4,
            },
            IpAddr::V6(address) => Self {
                address: Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - v6))).into(),
                prefix: v6,
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
