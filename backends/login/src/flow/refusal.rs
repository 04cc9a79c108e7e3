//! What the `error` of a callback means.

use std::fmt;

use crate::records::logins::FailureReason;

/// Why a provider has sent the browser back without a code. RFC 6749 section 4.1.2.1, OpenID Connect Core 1.0 section
/// 3.1.2.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The user denied access.
    Denied,
    /// The provider has a problem that may be over soon: the user can try again.
    Temporary(&'static str),
    /// The request is not what the provider allows this client: an operator must mend it.
    Configuration(&'static str),
    /// The user is not logged in at the provider, and it was asked not to log anyone in.
    NotLoggedIn(&'static str),
    /// Any other. Its text comes from the browser, and is not logged.
    Other,
}

impl Refusal {
    /// Reads `error`.
    pub(crate) fn of(error: &str) -> Self {
        let known = |errors: &[&'static str]| errors.iter().copied().find(|known| *known == error);
        // A person's "no". LinkedIn and Apple have words of their own for it, and so has Pipedrive:
        // <https://learn.microsoft.com/linkedin/shared/authentication/authorization-code-flow>,
        // <https://developer.apple.com/documentation/signinwithapple/incorporating-sign-in-with-apple-into-other-platforms>,
        // <https://pipedrive.readme.io/docs/marketplace-oauth-authorization>
        let denied = [
            "access_denied",
            "user_cancelled_login",
            "user_cancelled_authorize",
            "user_denied",
        ];
        let temporary = ["temporarily_unavailable", "server_error"];
        let configuration = [
            "invalid_request",
            "invalid_scope",
            "unauthorized_client",
            "unsupported_response_type",
            "invalid_request_uri",
            "invalid_request_object",
            "request_not_supported",
            "request_uri_not_supported",
            "registration_not_supported",
            // GitHub: <https://docs.github.com/en/apps/oauth-apps/maintaining-oauth-apps>
            "application_suspended",
            "redirect_uri_mismatch",
        ];
        let not_logged_in = [
            "interaction_required",
            "login_required",
            "account_selection_required",
            "consent_required",
        ];
        if denied.contains(&error) {
            Self::Denied
        } else if let Some(error) = known(&temporary) {
            Self::Temporary(error)
        } else if let Some(error) = known(&configuration) {
            Self::Configuration(error)
        } else if let Some(error) = known(&not_logged_in) {
            Self::NotLoggedIn(error)
        } else {
            Self::Other
        }
    }

    /// The reason that clients get.
    pub(crate) const fn reason(self) -> FailureReason {
        match self {
            Self::Denied => FailureReason::AccessDenied,
            _ => FailureReason::ProviderFailed,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied => formatter.write_str("the user denied access"),
            Self::Temporary(error) => write!(formatter, "the provider is unavailable: {error}"),
            Self::Configuration(error) => write!(
                formatter,
                "the provider rejected the request: {error}: compare client_id, scopes and the registered callback with \
                 what the provider allows this client"
            ),
            Self::NotLoggedIn(error) => {
                write!(formatter, "the user is not logged in there: {error}")
            }
            Self::Other => {
                formatter.write_str("the provider sent the browser back with another error")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_denial_is_the_users_and_only_some_errors_pass() {
        for denied in [
            "access_denied",
            "user_cancelled_login",
            "user_cancelled_authorize",
            "user_denied",
        ] {
            assert_eq!(Refusal::of(denied).reason().as_str(), "access_denied");
        }
        // The provider's, since it was asked without a page.
        for no_page in ["consent_required", "interaction_required"] {
            assert_eq!(Refusal::of(no_page), Refusal::NotLoggedIn(no_page));
        }
        for temporary in ["temporarily_unavailable", "server_error"] {
            assert_eq!(Refusal::of(temporary), Refusal::Temporary(temporary));
        }
        for mistake in ["invalid_scope", "unauthorized_client", "invalid_request"] {
            let refusal = Refusal::of(mistake);
            assert_eq!(refusal, Refusal::Configuration(mistake));
            assert_eq!(refusal.reason().as_str(), "provider_failed");
            assert!(refusal.to_string().contains(mistake));
        }
        for other in ["", "Access_Denied", "access_denied ", "x\ny"] {
            assert_eq!(Refusal::of(other), Refusal::Other, "{other:?}");
        }
    }
}
