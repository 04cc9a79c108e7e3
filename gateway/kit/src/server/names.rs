//! Where a management listener listens, and under which names it answers.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use http::{HeaderMap, header, uri::Authority};

/// Settings of a management listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagementSettings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The names under which it answers.
    pub hosts: Hosts,
}

/// Names under which a management listener answers, besides IP addresses and `localhost`.
///
/// A page that an operator opens can give its own name the listener's address (DNS rebinding), and then read what the
/// listener answers. But the browser still sends the page's name as `Host`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(pub Vec<String>);

impl Hosts {
    /// Whether a request may be answered. Without `Host` it may: browsers always send one, simple health checks do not.
    pub(super) fn allow(&self, headers: &HeaderMap) -> bool {
        let given = headers.get_all(header::HOST).into_iter();
        given
            .map(|host| Authority::try_from(host.as_bytes()))
            // If there are several, each must be allowed: which of them the browser has set is unknown.
            .all(|authority| authority.is_ok_and(|authority| self.have(&authority)))
    }

    /// Whether it is one of the names or an address, with or without a port, and nothing else: `user@localhost` also has that host.
    pub(super) fn have(&self, authority: &Authority) -> bool {
        let host = authority.host();
        let is_port =
            |port: &str| port.len() <= 5 && port.bytes().all(|digit| digit.is_ascii_digit());
        let is_end = |rest: &str| rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        let is_address = host.parse::<Ipv4Addr>().is_ok()
            || host.trim_matches(['[', ']']).parse::<Ipv6Addr>().is_ok();
        let is_known = is_address || self.names().any(|name| host.eq_ignore_ascii_case(name));
        is_known && authority.as_str().strip_prefix(host).is_some_and(is_end)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str).chain(["localhost"])
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn allows(hosts: &[&str]) -> bool {
        let names = ["gateway-a", "Signpost.example"].map(str::to_owned);
        let given = hosts
            .iter()
            .map(|host| (header::HOST, HeaderValue::from_str(host).unwrap()));
        Hosts(names.into()).allow(&given.collect())
    }

    #[test]
    fn addresses_localhost_and_configured_names_are_allowed() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:8081",
            "localhost:",
            "10.1.2.3:1",
            "[::1]",
            "[2001:db8::1]:8081",
            "localhost",
            "LocalHost:8081",
            "gateway-a:8081",
            "GATEWAY-A",
            "signpost.example",
        ] {
            assert!(allows(&[host]), "{host}");
        }
        assert!(allows(&[]));
        assert!(allows(&["localhost", "gateway-a"]));
    }

    #[test]
    fn any_other_host_is_rejected() {
        for host in [
            "",
            "attacker.example",
            "attacker.example:8081",
            "localhost.attacker.example",
            "127.0.0.1.attacker.example",
            "gateway-a.attacker.example",
            "2130706433",
            "0x7f000001",
            "127.1",
            "localhost:x y",
            "x@localhost",
            "@localhost",
            "x&ticket=y@localhost:8081",
            "u:p@127.0.0.1",
            "localhost@gateway-a",
            "localhost:&ticket=y",
            "localhost:8081&ticket=y",
            "localhost:+80",
            "localhost:123456",
            "localhost/x",
            "localhost?x",
            "localhost#x",
            "localhost\\x",
            "localhost x",
            "[::1]x",
            "[::1",
            "[[::1]]",
            "[127.0.0.1]",
            "\u{e9}.example",
        ] {
            assert!(!allows(&[host]), "{host}");
        }
        assert!(!allows(&["localhost", "attacker.example"]));
    }
}
