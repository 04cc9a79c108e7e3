//! The reasons for which a login fails, as clients see them.

use std::{fmt, str::FromStr};

/// Why a login failed. CONTRACT 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// The user denied access at the provider.
    AccessDenied,
    /// The provider was unavailable or sent an invalid response.
    ProviderFailed,
    /// The provider did not respond within 10 s.
    ProviderTimeout,
}

impl FailureReason {
    /// The reason in responses and in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AccessDenied => "access_denied",
            Self::ProviderFailed => "provider_failed",
            Self::ProviderTimeout => "provider_timeout",
        }
    }
}

impl fmt::Display for FailureReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for FailureReason {
    type Err = ParseFailureReasonError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        [
            Self::AccessDenied,
            Self::ProviderFailed,
            Self::ProviderTimeout,
        ]
        .into_iter()
        .find(|reason| reason.as_str() == word)
        .ok_or(ParseFailureReasonError)
    }
}

/// The text is not a known reason.
#[derive(Debug, thiserror::Error)]
#[error("access_denied, provider_failed or provider_timeout")]
pub struct ParseFailureReasonError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_reads_back() {
        let reason = FailureReason::ProviderTimeout;
        assert_eq!(reason.as_str().parse::<FailureReason>().unwrap(), reason);
        assert!("other".parse::<FailureReason>().is_err());
    }
}
