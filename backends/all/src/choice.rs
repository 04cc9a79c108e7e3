//! Selects the version that serves a request. CONTRACT 5.

use axum::response::Response;
use http::{HeaderName, HeaderValue, Method, Request};
use login::Routes;
use signpost_protocol::{
    header::{HeaderNames, X_GATEWAY_VERSION},
    version::{Version, VersionSource, version_of},
};

/// All versions of this process, the default route first.
#[derive(Clone)]
pub(crate) struct Choice(pub(crate) Vec<(Version, Routes)>);

impl Choice {
    /// Selects by the gateway's choice; without one, by the version header, then by a login's `state`, then the default
    /// route. Also returns why.
    pub(crate) fn choose<B>(
        &self,
        request: &Request<B>,
        headers: &HeaderNames,
    ) -> (&(Version, Routes), VersionSource) {
        let value = |name: &HeaderName| request.headers().get(name).map(HeaderValue::as_bytes);
        // With a gateway its choice alone counts: a client's own header has arrived as it was sent.
        let asked = value(&X_GATEWAY_VERSION).or_else(|| value(&headers.version));
        let (version, source, otherwise) = match asked {
            Some(asked) => (
                self.find(asked),
                VersionSource::Header,
                VersionSource::Unknown,
            ),
            None => {
                let version = issuer(request).and_then(|issuer| self.find(issuer.as_bytes()));
                (version, VersionSource::State, VersionSource::Default)
            }
        };
        version.map_or((&self.0[0], otherwise), |version| (version, source))
    }

    fn find(&self, name: &[u8]) -> Option<&(Version, Routes)> {
        self.0.iter().find(|(version, _)| version.is_named_by(name))
    }
}

/// Whether this process selects the version. Otherwise the gateway did, and it sets the response headers itself.
pub(crate) fn is_chosen_here<B>(request: &Request<B>) -> bool {
    !request.headers().contains_key(X_GATEWAY_VERSION)
}

/// Sets the response headers that name the version and its source, as a gateway does.
pub(crate) fn set_version_headers(
    response: &mut Response,
    names: &HeaderNames,
    version: &Version,
    source: VersionSource,
) {
    let headers = response.headers_mut();
    if let Ok(version) = HeaderValue::from_str(version.as_str()) {
        headers.insert(&names.version, version);
    }
    let source = HeaderValue::from_static(source.as_str());
    headers.insert(&names.version_source, source);
}

/// The version that issued the `state` of a login's request. A state contains no characters that need decoding.
fn issuer<B>(request: &Request<B>) -> Option<&str> {
    if request.method() != Method::GET || request.uri().path() != "/login" {
        return None;
    }
    let pairs = request.uri().query()?.split('&');
    let mut states = pairs.filter_map(|pair| pair.strip_prefix("state="));
    states.find_map(version_of)
}

#[cfg(test)]
mod tests {
    use signpost_protocol::header::HeaderOverrides;

    use super::*;

    fn chosen(uri: &str, headers: &[(&str, &str)]) -> (String, &'static str, bool) {
        let routes = || Routes::choosing(async |_| Response::default());
        let versions = ["v1", "v2"].map(|name| (name.parse().unwrap(), routes()));
        let versions = Choice(versions.into());
        let names =
            HeaderNames::new(&"Acme".parse().unwrap(), &HeaderOverrides::default()).unwrap();
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let ((name, _), source) = versions.choose(&request, &names);
        (name.to_string(), source.as_str(), is_chosen_here(&request))
    }

    #[test]
    fn the_version_header_names_a_version() {
        assert_eq!(chosen("/user", &[]), ("v1".into(), "default", true));
        assert_eq!(
            chosen("/user", &[("acme-x-version", "V2")]),
            ("v2".into(), "header", true)
        );
        assert_eq!(
            chosen("/user", &[("acme-x-version", "v9")]),
            ("v1".into(), "unknown", true)
        );
        assert_eq!(
            chosen("/user", &[("acme-x-version", "")]),
            ("v1".into(), "unknown", true)
        );
    }

    #[test]
    fn the_gateways_choice_overrides_the_header() {
        let both = [("x-gateway-version", "v2"), ("acme-x-version", "v1")];
        assert_eq!(chosen("/user", &both), ("v2".into(), "header", false));
        assert_eq!(
            chosen("/login?state=v1.x", &both),
            ("v2".into(), "header", false)
        );
    }

    #[test]
    fn a_callback_goes_to_the_version_that_issued_its_state() {
        assert_eq!(
            chosen("/login?code=c&state=v2.abc", &[]),
            ("v2".into(), "state", true)
        );
        assert_eq!(
            chosen("/login?state=v9.abc", &[]),
            ("v1".into(), "default", true)
        );
        assert_eq!(
            chosen("/user?state=v2.abc", &[]),
            ("v1".into(), "default", true)
        );
        assert_eq!(
            chosen("/login?xstate=v2.abc", &[]),
            ("v1".into(), "default", true)
        );
    }
}
