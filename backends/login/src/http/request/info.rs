//! The properties of a request that its response depends on: id, language, and whether a browser shows it.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT, ACCEPT_LANGUAGE},
    request::Parts,
};
use signpost_protocol::{
    header::{HeaderNames, X_FORWARDED_FOR, X_REQUEST_ID},
    language::Language,
    request_id::RequestId,
};

use crate::{error::LoginError, secret::random};

/// Read once, by the outermost layer, from headers that the gateway has verified or set.
#[derive(Clone, Debug)]
pub struct RequestInfo {
    /// The request id from the gateway, or a new one.
    ///
    /// As in `X-Request-Id` of the response, in the log, and in problems.
    pub id: RequestId,
    /// The language of texts in the response, pages included. CONTRACT 6.
    pub language: Language,
    /// Whether problems are shown as a page, since a browser navigates to `/login`.
    pub(crate) wants_page: bool,
    /// The client's address, as the gateway determined it.
    pub client_address: IpAddr,
}

impl RequestInfo {
    pub(crate) fn from_parts(parts: &Parts, headers: &HeaderNames) -> Self {
        let lines = |name| {
            let lines = parts.headers.get_all(name).into_iter();
            lines.map(HeaderValue::as_bytes)
        };
        let is_navigation = parts.method == Method::GET && parts.uri.path() == "/login";
        let accepts_pages =
            text(&parts.headers, &ACCEPT).is_some_and(|accept| accept.contains("text/html"));
        let id = text(&parts.headers, &X_REQUEST_ID).and_then(|id| id.parse().ok());
        Self {
            id: id.unwrap_or_else(|| RequestId::from_bytes(random())),
            language: Language::of_request(
                lines(&headers.language).next(),
                lines(&ACCEPT_LANGUAGE),
            ),
            wants_page: is_navigation && accepts_pages,
            client_address: client_address(parts),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for RequestInfo {
    type Rejection = LoginError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, LoginError> {
        let missing = LoginError::Internal {
            what: "the request info is missing",
        };
        parts.extensions.get::<Self>().cloned().ok_or(missing)
    }
}

/// The leftmost address in `X-Forwarded-For`, which the gateway sets; without one, the peer's.
fn client_address(parts: &Parts) -> IpAddr {
    let forwarded = text(&parts.headers, &X_FORWARDED_FOR)
        .and_then(|list| list.split(',').next())
        .and_then(|first| first.trim().parse::<IpAddr>().ok());
    let peer = || {
        parts
            .extensions
            .get::<ConnectInfo<SocketAddr>>()
            .map(|ConnectInfo(peer)| peer.ip())
    };
    forwarded.or_else(peer).unwrap_or(IpAddr::from([0; 4]))
}

fn text<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use http::Request;
    use signpost_protocol::header::HeaderOverrides;

    use super::*;

    fn info(path: &str, headers: &[(&str, &str)]) -> RequestInfo {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let names =
            HeaderNames::new(&"Acme".parse().unwrap(), &HeaderOverrides::default()).unwrap();
        RequestInfo::from_parts(&request.body(()).unwrap().into_parts().0, &names)
    }

    #[test]
    fn the_language_header_overrides_accept_language() {
        let accepted = ("accept-language", "ja-JP");
        let language = |own| info("/user", &[("acme-x-language", own), accepted]).language;
        assert_eq!(language("ko"), Language::Ko);
        assert_eq!(language("fr"), Language::Ja);
        assert_eq!(info("/login", &[accepted]).language, Language::Ja);
        let lines = [("accept-language", "fr"), accepted];
        assert_eq!(info("/user", &lines).language, Language::Ja);
    }

    #[test]
    fn only_browsers_at_login_get_pages() {
        let accept = ("accept", "text/html,application/xhtml+xml");
        assert!(info("/login?state=x", &[accept]).wants_page);
        assert!(!info("/user", &[accept]).wants_page);
        assert!(!info("/login", &[("accept", "*/*")]).wants_page);
    }

    #[test]
    fn the_leftmost_forwarded_address_is_the_clients() {
        let forwarded = info("/", &[("x-forwarded-for", "192.0.2.1, 10.0.0.1")]);
        assert_eq!(
            forwarded.client_address,
            "192.0.2.1".parse::<IpAddr>().unwrap()
        );
    }

    #[test]
    fn an_invalid_id_is_replaced() {
        assert_eq!(info("/", &[("x-request-id", "r-1")]).id.as_str(), "r-1");
        assert_eq!(info("/", &[("x-request-id", "a b")]).id.as_str().len(), 32);
    }
}
