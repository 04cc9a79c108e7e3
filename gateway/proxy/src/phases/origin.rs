//! The client's address: the peer's, or the address that trusted proxies report. CONTRACT 2.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use http::{HeaderName, HeaderValue};
use ipnet::IpNet;
use signpost_protocol::header::{X_FORWARDED_FOR, X_FORWARDED_PROTO};
use smallvec::SmallVec;

use crate::request::{Headers, client::ConnectionInfo, is_named};

/// Limit of addresses read from `X-Forwarded-For`, from its end. If all of them are trusted proxies, the leftmost of
/// them is the client, and earlier ones are dropped. No real chain of proxies has a tenth of this length.
pub(crate) const MAX_HOPS: usize = 32;

/// The peer of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// What its connection says of it; an IPv4 address is never written as IPv6.
    pub(crate) connection: ConnectionInfo,
    /// Whether it is a trusted proxy.
    pub(crate) is_trusted: bool,
    as_header: HeaderValue,
}

impl Peer {
    /// The peer of this connection.
    #[must_use]
    pub fn new(connection: &ConnectionInfo, trusted_proxies: &[IpNet]) -> Self {
        let address = connection.address.to_canonical();
        Self {
            is_trusted: is_in(trusted_proxies, address),
            as_header: visible(address.to_string()),
            connection: ConnectionInfo {
                address,
                ..connection.clone()
            },
        }
    }

    /// Its address.
    pub(crate) const fn address(&self) -> IpAddr {
        self.connection.address
    }
}

/// Whether one of these networks has the address.
#[must_use]
pub(crate) fn is_in(networks: &[IpNet], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&address))
}

/// The headers that proxies set; used only if the peer is trusted.
#[derive(Debug, Default)]
pub(crate) struct ProxyHeaders<'a> {
    /// The values of `X-Forwarded-For`, in order.
    pub forwarded_for: SmallVec<[&'a [u8]; 1]>,
    /// The values of `Forwarded`, in order.
    pub forwarded: SmallVec<[&'a [u8]; 1]>,
    /// The values of `X-Forwarded-Proto`, in order.
    pub proto: SmallVec<[&'a [u8]; 1]>,
    /// The index of `X-Forwarded-Host` in the head.
    pub host: Option<u16>,
}

/// Where a request comes from, for the backend and for the log.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The client's address.
    pub client: IpAddr,
    /// The addresses of the client and of the proxies after it, for `X-Forwarded-For`; the client is the leftmost.
    pub forwarded_for: HeaderValue,
    /// `http` or `https`, for `X-Forwarded-Proto`.
    pub proto: &'static str,
    /// The index in the head of the header with the host that the client requested, for `X-Forwarded-Host`.
    pub host: u16,
    /// The `Forwarded` (RFC 7239) of a trusted proxy, extended by that proxy's address.
    pub forwarded: Option<HeaderValue>,
    /// The subject of the certificate of the client, or of the trusted proxy.
    pub certificate_subject: Option<Arc<HeaderValue>>,
}

impl Origin {
    /// Determines the origin from `peer` and, if that is trusted, `proxy_headers`. `host` is the index of `Host` in the
    /// head; `scheme` is the default.
    #[must_use]
    pub(crate) fn new(
        peer: &Peer,
        proxy_headers: &ProxyHeaders<'_>,
        host: u16,
        scheme: &'static str,
        trusted_proxies: &[IpNet],
    ) -> Self {
        let certificate_subject = peer.connection.certificate_subject.clone();
        let scheme = if peer.connection.is_tls {
            "https"
        } else {
            scheme
        };
        if !peer.is_trusted {
            return Self {
                client: peer.address(),
                // Written once for each connection: a clone shares its bytes.
                forwarded_for: peer.as_header.clone(),
                proto: scheme,
                host,
                forwarded: None,
                certificate_subject,
            };
        }
        let hops = hops(&proxy_headers.forwarded_for, trusted_proxies);
        let chain: Vec<_> = hops
            .iter()
            .chain([&peer.address()])
            .map(IpAddr::to_string)
            .collect();
        Self {
            client: hops.first().copied().unwrap_or(peer.address()),
            forwarded_for: visible(chain.join(", ")),
            proto: forwarded_proto(&proxy_headers.proto, hops.len())
                .and_then(scheme_of)
                .unwrap_or(scheme),
            host: proxy_headers.host.unwrap_or(host),
            forwarded: forwarded(proxy_headers, peer.address()),
            certificate_subject,
        }
    }
}

/// The client's address, as in [`Origin`]; also for requests that were not admitted.
#[must_use]
pub(crate) fn client_address(
    peer: &Peer,
    headers: &(impl Headers + ?Sized),
    trusted_proxies: &[IpNet],
) -> IpAddr {
    if !peer.is_trusted {
        return peer.address();
    }
    let hops = hops(&lines(headers, &X_FORWARDED_FOR), trusted_proxies);
    hops.first().copied().unwrap_or(peer.address())
}

/// Whether a trusted proxy says that the client used another scheme than http, also for requests that were not admitted. A
/// word that is no known scheme counts: a redirect to https would come back with it.
#[must_use]
pub(crate) fn came_otherwise(
    peer: &Peer,
    headers: &(impl Headers + ?Sized),
    trusted_proxies: &[IpNet],
) -> bool {
    peer.is_trusted && {
        let hops = hops(&lines(headers, &X_FORWARDED_FOR), trusted_proxies);
        let proto = forwarded_proto(&lines(headers, &X_FORWARDED_PROTO), hops.len());
        proto.is_some_and(|proto| scheme_of(proto) != Some("http"))
    }
}

/// The element of `X-Forwarded-Proto` about the client: as many elements from the end as the addresses that count in
/// `X-Forwarded-For`. Of a shorter list, and without addresses, it is the leftmost.
fn forwarded_proto<'a>(lines: &[&'a [u8]], hops: usize) -> Option<&'a [u8]> {
    let count = if hops == 0 { MAX_HOPS } else { hops };
    elements(lines).take(count).last()
}

/// Schemes have no letter case; proxies name WebSocket's, too.
fn scheme_of(proto: &[u8]) -> Option<&'static str> {
    let is = |name: &str| proto.eq_ignore_ascii_case(name.as_bytes());
    match () {
        () if is("https") || is("wss") => Some("https"),
        () if is("http") || is("ws") => Some("http"),
        () => None,
    }
}

fn lines<'h>(headers: &'h (impl Headers + ?Sized), wanted: &HeaderName) -> SmallVec<[&'h [u8]; 1]> {
    let fields = headers.each().filter(|(name, _)| is_named(name, wanted));
    fields.map(|(_, value)| value).collect()
}

/// The elements of a list, from its end. RFC 9110 section 5.6.1: empty ones do not count.
fn elements<'a>(lines: &[&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
    lines
        .iter()
        .rev()
        .flat_map(|line| line.rsplit(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|element| !element.is_empty())
}

fn visible(addresses: String) -> HeaderValue {
    HeaderValue::try_from(addresses).expect("addresses and commas are visible ASCII")
}

/// Extends `Forwarded` by the peer. RFC 7239 sections 4 and 6: IPv6 addresses have brackets and quotes.
fn forwarded(proxy_headers: &ProxyHeaders<'_>, peer: IpAddr) -> Option<HeaderValue> {
    if proxy_headers.forwarded.is_empty() {
        return None;
    }
    let mut chain = proxy_headers.forwarded.join(&b", "[..]);
    let added = match peer {
        IpAddr::V6(peer) => format!(", for=\"[{peer}]\""),
        IpAddr::V4(peer) => format!(", for={peer}"),
    };
    chain.extend_from_slice(added.as_bytes());
    HeaderValue::from_maybe_shared(bytes::Bytes::from(chain)).ok()
}

/// The trustworthy part of `X-Forwarded-For`: from its end, the trusted proxies and the first address before them,
/// which is the client; at most [`MAX_HOPS`]. The client may have forged everything to the left.
fn hops(forwarded_for: &[&[u8]], trusted: &[IpNet]) -> SmallVec<[IpAddr; 4]> {
    let mut hops = SmallVec::new();
    for hop in elements(forwarded_for).take(MAX_HOPS) {
        // Not an address, for example `unknown`: nothing vouches for what stands to its left.
        let Some(hop) = std::str::from_utf8(hop).ok().and_then(address) else {
            break;
        };
        hops.push(hop);
        if !is_in(trusted, hop) {
            break;
        }
    }
    hops.reverse();
    hops
}

/// Parses an address; some proxies append the client's port.
fn address(hop: &str) -> Option<IpAddr> {
    // An IPv4-mapped address becomes IPv4 below: `trusted_proxies` and limits must see one form of it.
    let with_port = || hop.parse::<SocketAddr>().map(|address| address.ip());
    hop.parse()
        .or_else(|_| with_port())
        .ok()
        .map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::RawHeaders;

    /// The indices of `Host` and `X-Forwarded-Host`.
    const OURS: u16 = 1;
    const THEIRS: u16 = 2;

    fn origin(peer: &str, forwarded_for: &[&str]) -> Origin {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let proxy_headers = ProxyHeaders {
            forwarded_for: forwarded_for.iter().map(|line| line.as_bytes()).collect(),
            forwarded: [&b"for=192.0.2.60"[..], b"for=\"[2001:db8::1]\""]
                .into_iter()
                .collect(),
            proto: [&b"HTTPS"[..]].into_iter().collect(),
            host: Some(THEIRS),
        };
        let peer = Peer::new(&ConnectionInfo::plain(peer.parse().unwrap()), &trusted);
        Origin::new(&peer, &proxy_headers, OURS, "http", &trusted)
    }

    #[test]
    fn the_leftmost_trustworthy_address_is_the_client() {
        for (peer, forwarded_for, client, chain) in [
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
                &["198.51.100.7, ,10.0.0.2 ,", "", ",, "],
                "198.51.100.7",
                "198.51.100.7, 10.0.0.2, 10.0.0.1",
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
            let origin = origin(peer, forwarded_for);
            assert_eq!(
                origin.client.to_string(),
                client,
                "{peer} {forwarded_for:?}"
            );
            assert_eq!(origin.forwarded_for, chain, "{peer} {forwarded_for:?}");
        }
    }

    #[test]
    fn only_the_last_hops_are_read() {
        let mut forwarded_for = vec!["10.9.9.9"; 5000];
        forwarded_for[0] = "198.51.100.7";
        let long = origin("10.0.0.1", &[&forwarded_for.join(",")]);
        assert_eq!(long.client.to_string(), "10.9.9.9");
        let chain = long.forwarded_for.to_str().unwrap().split(", ").count();
        assert_eq!(chain, MAX_HOPS + 1);
        let whole = [&forwarded_for[..1], &forwarded_for[..0]]
            .concat()
            .join(",");
        let fits = vec!["10.9.9.9"; MAX_HOPS - 1].join(",");
        let fits = origin("10.0.0.1", &[&whole, &fits]);
        assert_eq!(fits.client.to_string(), "198.51.100.7");
    }

    #[test]
    fn a_request_that_is_not_admitted_has_the_same_client_address() {
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let head = b"BREW / HTTP/1.1\r\nX-Forwarded-For: 1.1.1.1\r\nx-forwarded-for: 198.51.100.7, 10.0.0.2\r\nX-Forwar";
        for (peer, expected) in [("10.0.0.1", "198.51.100.7"), ("192.0.2.1", "192.0.2.1")] {
            let peer = Peer::new(&ConnectionInfo::plain(peer.parse().unwrap()), &trusted);
            let found = client_address(&peer, &RawHeaders(head), &trusted);
            assert_eq!(found.to_string(), expected);
        }
    }

    #[test]
    fn scheme_and_host_are_accepted_from_trusted_proxies_only() {
        let trusted = origin("10.0.0.1", &[]);
        assert_eq!((trusted.proto, trusted.host), ("https", THEIRS));
        let other = origin("192.0.2.1", &[]);
        assert_eq!((other.proto, other.host), ("http", OURS));
    }

    #[test]
    fn the_scheme_of_the_client_is_chosen_as_its_address() {
        for (hops, lines, proto, scheme) in [
            (0, &[][..], None, None),
            (1, &["", " , "], None, None),
            (0, &["HTTPS"], Some("HTTPS"), Some("https")),
            (0, &["https,http"], Some("https"), Some("https")),
            (1, &["https, http"], Some("http"), Some("http")),
            (2, &["https, http"], Some("https"), Some("https")),
            (2, &["http", "Https , http"], Some("Https"), Some("https")),
            (3, &["wss"], Some("wss"), Some("https")),
            (1, &["http,", "WS"], Some("WS"), Some("http")),
            (1, &["on"], Some("on"), None),
        ] {
            let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
            let found = forwarded_proto(&lines, hops);
            assert_eq!(found, proto.map(str::as_bytes), "{lines:?}");
            assert_eq!(found.and_then(scheme_of), scheme, "{lines:?}");
        }
    }

    #[test]
    fn a_trusted_proxys_forwarded_is_extended_by_that_proxy() {
        let trusted = origin("10.0.0.1", &[]);
        let chain = "for=192.0.2.60, for=\"[2001:db8::1]\", for=10.0.0.1";
        assert_eq!(trusted.forwarded.unwrap(), chain);
        assert!(origin("192.0.2.1", &[]).forwarded.is_none());
    }
}
