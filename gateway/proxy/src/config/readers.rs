//! Readers that several tables need.

use std::{fmt::Display, net::IpAddr};

use ipnet::IpNet;
use signpost_kit::config::{Read, Section, Value};

use super::path_pattern::PathPattern;
use crate::{request::Method, wire::syntax::path::canonical_path};

/// Reads a list of addresses and networks.
pub(super) fn networks(section: &mut Section<'_>, key: &str) -> Read<Vec<IpNet>> {
    let allowed = "addresses or networks, for example \"10.0.0.0/8\"";
    section.list(key, &[], allowed, |text| {
        let address = || text.parse::<IpAddr>().map(IpNet::from);
        text.parse().or_else(|_| address()).ok()
    })
}

/// A path that a request can have, in the form in which paths are compared (CONTRACT 2), for a key that takes no pattern:
/// without a `*`, which would be meant as one.
pub(super) fn path(text: &str) -> Option<String> {
    canonical_path(text).filter(|_| !text.contains('*'))
}

/// Reads `paths`: at least one pattern.
pub(super) fn paths(section: &mut Section<'_>) -> Read<Vec<PathPattern>> {
    const KEY: &str = "paths";
    let allowed = format!("at least one of {}", PathPattern::ALLOWED);
    let paths = section.list(KEY, &[], &allowed, |text| text.parse().ok())?;
    match paths.is_empty() {
        true => Err(section.missing(KEY, &allowed)),
        false => Ok(paths),
    }
}

/// Reads `method`.
pub(super) fn method(section: &mut Section<'_>) -> Read<Option<Method>> {
    let names = Method::ALL.map(|method| format!("\"{}\"", method.as_str()));
    section.optional_by("method", &names.join(", "), |text| {
        Method::from_bytes(text.as_bytes())
    })
}

/// Reads each item of a list. All are read before the first failure ends this, so that every problem is reported.
pub(super) fn each<'d, T>(
    items: &[Value<'d>],
    reader: impl FnMut(&Value<'d>) -> Read<T>,
) -> Read<Vec<T>> {
    let all: Vec<_> = items.iter().map(reader).collect();
    all.into_iter().collect()
}

/// Reports each item of a list whose key an earlier one has.
pub(super) fn check_unique<'d, K: Display + PartialEq>(
    items: impl IntoIterator<Item = (&'d Value<'d>, K)>,
    allowed: &str,
) -> Read<()> {
    let (mut result, mut keys) = (Ok(()), Vec::new());
    for (item, key) in items {
        if keys.contains(&key) {
            result = Err(item.problem(&format!("\"{key}\" twice"), allowed));
        }
        keys.push(key);
    }
    result
}
