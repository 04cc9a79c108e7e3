//! Selects the version that serves a request. CONTRACT 5.

use axum::response::Response;
use http::{HeaderName, HeaderValue, Method, Request};
use login::{EndpointsError, Routes};
use signpost_protocol::{
    header::{HeaderNames, X_GATEWAY_VERSION},
    login_state::version_of,
    version::{Version, VersionSource},
};

/// All versions of this process, the default route first.
#[derive(Clone)]
pub(crate) struct Versions(Vec<(Version, Routes)>);

/// The selected version, and why it was selected.
pub(crate) struct Choice<'a> {
    pub(crate) name: &'a Version,
    pub(crate) routes: &'a Routes,
    pub(crate) source: VersionSource,
    /// Whether this process selected it. Otherwise the gateway did, and it sets the response headers itself.
    pub(crate) is_chosen_here: bool,
}

impl Versions {
    /// Creates the list from names and routes: at least one, the default route first.
    ///
    /// # Errors
    ///
    /// The first version whose routes cannot be served.
    pub(crate) fn new<const N: usize>(
        versions: [(&str, Result<Routes, EndpointsError>); N],
    ) -> Result<Self, EndpointsError> {
        const { assert!(N > 0) };
        let parsed = versions.map(|(name, routes)| {
            let routes = routes?;
            Ok((name.parse().expect("its routes have this name"), routes))
        });
        parsed.into_iter().collect::<Result<_, _>>().map(Self)
    }

    /// Selects by the gateway's choice; without one, by the version header, then by a login's `state`, then the default
    /// route.
    pub(crate) fn choose<B>(&self, request: &Request<B>, headers: &HeaderNames) -> Choice<'_> {
        let value = |name: &HeaderName| request.headers().get(name).map(HeaderValue::as_bytes);
        let by_gateway = value(&X_GATEWAY_VERSION);
        let (found, source) = match by_gateway.or_else(|| value(&headers.version)) {
            Some(asked) => match self.find(asked) {
                Some(found) => (found, VersionSource::Header),
                None => (&self.0[0], VersionSource::Unknown),
            },
            None => match issuer(request).and_then(|issuer| self.find(issuer.as_bytes())) {
                Some(found) => (found, VersionSource::State),
                None => (&self.0[0], VersionSource::Default),
            },
        };
        let (name, routes) = found;
        Choice {
            name,
            routes,
            source,
            is_chosen_here: by_gateway.is_none(),
        }
    }

    fn find(&self, name: &[u8]) -> Option<&(Version, Routes)> {
        self.0.iter().find(|(version, _)| version.is_named_by(name))
    }
}

/// Sets the response headers that name the version and its source, as a gateway does.
pub(crate) fn set_version_headers(
    response: &mut Response,
    names: &HeaderNames,
    version: &Version,
    source: VersionSource,
) {
    if let Ok(version) = HeaderValue::from_str(version.as_str()) {
        response.headers_mut().insert(&names.version, version);
    }
    response.headers_mut().insert(
        &names.version_source,
        HeaderValue::from_static(source.as_str()),
    );
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
        let routes = || Ok(Routes::choosing(async |_| Response::default()));
        let versions = Versions::new([("v1", routes()), ("v2", routes())]).unwrap();
        let names =
            HeaderNames::new(&"Acme".parse().unwrap(), &HeaderOverrides::default()).unwrap();
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let choice = versions.choose(&request.body(()).unwrap(), &names);
        (
            choice.name.to_string(),
            choice.source.as_str(),
            choice.is_chosen_here,
        )
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
