//! Redirects a plain request to https. `conf/guides/edge.md`.

use http::header::AUTHORIZATION;
use signpost_protocol::{header::HeaderNames, sign::SIGN};

use super::callback::has_any;
use crate::request::{BodyLength, Head, Headers, is_named};

/// The port of https.
const HTTPS_PORT: u16 = 443;

/// Whether a plain request is redirected: a GET or HEAD without signature, credential and body, as a browser sends by itself.
/// Any other has shown the network what it must not, and would succeed unnoticed: draft-ietf-httpapi-privacy section 2.4.
#[must_use]
pub(crate) fn is_redirected(head: &Head, names: &HeaderNames) -> bool {
    let shown = [&AUTHORIZATION, &names.authorization, &names.sign];
    let is_shown = |name: &[u8]| shown.iter().any(|known| is_named(name, known));
    matches!(head.method(), b"GET" | b"HEAD")
        && head.body() == BodyLength::None
        && !has_any(head.target().query, &[SIGN])
        && !head.each().any(|(name, _)| is_shown(name))
}

/// The same target on the same host, by https at `port`.
#[must_use]
pub(crate) fn https_location(head: &Head, port: u16) -> Vec<u8> {
    let mut location = b"https://".to_vec();
    // The host of the request, since a listener can serve several. A page cannot make a browser send another one.
    location.extend_from_slice(without_port(head.host()));
    if port != HTTPS_PORT {
        location.push(b':');
        location.extend_from_slice(port.to_string().as_bytes());
    }
    let method = head.method().len() + 1;
    location.extend_from_slice(&head.method_and_target()[method..]);
    location
}

/// A host without its port. The parser has checked its form: a name, an IPv4 address or `[IPv6]`.
fn without_port(host: &[u8]) -> &[u8] {
    let after_address = host
        .iter()
        .rposition(|&byte| byte == b']')
        .map_or(0, |end| end + 1);
    let colon = host[after_address..].iter().position(|&byte| byte == b':');
    colon.map_or(host, |colon| &host[..after_address + colon])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_removed_from_each_kind_of_host() {
        for (host, without) in [
            ("api.example.com", "api.example.com"),
            ("api.example.com:80", "api.example.com"),
            ("192.0.2.1:8080", "192.0.2.1"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("[2001:db8::1]:80", "[2001:db8::1]"),
            ("h:", "h"),
        ] {
            assert_eq!(without_port(host.as_bytes()), without.as_bytes());
        }
    }
}
