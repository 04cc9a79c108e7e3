//! The paths that clients of each version use, and who: `signpost versions report --paths`.

use std::collections::BTreeMap;

use serde::Serialize;
use signpost_kit::clock::Timestamp;
use signpost_proxy::{MAX_PATTERNS, NO_APPLICATION, OTHER_APPLICATIONS, OTHER_PATHS, as_rfc3339};
use signpost_store::{
    Store, StoreError, from_row,
    tables::usage::{OfPaths, StoredUser, read_path_users, read_paths},
};
use utoipa::ToSchema;

use super::versions::ListedEndpoint;

/// Limit of the applications that a report has, of all paths together.
const MAX_USERS: u32 = 20_000;

/// Limit of the applications of a path that are named.
const MAX_NAMED: usize = 50;

/// What requests are counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AppKind {
    /// An application.
    Application,
    /// Callbacks, which have none.
    Callbacks,
    /// Applications beyond the bound of a gateway's batch.
    Others,
}

impl AppKind {
    /// What an internal id is of.
    pub(super) const fn of(id: i64) -> Self {
        match id {
            NO_APPLICATION => Self::Callbacks,
            OTHER_APPLICATIONS => Self::Others,
            _ => Self::Application,
        }
    }
}

/// The requests of a path.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PathUsage {
    /// The version's name.
    #[serde(skip)]
    pub version: String,
    /// The method.
    pub method: String,
    /// A path of the configuration, or one with `*` for each segment that looks like data; `other`: of further paths, which
    /// are not told apart.
    pub path: String,
    /// All requests.
    pub requests: u64,
    /// Those with a status of 4xx.
    pub client_errors: u64,
    /// Those with a status of 5xx, and those without a response.
    pub server_errors: u64,
    /// Those that another version's backend served.
    pub bridged: u64,
    /// The number of applications; of `other`, the largest of a path.
    pub applications: u64,
    /// When the last one was counted.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub last_seen: Timestamp,
    /// The applications with the most requests.
    pub users: Vec<PathUser>,
    /// The endpoints with dates of their own that it belongs to; the first one holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<ListedEndpoint>,
}

/// The requests of a path and an application.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PathUser {
    /// What it is.
    pub kind: AppKind,
    /// The ident of an application.
    pub ident: Option<String>,
    /// Its requests.
    pub requests: u64,
    /// When the last one was counted.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub last_seen: Timestamp,
}

impl PathUsage {
    /// Reads the paths of each version: those with the most requests first, and at most 500 of a version.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub async fn read(
        store: &Store,
        of: &OfPaths<'_>,
    ) -> Result<BTreeMap<String, Vec<Self>>, StoreError> {
        let paths = read_paths(store, of).await?;
        let users = read_path_users(store, of, MAX_USERS).await?;
        Ok(Self::by_version(paths, users))
    }

    fn by_version(mut paths: Vec<Self>, users: Vec<StoredUser>) -> BTreeMap<String, Vec<Self>> {
        paths.sort_by_key(|path| std::cmp::Reverse(path.requests));
        let mut versions: BTreeMap<String, Vec<Self>> = BTreeMap::new();
        for mut path in paths {
            let known = versions.entry(path.version.clone()).or_default();
            let is_other = |one: &&mut Self| one.path == OTHER_PATHS && one.method == path.method;
            let is_rest = path.path == OTHER_PATHS || known.len() >= MAX_PATTERNS;
            match known.iter_mut().find(is_other).filter(|_| is_rest) {
                Some(other) => other.add(&path),
                None => {
                    if is_rest {
                        OTHER_PATHS.clone_into(&mut path.path);
                    }
                    known.push(path);
                }
            }
        }
        for user in users {
            let known = versions.get_mut(&user.version);
            let is_it = |one: &&mut Self| one.path == user.path && one.method == user.method;
            let path = known.and_then(|paths| paths.iter_mut().find(is_it));
            if let Some(path) = path.filter(|path| path.users.len() < MAX_NAMED) {
                path.users.push(PathUser {
                    kind: AppKind::of(user.application),
                    ident: user.ident,
                    requests: user.requests,
                    last_seen: user.last_seen,
                });
            }
        }
        versions
    }

    fn add(&mut self, path: &Self) {
        self.requests += path.requests;
        self.client_errors += path.client_errors;
        self.server_errors += path.server_errors;
        self.bridged += path.bridged;
        self.applications = self.applications.max(path.applications);
        self.last_seen = self.last_seen.max(path.last_seen);
    }
}

from_row!(PathUsage {
    version,
    method,
    path,
    requests,
    client_errors,
    server_errors,
    bridged,
    applications,
    last_seen;
    users, ends
});
