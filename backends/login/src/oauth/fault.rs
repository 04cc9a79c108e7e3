//! What providers do wrong, for the log; users learn only that the provider failed, or was too slow.

use crate::logins::FailureReason;

/// Why a provider could not say who the person is. Holds nothing of its answers but codes.
#[derive(Debug, thiserror::Error)]
pub enum ProviderFault {
    /// Nobody listens there, the name does not resolve, TLS fails, or the connection breaks.
    #[error("the provider cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// Token and profile together took longer than 10 s.
    #[error("the provider took too long")]
    TooSlow,
    /// An answer is larger than 1 MiB.
    #[error("the provider's answer is too large")]
    TooLarge,
    /// The code was spent, expired or of another client; or our secret is wrong.
    #[error("the provider refused the code: {error}")]
    CodeRefused {
        /// RFC 6749 section 5.2, for example `invalid_grant`.
        error: String,
    },
    /// The token answer is no JSON, or lacks `access_token` or `token_type`; or has an error status without
    /// saying why, which includes redirects: they are not followed.
    #[error("the provider's token answer is malformed")]
    TokenMalformed,
    /// The profile answer has another status than 200.
    #[error("the provider answered {status} for the profile")]
    ProfileStatus {
        /// The status.
        status: u16,
    },
    /// The profile is no JSON object.
    #[error("the provider's profile is not a JSON object")]
    ProfileMalformed,
    /// The profile lacks the field that identifies a person.
    #[error("the provider's profile has no usable \"{field}\"")]
    NoIdentifier {
        /// The field.
        field: String,
    },
}

impl ProviderFault {
    /// What the login's beginner is told.
    #[must_use]
    pub fn reason(&self) -> FailureReason {
        match self {
            Self::TooSlow => FailureReason::ProviderTimeout,
            Self::Unreachable(_)
            | Self::TooLarge
            | Self::CodeRefused { .. }
            | Self::TokenMalformed
            | Self::ProfileStatus { .. }
            | Self::ProfileMalformed
            | Self::NoIdentifier { .. } => FailureReason::ProviderFailed,
        }
    }
}
