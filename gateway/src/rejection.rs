//! Why a request is not served: one closed list, sorted by whose fault it is.

use std::{borrow::Cow, error::Error as StdError, time::Duration};

use gateway_protocol::{
    log_text,
    problem::ProblemCode,
    sign::{SignTime, Window, explain::Slip},
    version::Version,
};

type Cause = Box<dyn StdError + Send + Sync>;

/// Why a request is not served.
#[derive(Debug, thiserror::Error)]
pub enum Rejection {
    /// The caller's: not HTTP, or framed so that two readers could take it differently. A bare 400.
    #[error("not HTTP: {0}")]
    NotHttp(&'static str),
    /// The caller's: the path or the Host is malformed.
    #[error("the target is malformed")]
    TargetInvalid,
    /// The caller's: a broken escape, an unescaped character, or no UTF-8.
    #[error("the parameters are malformed")]
    ParamsMalformed,
    /// The caller's.
    #[error("more than {limit} parameters")]
    ParamsTooMany {
        /// The most that are allowed.
        limit: usize,
    },
    /// The caller's: `time`, `sign` or `app` twice.
    #[error("the parameter {name} appears twice")]
    ParamDuplicated {
        /// The parameter.
        name: &'static str,
    },
    /// The caller's.
    #[error("the query is longer than {limit} bytes")]
    QueryTooLong {
        /// The most that is allowed.
        limit: usize,
    },
    /// The caller's.
    #[error("the head has more than {bytes} bytes or {headers} headers")]
    HeadTooLarge {
        /// The most bytes that are allowed.
        bytes: usize,
        /// The most headers that are allowed.
        headers: usize,
    },
    /// The caller's, or a slow network's.
    #[error("the request took longer than {} s", limit.as_secs())]
    RequestTimeout {
        /// What the head, or the body, may take.
        limit: Duration,
    },
    /// The caller's.
    #[error("the method is neither GET nor POST")]
    MethodNotAllowed,
    /// The caller's: a convention header twice.
    #[error("the header {name} appears twice")]
    HeaderDuplicated {
        /// The header.
        name: String,
    },
    /// The caller's: a GET with a body.
    #[error("a GET with a body")]
    BodyNotAllowed,
    /// The caller's: no form, another charset, or a content encoding.
    #[error("the body is no UTF-8 form")]
    ContentTypeUnsupported,
    /// The caller's.
    #[error("the body is larger than {limit} bytes")]
    BodyTooLarge {
        /// The most that is allowed.
        limit: usize,
    },
    /// The caller's: no application header.
    #[error("no application")]
    AppMissing {
        /// The header that is missing.
        header: String,
    },
    /// The caller's: an ident that no application has.
    #[error("no application of that ident")]
    AppNotFound {
        /// The ident as sent, fit for a log.
        sent: Box<str>,
    },
    /// An operator switched the application off.
    #[error("the application is disabled")]
    AppDisabled {
        /// Its ident.
        ident: Box<str>,
    },
    /// The caller's: parameters without a time.
    #[error("no time")]
    TimeMissing,
    /// The caller's: not milliseconds since the epoch.
    #[error("the time is malformed")]
    TimeInvalid {
        /// Whether it looks like seconds.
        looks_like_seconds: bool,
    },
    /// The caller's clock is off, or an old request was sent again.
    #[error("time {time} is outside the window around {now}")]
    TimeOutOfWindow {
        /// The request's.
        time: SignTime,
        /// Ours.
        now: SignTime,
        /// The allowed deviation.
        window: Window,
    },
    /// The caller's.
    #[error("no sign")]
    SignMissing,
    /// The caller's: another key, other rules, or somebody changed the parameters.
    #[error("the sign does not match ({slip:?})")]
    SignMismatch {
        /// What a holder of the key did differently.
        slip: Option<Slip>,
    },
    /// The caller's: the same sign a second time.
    #[error("the request was replayed")]
    RequestReplayed,
    /// The caller's: so many requests that no more signs can be remembered.
    #[error("the application's replay memory is full")]
    RateLimited {
        /// When there is room again, at the latest.
        retry_after: Duration,
    },
    /// The caller's, or a neighbour's: too many unsigned requests from its network.
    #[error("too many unsigned requests from the client's network")]
    AddressRateLimited {
        /// When the next one is served.
        retry_after: Duration,
    },
    /// The caller's: a version that there is not.
    #[error("no such version")]
    VersionUnknown {
        /// Those that there are.
        known: String,
    },
    /// Ours: the store does not answer.
    #[error("the store is unavailable")]
    StoreUnavailable(#[source] Cause),
    /// Ours: the backend refused the connection, or broke it off.
    #[error("the backend is unreachable: {why}")]
    BackendUnreachable {
        /// What happened, in the words of whoever noticed; nothing of the request.
        why: String,
    },
    /// Ours: every address of the backend is out, or none is known.
    #[error("no address of {version} is healthy")]
    NoHealthyBackend {
        /// Whose.
        version: Version,
    },
    /// The operator's: the backend does not accept the gateway's secret.
    #[error("the backend refuses this gateway's gateway_secret")]
    SecretRefused,
    /// Ours: the backend is silent.
    #[error("the backend did not answer in time")]
    BackendTimeout,
    /// Nobody's: the client went away; nobody reads an answer.
    #[error("the client went away")]
    ClientGone,
    /// Ours: a bug.
    #[error("internal: {0}")]
    Internal(Cow<'static, str>),
}

impl Rejection {
    /// The code that the answer carries; `None` where it carries none (a bare 400), or there is nobody to
    /// answer.
    #[must_use]
    pub(crate) fn code(&self) -> Option<ProblemCode> {
        Some(match self {
            Self::NotHttp(_) | Self::ClientGone => return None,
            Self::TargetInvalid => ProblemCode::TargetInvalid,
            Self::ParamsMalformed => ProblemCode::ParamsMalformed,
            Self::ParamsTooMany { .. } => ProblemCode::ParamsTooMany,
            Self::ParamDuplicated { .. } => ProblemCode::ParamDuplicated,
            Self::QueryTooLong { .. } => ProblemCode::UriTooLong,
            Self::HeadTooLarge { .. } => ProblemCode::HeadersTooLarge,
            Self::RequestTimeout { .. } => ProblemCode::RequestTimeout,
            Self::MethodNotAllowed => ProblemCode::MethodNotAllowed,
            Self::HeaderDuplicated { .. } => ProblemCode::HeaderDuplicated,
            Self::BodyNotAllowed => ProblemCode::BodyNotAllowed,
            Self::ContentTypeUnsupported => ProblemCode::ContentTypeUnsupported,
            Self::BodyTooLarge { .. } => ProblemCode::BodyTooLarge,
            Self::AppMissing { .. } => ProblemCode::AppMissing,
            Self::AppNotFound { .. } => ProblemCode::AppNotFound,
            Self::AppDisabled { .. } => ProblemCode::AppDisabled,
            Self::TimeMissing => ProblemCode::TimeMissing,
            Self::TimeInvalid { .. } => ProblemCode::TimeInvalid,
            Self::TimeOutOfWindow { .. } => ProblemCode::TimeOutOfWindow,
            Self::SignMissing => ProblemCode::SignMissing,
            Self::SignMismatch { .. } => ProblemCode::SignMismatch,
            Self::RequestReplayed => ProblemCode::RequestReplayed,
            Self::RateLimited { .. } | Self::AddressRateLimited { .. } => ProblemCode::RateLimited,
            Self::VersionUnknown { .. } => ProblemCode::VersionUnknown,
            Self::StoreUnavailable(_) => ProblemCode::StoreUnavailable,
            Self::BackendUnreachable { .. } | Self::SecretRefused => {
                ProblemCode::BackendUnreachable
            }
            Self::NoHealthyBackend { .. } => ProblemCode::NoHealthyBackend,
            Self::BackendTimeout => ProblemCode::BackendTimeout,
            Self::Internal(_) => ProblemCode::Internal,
        })
    }

    /// A request of an ident that no application has.
    #[must_use]
    pub(crate) fn app_not_found(sent: &[u8]) -> Self {
        Self::AppNotFound {
            sent: log_text::ident(sent).into(),
        }
    }

    /// The ident that the request named, of an application that cannot be used.
    #[must_use]
    pub(crate) fn app_ident(&self) -> Option<&str> {
        match self {
            Self::AppNotFound { sent: ident } | Self::AppDisabled { ident } => Some(ident),
            _ => None,
        }
    }

    /// The name of the hint that the answer gives, if it gives one: its key in the language files, and the preset that
    /// matched. CONTRACT 3.
    #[must_use]
    pub(crate) fn hint(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::TimeInvalid {
                looks_like_seconds: true,
            } => Some("hint_seconds".into()),
            Self::TimeOutOfWindow { time, .. } if time.looks_like_microseconds() => {
                Some("hint_microseconds".into())
            }
            Self::SignMismatch {
                slip: Some(Slip::Preset(name)),
            } => Some(format!("hint_preset:{name}").into()),
            Self::SignMismatch { slip: Some(slip) } => Some(slip.text_id().into()),
            _ => None,
        }
    }

    /// Whether it is logged as an error each time. That no address is healthy, the balancer logs once, and that a
    /// backend refuses the secret, [`SecretRefusals`](crate::secret_refusals::SecretRefusals) once a minute.
    #[must_use]
    pub(crate) fn is_ours(&self) -> bool {
        matches!(
            self,
            Self::StoreUnavailable(_)
                | Self::BackendUnreachable { .. }
                | Self::BackendTimeout
                | Self::Internal(_)
        )
    }
}
