//! Everything that can go wrong with a request, sorted by whose fault it is, and the code it is answered by.

use std::{sync::Arc, time::Duration};

use gateway_protocol::problem::ProblemCode;
use signpost_store::StoreError;

use crate::logins::FailureReason;

/// Why a request is answered with a problem. The message is for the log; users get the code's text.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    // The caller's.
    /// Nothing at that path: a typing error, or the gateway forwards what it should not.
    #[error("nothing at that path")]
    NotFound,
    /// The path is there for the other method.
    #[error("the path does not take that method")]
    MethodNotAllowed,
    /// A broken escape or bytes that are no UTF-8; a gateway would have stopped it.
    #[error("the parameters are malformed")]
    ParamsMalformed,
    /// More pairs than a gateway lets through.
    #[error("too many parameters")]
    ParamsTooMany,
    /// A larger form than a gateway lets through.
    #[error("the body is too large, or broke off")]
    BodyTooLarge,
    /// A body that did not come whole in time.
    #[error("the body took longer than {limit:?}")]
    RequestTimeout {
        /// How long it may take.
        limit: Duration,
    },
    /// A body that is no form.
    #[error("the body is no form")]
    ContentTypeUnsupported,
    /// A GET with a body.
    #[error("a GET has no body")]
    BodyNotAllowed,
    /// A parameter is needed that is not there.
    #[error("the parameter {name} is missing")]
    ParamMissing {
        /// Which.
        name: &'static str,
    },
    /// A parameter has a value it cannot have, or stands there twice.
    #[error("the parameter {name} is invalid")]
    ParamInvalid {
        /// Which.
        name: &'static str,
        /// What it may be, in words or by example.
        allowed: String,
    },
    /// A convention header twice.
    #[error("the header {name} appears twice")]
    HeaderDuplicated {
        /// Which.
        name: String,
    },
    /// No credential.
    #[error("no credential")]
    AuthorizationMissing,
    /// The credential is unknown, expired, revoked, or another application's.
    #[error("the credential is not valid here")]
    AuthorizationInvalid,
    /// The browser is not the one that began or confirmed the login, or `iss` is another provider's.
    #[error("the login belongs to another browser or provider")]
    LoginMismatch,
    /// No such login, or another application's; or it is long over.
    #[error("no such login")]
    LoginUnknown,
    /// Its result was asked for before there is one.
    #[error("the login is still pending")]
    LoginPending,
    /// A second callback, or a spent ticket.
    #[error("the login was used")]
    LoginUsed,
    /// It took too long, or its outcome is told no more.
    #[error("the login has expired")]
    LoginExpired,
    /// The provider sent the browser back with an error: as a rule the person said no.
    #[error("the login was denied at the provider")]
    LoginDenied,
    /// Not of an origin registered for the application, or not plainly an address.
    #[error("return_to is not allowed")]
    ReturnToNotAllowed,
    /// Too many logins of this application, or callbacks of this client's network. CONTRACT 8.
    #[error("too many logins or callbacks at once")]
    RateLimited {
        /// Seconds until one more may come.
        retry_after: u64,
    },

    // The operator's.
    /// The gateway's secret is missing or wrong, or what the gateway always sends is.
    #[error("the request does not come from the gateway")]
    GatewayRequired,
    /// The application was deleted a moment ago.
    #[error("no such application")]
    AppNotFound,
    /// The application was switched off while a login of its was under way.
    #[error("the application is disabled")]
    AppDisabled,

    // The provider's.
    /// It gave no usable answer. The fault was logged where it happened.
    #[error("the provider failed")]
    ProviderFailed,
    /// It took longer than 10 s.
    #[error("the provider took too long")]
    ProviderTimeout,

    // Ours.
    /// The store is locked, full or gone.
    #[error("the store cannot be reached")]
    Store(#[from] Arc<StoreError>),
    /// A bug, or a configuration that changed under a login.
    #[error("internal: {what}")]
    Internal {
        /// What was impossible.
        what: &'static str,
    },
}

impl From<StoreError> for LoginError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl LoginError {
    /// The code that the request is answered by. CONTRACT 7.
    #[must_use]
    pub fn code(&self) -> ProblemCode {
        match self {
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
            Self::Store(_) => ProblemCode::StoreUnavailable,
            Self::Internal { .. } => ProblemCode::Internal,
        }
    }
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
