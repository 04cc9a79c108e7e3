//! ACME challenges by http (RFC 8555 section 8.3), on a listener with `acme_webroot`. `conf/guides/edge.md`.

/// Where a certificate authority asks for challenges, and certbot's webroot way writes them.
const FOLDER: &str = "/.well-known/acme-challenge/";

/// Limit of a token's length. It has 128 bits at least, and 43 characters at authorities of today.
const MAX_TOKEN: usize = 128;

/// What a request asks for below the folder of challenges; `None` if it is elsewhere.
#[must_use]
pub(crate) fn match_challenge(path: &str) -> Option<&str> {
    path.strip_prefix(FOLDER)
}

/// The path of a challenge's file below the webroot; `None` if the name is no token, which is in base64url. So it leads
/// nowhere else.
#[must_use]
pub(crate) fn challenge_file(name: &str) -> Option<String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_valid = (1..=MAX_TOKEN).contains(&name.len()) && name.bytes().all(is_token);
    is_valid.then(|| format!("{}{name}", FOLDER.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tokens_name_files() {
        let file = |path: &str| match_challenge(path).map(challenge_file);
        let found = file("/.well-known/acme-challenge/aZ09_-");
        assert_eq!(
            found,
            Some(Some(".well-known/acme-challenge/aZ09_-".to_owned()))
        );
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "a.b",
            "%61",
            "a ",
            "\u{e9}",
            &"a".repeat(129),
        ] {
            let found = file(&format!("/.well-known/acme-challenge/{name}"));
            assert_eq!(found, Some(None), "{name}");
        }
        for path in [
            "/",
            "/.well-known/",
            "/.well-known/acme-challenge",
            "//.well-known/acme-challenge/a",
        ] {
            assert_eq!(file(path), None, "{path}");
        }
    }
}
