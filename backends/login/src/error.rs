//! All errors of a request, grouped by who causes them, and their problem codes.

pub mod problem;

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use signpost_protocol::problem::ProblemCode;
use signpost_store::StoreError;

use crate::{error::problem::OwnProblem, records::logins::FailureReason};

/// An error that is returned as a problem. The message is for the log; clients get the text of the code.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    // The client's.
    /// No endpoint has this path.
    #[error("no such endpoint")]
    NotFound,
    /// The endpoint does not allow this method.
    #[error("the endpoint does not allow this method")]
    MethodNotAllowed,
    /// An invalid percent-encoding or invalid UTF-8; a gateway rejects such requests.
    #[error("the parameters are malformed")]
    ParamsMalformed,
    /// More parameters than a gateway forwards.
    #[error("too many parameters")]
    ParamsTooMany,
    /// The body is larger than a gateway forwards, or was not received whole.
    #[error("the body is too large or incomplete")]
    BodyTooLarge,
    /// The body was not received within the timeout.
    #[error("the body was not received within {} s", limit.as_secs())]
    RequestTimeout {
        /// The timeout.
        limit: Duration,
    },
    /// The body is not a form.
    #[error("the body is not a form")]
    ContentTypeUnsupported,
    /// A GET with a body.
    #[error("a GET with a body")]
    BodyNotAllowed,
    /// A required parameter is missing.
    #[error("the parameter {name} is missing")]
    ParamMissing {
        /// The parameter.
        name: &'static str,
    },
    /// A parameter has an invalid value, or appears twice.
    #[error("the parameter {name} is invalid")]
    ParamInvalid {
        /// The parameter.
        name: &'static str,
        /// The violated rule.
        rule: ParamRule,
    },
    /// A convention header appears twice.
    #[error("the header {name} appears twice")]
    HeaderDuplicated {
        /// The header.
        name: String,
    },
    /// The endpoint requires a signature, and the request has none: it has no parameters.
    #[error("the request is not signed")]
    SignMissing,
    /// The credential is missing.
    #[error("the credential is missing")]
    AuthorizationMissing,
    /// The credential is unknown, expired, revoked, or another application's.
    #[error("the credential is invalid")]
    AuthorizationInvalid,
    /// The browser is not the one that began or confirmed the login, or `iss` is another provider's.
    #[error("the login belongs to another browser or provider")]
    LoginMismatch,
    /// The login is unknown, another application's, or expired long ago.
    #[error("no such login")]
    LoginUnknown,
    /// The client asked for the result before the login was finished.
    #[error("the login is still pending")]
    LoginPending,
    /// A second callback, or a redeemed ticket.
    #[error("the login was already used")]
    LoginUsed,
    /// The login was not finished, or its outcome not claimed, in time.
    #[error("the login has expired")]
    LoginExpired,
    /// The provider sent the browser back with an error; usually the user denied access.
    #[error("the login was denied at the provider")]
    LoginDenied,
    /// `return_to` is malformed, or its origin is not registered for the application.
    #[error("return_to is not allowed")]
    ReturnToNotAllowed,
    /// Too many logins of this application, or callbacks of this client's network. CONTRACT 8.
    #[error("too many logins or callbacks")]
    RateLimited {
        /// Seconds until the next request is allowed.
        retry_after: u64,
    },

    // The operator's.
    /// The gateway's secret, or a header that the gateway always sends, is missing or invalid.
    #[error("the request does not come from the gateway")]
    GatewayRequired,
    /// The application was deleted while the request was in flight.
    #[error("unknown application")]
    AppNotFound,
    /// The application was disabled while a request or a login was in flight.
    #[error("the application is disabled")]
    AppDisabled,

    // The provider's.
    /// The provider was unavailable or sent an invalid response. The cause was logged where it happened.
    #[error("the provider failed")]
    ProviderFailed,
    /// The provider did not respond within 10 s.
    #[error("the provider timed out")]
    ProviderTimeout,

    /// A problem that only this version has; usually the client's.
    #[error("{}", .0.code())]
    Own(&'static OwnProblem),

    // Ours.
    /// The store is locked, full or unavailable.
    #[error("the store is unavailable")]
    Store(#[from] Arc<StoreError>),
    /// A bug, or a configuration that changed during a login.
    #[error("internal: {what}")]
    Internal {
        /// What went wrong.
        what: &'static str,
    },
}

/// What a parameter must be; each rule is a variant of the text of `param_invalid`.
#[derive(Debug)]
pub enum ParamRule {
    /// It may appear only once.
    Once,
    /// Only one of these parameters may be sent.
    OnlyOne(&'static str),
    /// At most this many bytes, without null characters.
    MaxBytes(usize),
    /// One of these values: names, a range or a pattern, the same in every language.
    Values(String),
}

impl ParamRule {
    /// The text's variant, and what it says is allowed.
    #[must_use]
    pub fn text_args(&self) -> (&'static str, String) {
        match self {
            Self::Once => ("once", "1".to_owned()),
            Self::OnlyOne(names) => ("only_one", (*names).to_owned()),
            Self::MaxBytes(limit) => ("text", limit.to_string()),
            Self::Values(values) => ("values", values.clone()),
        }
    }
}

impl From<&'static OwnProblem> for LoginError {
    fn from(problem: &'static OwnProblem) -> Self {
        Self::Own(problem)
    }
}

impl From<StoreError> for LoginError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl LoginError {
    /// The problem code of the response. CONTRACT 7.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind() {
            ProblemKind::Shared(code) => code.as_str(),
            ProblemKind::Own(problem) => problem.code(),
        }
    }

    /// The status of the response. CONTRACT 7.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self.kind() {
            ProblemKind::Shared(code) => code.status(),
            ProblemKind::Own(problem) => problem.status(),
        }
    }

    /// The problem of the response.
    pub(crate) fn kind(&self) -> ProblemKind {
        ProblemKind::Shared(match self {
            Self::NotFound => ProblemCode::NotFound,
            Self::MethodNotAllowed => ProblemCode::MethodNotAllowed,
            Self::ParamsMalformed => ProblemCode::ParamsMalformed,
            Self::ParamsTooMany => ProblemCode::ParamsTooMany,
            Self::BodyTooLarge => ProblemCode::BodyTooLarge,
            Self::RequestTimeout { .. } => ProblemCode::RequestTimeout,
            Self::ContentTypeUnsupported => ProblemCode::ContentTypeUnsupported,
            Self::BodyNotAllowed => ProblemCode::BodyNotAllowed,
            Self::ParamMissing { .. } => ProblemCode::ParamMissing,
            Self::ParamInvalid { .. } => ProblemCode::ParamInvalid,
            Self::HeaderDuplicated { .. } => ProblemCode::HeaderDuplicated,
            Self::SignMissing => ProblemCode::SignMissing,
            Self::AuthorizationMissing => ProblemCode::AuthorizationMissing,
            Self::AuthorizationInvalid => ProblemCode::AuthorizationInvalid,
            Self::LoginMismatch => ProblemCode::LoginMismatch,
            Self::LoginUnknown => ProblemCode::LoginUnknown,
            Self::LoginPending => ProblemCode::LoginPending,
            Self::LoginUsed => ProblemCode::LoginUsed,
            Self::LoginExpired => ProblemCode::LoginExpired,
            Self::LoginDenied => ProblemCode::LoginDenied,
            Self::ReturnToNotAllowed => ProblemCode::ReturnToNotAllowed,
            Self::RateLimited { .. } => ProblemCode::RateLimited,
            Self::GatewayRequired => ProblemCode::GatewayRequired,
            Self::AppNotFound => ProblemCode::AppNotFound,
            Self::AppDisabled => ProblemCode::AppDisabled,
            Self::ProviderFailed => ProblemCode::ProviderFailed,
            Self::ProviderTimeout => ProblemCode::ProviderTimeout,
            Self::Own(problem) => return ProblemKind::Own(problem),
            Self::Store(_) => ProblemCode::StoreUnavailable,
            Self::Internal { .. } => ProblemCode::Internal,
        })
    }
}

/// The problem of a response.
pub(crate) enum ProblemKind {
    /// One of the contract, with its texts.
    Shared(ProblemCode),
    /// One of the version.
    Own(&'static OwnProblem),
}

impl From<FailureReason> for LoginError {
    fn from(reason: FailureReason) -> Self {
        match reason {
            FailureReason::AccessDenied => Self::LoginDenied,
            FailureReason::ProviderFailed => Self::ProviderFailed,
            FailureReason::ProviderTimeout => Self::ProviderTimeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use signpost_protocol::{language::Language, text::text};

    use super::*;

    #[test]
    fn every_rule_has_its_own_text_in_every_language() {
        let rules = [
            ParamRule::Once,
            ParamRule::OnlyOne("1"),
            ParamRule::MaxBytes(1),
            ParamRule::Values("1".to_owned()),
        ];
        for language in Language::ALL {
            let texts: BTreeSet<_> = rules
                .iter()
                .map(|rule| {
                    let (rule, allowed) = rule.text_args();
                    let args = [("name", "a"), ("rule", rule), ("allowed", &*allowed)];
                    text(language, "param_invalid.detail", &args)
                })
                .collect();
            assert_eq!(texts.len(), rules.len(), "{texts:?}");
        }
    }
}
