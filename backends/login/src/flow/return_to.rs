//! `return_to`: the URL that a redirect login finally redirects the browser to. CONTRACT 8.

use url::Url;

use crate::config::Origin;

/// Limit of the URL. All browsers and servers accept this length, and a sealed cookie with such a URL stays below the
/// 4,096 bytes above which browsers drop cookies.
pub(crate) const MAX_BYTES: usize = 2048;

/// The parameters that are added to the URL at the end.
const OUTCOMES: [&str; 2] = ["ticket", "error"];

/// Parses a client's `return_to`; `None` unless it is a well-formed URL of one of the `allowed` origins.
///
/// The parser (WHATWG URL) repairs backslashes, line breaks, missing slashes, and an `@` before the host. The
/// result would be safe, since what is returned is what was checked. But a URL that needs repair is a mistake or an
/// attack, so it is rejected.
pub(crate) fn parse(text: &str, allowed: &[Origin]) -> Option<Url> {
    let is_plain =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'#' | b'"' | b'<' | b'>');
    let (scheme, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    let is_web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    let has_plain_host = !authority.is_empty() && !authority.contains(['@', '%']);
    if text.len() > MAX_BYTES || !text.bytes().all(is_plain) || !is_web || !has_plain_host {
        return None;
    }
    let url = Url::parse(text).ok()?;
    // With a second `ticket` or `error`, the application might read the wrong one.
    let has_outcome = url
        .query_pairs()
        .any(|(name, _)| OUTCOMES.contains(&&*name));
    // The parser may have percent-encoded characters, so the URL can be longer than the text.
    let is_short = url.as_str().len() <= MAX_BYTES;
    let is_valid = is_short && !has_outcome && is_allowed(&url, allowed);
    is_valid.then_some(url)
}

/// Whether the URL has one of the `allowed` origins.
pub(crate) fn is_allowed(url: &Url, allowed: &[Origin]) -> bool {
    allowed.iter().any(|origin| origin.contains(url))
}

/// Adds an outcome to the query.
pub(crate) fn with_outcome(mut return_to: Url, name: &str, value: &str) -> Url {
    return_to.query_pairs_mut().append_pair(name, value);
    return_to
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Vec<Origin> {
        vec![
            "https://app.example".parse().unwrap(),
            "http://127.0.0.1:9000".parse().unwrap(),
        ]
    }

    #[test]
    fn a_url_that_has_an_outcome_already_is_rejected() {
        for bad in ["ticket=evil", "a=1&%74icket=evil", "error", "ticket"] {
            let address = format!("https://app.example/?{bad}");
            assert!(parse(&address, &allowed()).is_none(), "{bad}");
        }
        assert!(parse("https://app.example/?tickets=1", &allowed()).is_some());
    }

    #[test]
    fn urls_of_registered_origins_are_accepted() {
        for good in [
            "https://app.example",
            "https://app.example/",
            "https://APP.example:443/path?x=1&y=%20",
            "HTTPS://app.example/?",
            "http://127.0.0.1:9000/back",
            "https://app.example/a@b",
        ] {
            assert!(parse(good, &allowed()).is_some(), "{good}");
        }
    }

    #[test]
    fn bypass_attempts_are_rejected() {
        for bad in [
            "",
            "/path",
            "//app.example/",
            "https:app.example",
            "https:/app.example",
            "https:///app.example",
            "https://evil.example/",
            "https://app.example.evil.example/",
            "https://app.example@evil.example/",
            "https://evil.example@app.example/",
            "https://@app.example/",
            "https://app.example:@evil.example/",
            "https://app.example\\@evil.example/",
            "https://evil.example\\.app.example/",
            "https://app.example./",
            "https://app.example:8443/",
            "http://app.example/",
            "https://app.example/#fragment",
            "https://app.example/#",
            "https://app%2eexample/",
            "https://evil.example%2f@app.example/",
            " https://app.example/",
            "https://app.example/ ",
            "https://app.exa\tmple/",
            "https://app.example/\n",
            "https://app.example/\u{0}",
            "https://ａpp.example/",
            "https://app。example/",
            "javascript:alert(1)//https://app.example/",
            "javascript://app.example/%0aalert(1)",
            "data:text/html,https://app.example/",
            "ftp://app.example/",
            "https://2130706433:9000/",
            "http://0x7f.1/",
            "https://app.example?@evil.example/\\",
        ] {
            assert!(parse(bad, &allowed()).is_none(), "{bad:?}");
        }
        let long = format!("https://app.example/{}", "x".repeat(MAX_BYTES));
        assert!(parse(&long, &allowed()).is_none());
    }

    #[test]
    fn without_registered_origins_all_urls_are_rejected() {
        assert!(parse("https://app.example/", &[]).is_none());
    }

    #[test]
    fn ticket_and_error_are_added_to_the_query() {
        let ticket = crate::records::logins::Ticket::generate();
        let url = |text: &str| Url::parse(text).unwrap();
        let with = with_outcome(
            url("https://app.example/back?x=1"),
            "ticket",
            &ticket.encode(),
        );
        assert_eq!(
            with.as_str(),
            format!("https://app.example/back?x=1&ticket={}", ticket.encode())
        );
        let with = with_outcome(url("https://app.example"), "error", "access_denied");
        assert_eq!(with.as_str(), "https://app.example/?error=access_denied");
    }
}
