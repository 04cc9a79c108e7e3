//! Faults of providers, for the log. Clients only get `provider_failed` or `provider_timeout`.

use std::{error::Error, sync::Arc};

use signpost_openid::{DiscoveryFault, IssuerFault, KeysFault, TokenFault};

use crate::records::logins::FailureReason;

/// Why a provider did not identify the user. Contains nothing of its responses but status and error codes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProviderFault {
    /// The DNS lookup, the connection or TLS failed, or the connection was lost.
    #[error("the provider is unreachable{way}")]
    Unreachable {
        /// The proxy, if it is called by one.
        way: String,
        #[source]
        cause: reqwest::Error,
    },
    /// Token and user together took longer than 9.5 s.
    #[error("the provider timed out")]
    TooSlow,
    /// A response is larger than its limit.
    #[error("the provider's response is too large")]
    TooLarge,
    /// The code was already used, expired or issued to another client.
    #[error("the provider rejected the code: {error}")]
    CodeRejected {
        /// RFC 6749 section 5.2, for example `invalid_grant`.
        error: String,
    },
    /// The client id or secret is wrong, or the provider does not let this client log users in, or not with these scopes.
    #[error(
        "the provider rejected the client: {error}: compare client_id, client_secret, client_auth and scopes with what \
         is registered there"
    )]
    ClientRejected {
        /// For example `invalid_client`.
        error: String,
    },
    /// The registered callback is another one.
    #[error(
        "the provider rejected the callback: {error}: register PUBLIC_URL/login there, byte for byte"
    )]
    CallbackRejected {
        /// For example `redirect_uri_mismatch`.
        error: String,
    },
    /// The token endpoint says that it has a problem of its own.
    #[error("the provider is unavailable: {error}")]
    Unavailable {
        /// `server_error` or `temporarily_unavailable`.
        error: String,
    },
    /// The status of the token response is not 200, and it has no error code. Redirects are not followed.
    #[error("the provider answered {status} for the code")]
    TokenStatus {
        /// The status.
        status: u16,
    },
    /// The token response is said to be no JSON.
    #[error("the provider's token response has a Content-Type that is not JSON")]
    TokenType,
    /// The token response is not a JSON object.
    #[error("the provider's token response is malformed")]
    TokenMalformed,
    /// The access token is needed, and is not of RFC 6749 appendix A.12.
    #[error("the provider's token response has no usable access_token")]
    NoAccessToken,
    /// The access token is needed, and is to be used in another way, for example `mac`.
    #[error("the provider's token response has another token_type than Bearer")]
    NotBearer,
    /// The status of the response with the user's record is not 200.
    #[error("the provider answered {status} for the user's record")]
    UserStatus {
        /// The status.
        status: u16,
    },
    /// The user's record is said to be no JSON.
    #[error("the provider's record of the user has a Content-Type that is not JSON")]
    UserType,
    /// The user's record is not a JSON object.
    #[error("the provider's record of the user is not a JSON object")]
    UserMalformed,
    /// The record lacks the field that identifies the user, or its value is unusable.
    #[error(
        "the provider's record of the user has no usable \"{field}\": a text or a whole number, of at most 255 bytes"
    )]
    NoIdentifier {
        /// The field.
        field: String,
    },
    /// The issuer has no discovery document.
    #[error("the issuer {0}")]
    Issuer(IssuerFault),
    /// The discovery document or the keys could not be fetched.
    #[error("the provider answered {status} for {document}")]
    DocumentStatus {
        /// Which of both.
        document: &'static str,
        /// The status.
        status: u16,
    },
    /// The discovery document or the keys are said to be no JSON.
    #[error("the provider's response for {document} has a Content-Type that is not JSON")]
    DocumentType {
        /// Which of both.
        document: &'static str,
    },
    /// The discovery document cannot be used.
    #[error("the provider cannot be used: {0}")]
    Discovery(DiscoveryFault),
    /// None of the keys can be used.
    #[error("the provider cannot be used: {0}")]
    Keys(KeysFault),
    /// The token response has no ID token.
    #[error("the provider's token response has no ID token: the scope must have \"openid\"")]
    NoIdToken,
    /// The ID token is not valid.
    #[error("{0}")]
    IdToken(TokenFault),
    /// `userinfo` is about another user than the ID token.
    #[error("the provider's user info is about another user than its ID token")]
    OtherUser,
    /// The last fetch of what an OpenID provider publishes failed.
    #[error("{}", .0.line())]
    Fetched(Arc<Self>),
    /// Nothing was fetched yet, and nothing will be: the service is stopping.
    #[error("the provider has published nothing yet")]
    NothingPublished,
}

impl ProviderFault {
    /// The reason that clients get.
    pub(crate) fn reason(&self) -> FailureReason {
        match self {
            Self::TooSlow => FailureReason::ProviderTimeout,
            Self::Fetched(fault) => fault.reason(),
            _ => FailureReason::ProviderFailed,
        }
    }

    /// What lies behind it, for the log: each cause once, for example `error sending request: invalid peer certificate:
    /// Expired`.
    pub(crate) fn causes(&self) -> Option<String> {
        let mut causes = Vec::<String>::new();
        let mut next = self.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            // Some errors repeat the text of their cause.
            if causes.last().is_none_or(|last| !last.contains(&text)) {
                causes.push(text);
            }
            next = cause.source();
        }
        (!causes.is_empty()).then(|| causes.join(": "))
    }

    /// The fault and its causes in one line.
    pub(crate) fn line(&self) -> String {
        match self.causes() {
            Some(causes) => format!("{self}: {causes}"),
            None => self.to_string(),
        }
    }
}
