//! The routes of a version: paths whose requests go to a backend of their own. CONTRACT 5.

use std::net::SocketAddr;

use signpost_kit::config::{Read, Section, Value};

use super::{
    backend::AccountRules,
    upstream::{DefaultChecks, Upstream},
};
use crate::config::sign::path;

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
    const KEY: &str = "routes";
    let allowed = format!(
        "at most {MAX_ROUTES} tables [[{}.{KEY}]]",
        section.table_path()
    );
    let Some(value) = section.find(KEY) else {
        section.set(KEY, "0 tables");
        return Ok(Vec::new());
    };
    let items = value.items();
    let items = items.ok_or_else(|| value.invalid_unshown(&allowed))?;
    if items.len() > MAX_ROUTES {
        return Err(value.problem(&format!("{} tables", items.len()), &allowed));
    }
    let mut read = |item: &Value<'_>| item.section(|section| read_route(section, own, warnings));
    // All are read before the first failure ends this, so that every problem is reported.
    let routes: Vec<_> = items.iter().map(&mut read).collect();
    section.set(KEY, format!("{} tables", routes.len()));
    let routes: Vec<WrittenRoute> = routes.into_iter().collect::<Read<_>>()?;
    for (index, route) in routes.iter().enumerate() {
        if routes[..index].iter().any(|one| one.path == route.path) {
            let found = format!("\"{}\" twice", route.path);
            return Err(items[index].problem(
                &found,
                "each path once; give one route several backends instead",
            ));
        }
    }
    Ok(routes)
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
