//! The version that issued a login's token or `state`: both are `<version>.<base64url>`. CONTRACT 8.
//!
//! The provider's redirect cannot carry our headers, so this is how it finds its version. What the
//! rest of the value means is the login service's business.

/// The version's name in front of a login's token or `state`, not yet known to exist.
///
/// The last dot separates, since a version's name may have dots and base64url has none.
#[must_use]
pub fn version_of(state_or_token: &str) -> Option<&str> {
    state_or_token.rsplit_once('.').map(|(version, _)| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_stands_before_the_last_dot() {
        assert_eq!(version_of("v1.AbC-_"), Some("v1"));
        assert_eq!(version_of("v1.2.AbC"), Some("v1.2"));
        assert_eq!(version_of("AbC"), None);
    }
}
