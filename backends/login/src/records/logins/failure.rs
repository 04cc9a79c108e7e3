//! The reasons for which a login fails, as clients see them.

use std::str::FromStr;

use signpost_protocol::label_enum;

label_enum! {
    /// Why a login failed, as responses and the store have it. CONTRACT 8.
    pub(crate) enum FailureReason {
        /// The user denied access at the provider.
        AccessDenied = "access_denied",
        /// The provider was unavailable or sent an invalid response.
        ProviderFailed = "provider_failed",
        /// The provider did not respond within 10 s.
        ProviderTimeout = "provider_timeout",
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
