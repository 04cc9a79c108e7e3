//! Chooses the version for a verified request, and the backend of that version. CONTRACT 5.

use std::{mem::discriminant, net::IpAddr, sync::Arc};

use ring::digest;
use signpost_kit::{clock::Timestamp, limits::Network};
use signpost_protocol::{
    malformed::{Fault, Malformed, Part},
    version::{Version, VersionSource},
};

use super::{callback::Callback, verify::VerifiedRequest};
use crate::{
    config::{
        Backend, BackendIndex, LifeCycle, Paths, Placed, RequestRules, ServedVersion, Stage,
        StickyBy, UnknownVersion, Unsigned, Versions,
    },
    directory::apps::App,
    request::{
        Head, Method, Methods, Target,
        rejection::{Migration, Rejection},
    },
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
    pub fn app(&self) -> Option<&Arc<App>> {
        self.verified.app()
    }

    /// The verified request.
    #[must_use]
    pub const fn verified(&self) -> &VerifiedRequest {
        &self.verified
    }

    /// Whether its backend gets it without `time` and `sign`, which are among its parameters.
    #[must_use]
    pub(crate) fn strips_sign(&self) -> bool {
        let is_signed = self.verified.signed_app().is_some();
        is_signed && !self.verified.is_signed_in_headers() && self.route.rules().strip_sign
    }

    /// Whether its signature is not among what its backend gets.
    #[must_use]
    pub(crate) fn hides_sign(&self) -> bool {
        self.verified.is_signed_in_headers() || self.strips_sign()
    }

    /// The version, and why it was chosen.
    #[must_use]
    pub const fn route(&self) -> &Route {
        &self.route
    }
}

/// The version of a request, why it was chosen, and which backend serves the request.
#[derive(Clone, Debug)]
pub struct Route {
    /// The version.
    pub version: Arc<ServedVersion>,
    /// Its backend for the request.
    index: BackendIndex,
    /// Why this version was chosen.
    pub source: VersionSource,
    /// When this ends for the application: the dates of the version or of an endpoint, or later ones.
    pub life_cycle: Option<Arc<LifeCycle>>,
}

impl Route {
    /// The route to a backend of a version, without a life cycle.
    pub const fn new(
        version: Arc<ServedVersion>,
        index: BackendIndex,
        source: VersionSource,
    ) -> Self {
        Self {
            version,
            index,
            source,
            life_cycle: None,
        }
    }

    /// The backend, which other versions may share.
    #[must_use]
    pub fn backend(&self) -> &Arc<Backend> {
        self.version.backend(self.index)
    }

    /// What the backend takes of requests.
    #[must_use]
    pub(crate) fn rules(&self) -> &RequestRules {
        self.version.rules(self.index)
    }

    /// The version whose backend it is: another one, if the request takes a bridge.
    #[must_use]
    pub(crate) fn serving(&self) -> &Arc<Version> {
        self.version.serving(self.index)
    }

    /// Whether the backend is another version's, which gets a changed request.
    #[must_use]
    pub fn is_bridged(&self) -> bool {
        self.version.is_bridged(self.index)
    }
}

/// What the route of a request depends on, beside its application.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'r> {
    /// The version header's value, empty if missing.
    pub version: &'r [u8],
    /// The versions that host and path name.
    pub placed: Placed,
    /// The method.
    pub method: Method,
    /// The target.
    pub target: Target<'r>,
    /// The client's address.
    pub client: IpAddr,
    /// The headers, which can name a canary.
    pub headers: Option<&'r Head>,
}

/// A verified request without a backend.
#[derive(Debug)]
pub struct Unrouted {
    /// The request.
    pub verified: VerifiedRequest,
    /// Why it has none.
    pub rejection: Rejection,
    /// Its route, if the version is known.
    pub route: Option<Box<Route>>,
}

/// Routes a verified request. `now` is called only if the time matters; `is_available` says whether a backend has a healthy
/// address, only canaries are asked for.
///
/// # Errors
///
/// The version is unknown and `unknown = "reject"` is configured; or its or the endpoint's life cycle has ended, or has a
/// brown-out; or it takes no ambiguous paths; or the backend takes signed requests only.
pub fn route(
    verified: VerifiedRequest,
    wanted: Wanted<'_>,
    versions: &Versions,
    now: impl Fn() -> Timestamp,
    is_available: impl Fn(&Backend) -> bool,
) -> Result<RoutedRequest, Unrouted> {
    let asking = (verified.callback(), verified.app());
    let (version, source) = match choose_version(asking, &wanted, versions, &now) {
        Ok(chosen) => chosen,
        Err(rejection) => {
            return Err(Unrouted {
                verified,
                rejection,
                route: None,
            });
        }
    };
    let life_cycle = life_cycle_of(version, asking, &wanted);
    let routed = |index| Route {
        life_cycle: life_cycle.clone(),
        ..Route::new(Arc::clone(version), index, source)
    };
    let unrouted = |verified, index, rejection| Unrouted {
        verified,
        rejection,
        route: Some(Box::new(routed(index))),
    };
    if let Some(life_cycle) = &life_cycle
        && let Err(rejection) = serves(life_cycle, version, versions, now())
    {
        return Err(unrouted(verified, BackendIndex::OWN, rejection));
    }
    // Before a backend is chosen: resolved, the path could be one of another route.
    if let Err(rejection) = check_path(wanted.target, version) {
        return Err(unrouted(verified, BackendIndex::OWN, rejection));
    }
    let index = choose_backend(version, &verified, &wanted, is_available);
    let takes_unsigned = match version.unsigned(index) {
        // No key says that strangers may change something.
        Unsigned::Unset => Methods::USUAL.has(wanted.method) || wanted.method.is_safe(),
        Unsigned::Accept => true,
        Unsigned::Reject => false,
    };
    if verified.is_unsigned() && !takes_unsigned {
        return Err(unrouted(verified, index, Rejection::SignMissing(None)));
    }
    let route = routed(index);
    Ok(RoutedRequest { verified, route })
}

/// What a version and a path take of the requests of an application that is only claimed so far. If the request names no
/// version that exists, those of the default version: [`route`] rejects it.
pub(crate) fn rules_of<'v>(
    app: &Arc<App>,
    wanted: Wanted<'_>,
    versions: &'v Versions,
    now: impl Fn() -> Timestamp,
) -> &'v RequestRules {
    let chosen = choose_version((None, Some(app)), &wanted, versions, now);
    let version = chosen.map_or(versions.default(), |(version, _)| version);
    let index = routed(version, &wanted).unwrap_or(BackendIndex::OWN);
    version.rules(index)
}

fn choose_version<'v>(
    (callback, app): (Option<&Callback>, Option<&Arc<App>>),
    wanted: &Wanted<'_>,
    versions: &'v Versions,
    now: impl Fn() -> Timestamp,
) -> Result<(&'v Arc<ServedVersion>, VersionSource), Rejection> {
    if let Some(callback) = callback {
        let issuer = callback
            .version()
            .and_then(|name| versions.named(name.as_bytes()));
        return Ok((issuer.unwrap_or(versions.default()), VersionSource::State));
    }
    let asked = match wanted.version {
        b"" => None,
        asked => Some(versions.named(asked)),
    };
    let Placed { host, prefix } = wanted.placed;
    let [host, prefix] = [host, prefix].map(|number| number.map(|number| versions.at(number)));
    // The path without its prefix is one of that version alone.
    if let Some(placed) = prefix {
        let is_other = |version: Option<&Arc<ServedVersion>>| {
            version.is_none_or(|version| version.number != placed.number)
        };
        if asked.is_some_and(is_other) || host.is_some_and(|host| is_other(Some(host))) {
            return Err(Rejection::VersionContradictory {
                placed: placed.name().as_str().into(),
            });
        }
    }
    match (asked, versions.unknown) {
        (Some(Some(version)), _) => return Ok((version, VersionSource::Header)),
        (Some(None), UnknownVersion::Default) => {
            return Ok((versions.default(), VersionSource::Unknown));
        }
        (Some(None), UnknownVersion::Reject) => {
            let known = names(versions.in_service(now()));
            return Err(Rejection::VersionUnknown { known });
        }
        (None, _) => {}
    }
    let placed = host.map(|version| (version, VersionSource::Host));
    let placed = placed.or(prefix.map(|version| (version, VersionSource::Prefix)));
    if let Some(placed) = placed {
        return Ok(placed);
    }
    let own = app.and_then(|app| app.default_version.as_ref());
    Ok(
        match own.and_then(|version| versions.named(version.as_str().as_bytes())) {
            Some(version) => (version, VersionSource::App),
            // Also if the application names a version that this configuration does not have.
            None => (
                default_of(versions, app, wanted.client),
                VersionSource::Default,
            ),
        },
    )
}

/// The version of a request that names none: the default one, or the one that is tried with a share of these.
fn default_of<'v>(
    versions: &'v Versions,
    app: Option<&Arc<App>>,
    client: IpAddr,
) -> &'v Arc<ServedVersion> {
    let canary = versions.default_canary();
    let canary = canary.filter(|canary| place(canary.sticky_by, app, client) < canary.percent);
    canary.map_or(versions.default(), |canary| versions.at(canary.version))
}

/// The life cycle of a request. An application whose use of the version is extended has one of its own. So have callbacks
/// if one is extended: a login to it is finished by them.
fn life_cycle_of(
    version: &ServedVersion,
    (callback, app): (Option<&Callback>, Option<&Arc<App>>),
    wanted: &Wanted<'_>,
) -> Option<Arc<LifeCycle>> {
    let life_cycle = version.life_cycle_of(wanted.method, wanted.target.compared())?;
    let extended = match callback {
        Some(callback) => callback.extended,
        None => app.and_then(|app| app.extended_until(version.name())),
    };
    Some(match extended {
        Some(until) => Arc::new(life_cycle.extended(until)),
        None => Arc::clone(life_cycle),
    })
}

/// Whether a version, or an endpoint of it with this life cycle, serves at this time.
fn serves(
    life_cycle: &LifeCycle,
    version: &ServedVersion,
    versions: &Versions,
    now: Timestamp,
) -> Result<(), Rejection> {
    let stage = life_cycle.stage(now);
    let migration = || {
        // If only an endpoint ends, its version may be current.
        let is_goal = |other: &&Arc<ServedVersion>| {
            other.number != version.number && other.stage(now) == Stage::Current
        };
        Migration {
            versions: names(versions.iter().filter(is_goal)),
            link: life_cycle.link.clone(),
            is_of_endpoint: discriminant(&version.stage(now)) != discriminant(&stage),
        }
    };
    match stage {
        Stage::Current | Stage::Deprecated | Stage::PastSunset => Ok(()),
        Stage::Brownout { ends_in } => Err(Rejection::VersionBrownout {
            migration: migration(),
            retry_after: ends_in,
        }),
        Stage::Retired => Err(Rejection::VersionRetired {
            migration: migration(),
        }),
    }
}

fn names<'v>(versions: impl Iterator<Item = &'v Arc<ServedVersion>>) -> String {
    let names: Vec<_> = versions.map(|version| version.name().as_str()).collect();
    names.join(", ")
}

/// Rejects a path that readers may understand differently, unless the version takes it: at its backend the path could be one
/// that has another rule.
pub(crate) fn check_path(target: Target<'_>, version: &ServedVersion) -> Result<(), Rejection> {
    match target.ambiguity() {
        Some(at) if version.paths() == Paths::Canonical => {
            let path = target.path.as_bytes();
            let at = Malformed::at(Part::Path, path, at, Fault::Character);
            Err(Rejection::TargetAmbiguous(at.into()))
        }
        _ => Ok(()),
    }
}

/// The backend of a route, of a canary, or the version's own. A callback takes no route: it has no application, and belongs
/// to the login service.
fn choose_backend(
    version: &ServedVersion,
    verified: &VerifiedRequest,
    wanted: &Wanted<'_>,
    is_available: impl Fn(&Backend) -> bool,
) -> BackendIndex {
    let is_callback = verified.callback().is_some();
    let routed = (!is_callback).then(|| routed(version, wanted)).flatten();
    let index = routed.unwrap_or(BackendIndex::OWN);
    let Some(split) = version.split(index) else {
        return index;
    };
    let tested = wanted.headers.and_then(|headers| split.tested(headers));
    let canary =
        tested.or_else(|| split.at(place(split.sticky_by(), verified.app(), wanted.client)));
    // A canary that is down fails no request: its share goes to the backend that it is a canary of.
    let canary = canary.filter(|canary| is_available(version.backend(*canary)));
    canary.unwrap_or(index)
}

/// The backend of the route that takes the path.
fn routed(version: &ServedVersion, wanted: &Wanted<'_>) -> Option<BackendIndex> {
    let path = wanted.target.compared();
    if let Some(routed) = version.routed(path) {
        return Some(routed);
    }
    let bridge = version.bridge()?;
    let changes = version.changes();
    let query = wanted.target.query;
    // What does not apply is rejected later.
    let changed = changes.and_then(|changes| changes.path(wanted.method, path, query).ok()?);
    // The other version's routes are for the path that its backend gets.
    bridge.routed(changed.as_ref().map_or(path, |changed| &changed.path))
}

/// The place of a client or an application among all, from 0 to 99: the same at every gateway, and after a restart.
fn place(sticky_by: StickyBy, app: Option<&Arc<App>>, client: IpAddr) -> u8 {
    // Not by the hasher of maps, whose keys differ in each process.
    let digest = match (sticky_by, app) {
        (StickyBy::App, Some(app)) => sha256(&app.id.get().to_be_bytes()),
        (StickyBy::App, None) | (StickyBy::Client, _) => {
            sha256(Network::from_client(client).to_string().as_bytes())
        }
    };
    let first = digest.as_ref().first_chunk().copied().unwrap_or_default();
    u8::try_from(u64::from_be_bytes(first) % 100).unwrap_or_default()
}

fn sha256(bytes: &[u8]) -> digest::Digest {
    digest::digest(&digest::SHA256, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::tests::{sign_config, versions},
        directory::apps::directory::AppDirectory,
        phases::{
            callback::{Callback, match_callback},
            verify::{HeaderSign, Verifier},
        },
        request::{BodyLength, Method, RawHeaders, Target},
        wire::syntax::path::read_path,
    };

    const TWO: &str =
        "[versions.v1]\nbackend = '127.0.0.1:1'\n[versions.V2]\nbackend = '127.0.0.1:2'\n";

    fn verified(default_version: Option<&str>) -> VerifiedRequest {
        let default_version = default_version.map(|name| name.parse().unwrap());
        verified_as(|app| App {
            default_version,
            ..app
        })
    }

    fn verified_as(change: impl FnOnce(App) -> App) -> VerifiedRequest {
        let key = "4283fefc63f0cd0e873a0000c6d07ef7".parse().unwrap();
        let AppDirectory::Single(app) = AppDirectory::single(key) else {
            unreachable!()
        };
        let app = Arc::new(change((*app).clone()));
        let target = Target::parse(b"/").unwrap();
        let now = signpost_protocol::sign::SignTime::from_millis(0);
        Verifier::new(sign_config(""))
            .verify(
                app,
                Method::Get,
                target,
                &Default::default(),
                (&[("", ""); 0][..], HeaderSign::NONE),
                now,
            )
            .unwrap()
    }

    fn wanted<'a>(version: &'a str, path: &'a str) -> Wanted<'a> {
        Wanted {
            version: version.as_bytes(),
            placed: Placed::default(),
            method: Method::Get,
            target: Target::parse(path.as_bytes()).unwrap(),
            client: IpAddr::from([192, 0, 2, 1]),
            headers: None,
        }
    }

    /// 2025-01-01T00:00:00Z.
    const NOW: Timestamp = Timestamp::from_millis(1_735_689_600_000);

    fn rejected(versions: &Versions, asked: &str) -> Rejection {
        let wanted = wanted(asked, "/");
        let unrouted = route(verified(None), wanted, versions, || NOW, |_| true).unwrap_err();
        unrouted.rejection
    }

    fn routed(verified: VerifiedRequest, asked: &str, config: &str) -> (String, VersionSource) {
        let routed = route(
            verified,
            wanted(asked, "/"),
            &versions(config),
            || NOW,
            |_| true,
        )
        .unwrap();
        let route = routed.route();
        (route.backend().name.to_string(), route.source)
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

    const PARTS: &str = "[versions.v1]\nbackend = '127.0.0.1:1'\n\
                         routes = [{ path = '/login', backend = '127.0.0.1:2' }]\n\
                         canaries = [{ name = 'next', percent = 10, backend = '127.0.0.1:3' }]\n";

    fn backend_of(path: &str, client: [u8; 4], config: &str, is_available: bool) -> String {
        let wanted = Wanted {
            client: client.into(),
            ..wanted("", path)
        };
        let routed = route(
            verified(None),
            wanted,
            &versions(config),
            || NOW,
            |_| is_available,
        )
        .unwrap();
        routed.route().backend().name.to_string()
    }

    #[test]
    fn only_a_version_that_takes_paths_as_sent_takes_an_ambiguous_one() {
        let unusual = |path: &str| read_path(path.as_bytes()).unwrap().unwrap();
        let found = |path: &str, config: &str| {
            let unusual = unusual(path);
            let target = Target {
                path,
                unusual: Some(&unusual),
                ..Target::default()
            };
            let wanted = Wanted {
                target,
                ..wanted("", path)
            };
            let routed = route(verified(None), wanted, &versions(config), || NOW, |_| true);
            routed.map(|routed| routed.route().backend().name.to_string())
        };
        let as_sent = format!("{PARTS}paths = 'as_sent'\n");
        for path in ["//login", "/x/../login", "/login;x"] {
            let Unrouted {
                rejection, route, ..
            } = found(path, PARTS).unwrap_err();
            assert!(matches!(rejection, Rejection::TargetAmbiguous(_)));
            assert!(route.is_some());
            assert_eq!(found(path, &as_sent).unwrap(), "v1");
        }
        for config in [PARTS, &as_sent] {
            assert_eq!(found("/%6Cogin", config).unwrap(), "v1 /login");
        }
        // Over a bridge, the stricter of both.
        let bridged = format!(
            "default_version = 'v2'\n{PARTS}[versions.v2]\nbridge = 'v1'\npaths = 'as_sent'\n"
        );
        assert!(found("//login", &bridged).is_err());
    }

    /// A client in the share of the canary.
    fn canary_client() -> [u8; 4] {
        let is_in = |last: &u8| place(StickyBy::Client, None, [192, 0, 2, *last].into()) < 10;
        [192, 0, 2, (0..=255).find(is_in).unwrap()]
    }

    #[test]
    fn a_route_precedes_a_canary_and_a_canary_the_versions_own_backend() {
        let (inside, outside) = (canary_client(), [192, 0, 2, 1]);
        assert!(place(StickyBy::Client, None, outside.into()) >= 10);
        assert_eq!(backend_of("/login", inside, PARTS, true), "v1 /login");
        assert_eq!(backend_of("/x", inside, PARTS, true), "v1 (canary next)");
        assert_eq!(backend_of("/x", outside, PARTS, true), "v1");
        assert_eq!(backend_of("/x", inside, PARTS, false), "v1");
    }

    #[test]
    fn a_client_keeps_its_place_in_its_network() {
        let by_client = |client: &str| place(StickyBy::Client, None, client.parse().unwrap());
        assert_eq!(by_client("2001:db8::1"), by_client("2001:db8::ffff"));
        assert_eq!(by_client("192.0.2.1"), by_client("::ffff:192.0.2.1"));
        let places: std::collections::BTreeSet<_> = (0..=255)
            .map(|last| place(StickyBy::Client, None, [192, 0, 2, last].into()))
            .collect();
        assert!(places.len() > 80, "{}", places.len());
        // A place must not change with a release: clients would change their backends.
        assert_eq!(by_client("192.0.2.1"), 63);
    }

    fn callback_with(state: &str, verifier: &Verifier) -> Callback {
        let target = format!("/login?state={state}&code=x");
        let target = Target::parse(target.as_bytes()).unwrap();
        let (headers, config) = (RawHeaders(b""), verifier.config());
        let callback = match_callback(Method::Get, BodyLength::None, target, &headers, config);
        callback.unwrap().unwrap()
    }

    #[test]
    fn a_callback_takes_no_route() {
        let verifier = Verifier::new(sign_config(""));
        let callback = callback_with("v1.abc", &verifier);
        let verified = verifier.pass_callback(callback);
        let versions = versions(PARTS);
        let routed = route(verified, wanted("", "/login"), &versions, || NOW, |_| true).unwrap();
        assert_eq!(routed.route().backend().name.to_string(), "v1");
    }

    /// What a request without a signature needs to be taken, by method.
    #[test]
    fn unsigned_requests_change_nothing_unless_a_key_says_so() {
        for (key, taken) in [
            ("", &[Method::Get, Method::Head, Method::Post][..]),
            ("unsigned = 'accept'", &Method::ALL),
            ("unsigned = 'reject'", &[]),
        ] {
            let versions = versions(&format!(
                "[versions.v1]\nbackend = '127.0.0.1:1'\n{key}\n\
                 methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']\n"
            ));
            for method in Method::ALL {
                let wanted = Wanted {
                    method,
                    ..wanted("", "/")
                };
                let routed = route(verified(None), wanted, &versions, || NOW, |_| true);
                assert_eq!(routed.is_ok(), taken.contains(&method), "{key} {method:?}");
                if let Err(unrouted) = routed {
                    assert!(matches!(unrouted.rejection, Rejection::SignMissing(None)));
                }
            }
        }
    }

    /// The rules that judge a request's method and body are those of its route.
    #[test]
    fn the_rules_of_a_claimed_application_are_those_of_its_route() {
        let versions = versions(
            "default_version = 'v1'\n[versions.v1]\nbackend = '127.0.0.1:1'\n\
             [versions.v2]\nbackend = '127.0.0.1:2'\npath_prefix = '/p'\nhosts = ['h']\nmax_body = 2\n\
             routes = [{ path = '/r', backend = '127.0.0.1:3', max_body = 3 }]\n",
        );
        for (asked, path, host, default, max_body) in [
            ("", "/x", "", None, 65_536),
            ("v2", "/x", "", None, 2),
            ("V2", "/r", "", None, 3),
            ("", "/r", "", None, 65_536),
            ("", "/p/r", "", None, 3),
            ("", "/x", "h:1", None, 2),
            ("v1", "/x", "h", None, 65_536),
            ("", "/x", "", Some("v2"), 2),
            ("", "/x", "", Some("v9"), 65_536),
            // `route` rejects these.
            ("v9", "/x", "", Some("v2"), 65_536),
            ("v1", "/p/x", "", None, 65_536),
        ] {
            let mut target = Target {
                host,
                ..Target::parse(path.as_bytes()).unwrap()
            };
            let placed = versions.place(&mut target);
            let wanted = Wanted {
                placed,
                target,
                ..wanted(asked, path)
            };
            let verified = verified(default);
            let rules = rules_of(verified.app().unwrap(), wanted, &versions, || NOW);
            assert_eq!(
                rules.max_body, max_body,
                "{asked} {path} {host} {default:?}"
            );
            if let Ok(routed) = route(verified, wanted, &versions, || NOW, |_| true) {
                assert_eq!(routed.route().rules(), rules);
            }
        }
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
        let rejection = rejected(&versions, "v3");
        let Rejection::VersionUnknown { known } = rejection else {
            panic!("{rejection}")
        };
        assert_eq!(known, "v1, v2");
    }

    #[test]
    fn a_callback_goes_to_the_version_that_issued_its_state() {
        let verifier = Verifier::new(sign_config(""));
        for (state, version) in [("v2.abc", "v2"), ("v9.abc", "v1"), ("abc", "v1")] {
            let callback = callback_with(state, &verifier);
            let verified = verifier.pass_callback(callback);
            assert_eq!(
                routed(verified, "v1", TWO),
                (version.to_owned(), VersionSource::State)
            );
        }
    }

    /// v1 ends at `NOW`, and v3 has a brown-out of an hour that begins then.
    const ENDING: &str = "[versions.v1]\nbackend = '127.0.0.1:1'\nlink = 'https://acme.example/v2'\n\
        deprecated = '2024-01-01'\nsunset = '2025-01-01'\nafter_sunset = 'gone'\n\
        [versions.v2]\nbackend = '127.0.0.1:2'\n\
        [versions.v3]\nbackend = '127.0.0.1:3'\nbrownouts = ['2025-01-01T00:00:00Z/PT1H']\n";

    fn at(seconds: i64, asked: &str) -> Result<RoutedRequest, Unrouted> {
        let now = || Timestamp::from_millis(NOW.as_millis() + seconds * 1000);
        let versions = versions(&format!("unknown = 'reject'\n{ENDING}"));
        route(verified(None), wanted(asked, "/"), &versions, now, |_| true)
    }

    #[test]
    fn a_version_is_rejected_from_the_second_of_its_sunset_on() {
        for asked in ["v1", ""] {
            at(-1, asked).unwrap();
            for seconds in [0, 1, 1_000_000_000] {
                let Unrouted {
                    rejection, route, ..
                } = at(seconds, asked).unwrap_err();
                let Rejection::VersionRetired { migration } = rejection else {
                    panic!("{rejection}")
                };
                assert_eq!(migration.link.as_deref(), Some("https://acme.example/v2"));
                assert_eq!(route.unwrap().backend().name.to_string(), "v1");
                // v3 is switched off for the first hour.
                let others = if seconds < 3600 { "v2" } else { "v2, v3" };
                assert_eq!(migration.versions, others);
            }
        }
    }

    #[test]
    fn a_brownout_lasts_from_its_first_second_to_its_end() {
        for (seconds, retry_after) in [(-1, None), (0, Some(3600)), (3599, Some(1)), (3600, None)] {
            let found = match at(seconds, "v3") {
                Ok(_) => None,
                Err(Unrouted {
                    rejection: Rejection::VersionBrownout { retry_after, .. },
                    route,
                    ..
                }) => {
                    assert_eq!(route.unwrap().source, VersionSource::Header);
                    Some(retry_after.as_secs())
                }
                Err(Unrouted { rejection, .. }) => panic!("{rejection}"),
            };
            assert_eq!(found, retry_after, "{seconds}");
        }
    }

    #[test]
    fn a_retired_version_is_not_listed_among_the_known_ones() {
        for (seconds, listed) in [(-1, "v1, v2, v3"), (0, "v2, v3")] {
            let Unrouted {
                rejection, route, ..
            } = at(seconds, "v9").unwrap_err();
            let Rejection::VersionUnknown { known } = rejection else {
                panic!("{rejection}")
            };
            assert_eq!(known, listed);
            assert!(route.is_none());
        }
    }

    #[test]
    fn the_sunset_holds_for_every_source() {
        let versions = versions(ENDING);
        let after = || NOW;
        let verifier = Verifier::new(sign_config(""));
        let callback = callback_with("v1.abc", &verifier);
        for (verified, asked, source) in [
            (verified(None), "v1", VersionSource::Header),
            (verified(Some("v1")), "", VersionSource::App),
            (verified(None), "", VersionSource::Default),
            (verified(None), "v9", VersionSource::Unknown),
            (verifier.pass_callback(callback), "", VersionSource::State),
        ] {
            let unrouted = route(verified, wanted(asked, "/"), &versions, after, |_| true);
            let unrouted = unrouted.unwrap_err();
            assert!(matches!(
                unrouted.rejection,
                Rejection::VersionRetired { .. }
            ));
            assert_eq!(unrouted.route.unwrap().source, source);
        }
    }

    /// A callback names no application, and finishes a login to one.
    #[test]
    fn a_callback_is_served_while_an_application_is_extended() {
        let versions = versions(ENDING);
        let verifier = Verifier::new(sign_config(""));
        for (hours, is_served) in [(1, true), (0, false)] {
            let mut callback = callback_with("v1.abc", &verifier);
            callback.extended = Some(Timestamp::from_millis(NOW.as_millis() + hours * 3_600_000));
            let verified = verifier.pass_callback(callback);
            let routed = route(verified, wanted("", "/login"), &versions, || NOW, |_| true);
            assert_eq!(routed.is_ok(), is_served, "{hours}");
        }
    }

    /// Only the path of an endpoint ends, for all but an application that is extended, and its version is no goal.
    #[test]
    fn an_endpoint_ends_alone_and_later_for_an_application_that_is_extended() {
        let versions = versions(
            "[versions.v1]\nbackend = '127.0.0.1:1'\n\
             [[versions.v1.endpoints]]\npaths = ['/old/']\nmethods = ['GET']\n\
             sunset = '2024-01-01'\nafter_sunset = 'gone'\n\
             [versions.v2]\nbackend = '127.0.0.1:2'\n",
        );
        let at =
            |verified, path, now| route(verified, wanted("", path), &versions, || now, |_| true);
        let routed = at(verified(None), "/new", NOW).unwrap();
        assert!(routed.route().life_cycle.is_none());
        let unrouted = at(verified(None), "/old/1", NOW).unwrap_err();
        let Rejection::VersionRetired { migration } = unrouted.rejection else {
            panic!("{}", unrouted.rejection)
        };
        assert!(migration.is_of_endpoint);
        assert_eq!(migration.versions, "v2");
        assert!(unrouted.route.unwrap().life_cycle.is_some());
        for (until, is_served) in [
            ("v1=2025-01-02", true),
            ("v1=2025-01-01", false),
            ("v2=2026-01-01", false),
        ] {
            let extensions = Box::new([until.parse().unwrap()]);
            let verified = verified_as(|app| App { extensions, ..app });
            assert_eq!(at(verified, "/old/1", NOW).is_ok(), is_served, "{until}");
        }
    }

    #[test]
    fn without_a_life_cycle_the_clock_is_not_read() {
        let now = || unreachable!("no version has a life cycle");
        let versions = versions(TWO);
        for asked in ["v1", "", "v9"] {
            route(verified(None), wanted(asked, "/"), &versions, now, |_| true).unwrap();
        }
    }
}
