//! The headers of a response to the client. CONTRACT 1 and 5.

use http::{
    HeaderName, HeaderValue,
    header::{CACHE_CONTROL, SET_COOKIE, STRICT_TRANSPORT_SECURITY},
};
use signpost_protocol::{
    cookies::BackendKind,
    header::{HeaderNames, INTERNAL_PREFIX, X_REQUEST_ID},
    request_id::RequestId,
};

use super::route::Route;
use crate::{
    config::{LifeCycle, ResponseHeaders},
    request::{is_named, quotas::QuotaFields},
    wire::syntax::field::{ConnectionOptions, HOP_BY_HOP, NameAndValue},
};

/// The fields that the gateway sets in every response: the request id; if the request has a route, the version, why it
/// was chosen, and its life cycle; and what the rate limits leave that counted the request.
pub(crate) fn own_fields<'a>(
    request_id: &'a RequestId,
    route: Option<&'a Route>,
    names: &'a HeaderNames,
    quotas: &'a QuotaFields,
) -> impl Iterator<Item = NameAndValue<'a>> {
    let name = |name: &'a HeaderName| name.as_str().as_bytes();
    let of_route = move |route: &'a Route| {
        [
            (
                name(&names.version),
                route.version.name().as_str().as_bytes(),
            ),
            (
                name(&names.version_source),
                route.source.as_str().as_bytes(),
            ),
        ]
    };
    let life_cycle = route.and_then(|route| route.life_cycle.as_deref());
    static ID: HeaderName = X_REQUEST_ID;
    std::iter::once((name(&ID), request_id.as_bytes()))
        .chain(route.into_iter().flat_map(of_route))
        .chain(life_cycle.into_iter().flat_map(LifeCycle::fields))
        .chain(quotas.iter())
}

/// The headers that the configuration fixes for one response.
#[derive(Clone, Copy)]
pub(crate) struct FixedHeaders<'a> {
    headers: &'a ResponseHeaders,
    /// `Strict-Transport-Security`, if the listener has it and the connection has TLS. RFC 6797 section 7.
    hsts: Option<&'a HeaderValue>,
    /// Whether the backend's `Cache-Control` stays alone, since it forbids to store the response.
    is_uncached: bool,
}

impl<'a> FixedHeaders<'a> {
    /// Those of the route's version, without a route the gateway's.
    pub(crate) fn new(
        gateway: &'a ResponseHeaders,
        route: Option<&'a Route>,
        hsts: Option<&'a HeaderValue>,
    ) -> Self {
        let headers = route.map_or(gateway, |route| route.version.response_headers());
        Self {
            headers,
            hsts,
            is_uncached: false,
        }
    }

    /// These beside a backend's response: what says `no-store` may carry a credential, and stays so. RFC 9111 section 5.2.2.5.
    pub(crate) fn beside<'r>(mut self, mut fields: impl Iterator<Item = NameAndValue<'r>>) -> Self {
        let is_changed = self.replaces(CACHE) || self.fields().any(is_of_cache);
        self.is_uncached =
            is_changed && fields.any(|field| is_of_cache(field) && has_no_store(field.1));
        self
    }

    /// The fields that are sent.
    pub(crate) fn fields(self) -> impl Iterator<Item = NameAndValue<'a>> {
        let hsts = |value: &'a HeaderValue| (HSTS.as_str().as_bytes(), value.as_bytes());
        let fields = self.headers.fields().chain(self.hsts.map(hsts));
        fields.filter(move |field| !(self.is_uncached && is_of_cache(*field)))
    }

    /// Whether a backend's response loses this field.
    #[must_use]
    pub(crate) fn replaces(self, name: &[u8]) -> bool {
        let is_kept = self.is_uncached && is_named(name, &CACHE_CONTROL);
        let is_replaced = self.headers.replaces(name);
        (is_replaced && !is_kept) || (self.hsts.is_some() && is_named(name, &HSTS))
    }
}

static HSTS: HeaderName = STRICT_TRANSPORT_SECURITY;
const CACHE: &[u8] = b"cache-control";

fn is_of_cache((name, _): NameAndValue<'_>) -> bool {
    is_named(name, &CACHE_CONTROL)
}

/// Whether a value of `Cache-Control` has this directive.
fn has_no_store(value: &[u8]) -> bool {
    let mut directives = value.split(|byte| *byte == b',');
    directives.any(|directive| directive.trim_ascii().eq_ignore_ascii_case(b"no-store"))
}

/// Whether a field of a backend's response is passed to the client: not if it is internal, hop-by-hop, or set by the
/// gateway.
#[must_use]
pub(crate) fn passes_to_client(
    name: &[u8],
    nominated: &ConnectionOptions<'_>,
    names: &HeaderNames,
) -> bool {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    let ours = [&names.version, &names.version_source, &X_REQUEST_ID];
    !(HOP_BY_HOP.iter().any(|known| is(known))
        || ours.iter().any(|known| is(known.as_str().as_bytes()))
        || is_internal(name)
        || nominated.includes(name))
}

/// Whether a field sets one of Signpost's own cookies, which this backend may not.
#[must_use]
pub(crate) fn sets_own_cookie(backend: BackendKind, (name, value): &NameAndValue<'_>) -> bool {
    is_named(name, &SET_COOKIE) && backend.may_not_set(value)
}

/// Whether a field is internal (`X-Gateway-*`) or imitates that with `_` for `-`.
fn is_internal(name: &[u8]) -> bool {
    let prefix = INTERNAL_PREFIX.as_bytes();
    // Readers that make variables of names (CGI) cannot tell `_` from `-`.
    let alike = |(given, known): (&u8, &u8)| {
        given.to_ascii_lowercase() == *known || (*given == b'_' && *known == b'-')
    };
    name.len() >= prefix.len() && name.iter().zip(prefix).all(alike)
}

#[cfg(test)]
mod tests {
    use signpost_protocol::header::HeaderOverrides;

    use super::*;

    #[test]
    fn internal_and_hop_by_hop_fields_are_removed() {
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
        let nominated = ConnectionOptions::from_fields(fields.into_iter());
        let passed = fields
            .iter()
            .filter(|(name, _)| passes_to_client(name, &nominated, &names))
            .map(|(name, _)| std::str::from_utf8(name).unwrap());
        let passed: Vec<_> = passed.collect();
        assert_eq!(passed, ["X-Kept", "X-Gatewa", "Set-Cookie"]);
    }
}
