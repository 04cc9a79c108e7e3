//! The version that issued a login's token or `state`: both are `<version>.<base64url>`. CONTRACT 8. And the parameters
//! beside a `state`.
//!
//! The provider's redirect cannot carry the gateway's headers, so its version is found in `state`. Only the login
//! service knows what the rest of the value means.

/// The parameters that have a meaning in a callback, each at most once. Any others are ignored. CONTRACT 3.
pub const CALLBACK_PARAMS: [&str; 6] = ["state", "code", "error", "confirm", "iss", "provider"];

/// Returns the version's name in a login's token or `state`. Such a version need not exist.
///
/// The last dot separates: a version's name may contain dots, base64url does not.
#[must_use]
pub fn version_of(state_or_token: &str) -> Option<&str> {
    state_or_token.rsplit_once('.').map(|(version, _)| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_precedes_the_last_dot() {
        assert_eq!(version_of("v1.AbC-_"), Some("v1"));
        assert_eq!(version_of("v1.2.AbC"), Some("v1.2"));
        assert_eq!(version_of("AbC"), None);
    }
}
