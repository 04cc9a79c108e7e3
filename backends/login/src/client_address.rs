//! The client's network, as far as bounds on it are concerned.

use std::net::{IpAddr, Ipv6Addr};

/// One IPv4 address, or one IPv6 /64: as much as one household or attacker is given at the least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAddress(String);

impl ClientAddress {
    /// As the store counts it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.to_string()),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self(format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let of = |text: &str| ClientAddress::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
    }
}
