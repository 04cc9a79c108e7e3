//! Who the client is: the peer, or whom trusted proxies say it is. CONTRACT 1.

use std::net::{IpAddr, SocketAddr};

use http::HeaderValue;
use ipnet::IpNet;
use smallvec::SmallVec;

/// The other end of a connection; the same for all its requests.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// Whether it is a trusted proxy.
    pub is_trusted: bool,
    as_header: HeaderValue,
}

impl Peer {
    /// Whoever is at `address`.
    #[must_use]
    pub fn new(address: IpAddr, trusted_proxies: &[IpNet]) -> Self {
        let address = address.to_canonical();
        Self {
            address,
            is_trusted: trusted_proxies
                .iter()
                .any(|proxies| proxies.contains(&address)),
            as_header: visible(address.to_string()),
        }
    }
}

/// What proxies in front say; believed from trusted ones only.
#[derive(Debug, Default)]
pub struct ProxyHeaders<'a> {
    /// The values of `X-Forwarded-For`, in order.
    pub forwarded_for: SmallVec<[&'a [u8]; 1]>,
    /// The values of `Forwarded`, in order.
    pub forwarded: SmallVec<[&'a [u8]; 1]>,
    /// `X-Forwarded-Proto`.
    pub proto: Option<&'a [u8]>,
    /// The place of `X-Forwarded-Host` in the head.
    pub host: Option<u16>,
}

/// Where a request comes from, for the backend and for the log.
#[derive(Debug)]
pub struct Origin {
    /// The client's address.
    pub client: IpAddr,
    /// The client's address and the proxies' behind it, for `X-Forwarded-For`: the leftmost is the client.
    pub forwarded_for: HeaderValue,
    /// `http` or `https`, for `X-Forwarded-Proto`.
    pub proto: &'static str,
    /// The place in the head of the header with the host that the client asked for, for `X-Forwarded-Host`.
    pub host: u16,
    /// A trusted proxy's `Forwarded` (RFC 7239), extended by that proxy.
    pub forwarded: Option<HeaderValue>,
}

impl Origin {
    /// What `peer` and, if it is trusted, `said` tell; `host` is the place of `Host` in the head, and `scheme` what
    /// holds where no proxy says.
    #[must_use]
    pub fn new(
        peer: &Peer,
        said: &ProxyHeaders<'_>,
        host: u16,
        scheme: &'static str,
        trusted_proxies: &[IpNet],
    ) -> Self {
        if !peer.is_trusted {
            return Self {
                client: peer.address,
                forwarded_for: peer.as_header.clone(),
                proto: scheme,
                host,
                forwarded: None,
            };
        }
        let hops = hops(said, trusted_proxies);
        let chain: Vec<_> = hops
            .iter()
            .chain([&peer.address])
            .map(IpAddr::to_string)
            .collect();
        Self {
            client: hops.first().copied().unwrap_or(peer.address),
            forwarded_for: visible(chain.join(", ")),
            proto: match said.proto {
                Some(b"https") => "https",
                Some(b"http") => "http",
                _ => scheme,
            },
            host: said.host.unwrap_or(host),
            forwarded: forwarded(said, peer.address),
        }
    }
}

fn visible(addresses: String) -> HeaderValue {
    HeaderValue::try_from(addresses).expect("addresses and commas are visible ASCII")
}

/// RFC 7239 sections 4 and 6: every proxy adds an element; an IPv6 address stands in brackets and quotes.
fn forwarded(said: &ProxyHeaders<'_>, peer: IpAddr) -> Option<HeaderValue> {
    if said.forwarded.is_empty() {
        return None;
    }
    let mut chain = said.forwarded.join(&b", "[..]);
    let added = match peer {
        IpAddr::V6(peer) => format!(", for=\"[{peer}]\""),
        IpAddr::V4(peer) => format!(", for={peer}"),
    };
    chain.extend_from_slice(added.as_bytes());
    HeaderValue::from_maybe_shared(bytes::Bytes::from(chain)).ok()
}

/// The part of `X-Forwarded-For` that can be believed: from its end, trusted proxies and the first address
/// before them, which is the client. What stands left of that, the client may have made up.
fn hops(said: &ProxyHeaders<'_>, trusted: &[IpNet]) -> SmallVec<[IpAddr; 4]> {
    let mut hops = SmallVec::new();
    let lines = said.forwarded_for.iter().rev();
    for hop in lines
        .flat_map(|line| line.rsplit(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
    {
        let Some(hop) = std::str::from_utf8(hop).ok().and_then(address) else {
            break;
        };
        hops.insert(0, hop);
        if !trusted.iter().any(|proxies| proxies.contains(&hop)) {
            break;
        }
    }
    hops
}

/// Some proxies add the port that the client sent from.
fn address(hop: &str) -> Option<IpAddr> {
    let with_port = || hop.parse::<SocketAddr>().map(|address| address.ip());
    hop.parse()
        .or_else(|_| with_port())
        .ok()
        .map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of the headers that tell the host: ours, and a proxy's.
    const OURS: u16 = 1;
    const THEIRS: u16 = 2;

    fn origin(peer: &str, forwarded_for: &[&str]) -> Origin {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let said = ProxyHeaders {
            forwarded_for: forwarded_for.iter().map(|line| line.as_bytes()).collect(),
            forwarded: [&b"for=192.0.2.60"[..], b"for=\"[2001:db8::1]\""]
                .into_iter()
                .collect(),
            proto: Some(b"https"),
            host: Some(THEIRS),
        };
        let peer = Peer::new(peer.parse().unwrap(), &trusted);
        Origin::new(&peer, &said, OURS, "http", &trusted)
    }

    #[test]
    fn the_leftmost_address_that_can_be_believed_is_the_client() {
        for (peer, said, client, chain) in [
            ("192.0.2.1", &["198.51.100.7"][..], "192.0.2.1", "192.0.2.1"),
            ("10.0.0.1", &[], "10.0.0.1", "10.0.0.1"),
            (
                "10.0.0.1",
                &["198.51.100.7"],
                "198.51.100.7",
                "198.51.100.7, 10.0.0.1",
            ),
            (
                "10.0.0.1",
                &["1.1.1.1, 198.51.100.7, 10.0.0.2"],
                "198.51.100.7",
                "198.51.100.7, 10.0.0.2, 10.0.0.1",
            ),
            (
                "10.0.0.1",
                &["1.1.1.1", "198.51.100.7"],
                "198.51.100.7",
                "198.51.100.7, 10.0.0.1",
            ),
            (
                "10.0.0.1",
                &["unknown, 10.0.0.2"],
                "10.0.0.2",
                "10.0.0.2, 10.0.0.1",
            ),
            (
                "10.0.0.1",
                &["198.51.100.7:4711"],
                "198.51.100.7",
                "198.51.100.7, 10.0.0.1",
            ),
            (
                "10.0.0.1",
                &["2001:db8::1"],
                "2001:db8::1",
                "2001:db8::1, 10.0.0.1",
            ),
        ] {
            let origin = origin(peer, said);
            assert_eq!(origin.client.to_string(), client, "{peer} {said:?}");
            assert_eq!(origin.forwarded_for, chain, "{peer} {said:?}");
        }
    }

    #[test]
    fn scheme_and_host_are_believed_from_trusted_proxies_only() {
        let trusted = origin("10.0.0.1", &[]);
        assert_eq!((trusted.proto, trusted.host), ("https", THEIRS));
        let other = origin("192.0.2.1", &[]);
        assert_eq!((other.proto, other.host), ("http", OURS));
    }

    #[test]
    fn a_trusted_proxys_forwarded_is_extended_by_that_proxy() {
        let trusted = origin("10.0.0.1", &[]);
        let chain = "for=192.0.2.60, for=\"[2001:db8::1]\", for=10.0.0.1";
        assert_eq!(trusted.forwarded.unwrap(), chain);
        assert!(origin("192.0.2.1", &[]).forwarded.is_none());
    }
}
