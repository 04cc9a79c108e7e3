//! One backend of a version: the addresses that serve all of its requests, or a part of them. CONTRACT 5.

pub(super) mod address;
pub(super) mod health;
pub(super) mod tls;
pub(super) mod upstream;

use std::{fmt, sync::Arc};

use signpost_kit::{
    config::{Read, Section},
    read_all,
};
use signpost_protocol::version::Version;

pub(crate) use self::{
    address::{BackendAddress, HostPort},
    health::HealthChecks,
    upstream::{Balance, Upstream},
};
use super::life_cycle::LifeCycle;

/// A backend, and the requests that it serves.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Its version, and which part of the version's requests it serves.
    pub(crate) name: BackendName,
    /// Its index among all backends, from 0.
    pub(crate) number: usize,
    /// The address or addresses that it listens on.
    pub(crate) upstream: Upstream,
    /// How the gateway checks the accounts of its requests.
    pub(crate) account: AccountRules,
    /// The life cycle of its version, if one is configured.
    pub(crate) life_cycle: Option<Arc<LifeCycle>>,
}

/// A version, and a part of its requests. It identifies a backend, also after a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackendName {
    /// The version; the same object for all of its backends.
    pub version: Arc<Version>,
    /// The part of its requests.
    pub part: Part,
}

/// A part of a version's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Those that neither a route nor a canary takes.
    Own,
    /// The share of the canary of this name.
    Canary(Box<str>),
    /// Those on a path, or below it if it ends in `/`.
    Route(Box<str>),
}

/// How the gateway checks the account of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccountRules {
    /// Whether a request has an account.
    pub check: AccountCheck,
    /// Whether the backend gets the credential itself.
    pub passes_authorization: bool,
}

/// Whether a request must have an account. CONTRACT 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccountCheck {
    /// The gateway does not read the credential.
    None,
    /// A credential must be valid, if there is one.
    Optional,
    /// A valid credential is required.
    Required,
}

impl BackendName {
    /// Whether it is the backend of a route: not a login service, so it neither gets nor sets the cookies of logins.
    #[must_use]
    pub(crate) const fn is_of_route(&self) -> bool {
        matches!(self.part, Part::Route(_))
    }

    /// The name of the version's own backend.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn own(version: Version) -> Self {
        Self {
            version: Arc::new(version),
            part: Part::Own,
        }
    }
}

impl AccountRules {
    /// The rules of a version's own backend, a login service: it checks credentials itself.
    pub(super) const LOGIN: Self = Self {
        check: AccountCheck::None,
        passes_authorization: true,
    };

    /// Reads the keys of a route.
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let checks = [
            ("none", AccountCheck::None),
            ("optional", AccountCheck::Optional),
            ("required", AccountCheck::Required),
        ];
        read_all!(Self {
            check: section.choice("account", &checks, AccountCheck::None),
            passes_authorization: section.flag("pass_authorization", false),
        })
    }
}

/// The name in logs and reports: `v2`, `v2 /orders/`, or `v2 (canary next)`.
impl fmt::Display for BackendName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = &self.version;
        match &self.part {
            Part::Own => version.fmt(formatter),
            Part::Canary(name) => write!(formatter, "{version} (canary {name})"),
            Part::Route(path) => write!(formatter, "{version} {path}"),
        }
    }
}
