//! The headers of an answer as the client sees them. CONTRACT 1 and 5.

use gateway_protocol::{
    header::{HeaderNames, INTERNAL_PREFIX, X_REQUEST_ID},
    request_id::RequestId,
};
use http::HeaderName;

use super::route::Route;
use crate::syntax::field::{NameAndValue, Nominated};

/// The fields of every answer, the backend's or the gateway's: the request's id and, if it has a route, the version that
/// served it, and why.
pub(crate) fn own_fields<'a>(
    request_id: &'a RequestId,
    route: Option<&'a Route>,
    names: &'a HeaderNames,
) -> impl Iterator<Item = NameAndValue<'a>> {
    let name = |name: &'a HeaderName| name.as_str().as_bytes();
    let of_route = move |route: &'a Route| {
        [
            (
                name(names.version()),
                route.backend.version.as_str().as_bytes(),
            ),
            (
                name(names.version_source()),
                route.source.as_str().as_bytes(),
            ),
        ]
    };
    static ID: HeaderName = X_REQUEST_ID;
    std::iter::once((name(&ID), request_id.as_bytes())).chain(route.into_iter().flat_map(of_route))
}

/// Fields of a backend's answer that end at the gateway, beside the internal ones: those of its connection (RFC 9110
/// section 7.6.1), and the framing, which is written anew.
const HOP_BY_HOP: [&[u8]; 8] = [
    b"connection",
    b"content-length",
    b"keep-alive",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
];

/// Whether a field of a backend's answer goes on to the client: not if it is internal, of the backend's connection only,
/// or the gateway's to say.
#[must_use]
pub(crate) fn passes_to_client(
    name: &[u8],
    nominated: &Nominated<'_>,
    names: &HeaderNames,
) -> bool {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    let ours = [names.version(), names.version_source(), &X_REQUEST_ID];
    !(HOP_BY_HOP.iter().any(|known| is(known))
        || ours.iter().any(|known| is(known.as_str().as_bytes()))
        || is_internal(name)
        || nominated.includes(name))
}

/// Whether a field is the gateway's own, or looks like it: `_` for `-`.
fn is_internal(name: &[u8]) -> bool {
    let prefix = INTERNAL_PREFIX.as_bytes();
    let alike = |(given, known): (&u8, &u8)| {
        given.to_ascii_lowercase() == *known || (*given == b'_' && *known == b'-')
    };
    name.len() >= prefix.len() && name.iter().zip(prefix).all(alike)
}

#[cfg(test)]
mod tests {
    use gateway_protocol::header::HeaderOverrides;

    use super::*;

    #[test]
    fn what_is_the_backends_own_stays_with_it() {
        let fields = [
            ("X-Gateway-App-Id", "7"),
            ("X_Gateway_App_Id", "7"),
            ("Keep-Alive", "timeout=5"),
            ("Connection", "keep-alive, X-Hop, Content-Length"),
            ("X-Hop", "1"),
            ("Trailer", "X-Gateway-App-Id"),
            ("Content-Length", "2"),
            ("Transfer-Encoding", "chunked"),
            ("Upgrade", "h2c"),
            ("X-Kept", "1"),
            ("X-Gatewa", "1"),
            ("Set-Cookie", "a=b"),
            ("X-Request-Id", "its own"),
            ("Acme-X-Version", "v9"),
            ("acme-x-version-source", "header"),
        ];
        let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let names =
            HeaderNames::new(&"Acme".parse().unwrap(), &HeaderOverrides::default()).unwrap();
        let nominated = Nominated::from_fields(fields.into_iter());
        let passing = fields
            .iter()
            .filter(|(name, _)| passes_to_client(name, &nominated, &names))
            .map(|(name, _)| std::str::from_utf8(name).unwrap());
        let passing: Vec<_> = passing.collect();
        assert_eq!(passing, ["X-Kept", "X-Gatewa", "Set-Cookie"]);
    }
}
