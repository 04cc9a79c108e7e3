//! Chooses the version for a verified request. CONTRACT 5.

use std::sync::Arc;

use gateway_protocol::version::VersionSource;

use super::verify::VerifiedRequest;
use crate::{
    apps::App,
    config::{Backend, UnknownVersion, Versions},
    rejection::Rejection,
};

/// A verified request with its route; only [`route`] creates one.
///
/// The headers that identify a request to its backend are taken from here, never from the client's headers.
#[derive(Debug)]
pub struct RoutedRequest {
    verified: VerifiedRequest,
    route: Route,
}

impl RoutedRequest {
    /// The application of the request; `None` for a callback.
    #[must_use]
    pub(crate) fn app(&self) -> Option<&Arc<App>> {
        self.verified.app()
    }

    /// The version, and why it was chosen.
    #[must_use]
    pub const fn route(&self) -> &Route {
        &self.route
    }
}

/// The version of a request, and why it was chosen.
#[derive(Clone, Debug)]
pub struct Route {
    /// The version and its backend.
    pub(crate) backend: Arc<Backend>,
    /// Why this version was chosen.
    pub(crate) source: VersionSource,
}

/// Routes a verified request; `asked` is the version header's value, empty if missing.
///
/// # Errors
///
/// The version is unknown and `unknown = "reject"` is configured.
pub fn route(
    verified: VerifiedRequest,
    asked: &[u8],
    versions: &Versions,
) -> Result<RoutedRequest, Rejection> {
    let route = choose(&verified, asked, versions)?;
    Ok(RoutedRequest { verified, route })
}

fn choose(
    verified: &VerifiedRequest,
    asked: &[u8],
    versions: &Versions,
) -> Result<Route, Rejection> {
    if let Some(callback) = verified.callback() {
        let issuer = callback
            .version()
            .and_then(|name| versions.named(name.as_bytes()));
        return Ok(to(
            issuer.unwrap_or(versions.default()),
            VersionSource::State,
        ));
    }
    if asked.is_empty() {
        let own = verified.app().and_then(|app| app.default_version.as_ref());
        return Ok(
            match own.and_then(|version| versions.named(version.as_str().as_bytes())) {
                Some(backend) => to(backend, VersionSource::App),
                None => to(versions.default(), VersionSource::Default),
            },
        );
    }
    match (versions.named(asked), versions.unknown) {
        (Some(backend), _) => Ok(to(backend, VersionSource::Header)),
        (None, UnknownVersion::Default) => Ok(to(versions.default(), VersionSource::Unknown)),
        (None, UnknownVersion::Reject) => {
            let known: Vec<_> = versions
                .iter()
                .map(|backend| backend.version.as_str())
                .collect();
            Err(Rejection::VersionUnknown {
                known: known.join(", "),
            })
        }
    }
}

fn to(backend: &Arc<Backend>, source: VersionSource) -> Route {
    Route {
        backend: Arc::clone(backend),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        apps::directory::AppDirectory,
        config::tests::{sign_config, versions},
        phases::{callback::match_callback, verify::Verifier},
        request::{BodyLength, Method, Target},
    };

    const TWO: &str =
        "[versions.v1]\nbackend = '127.0.0.1:1'\n[versions.V2]\nbackend = '127.0.0.1:2'\n";

    fn verified(default_version: Option<&str>) -> VerifiedRequest {
        let key = "4283fefc63f0cd0e873a0000c6d07ef7".parse().unwrap();
        let AppDirectory::Single(app) = AppDirectory::single(key) else {
            unreachable!()
        };
        let default_version = default_version.map(|name| name.parse().unwrap());
        let app = Arc::new(App {
            default_version,
            ..(*app).clone()
        });
        let target = Target {
            path: "/",
            query: "",
        };
        let now = gateway_protocol::sign::SignTime::from_millis(0);
        Verifier::new(sign_config(""))
            .verify(app, Method::Get, target, &Default::default(), now)
            .unwrap()
    }

    fn routed(verified: VerifiedRequest, asked: &str, config: &str) -> (String, VersionSource) {
        let routed = route(verified, asked.as_bytes(), &versions(config)).unwrap();
        let route = routed.route();
        (route.backend.version.to_string(), route.source)
    }

    #[test]
    fn the_header_names_the_version_in_any_letter_case() {
        for (asked, version) in [("v1", "v1"), ("v2", "v2"), ("V2", "v2")] {
            assert_eq!(
                routed(verified(None), asked, TWO),
                (version.to_owned(), VersionSource::Header)
            );
        }
    }

    #[test]
    fn without_a_header_the_applications_default_precedes_the_gateways() {
        assert_eq!(
            routed(verified(None), "", TWO),
            ("v1".to_owned(), VersionSource::Default)
        );
        assert_eq!(
            routed(verified(Some("v2")), "", TWO),
            ("v2".to_owned(), VersionSource::App)
        );
        assert_eq!(
            routed(verified(Some("v2")), "v1", TWO),
            ("v1".to_owned(), VersionSource::Header)
        );
        assert_eq!(
            routed(verified(Some("v9")), "", TWO),
            ("v1".to_owned(), VersionSource::Default)
        );
    }

    #[test]
    fn an_unknown_version_goes_to_the_default_route() {
        for asked in ["v3", "v1 ", "v1,v2", "\u{e4}", "v2.", "../v2"] {
            assert_eq!(
                routed(verified(None), asked, TWO),
                ("v1".to_owned(), VersionSource::Unknown),
                "{asked}"
            );
        }
    }

    #[test]
    fn an_unknown_version_is_rejected_with_the_list_of_known_ones() {
        let versions = versions(&format!("unknown = 'reject'\n{TWO}"));
        let rejection = route(verified(None), b"v3", &versions).unwrap_err();
        let Rejection::VersionUnknown { known } = rejection else {
            panic!("{rejection}")
        };
        assert_eq!(known, "v1, v2");
    }

    #[test]
    fn a_callback_goes_to_the_version_that_issued_its_state() {
        let verifier = Verifier::new(sign_config(""));
        for (state, version) in [("v2.abc", "v2"), ("v9.abc", "v1"), ("abc", "v1")] {
            let query = format!("state={state}&code=x");
            let target = Target {
                path: "/login",
                query: &query,
            };
            let callback =
                match_callback(Method::Get, BodyLength::None, target, verifier.config()).unwrap();
            let verified = verifier.pass_callback(callback);
            assert_eq!(
                routed(verified, "v1", TWO),
                (version.to_owned(), VersionSource::State)
            );
        }
    }
}
