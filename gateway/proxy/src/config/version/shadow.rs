//! The version that gets copies of requests, so that its responses can be compared. CONTRACT 5.

use std::sync::Arc;

use http::HeaderName;
use signpost_bridge::{JsonPath, ParsePathError};
use signpost_kit::config::{
    Read, Section,
    shared_keys::{GATEWAY_SECRET, gateway_secret},
};
use signpost_protocol::version::Version;

use super::{
    Reading,
    backend::{AccountRules, Backend, BackendName, Part},
};
use crate::{
    config::{
        path_pattern::PathPattern,
        version::backend::upstream::{DefaultChecks, Upstream},
    },
    request::Method,
};

/// Limit of the paths of a shadow: what is compared is kept for each.
pub(crate) const MAX_PATHS: usize = 64;

/// Which requests are copied to which version, and what is compared.
#[derive(Debug)]
pub struct Shadow {
    /// The version whose responses are compared.
    pub to: Version,
    /// Of so many million requests, how many are copied.
    pub per_million: u32,
    /// Of so many million copied GETs, how many are asked of their own version a second time.
    pub noise_per_million: u32,
    /// The paths of its GETs.
    gets: Box<[PathPattern]>,
    /// The paths of its requests that change something: POST, PUT, PATCH and DELETE.
    posts: Box<[PathPattern]>,
    /// What may differ in a body.
    pub ignore: Box<[JsonPath]>,
    /// The headers that are compared.
    pub headers: Box<[HeaderName]>,
    /// The backend that gets the copies; `None`: the version's own.
    pub backend: Option<Arc<Backend>>,
}

impl Shadow {
    /// The entry that has this request copied.
    #[must_use]
    pub fn entry(&self, method: Method, path: &str) -> Option<&PathPattern> {
        self.of(method).iter().find(|pattern| pattern.takes(path))
    }

    /// All entries, with their methods.
    pub fn entries(&self) -> impl Iterator<Item = (Method, &PathPattern)> {
        let gets = self.gets.iter().map(|path| (Method::Get, path));
        gets.chain(self.posts.iter().map(|path| (Method::Post, path)))
    }

    fn of(&self, method: Method) -> &[PathPattern] {
        match method {
            Method::Get => &self.gets,
            // Its response has nothing to compare.
            Method::Head => &[],
            Method::Post | Method::Put | Method::Patch | Method::Delete => &self.posts,
        }
    }
}

/// Reads `shadow` of the version with this name, if that is valid.
pub(super) fn read_shadow(
    section: &mut Section<'_>,
    name: Option<&Version>,
    reading: &mut Reading<'_>,
) -> Read<Option<Shadow>> {
    let has_store = reading.gateway.has_store;
    if section.has("shadow") && !has_store && name.is_some() {
        let allowed = "a gateway with [applications]: what differs is kept in its store";
        return Err(section.problem("shadow", "it without a store", allowed));
    }
    section.optional_section("shadow", |section| read_table(section, name, reading))
}

fn read_table(
    section: &mut Section<'_>,
    name: Option<&Version>,
    reading: &mut Reading<'_>,
) -> Read<Shadow> {
    let to: Read<Version> =
        section.required("to", "another version, which has a backend of its own");
    let per_million = read_share(section);
    let noise_percent = section.percent("noise_percent", 10.0);
    let gets = read_paths(section, "paths");
    let posts = read_paths(section, "post_paths");
    if let (Ok(to), Ok([_, ..])) = (&to, posts.as_deref()) {
        let table = section.table_path();
        reading.warnings.push(format!(
            "{table}.post_paths: {to} executes a share of these requests a second time"
        ));
    }
    let ignore = section.list("ignore", &[], ParsePathError::ALLOWED, |text| {
        text.parse().ok()
    });
    let headers = section.list("headers", &[], "names of headers", |text| text.parse().ok());
    let backend = read_backend(section, name, reading);
    if let (Ok([]), Ok([])) = (gets.as_deref(), posts.as_deref()) {
        return Err(section.missing("paths", PathPattern::ALLOWED));
    }
    Ok(Shadow {
        to: to?,
        per_million: per_million?,
        noise_per_million: to_per_million(noise_percent?),
        gets: gets?.into(),
        posts: posts?.into(),
        ignore: ignore?.into(),
        headers: headers?.into(),
        backend: backend?,
    })
}

/// Reads `percent`: nothing, or at least one of a million requests.
fn read_share(section: &mut Section<'_>) -> Read<u32> {
    let percent = section.percent("percent", 1.0)?;
    match to_per_million(percent) {
        0 if percent > 0.0 => {
            let allowed = "0, or at least 0.0001";
            Err(section.problem("percent", &percent.to_string(), allowed))
        }
        share => Ok(share),
    }
}

/// Reads the backend of the copies, if they have one of their own.
fn read_backend(
    section: &mut Section<'_>,
    name: Option<&Version>,
    reading: &mut Reading<'_>,
) -> Read<Option<Arc<Backend>>> {
    let has_backend = section.has("backend") || section.has("backends");
    let upstream = has_backend.then(|| Upstream::read(section, DefaultChecks::IfSeveral, reading));
    let account = AccountRules::read(section, AccountRules::ROUTE);
    let secret = gateway_secret(section, GATEWAY_SECRET);
    let (upstream, account, secret) = (upstream.transpose()?, account?, secret?);
    for key in [
        GATEWAY_SECRET,
        "account",
        "pass_authorization",
        "pass_profile",
    ] {
        if upstream.is_none() && section.has(key) {
            reading.has_no_effect(section, key, "copies have no backend of their own");
        }
    }
    Ok(upstream.zip(name).map(|(upstream, name)| {
        let name = BackendName {
            version: Some(Arc::new(name.clone())),
            part: Part::Shadow,
        };
        reading.add(name, upstream, account, secret)
    }))
}

fn read_paths(section: &mut Section<'_>, key: &str) -> Read<Vec<PathPattern>> {
    let paths: Vec<PathPattern> =
        section.list(key, &[], PathPattern::ALLOWED, |text| text.parse().ok())?;
    if paths.len() > MAX_PATHS {
        let count = format!("{} paths", paths.len());
        return Err(section.problem(key, &count, &format!("at most {MAX_PATHS}")));
    }
    Ok(paths)
}

/// The percentage has been read within its limits.
fn to_per_million(percent: f64) -> u32 {
    // From 0 to a million: the cast cannot fail.
    (percent * 10_000.0).round() as u32
}
