//! The URLs that a provider may have: `https`, or `http` on this host's loopback address.

use url::{Host, Url};

/// Longest URL in bytes.
const MAX_URL: usize = 2_048;

/// What is wrong with a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// Relative, or with characters that no URL has (RFC 3986 section 2), which parsers of URLs drop or replace.
    #[error("is no absolute URL")]
    Malformed,
    /// Longer than 2,048 bytes.
    #[error("is longer than 2,048 bytes")]
    TooLong,
    /// Another scheme, or `http` to another host, or `http` below an issuer with `https`.
    #[error("is not https (http is allowed only for an issuer on this host's loopback address)")]
    NotHttps,
    /// A user name or a password.
    #[error("has a user name or a password")]
    UserInfo,
    /// A query, which an issuer has not (OIDC Discovery section 3).
    #[error("has a query")]
    Query,
    /// It has a fragment.
    #[error("has a fragment")]
    Fragment,
}

/// Parses a URL of a provider.
///
/// The text must have the characters of a URL, since the parser of the WHATWG would drop tabs and line ends, and turn a
/// backslash into a slash: another reader would see another host.
pub(crate) fn read(text: &str) -> Result<Url, UrlFault> {
    if text.len() > MAX_URL {
        return Err(UrlFault::TooLong);
    }
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    if !text.bytes().all(is_allowed) {
        return Err(UrlFault::Malformed);
    }
    let url = Url::parse(text).map_err(|_| UrlFault::Malformed)?;
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(&url) => {}
        _ => return Err(UrlFault::NotHttps),
    }
    // The parser accepts any number of slashes behind the scheme, others do not.
    let authority = text[url.scheme().len() + 1..].strip_prefix("//");
    let authority = authority.filter(|rest| !rest.starts_with('/'));
    let authority = authority.ok_or(UrlFault::Malformed)?;
    let authority = authority.split(['/', '?', '#']).next();
    if authority.is_none_or(|authority| authority.contains('@')) {
        return Err(UrlFault::UserInfo);
    }
    if url.fragment().is_some() {
        return Err(UrlFault::Fragment);
    }
    Ok(url)
}

/// 127.0.0.0/8, `::1`, `localhost` and the names below it (RFC 6761 section 6.3).
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_reached_by_https_or_on_this_host() {
        let long = format!("https://id.example/{}", "a".repeat(MAX_URL - 18));
        for (text, expected) in [
            ("https://id.example", Ok("https://id.example/")),
            (
                "HTTPS://ID.example:443/Realm",
                Ok("https://id.example/Realm"),
            ),
            (
                "https://id.example/a?b=c@d",
                Ok("https://id.example/a?b=c@d"),
            ),
            ("https://127.0.0.1", Ok("https://127.0.0.1/")),
            ("http://localhost:8080/a", Ok("http://localhost:8080/a")),
            ("http://id.localhost", Ok("http://id.localhost/")),
            ("http://127.255.0.1", Ok("http://127.255.0.1/")),
            ("http://[::1]:7", Ok("http://[::1]:7/")),
            ("http://0x7f.1", Ok("http://127.0.0.1/")),
            ("http://id.example", Err(UrlFault::NotHttps)),
            ("http://localhost.evil.example", Err(UrlFault::NotHttps)),
            ("http://evillocalhost", Err(UrlFault::NotHttps)),
            ("http://127.0.0.1.evil.example", Err(UrlFault::NotHttps)),
            ("http://127.0.0.1@evil.example", Err(UrlFault::NotHttps)),
            ("http://128.0.0.1", Err(UrlFault::NotHttps)),
            ("http://0.0.0.0", Err(UrlFault::NotHttps)),
            ("http://10.0.0.1", Err(UrlFault::NotHttps)),
            ("http://[::ffff:127.0.0.1]", Err(UrlFault::NotHttps)),
            ("ftp://id.example", Err(UrlFault::NotHttps)),
            ("file:///etc/passwd", Err(UrlFault::NotHttps)),
            ("data:application/json,{}", Err(UrlFault::Malformed)),
            ("data:application/json,%7B%7D", Err(UrlFault::NotHttps)),
            ("javascript:alert(1)", Err(UrlFault::NotHttps)),
            ("https://evil.example@id.example", Err(UrlFault::UserInfo)),
            ("https://a:b@id.example/", Err(UrlFault::UserInfo)),
            ("https://@id.example/", Err(UrlFault::UserInfo)),
            ("https://id.example/#", Err(UrlFault::Fragment)),
            ("https://id.example/a#b", Err(UrlFault::Fragment)),
            ("", Err(UrlFault::Malformed)),
            ("/jwks", Err(UrlFault::Malformed)),
            ("//id.example/jwks", Err(UrlFault::Malformed)),
            ("https:", Err(UrlFault::Malformed)),
            ("https:id.example", Err(UrlFault::Malformed)),
            ("https:/id.example", Err(UrlFault::Malformed)),
            ("https:///id.example", Err(UrlFault::Malformed)),
            ("https:\\\\id.example", Err(UrlFault::Malformed)),
            (
                "https://id.example\\@evil.example",
                Err(UrlFault::Malformed),
            ),
            (" https://id.example", Err(UrlFault::Malformed)),
            ("https://id.exa\tmple", Err(UrlFault::Malformed)),
            ("https://id.example/\n", Err(UrlFault::Malformed)),
            ("https://id.example/\0", Err(UrlFault::Malformed)),
            ("https://\u{456}d.example", Err(UrlFault::Malformed)),
            ("https://id.example:99999", Err(UrlFault::Malformed)),
            ("https://[::1", Err(UrlFault::Malformed)),
            (&long, Err(UrlFault::TooLong)),
            (&long[..MAX_URL], Ok(&long[..MAX_URL])),
        ] {
            let url = read(text);
            let url = url.as_ref().map(Url::as_str).map_err(|fault| *fault);
            assert_eq!(url, expected, "{text}");
        }
    }
}
