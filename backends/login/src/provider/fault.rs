//! Faults of providers, for the log. Clients only get `provider_failed` or `provider_timeout`.

use crate::records::logins::FailureReason;

/// Why a provider did not identify the user. Contains nothing of its responses but status and error codes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProviderFault {
    /// The DNS lookup, the connection or TLS failed, or the connection was lost.
    #[error("the provider is unreachable")]
    Unreachable(#[source] reqwest::Error),
    /// Token and profile together took longer than 10 s.
    #[error("the provider timed out")]
    TooSlow,
    /// A response is larger than 1 MiB.
    #[error("the provider's response is too large")]
    TooLarge,
    /// The code was already used, expired or issued to another client; or our client secret is wrong.
    #[error("the provider rejected the code: {error}")]
    CodeRejected {
        /// RFC 6749 section 5.2, for example `invalid_grant`.
        error: String,
    },
    /// The token response is not JSON, or lacks `access_token`, `token_type` or an error code.
    ///
    /// Redirects count as errors without a code, since they are not followed.
    #[error("the provider's token response is malformed")]
    TokenMalformed,
    /// The status of the profile response is not 200.
    #[error("the provider answered {status} for the profile")]
    ProfileStatus {
        /// The status.
        status: u16,
    },
    /// The profile is not a JSON object.
    #[error("the provider's profile is not a JSON object")]
    ProfileMalformed,
    /// The profile lacks the field that identifies the user, or its value is unusable.
    #[error("the provider's profile has no usable \"{field}\"")]
    NoIdentifier {
        /// The field.
        field: String,
    },
}

impl ProviderFault {
    /// The reason that clients get.
    pub(crate) fn reason(&self) -> FailureReason {
        match self {
            Self::TooSlow => FailureReason::ProviderTimeout,
            _ => FailureReason::ProviderFailed,
        }
    }
}
