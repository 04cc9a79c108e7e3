//! The versions with their dates, and their backends, as they are listed for operators. `conf/guides/versions.md` has the
//! members of the JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use signpost_kit::clock::Timestamp;
use utoipa::ToSchema;

use signpost_proxy::{
    AddressHealth, AddressStatus, Backend, BackendStatus, Endpoint, LifeCycle, Part, ServedVersion,
    Stage, Upstream, Versions, rfc3339,
};

/// A version.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListedVersion {
    /// Its name.
    pub version: String,
    /// Whether requests that name no version go to it.
    pub is_default: bool,
    /// Its dates.
    #[serde(flatten)]
    pub dates: ListedDates,
    /// Its paths with dates of their own.
    pub endpoints: Vec<ListedEndpoint>,
    /// The version whose backends serve its requests, if it has a bridge.
    pub bridge: Option<String>,
    /// The version that gets copies of its requests, if one does.
    pub shadow: Option<String>,
    /// Its backends.
    pub backends: Vec<ListedBackend>,
}

/// The dates of a version or of an endpoint.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ListedDates {
    /// `current`, `deprecated`, `brownout`, `past_sunset` or `retired`.
    pub stage: &'static str,
    /// From when on it is deprecated.
    #[schema(format = DateTime)]
    pub deprecated: Option<String>,
    /// Its sunset.
    #[schema(format = DateTime)]
    pub sunset: Option<String>,
    /// What happens to its requests from then on, `serve` or `gone`; `None` without a sunset.
    pub after_sunset: Option<&'static str>,
    /// Where its clients can read more.
    pub link: Option<String>,
    /// Those that are not over, the next one first.
    pub brownouts: Vec<ListedBrownout>,
}

/// A path with dates of its own. Of each date, the earlier one of its own and its version's.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ListedEndpoint {
    /// Methods, if not all, and path: `GET, POST /orders/**`.
    pub endpoint: String,
    /// The dates.
    #[serde(flatten)]
    pub dates: ListedDates,
}

/// A time in which a version's requests are rejected.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ListedBrownout {
    /// Its first instant.
    #[schema(format = DateTime)]
    pub start: String,
    /// The first instant after it.
    #[schema(format = DateTime)]
    pub end: String,
}

/// A backend of a version.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListedBackend {
    /// Its name.
    pub backend: String,
    /// `own`, `canary`, `route`, `shadow` or `converter`.
    pub part: &'static str,
    /// The share of the version's requests that no route takes; `None` for a route.
    pub percent: Option<u8>,
    /// The path; `None` unless it is a route's.
    pub path: Option<String>,
    /// Its addresses; if nothing is known of the backend, those of the file.
    pub addresses: Vec<AddressStatus>,
    /// The requests that the running gateway has forwarded to it, by the status class of the response that the client got.
    pub responses: BTreeMap<String, u64>,
}

impl ListedVersion {
    /// All versions, with what is known of their backends.
    pub fn all(versions: &Versions, known: &[BackendStatus], now: Timestamp) -> Vec<Self> {
        let default = versions.default().name();
        let listed = versions.iter().map(|version| {
            let is_default = version.name() == default;
            Self::new(version, is_default, known, now)
        });
        listed.collect()
    }

    fn new(
        version: &ServedVersion,
        is_default: bool,
        known: &[BackendStatus],
        now: Timestamp,
    ) -> Self {
        let endpoints = version.endpoints().iter();
        let endpoints = endpoints.map(|endpoint| ListedEndpoint::new(endpoint, now));
        Self {
            version: version.name().to_string(),
            is_default,
            dates: ListedDates::new(version.life_cycle().map(|life| &**life), now),
            endpoints: endpoints.collect(),
            bridge: version.bridge().map(|bridge| bridge.to.to_string()),
            shadow: version.shadow().map(|shadow| shadow.to.to_string()),
            backends: version
                .backends()
                .chain(
                    version
                        .changes()
                        .into_iter()
                        .flat_map(|changes| changes.converters()),
                )
                .chain(version.shadow().and_then(|shadow| shadow.backend.as_ref()))
                .map(|backend| ListedBackend::new(version, backend, known))
                .collect(),
        }
    }
}

impl ListedDates {
    /// The dates of a life cycle; if there is none, nothing ends.
    #[must_use]
    pub fn new(life_cycle: Option<&LifeCycle>, now: Timestamp) -> Self {
        let sunset = life_cycle.and_then(|dates| dates.sunset);
        // An endpoint may end before its version, and only with the version be gone.
        let gone = life_cycle.and_then(|dates| dates.gone);
        let after = if gone == sunset { "gone" } else { "serve" };
        let brownouts = life_cycle.into_iter().flat_map(|dates| &dates.brownouts);
        let brownouts = brownouts
            .filter(|brownout| now < brownout.end)
            .map(|brownout| ListedBrownout {
                start: rfc3339(brownout.start),
                end: rfc3339(brownout.end),
            });
        let stage = life_cycle.map_or(Stage::Current, |dates| dates.stage(now));
        let link = life_cycle.and_then(|dates| dates.link.as_deref());
        Self {
            stage: stage_name(stage),
            deprecated: life_cycle.and_then(|dates| dates.deprecated).map(rfc3339),
            sunset: sunset.map(rfc3339),
            after_sunset: sunset.map(|_| after),
            link: link.map(str::to_owned),
            brownouts: brownouts.collect(),
        }
    }
}

impl ListedEndpoint {
    /// An endpoint at this time.
    #[must_use]
    pub fn new(endpoint: &Endpoint, now: Timestamp) -> Self {
        Self {
            endpoint: endpoint.shown(),
            dates: ListedDates::new(Some(&endpoint.life_cycle), now),
        }
    }
}

impl ListedBackend {
    /// Its responses as people read them: `2xx 950, 5xx 50`.
    pub fn shown_responses(&self) -> String {
        let responses = self.responses.iter();
        let responses = responses.map(|(class, count)| format!("{class} {count}"));
        responses.collect::<Vec<_>>().join(", ")
    }

    fn new(version: &ServedVersion, backend: &Backend, known: &[BackendStatus]) -> Self {
        let name = backend.name.to_string();
        let status = known.iter().find(|status| status.backend == name);
        let (part, path) = match &backend.name.part {
            Part::Own => ("own", None),
            Part::Canary { of, .. } => ("canary", path_of(of)),
            Part::Shadow => ("shadow", None),
            Part::Converter(_) => ("converter", None),
            part @ (Part::Route(_) | Part::CommonRoute { .. }) => ("route", path_of(part)),
        };
        Self {
            backend: name,
            part,
            percent: version.share(backend),
            path,
            addresses: match status {
                Some(status) => status.addresses.clone(),
                None => configured(&backend.upstream),
            },
            responses: status.map_or_else(BTreeMap::new, |status| status.responses.clone()),
        }
    }
}

/// The path of a route, or of what a canary has a share of.
fn path_of(part: &Part) -> Option<String> {
    match part {
        Part::Route(path) | Part::CommonRoute { path, .. } => Some(path.to_string()),
        Part::Own | Part::Canary { .. } | Part::Shadow | Part::Converter(_) => None,
    }
}

const fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Current => "current",
        Stage::Deprecated => "deprecated",
        Stage::Brownout { .. } => "brownout",
        Stage::PastSunset => "past_sunset",
        Stage::Retired => "retired",
    }
}

/// The addresses in the file: nothing is known of their health.
pub fn configured(upstream: &Upstream) -> Vec<AddressStatus> {
    let unknown = |address: String| AddressStatus {
        address,
        health: AddressHealth::Unknown,
        in_flight: None,
    };
    let addresses = upstream.addresses.iter();
    addresses
        .map(|address| unknown(address.host_port.to_string()))
        .collect()
}
