//! Who the client is: the peer, or whom trusted proxies say it is. CONTRACT 1.

use std::net::{IpAddr, SocketAddr};

use http::HeaderValue;
use ipnet::IpNet;
use smallvec::SmallVec;

use super::admit::Admission;

/// What proxies in front say; believed from trusted ones only.
#[derive(Debug, Default)]
pub struct ProxyHeaders<'a> {
    /// The values of `X-Forwarded-For`, in order.
    pub forwarded_for: SmallVec<[&'a [u8]; 1]>,
    /// `X-Forwarded-Proto`.
    pub proto: Option<&'a [u8]>,
    /// `X-Forwarded-Host`.
    pub host: Option<&'a [u8]>,
}

/// Where a request comes from, for the backend and for the log.
#[derive(Debug)]
pub struct Origin {
    /// The client's address.
    pub client: IpAddr,
    /// Whether the peer is a trusted proxy.
    pub is_from_trusted_proxy: bool,
    /// The client's address and the proxies' behind it, for `X-Forwarded-For`: the leftmost is the client.
    pub forwarded_for: HeaderValue,
    /// `http` or `https`, for `X-Forwarded-Proto`.
    pub proto: HeaderValue,
    /// The host that the client asked for, for `X-Forwarded-Host`.
    pub host: HeaderValue,
}

impl Origin {
    /// `proxy` is what the peer says if it is trusted.
    #[must_use]
    pub fn new(
        peer: IpAddr,
        proxy: Option<&ProxyHeaders<'_>>,
        host: &[u8],
        rules: &Admission,
    ) -> Self {
        let hops = proxy
            .map(|said| hops(said, &rules.trusted_proxies))
            .unwrap_or_default();
        let peer = peer.to_canonical();
        let client = hops.first().copied().unwrap_or(peer);
        let mut chain = String::with_capacity(16);
        for hop in hops.iter().chain([&peer]) {
            if !chain.is_empty() {
                chain.push_str(", ");
            }
            chain.push_str(&hop.to_string());
        }
        let proto = match proxy.and_then(|said| said.proto) {
            Some(b"https") => "https",
            Some(b"http") => "http",
            _ => rules.scheme,
        };
        let host = proxy.and_then(|said| said.host).unwrap_or(host);
        Self {
            client,
            is_from_trusted_proxy: proxy.is_some(),
            forwarded_for: HeaderValue::try_from(chain)
                .expect("addresses and commas are visible ASCII"),
            proto: HeaderValue::from_static(proto),
            // A head with a Host that is no header value was refused before.
            host: HeaderValue::from_bytes(host).unwrap_or_else(|_| HeaderValue::from_static("")),
        }
    }
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
    use gateway_protocol::header::{HeaderNames, HeaderOverrides};

    use super::*;

    fn origin(peer: &str, forwarded_for: &[&str]) -> Origin {
        let rules = Admission {
            names: HeaderNames::new(&"Acme".parse().unwrap(), &HeaderOverrides::default()).unwrap(),
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
            scheme: "http",
            largest_body: 0,
        };
        let peer: IpAddr = peer.parse().unwrap();
        let said = ProxyHeaders {
            forwarded_for: forwarded_for.iter().map(|line| line.as_bytes()).collect(),
            proto: Some(b"https"),
            host: Some(b"api.example.com"),
        };
        let is_trusted = rules.trusted_proxies.iter().any(|net| net.contains(&peer));
        Origin::new(peer, is_trusted.then_some(&said), b"gateway", &rules)
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
        assert_eq!(
            (&trusted.proto, &trusted.host),
            (
                &HeaderValue::from_static("https"),
                &HeaderValue::from_static("api.example.com")
            )
        );
        let other = origin("192.0.2.1", &[]);
        assert_eq!(
            (&other.proto, &other.host),
            (
                &HeaderValue::from_static("http"),
                &HeaderValue::from_static("gateway")
            )
        );
    }
}
