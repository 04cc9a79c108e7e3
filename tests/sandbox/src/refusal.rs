//! Errors of the authorization endpoint, for users whose names ask for them (RFC 6749 section 4.1.2.1).

/// An error that the redirect back reports instead of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The provider is overloaded, or in maintenance.
    TemporarilyUnavailable,
    /// The provider failed.
    ServerError,
    /// The client may not have the requested scope.
    InvalidScope,
    /// The client may not request a code.
    UnauthorizedClient,
    /// The provider rejects the request's form.
    InvalidRequest,
}

impl Refusal {
    /// All of them, in the order of the page.
    pub const ALL: [Self; 5] = [
        Self::TemporarilyUnavailable,
        Self::ServerError,
        Self::InvalidScope,
        Self::UnauthorizedClient,
        Self::InvalidRequest,
    ];

    /// The value of `error`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::TemporarilyUnavailable => "temporarily_unavailable",
            Self::ServerError => "server_error",
            Self::InvalidScope => "invalid_scope",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::InvalidRequest => "invalid_request",
        }
    }
}
