//! Paths of a version that end before it does: `[[versions.NAME.endpoints]]`. CONTRACT 5.

use std::sync::Arc;

use signpost_kit::config::{Read, Section};

use super::{LifeCycle, Reading};
use crate::{
    config::{path_pattern::PathPattern, readers},
    request::{Method, Methods},
};

/// Limit of `[[versions.NAME.endpoints]]`.
const MAX_ENDPOINTS: usize = 256;
const KEY: &str = "endpoints";
const DATES: &str = "at least one of deprecated, sunset and brownouts";

/// A path with a life cycle of its own.
#[derive(Debug)]
pub struct Endpoint {
    /// The methods; `None`: all.
    pub methods: Option<Methods>,
    /// The path.
    pub path: PathPattern,
    /// Its dates and its version's, as [`LifeCycle::within`] has them.
    pub life_cycle: Arc<LifeCycle>,
}

impl Endpoint {
    /// Whether it takes a request.
    pub(super) fn takes(&self, method: Method, path: &str) -> bool {
        self.methods.is_none_or(|methods| has(methods, method)) && self.path.takes(path)
    }

    /// Whether it takes every request that is counted by this method and path.
    #[must_use]
    pub fn covers(&self, method: &str, counted: &str) -> bool {
        let method = Method::from_bytes(method.as_bytes());
        let has = |methods: Methods| method.is_some_and(|method| has(methods, method));
        self.methods.is_none_or(has) && self.path.covers(counted)
    }

    /// Its name for people: `GET, POST /orders/**`.
    #[must_use]
    pub fn shown(&self) -> String {
        let methods = self.methods.map(|methods| format!("{methods} "));
        format!("{}{}", methods.unwrap_or_default(), self.path)
    }
}

/// Whether a method is among these. A HEAD has the head of a GET.
fn has(methods: Methods, method: Method) -> bool {
    methods.has(method) || method == Method::Head && methods.has(Method::Get)
}

/// Reads the endpoints of a version: those for the fewest requests first.
pub(super) fn read_endpoints(
    section: &mut Section<'_>,
    version: Option<&LifeCycle>,
    reading: &mut Reading<'_>,
) -> Read<Box<[Endpoint]>> {
    let tables = section.tables(KEY, MAX_ENDPOINTS, |section| {
        read_endpoint(section, version, reading)
    })?;
    let names = tables
        .iter()
        .flat_map(|(value, all)| all.iter().map(move |one| (value, one.shown())));
    readers::check_unique(names, "each of them once")?;
    let mut all: Vec<_> = tables.into_iter().flat_map(|(_, all)| all).collect();
    all.sort_by_key(|one| (one.path.precedence(), one.methods.is_none()));
    Ok(all.into())
}

/// Reads one table: an endpoint for each of its paths.
fn read_endpoint(
    section: &mut Section<'_>,
    version: Option<&LifeCycle>,
    reading: &mut Reading<'_>,
) -> Read<Vec<Endpoint>> {
    let paths = readers::paths(section);
    let names = Method::ALL.map(Method::as_str).join(", ");
    let methods = section.list("methods", &[], &names, |name| {
        Method::from_bytes(name.as_bytes())
    });
    let life_cycle = LifeCycle::read(section, reading);
    let (paths, methods) = (paths?, methods?);
    let own = life_cycle?.ok_or_else(|| section.missing("sunset", DATES))?;
    let life_cycle = Arc::new(match version {
        Some(version) => own.within(version),
        None => own,
    });
    let methods = (!methods.is_empty()).then(|| Methods::of(&methods));
    let paths = paths.into_iter();
    let endpoint = |path| Endpoint {
        methods,
        path,
        life_cycle: Arc::clone(&life_cycle),
    };
    Ok(paths.map(endpoint).collect())
}
