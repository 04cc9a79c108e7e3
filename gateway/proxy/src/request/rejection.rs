//! The reasons to reject a request: one closed list, with whose error each is.

use std::{borrow::Cow, error::Error as StdError, io, time::Duration};

use signpost_kit::limits::{Exceeded, Quota};
use signpost_protocol::{
    app::ident_hint,
    hide_in_debug,
    language::Language,
    log_text,
    malformed::Malformed,
    problem::ProblemCode,
    sign::{
        SIGN, SignTime, TIME, TimeSlip, Window,
        explain::{Explanation, Slip},
    },
    text::text,
};

use crate::request::{Methods, quotas::RequestLimit};

type Cause = Box<dyn StdError + Send + Sync>;

/// The arguments of a text: names and values.
pub(crate) type Arguments<N = &'static str> = Vec<(N, String)>;

/// As the texts take them.
pub(crate) fn pairs<N: AsRef<str>>(arguments: &Arguments<N>) -> Vec<(&str, &str)> {
    let pairs = arguments.iter();
    pairs
        .map(|(name, value)| (name.as_ref(), &**value))
        .collect()
}

/// What a response tells a client about its mistake. CONTRACT 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint<'r> {
    /// What explains the time.
    Time(TimeSlip),
    /// What explains the signature, or its absence.
    Sign(&'r Explanation),
    /// What explains the ident.
    App(&'static str),
}

/// The canonical string that a client may see. It is not printed: it has the client's values.
pub struct Canonical(pub String);

hide_in_debug!(Canonical);

impl Hint<'_> {
    /// Its key in the language files.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Time(slip) => slip.as_str(),
            Self::Sign(explanation) => explanation.slip.as_str(),
            Self::App(key) => key,
        }
    }

    /// Its sentences: the key in the language files, and the arguments.
    #[must_use]
    pub(crate) fn sentences(self) -> Vec<(&'static str, Arguments)> {
        match self {
            Self::Time(TimeSlip::LocalTime(offset)) => {
                vec![(self.key(), vec![("offset", offset.to_string())])]
            }
            Self::Time(_) | Self::App(_) => vec![(self.key(), Vec::new())],
            Self::Sign(Explanation { slip, second }) => {
                let slips = [Some(*slip), *second].into_iter().flatten();
                slips
                    .map(|slip| (slip.as_str(), slip.arguments()))
                    .collect()
            }
        }
    }

    /// Its text.
    #[must_use]
    pub fn text(self, language: Language) -> String {
        let sentences = self.sentences();
        let sentences = sentences
            .iter()
            .map(|(key, arguments)| text(language, key, &pairs(arguments)));
        sentences.collect::<Vec<_>>().join(" ")
    }

    /// Its name in the log: the key, and the preset that matched; of two mistakes both, joined by `+`.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::Sign(Explanation { slip, second }) => match (slip, second) {
                (Slip::Preset(name) | Slip::ValueChanged(name), _) => {
                    format!("{}:{name}", slip.as_str()).into()
                }
                (_, Some(second)) => format!("{}+{}", slip.as_str(), second.as_str()).into(),
                (_, None) => slip.as_str().into(),
            },
            Self::Time(_) | Self::App(_) => self.key().into(),
        }
    }
}

impl From<Explanation> for Rejection {
    fn from(explanation: Explanation) -> Self {
        Self::SignMismatch(Box::new(explanation), None)
    }
}

macro_rules! rejections {
    ($($(#[$attribute:meta])* $name:ident $(($($value:tt)*))? $({ $($field:tt)* })?;)*) => {
        /// Why a request is rejected.
        #[derive(Debug, thiserror::Error)]
        pub enum Rejection {
            $($(#[$attribute])* $name $(($($value)*))? $({ $($field)* })?,)*
            /// Client error: not HTTP, or framed so that two parsers could read it differently. A bare 400.
            #[error("not HTTP: {0}")]
            NotHttp(&'static str),
            // Here, since the macro's arguments cannot name `.0`.
            /// Client error: another key, another sign profile, or changed parameters.
            #[error("the signature does not match ({:?})", .0.slip)]
            SignMismatch(Box<Explanation>, Option<Box<Canonical>>),
            /// Operator error: the backend rejects the gateway's secret.
            #[error("the backend rejects this gateway's gateway_secret")]
            GatewaySecretRejected,
            /// No error: the client disconnected, and gets no response.
            #[error("the client disconnected")]
            ClientDisconnected,
        }

        impl Rejection {
            /// The problem code of the response; `None` for a bare 400, or if the client has disconnected.
            #[must_use]
            pub const fn code(&self) -> Option<ProblemCode> {
                Some(match self {
                    $(Self::$name { .. } => ProblemCode::$name,)*
                    Self::SignMismatch(..) => ProblemCode::SignMismatch,
                    // Only the operator learns what is wrong between gateway and backend.
                    Self::GatewaySecretRejected => ProblemCode::BackendUnreachable,
                    Self::NotHttp(_) | Self::ClientDisconnected => return None,
                })
            }
        }
    };
}

// Each is named as the code of its problem.
rejections! {
    /// Client error: the path or `Host` is malformed.
    #[error("the target is malformed: {0}")]
    TargetInvalid(Box<Malformed>);
    /// Client error: a backend may take the path for another one than the gateway.
    #[error("the path is ambiguous: {0}")]
    TargetAmbiguous(Box<Malformed>);
    /// Client error: an invalid escape, an unescaped character, or not UTF-8.
    #[error("the parameters are malformed: {0}")]
    ParamsMalformed(Box<Malformed>);
    /// Client error: too many parameters.
    #[error("more than {limit} parameters")]
    ParamsTooMany {
        /// The limit.
        limit: usize,
    };
    /// Client error: `time`, `sign`, `app` or a parameter of a callback appears twice.
    #[error("the parameter {name} appears twice")]
    ParamDuplicated {
        /// The parameter.
        name: &'static str,
    };
    /// No error: a browser prefetched what is used only once.
    #[error("a prefetch of a login")]
    PrefetchRefused;
    /// Client error: the query is too long.
    #[error("the query is longer than {limit} bytes")]
    UriTooLong {
        /// The limit, in bytes.
        limit: usize,
    };
    /// Client error: the head is too large.
    #[error("the head has more than {bytes} bytes or {headers} headers")]
    HeadersTooLarge {
        /// The limit of bytes.
        bytes: usize,
        /// The limit of headers.
        headers: usize,
    };
    /// Client error, or a slow network: head or body did not arrive in time.
    #[error("head or body was not received within {} s", limit.as_secs())]
    RequestTimeout {
        /// The timeout of the head or the body.
        limit: Duration,
    };
    /// Client error: no such ACME challenge.
    #[error("not found")]
    NotFound;
    /// Client error: the method is not allowed.
    #[error("the method is none of {allowed}")]
    MethodNotAllowed {
        /// The methods that are.
        allowed: Methods,
        /// Whether other paths accept others.
        is_of_path: bool,
    };
    /// Client error: a request by plain HTTP that shows a signature, a credential or a form to the network.
    #[error("a signature, a credential or a form by plain HTTP")]
    HttpsRequired;
    /// Client error: it asks for another protocol, for example WebSocket.
    #[error("Upgrade asks for another protocol")]
    UpgradeNotSupported;
    /// Client error: a convention header appears twice.
    #[error("the header {name} appears twice")]
    HeaderDuplicated {
        /// The header.
        name: String,
    };
    /// Client error: a GET with a body.
    #[error("a GET with a body")]
    BodyNotAllowed;
    /// Client error: not a form, another charset, or a content encoding; or another kind than the path accepts.
    #[error("the body is not of a kind that is accepted")]
    ContentTypeUnsupported {
        /// What is accepted beside forms.
        beside: Option<&'static str>,
    };
    /// Client error: the body is too large.
    #[error("the body is larger than {limit} bytes")]
    BodyTooLarge {
        /// The limit, in bytes.
        limit: usize,
    };
    /// Client error: the application header is missing.
    #[error("the application is missing")]
    AppMissing {
        /// The missing header.
        header: String,
        /// The key of the hint's text, if there is one.
        hint: Option<&'static str>,
    };
    /// Client error: no application has the ident.
    #[error("unknown application")]
    AppNotFound {
        /// The ident as sent, made safe for the log.
        sent: Box<str>,
        /// The key of the hint's text.
        hint: &'static str,
    };
    /// An operator disabled the application.
    #[error("the application is disabled")]
    AppDisabled {
        /// Its ident.
        ident: Box<str>,
    };
    /// Client error: parameters without `time`.
    #[error("the time is missing")]
    TimeMissing(Option<Box<Explanation>>);
    /// Client error: `time` is not in milliseconds since the epoch.
    #[error("the time is malformed")]
    TimeInvalid {
        /// The mistake that explains it, if found.
        slip: Option<TimeSlip>,
    };
    /// Client error: its clock is wrong, or an old request was sent again.
    #[error("time {time} is outside the window around {now}")]
    TimeOutOfWindow {
        /// The request's time.
        time: SignTime,
        /// The gateway's time.
        now: SignTime,
        /// The allowed deviation.
        window: Window,
    };
    /// Client error: parameters without `sign`.
    #[error("the signature is missing")]
    SignMissing(Option<Box<Explanation>>);
    /// Client error: the same signature a second time.
    #[error("the request was replayed")]
    RequestReplayed;
    /// Client error: too many requests of an application, or error of a client address or others in its network.
    #[error("the limit {} is exceeded", limit.as_str())]
    RateLimited {
        /// The limit.
        limit: RequestLimit,
        /// Time until a request is served again, at the latest.
        retry_after: Duration,
        /// What the limit leaves, if the response says so.
        quota: Option<Quota>,
    };
    /// Client error: header, host and path name different versions.
    #[error("the request names two versions")]
    VersionContradictory {
        /// The version that host or path names.
        placed: Box<str>,
    };
    /// Client error: an unknown version.
    #[error("unknown version")]
    VersionUnknown {
        /// The configured versions.
        known: String,
    };
    /// Client error: the version is past its sunset.
    #[error("the version is retired")]
    VersionRetired {
        /// What to do instead.
        migration: Migration,
    };
    /// An operator switched the version off for a while, before its sunset.
    #[error("the version has a brown-out")]
    VersionBrownout {
        /// What to do instead.
        migration: Migration,
        /// Time until the version is served again.
        retry_after: Duration,
    };
    /// Client error: the route needs an account, and the request has no credential.
    #[error("the credential is missing")]
    AuthorizationMissing;
    /// Client error: what the header has is no credential.
    #[error("the credential is malformed")]
    AuthorizationMalformed;
    /// Client error: the credential is unknown, expired, revoked, or another application's.
    #[error("the credential is invalid")]
    AuthorizationInvalid;
    /// Server error: the store does not respond.
    #[error("the store is unavailable")]
    StoreUnavailable(#[source] Cause);
    /// Server error: the backend refused or closed the connection, or its response is malformed.
    #[error("the backend failed: {why}")]
    BackendUnreachable {
        /// The cause, for the log. It contains nothing of the request.
        why: String,
    };
    /// The bodies of all requests, or of the client's network, have all the room that there is; or the folder's error.
    #[error("there is no room for the body")]
    SpoolFull(#[source] Option<Box<io::Error>>);
    /// Server error: every address of the backend is ejected or unhealthy, or none is known.
    #[error("no address of {backend} is healthy")]
    NoHealthyBackend {
        /// The backend's name.
        backend: String,
    };
    /// Operator error, or error of the backend: a change between two versions does not apply.
    #[error("the change {change} does not apply: {why}")]
    BridgeFailed {
        /// The name of the change.
        change: Box<str>,
        /// The cause, for the log. It contains no value of request or response.
        why: String,
    };
    /// Server error: a timeout of the backend passed.
    #[error("the backend did not answer in time")]
    BackendTimeout;
    /// No error: a stop cut the request off. A backend that it was sent to may have executed it.
    #[error("the gateway stopped before the request was finished")]
    GatewayStopping;
    /// Server error: a bug.
    #[error("internal: {0}")]
    Internal(Cow<'static, str>);
}

/// A failure of the gateway, a backend or the store. Each kind has log lines of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The store does not respond.
    Store,
    /// The backend failed.
    Backend,
    /// The backend did not respond in time.
    BackendTimeout,
    /// A bug.
    Internal,
}

impl FailureKind {
    /// The number of kinds.
    pub(crate) const COUNT: usize = Self::Internal as usize + 1;
}

/// Where the clients of a version should go.
#[derive(Debug)]
pub struct Migration {
    /// The versions that are neither deprecated nor ended; empty if there is none.
    pub versions: String,
    /// A page about the migration.
    pub link: Option<Box<str>>,
    /// Whether only an endpoint of the version is concerned.
    pub is_of_endpoint: bool,
}

impl Rejection {
    /// Creates [`Self::AppNotFound`] from the ident as sent.
    #[must_use]
    pub fn app_not_found(sent: &[u8]) -> Self {
        Self::AppNotFound {
            sent: log_text::ident(sent).into(),
            hint: ident_hint(sent),
        }
    }

    /// The request exceeds the rate limit.
    #[must_use]
    pub fn rate_limited(limit: RequestLimit, exceeded: Exceeded) -> Self {
        let Exceeded { retry_after, quota } = exceeded;
        // CONTRACT 8 gives headers to limits of `[rate_limits]` only, which are the shared ones.
        let quota = RequestLimit::SHARED.contains(&limit).then_some(quota);
        Self::RateLimited {
            limit,
            retry_after,
            quota,
        }
    }

    /// The ident in the request, if its application is unknown or disabled.
    #[must_use]
    pub(crate) fn app_ident(&self) -> Option<&str> {
        match self {
            Self::AppNotFound { sent: ident, .. } | Self::AppDisabled { ident } => Some(ident),
            _ => None,
        }
    }

    /// The response's hint, if it has one.
    #[must_use]
    pub fn hint(&self) -> Option<Hint<'_>> {
        match self {
            Self::TimeInvalid { slip } => slip.map(Hint::Time),
            Self::TimeOutOfWindow { time, now, window } => {
                TimeSlip::of_distant(*time, *now, *window).map(Hint::Time)
            }
            Self::SignMismatch(explanation, _) => Some(Hint::Sign(explanation)),
            Self::TimeMissing(hint) | Self::SignMissing(hint) => hint.as_deref().map(Hint::Sign),
            Self::AppNotFound { hint, .. } => Some(Hint::App(hint)),
            Self::AppMissing { hint, .. } => hint.map(Hint::App),
            _ => None,
        }
    }

    /// The name of the parameter that is missing, and its hint.
    pub(crate) fn missing(&mut self) -> Option<(&'static str, &mut Option<Box<Explanation>>)> {
        match self {
            Self::TimeMissing(hint) => Some((TIME, hint)),
            Self::SignMissing(hint) => Some((SIGN, hint)),
            _ => None,
        }
    }

    /// The kind of failure, if it is logged as an error. Other server errors are logged elsewhere: by the balancer once if
    /// no address is healthy, by [`SecretRejections`](crate::upstream::secret_rejections::SecretRejections) once a minute.
    #[must_use]
    pub const fn failure(&self) -> Option<FailureKind> {
        match self {
            Self::StoreUnavailable(_) => Some(FailureKind::Store),
            Self::BackendUnreachable { .. } | Self::BridgeFailed { .. } => {
                Some(FailureKind::Backend)
            }
            Self::BackendTimeout => Some(FailureKind::BackendTimeout),
            Self::Internal(_) | Self::SpoolFull(Some(_)) => Some(FailureKind::Internal),
            _ => None,
        }
    }

    /// Where the request is malformed.
    #[must_use]
    pub fn malformed(&self) -> Option<&Malformed> {
        match self {
            Self::TargetInvalid(at) | Self::TargetAmbiguous(at) | Self::ParamsMalformed(at) => {
                Some(at)
            }
            _ => None,
        }
    }

    /// The limit that the request exceeds.
    #[must_use]
    pub const fn limit(&self) -> Option<RequestLimit> {
        match self {
            Self::RateLimited { limit, .. } => Some(*limit),
            _ => None,
        }
    }
}
