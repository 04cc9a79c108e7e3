//! The client's network, as far as limits are concerned.

use std::net::{IpAddr, Ipv6Addr};

/// One IPv4 address, or one IPv6 /64: the least that one household or attacker is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddress {
    network: IpAddr,
    /// Its length in bits: a /64 and the /48 around it can begin alike.
    prefix: u8,
}

impl ClientAddress {
    /// The IPv6 /48 that the /64 is in: one site may hold 65,536 of them. An IPv4 address is its own site.
    #[must_use]
    pub fn site(self) -> Self {
        match self.network {
            IpAddr::V4(_) => self,
            IpAddr::V6(address) => {
                let [a, b, c, ..] = address.segments();
                Self {
                    network: Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).into(),
                    prefix: 48,
                }
            }
        }
    }
}

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self {
                network: address.into(),
                prefix: 32,
            },
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self {
                    network: Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into(),
                    prefix: 64,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> ClientAddress {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
    }

    #[test]
    fn networks_of_one_site_have_it_in_common() {
        assert_eq!(of("2001:db8:0:1::1").site(), of("2001:db8:0:2::1").site());
        assert_ne!(of("2001:db8:0:1::1").site(), of("2001:db8:1:1::1").site());
        assert_ne!(of("2001:db8::1").site(), of("2001:db8::1"));
        assert_eq!(of("192.0.2.1").site(), of("192.0.2.1"));
    }
}
