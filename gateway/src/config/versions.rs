//! The versions and their backends. CONTRACT 5.

use std::{net::SocketAddr, sync::Arc};

use gateway_protocol::version::Version;

use super::table::Section;

/// The versions that there are, and where requests go that name none of them.
#[derive(Clone, Debug)]
pub struct Versions {
    backends: Vec<Arc<Backend>>,
    default: usize,
    /// What becomes of a request that names a version that there is not.
    pub unknown: UnknownVersion,
}

/// One version's backend.
#[derive(Clone, Debug)]
pub struct Backend {
    /// The version that it serves.
    pub version: Version,
    /// Where it listens.
    pub address: SocketAddr,
}

/// What becomes of a request that names a version that there is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownVersion {
    /// It goes to the default route, as the convention says.
    Default,
    /// 400 `version_unknown`.
    Reject,
}

impl Versions {
    pub(super) fn from_root(root: &mut Section<'_>) -> Option<Self> {
        let unknown = [
            ("default", UnknownVersion::Default),
            ("reject", UnknownVersion::Reject),
        ];
        let unknown = root.choice("unknown", &unknown, UnknownVersion::Default);
        let default: Option<Version> = root.parsed("default_version", "v1");
        let mut backends = Vec::new();
        // A table with a bad address is a table all the same, which has its own problem.
        let mut named = Vec::new();
        for (name, mut section) in root.sections("versions") {
            let version = name.parse();
            let address = section.needed_address("backend");
            match version {
                Ok(version) => {
                    named.push(Version::clone(&version));
                    backends.extend(address.map(|address| Arc::new(Backend { version, address })));
                }
                Err(error) => root.problem(
                    "versions",
                    &format!("[versions.{name}]"),
                    &format!("{error}"),
                ),
            }
        }
        backends.sort_by(|one, other| one.version.cmp(&other.version));
        let default = default?;
        let place = backends
            .iter()
            .position(|backend| backend.version == default);
        if !named.contains(&default) {
            let known: Vec<_> = named.iter().map(Version::as_str).collect();
            let allowed = if known.is_empty() {
                "a version with a [versions.NAME] table that has a backend".to_owned()
            } else {
                known.join(", ")
            };
            root.problem(
                "default_version",
                &format!("\"{default}\", which has no [versions.{default}]"),
                &allowed,
            );
        }
        Some(Self {
            backends,
            default: place?,
            unknown: unknown?,
        })
    }

    /// The backend of the default route.
    #[must_use]
    pub fn default(&self) -> &Arc<Backend> {
        &self.backends[self.default]
    }

    /// The backend of the version that `name` names, if there is one. There are few: no map is faster.
    #[must_use]
    pub fn named(&self, name: &[u8]) -> Option<&Arc<Backend>> {
        self.backends
            .iter()
            .find(|backend| backend.version.is_named_by(name))
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<Backend>> {
        self.backends.iter()
    }
}
