//! The reasons for which a login fails, as clients see them.

use std::str::FromStr;

/// Why a login failed. CONTRACT 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureReason {
    /// The user denied access at the provider.
    AccessDenied,
    /// The provider was unavailable or sent an invalid response.
    ProviderFailed,
    /// The provider did not respond within 10 s.
    ProviderTimeout,
}

impl FailureReason {
    pub(crate) const ALL: [Self; 3] = [
        Self::AccessDenied,
        Self::ProviderFailed,
        Self::ProviderTimeout,
    ];

    /// The reason in responses and in the store.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::AccessDenied => "access_denied",
            Self::ProviderFailed => "provider_failed",
            Self::ProviderTimeout => "provider_timeout",
        }
    }
}

impl FromStr for FailureReason {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        let mut all = Self::ALL.into_iter();
        all.find(|reason| reason.as_str() == word).ok_or(())
    }
}

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
