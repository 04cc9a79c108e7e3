//! The routes of a version: paths whose requests go to a backend of their own. CONTRACT 5.

use std::net::SocketAddr;

use signpost_kit::config::{Read, Section};

use super::backend::AccountRules;
use crate::config::{
    sign::path,
    version::backend::upstream::{DefaultChecks, Upstream},
};

/// Limit of `[[versions.NAME.routes]]`: each request of the version is compared with all of them.
const MAX_ROUTES: usize = 256;

/// A route as the file has it.
pub(super) struct WrittenRoute {
    /// The path. If it ends in `/`, all below it.
    pub path: String,
    /// Where its requests go.
    pub upstream: Upstream,
    /// How accounts are checked.
    pub account: AccountRules,
}

/// Reads the routes of a version, in the order of the file.
pub(super) fn read_routes(
    section: &mut Section<'_>,
    own: &[SocketAddr],
    warnings: &mut Vec<String>,
) -> Read<Vec<WrittenRoute>> {
    let routes = section.tables("routes", MAX_ROUTES, |section| {
        read_route(section, own, warnings)
    })?;
    for (index, (item, route)) in routes.iter().enumerate() {
        if routes[..index]
            .iter()
            .any(|(_, one)| one.path == route.path)
        {
            let found = format!("\"{}\" twice", route.path);
            return Err(item.problem(
                &found,
                "each path once; give one route several backends instead",
            ));
        }
    }
    Ok(routes.into_iter().map(|(_, route)| route).collect())
}

fn read_route(
    section: &mut Section<'_>,
    own: &[SocketAddr],
    warnings: &mut Vec<String>,
) -> Read<WrittenRoute> {
    let allowed = "a path, for example \"/orders\", or \"/orders/\" for all below it";
    let path = section.required_by("path", allowed, path);
    let upstream = Upstream::read(section, own, DefaultChecks::IfSeveral, warnings);
    let account = AccountRules::read(section);
    Ok(WrittenRoute {
        path: path?,
        upstream: upstream?,
        account: account?,
    })
}
