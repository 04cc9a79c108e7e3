//! Requests that `signpost bridge check` does without a proof of, because an operator says so.

use signpost_kit::config::{Read, Section};

use super::Reading;
use crate::{
    config::{
        path_pattern::{OTHER_PATHS, PathPattern},
        readers::check_unique,
    },
    request::Method,
    wire::syntax::path::canonical_path,
};

/// Limit of the entries.
const MAX: usize = 256;
/// Limit of a reason, in characters.
const MAX_REASON: usize = 200;
const KEY: &str = "unproven";
const REQUEST: &str = "a method and a path as reports have it, for example \"POST /orders\"";
const REASON: &str = "1 to 200 characters: why there is no proof";

/// Requests without a proof.
#[derive(Clone, Debug)]
pub struct Unproven {
    /// Their method.
    pub method: Method,
    /// Their path: a pattern of the configuration, or one with `*` for data, as reports have it.
    pub path: Box<str>,
    /// Why there is no proof.
    pub reason: Box<str>,
}

impl Unproven {
    /// Whether it is for all requests that are counted by this path.
    #[must_use]
    pub fn names(&self, method: &str, path: &str) -> bool {
        let pattern = || self.path.parse::<PathPattern>();
        let covers = || pattern().is_ok_and(|pattern| pattern.covers(path));
        method == self.method.as_str() && (*self.path == *path || covers())
    }
}

/// Reads `unproven`.
pub(super) fn read_unproven(
    section: &mut Section<'_>,
    has_changes: bool,
    reading: &mut Reading<'_>,
) -> Read<Vec<Unproven>> {
    let all = section.tables(KEY, MAX, |section| {
        let request = section.required_by("request", REQUEST, request);
        let reason = section.required_by("reason", REASON, |text| {
            let length = text.trim().chars().count();
            (1..=MAX_REASON)
                .contains(&length)
                .then(|| text.trim().into())
        });
        let (method, path) = request?;
        Ok(Unproven {
            method,
            path,
            reason: reason?,
        })
    })?;
    let requests = all.iter();
    let requests =
        requests.map(|(value, one)| (value, format!("{} {}", one.method.as_str(), one.path)));
    check_unique(requests, "each request once")?;
    if !all.is_empty() && !has_changes {
        reading.has_no_effect(section, KEY, "the version has no changes to prove");
    }
    Ok(all.into_iter().map(|(_, one)| one).collect())
}

fn request(text: &str) -> Option<(Method, Box<str>)> {
    let (method, path) = text.split_once(' ')?;
    let method = Method::from_bytes(method.as_bytes())?;
    let pattern = path
        .parse::<PathPattern>()
        .map(|pattern| pattern.to_string());
    let is_path = path == OTHER_PATHS || canonical_path(path).is_some();
    let path = pattern.unwrap_or_else(|_| path.to_owned());
    is_path.then(|| (method, path.into()))
}
