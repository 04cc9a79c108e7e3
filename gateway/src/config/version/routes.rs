//! The routes of a version: paths whose requests go to a backend of their own. CONTRACT 5.

use signpost_kit::config::{Read, Section};

use super::{Reading, backend::AccountRules};
use crate::config::{
    readers::{check_unique, path},
    version::backend::upstream::{DefaultChecks, Upstream},
};

/// Limit of `[[versions.NAME.routes]]`: each request of the version is compared with all of them.
const MAX_ROUTES: usize = 256;

/// A route as the file has it: its path (if it ends in `/`, all below it), where its requests go, and how their accounts
/// are checked.
type Route = (String, Upstream, AccountRules);

/// Reads the routes of a version, in the order of the file.
pub(super) fn read_routes(
    section: &mut Section<'_>,
    reading: &mut Reading<'_>,
) -> Read<Vec<Route>> {
    let routes = section.tables("routes", MAX_ROUTES, |section| read_route(section, reading))?;
    let paths = routes.iter().map(|(value, (path, ..))| (value, path));
    let allowed = "each path once; give one route several backends instead";
    check_unique(paths, allowed)?;
    Ok(routes.into_iter().map(|(_, route)| route).collect())
}

fn read_route(section: &mut Section<'_>, reading: &mut Reading<'_>) -> Read<Route> {
    let allowed = "a path, for example \"/orders\", or \"/orders/\" for all below it";
    let path = section.required_by("path", allowed, path);
    let upstream = Upstream::read(section, DefaultChecks::IfSeveral, reading);
    let account = AccountRules::read(section);
    Ok((path?, upstream?, account?))
}
