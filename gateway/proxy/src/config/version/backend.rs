//! One backend: the addresses that serve all requests of a version, or a part of them. CONTRACT 5.

pub(super) mod address;
pub(super) mod health;
pub(super) mod tls;
pub(super) mod upstream;

use std::{fmt, sync::Arc};

use signpost_kit::{
    config::{Read, Section},
    read_all,
    secret::Secret,
};
use signpost_protocol::{cookies::BackendKind, version::Version};
use tracing::field::{DisplayValue, display};

pub use self::{
    address::{BackendAddress, HostPort},
    upstream::Upstream,
};
pub(crate) use self::{health::HealthChecks, upstream::Balance};
use crate::config::path_pattern::PathPattern;

/// A backend, and the requests that it serves.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Its version, and which part of the requests it serves.
    pub name: BackendName,
    /// Its index among all backends, from 0.
    pub number: usize,
    /// The address or addresses that it listens on.
    pub upstream: Upstream,
    /// How the gateway checks the accounts of its requests.
    pub account: AccountRules,
    /// What authenticates the gateway to it. CONTRACT 9.
    pub secret: Option<Secret>,
}

/// The index of a backend in its version. Small, since each request has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendIndex(u16);

impl BackendIndex {
    /// The index of the version's own backend.
    pub(crate) const OWN: Self = Self(0);

    /// The index at this position. A version has far fewer than 65,536.
    pub(super) fn nth(position: usize) -> Self {
        Self(u16::try_from(position).unwrap_or_default())
    }

    pub(super) fn position(self) -> usize {
        usize::from(self.0)
    }

    /// Moves it, as others stand before it now.
    pub(super) fn move_up(&mut self, by: usize) {
        *self = Self::nth(self.position() + by);
    }
}

/// A version, and a part of its requests. It identifies a backend, also after a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendName {
    /// The version; `None` for a route of several.
    pub(super) version: Option<Arc<Version>>,
    /// The part of the requests.
    pub part: Part,
}

/// A part of a version's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Requests that neither a route nor a canary takes.
    Own,
    /// The share of a canary.
    Canary {
        /// Its name.
        name: Box<str>,
        /// The requests that it has a share of.
        of: Box<Part>,
    },
    /// Copies of requests.
    Shadow,
    /// The converter of the change of this name.
    Converter(Box<str>),
    /// Requests on the paths of a route.
    Route(PathPattern),
    /// The same, of several versions.
    CommonRoute {
        /// The paths.
        path: PathPattern,
        /// The versions, sorted; none: all.
        versions: Box<[Version]>,
    },
}

/// How the gateway checks the account of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountRules {
    /// Whether a request has an account.
    pub check: AccountCheck,
    /// Whether the backend gets the credential itself.
    pub passes_authorization: bool,
    /// Whether the backend gets the display name and the e-mail address, too.
    pub passes_profile: bool,
}

/// Whether a request must have an account. CONTRACT 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountCheck {
    /// The gateway does not read the credential.
    None,
    /// A credential must be valid, if there is one.
    Optional,
    /// A valid credential is required.
    Required,
}

impl Backend {
    /// Whether requests are sent alike, and with the same secret.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        // Not in constant time: both secrets are the operator's, and no client can measure it.
        let [secret, other_secret] =
            [self, other].map(|backend| backend.secret.as_ref().map(Secret::expose));
        secret == other_secret && self.name == other.name && self.upstream.is_same(&other.upstream)
    }
}

impl BackendName {
    /// Whether it can be a login service, or is the backend of a route or a shadow.
    #[must_use]
    pub fn kind(&self) -> BackendKind {
        let part = match &self.part {
            Part::Canary { of, .. } => of,
            part => part,
        };
        match part {
            Part::Own => BackendKind::LoginService,
            _ => BackendKind::Route,
        }
    }

    /// The version, for the log; `None` for a route of several.
    pub fn version(&self) -> Option<DisplayValue<&Version>> {
        self.version.as_deref().map(display)
    }

    /// The name of the version's own backend.
    #[cfg(test)]
    #[must_use]
    pub fn own(version: Version) -> Self {
        Self {
            version: Some(Arc::new(version)),
            part: Part::Own,
        }
    }
}

impl AccountRules {
    /// The rules of a version's own backend without keys, a login service: it checks credentials itself.
    pub(super) const LOGIN: Self = Self {
        check: AccountCheck::None,
        passes_authorization: true,
        passes_profile: false,
    };

    /// The rules of a route without keys.
    pub(super) const ROUTE: Self = Self {
        passes_authorization: false,
        ..Self::LOGIN
    };

    /// Reads the keys of a backend.
    pub(super) fn read(section: &mut Section<'_>, default: Self) -> Read<Self> {
        let checks = [
            ("none", AccountCheck::None),
            ("optional", AccountCheck::Optional),
            ("required", AccountCheck::Required),
        ];
        read_all!(Self {
            check: section.choice("account", &checks, default.check),
            passes_authorization: section.flag("pass_authorization", default.passes_authorization),
            passes_profile: section.flag("pass_profile", default.passes_profile),
        })
    }
}

/// The name in logs and reports: `v2`, `v2 /orders/`, `v2 (canary next)`; of a route of all versions `/orders/`, of
/// several `/orders/ (v1, v2)`.
impl fmt::Display for BackendName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(version) = &self.version {
            version.fmt(formatter)?;
        }
        self.part.fmt(formatter)
    }
}

/// What follows the version.
impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => Ok(()),
            Self::Canary { name, of } => write!(formatter, "{of} (canary {name})"),
            Self::Shadow => formatter.write_str(" (shadow)"),
            Self::Converter(change) => write!(formatter, " (converter {change})"),
            Self::Route(path) => write!(formatter, " {path}"),
            Self::CommonRoute { path, versions } => {
                path.fmt(formatter)?;
                let names: Vec<_> = versions.iter().map(Version::as_str).collect();
                match &*names {
                    [] => Ok(()),
                    names => write!(formatter, " ({})", names.join(", ")),
                }
            }
        }
    }
}
