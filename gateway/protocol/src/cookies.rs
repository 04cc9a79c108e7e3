//! The names of Signpost's own cookies, and where a header has them. CONTRACT 8, `backends/CONTRACT.md` 9.
//!
//! A cookie knows no port, so browsers send a console's cookies to the host's other listeners, too. The gateway takes out of
//! requests and responses what a backend may neither read nor set: all of them, but a login service has its own.

use std::borrow::Cow;

/// The console's session: a browser sends a cookie with this prefix only to the host that has set it, and accepts it only over
/// TLS or from the machine itself. RFC 6265bis section 4.1.3.
pub const CONSOLE_SESSION: &str = "__Host-signpost";
/// Ties a sign-in to the console to the browser that has begun it.
pub const CONSOLE_SIGN_IN: &str = "__Host-signpost-sign-in";

/// The prefix of a login's cookie with an https `public_url`: browsers accept it only with `Secure` and `Path=/`, not from a
/// subdomain.
pub const HOST_PREFIX: &str = "__Host-";
/// A login's cookie without that prefix, before its digits.
pub const NAME: &str = "login-";
/// The bytes that follow, in hex: they identify the login.
pub const ID_BYTES: usize = 8;

/// Whom the gateway exchanges cookies with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// It has the cookies of logins.
    LoginService,
    /// It has none of Signpost's.
    Route,
}

impl BackendKind {
    /// Whether it neither gets nor sets a cookie.
    fn lacks(self, pair: &[u8]) -> bool {
        let name = sent_name(pair);
        is_console_cookie(name) || (self == Self::Route && is_login_cookie(name))
    }

    /// The value of a `Cookie` without what this backend may not get; empty if it has nothing else. The others stay byte for
    /// byte.
    #[must_use]
    pub fn received(self, cookies: &[u8]) -> Cow<'_, [u8]> {
        let pairs = || cookies.split(|&byte| byte == b';');
        if !pairs().any(|pair| self.lacks(pair)) {
            return Cow::Borrowed(cookies);
        }
        let others: Vec<_> = pairs().filter(|pair| !self.lacks(pair)).collect();
        Cow::Owned(others.join(&b';').trim_ascii_start().to_vec())
    }

    /// Whether this backend may not send a `Set-Cookie`, which sets or removes a cookie.
    #[must_use]
    pub fn may_not_set(self, set_cookie: &[u8]) -> bool {
        let mut pieces = set_cookie.split(|&byte| byte == b';');
        pieces.next().is_some_and(|pair| self.lacks(pair))
    }
}

/// Whether the value of a `Cookie` has one of Signpost's. Each has a `-`, so most others cost one look.
#[must_use]
pub fn has_own_cookie(cookies: &[u8]) -> bool {
    let mut pairs = cookies.split(|&byte| byte == b';');
    cookies.contains(&b'-') && pairs.any(|pair| BackendKind::Route.lacks(pair))
}

/// Whether a cookie of this name belongs to a login, in any letter case.
#[must_use]
pub fn is_login_cookie(name: &[u8]) -> bool {
    let name = without_prefix(name, HOST_PREFIX).unwrap_or(name);
    without_prefix(name, NAME)
        .is_some_and(|id| id.len() == 2 * ID_BYTES && id.iter().all(u8::is_ascii_hexdigit))
}

/// Whether a cookie of this name belongs to the console, in any letter case.
fn is_console_cookie(name: &[u8]) -> bool {
    let mut names = [CONSOLE_SESSION, CONSOLE_SIGN_IN].into_iter();
    names.any(|own| name.eq_ignore_ascii_case(own.as_bytes()))
}

/// The name in a pair as browsers understand and send it: white space around the name does not count, and neither does a `=`
/// before it. A cookie without a name is sent as its value (RFC 6265bis section 5.8.3).
fn sent_name(pair: &[u8]) -> &[u8] {
    let is_before = |byte: &u8| matches!(byte, b' ' | b'\t' | b'=');
    let start = pair.iter().position(|byte| !is_before(byte));
    let named = &pair[start.unwrap_or(pair.len())..];
    let end = named.iter().position(|&byte| byte == b'=');
    named[..end.unwrap_or(named.len())].trim_ascii_end()
}

fn without_prefix<'n>(name: &'n [u8], prefix: &str) -> Option<&'n [u8]> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    start
        .eq_ignore_ascii_case(prefix.as_bytes())
        .then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: &str = "login-0123456789abcdef";
    const SESSION: &str = CONSOLE_SESSION;

    #[test]
    fn no_backend_gets_cookies_of_the_console_and_only_login_services_those_of_logins() {
        let upper = SESSION.to_uppercase();
        for (cookies, of_route, of_login) in [
            ("a=1; b=\"2\"".to_owned(), "a=1; b=\"2\"", None),
            (format!("{LOGIN}=v"), "", Some(format!("{LOGIN}=v"))),
            (
                format!("{SESSION}=v; {LOGIN}=v"),
                "",
                Some(format!("{LOGIN}=v")),
            ),
            (format!("{SESSION}=v"), "", Some(String::new())),
            (format!(" {SESSION}=v ;"), "", Some(String::new())),
            (
                format!("a=1; {SESSION} =\"v\"; b=2"),
                "a=1; b=2",
                Some("a=1; b=2".to_owned()),
            ),
            (
                format!("{CONSOLE_SIGN_IN}=v;{upper}=v;=\t{SESSION}=v;{SESSION};a"),
                "a",
                Some("a".to_owned()),
            ),
            (
                format!("$Version=1; {SESSION}=v; $Path=/"),
                "$Version=1; $Path=/",
                Some("$Version=1; $Path=/".to_owned()),
            ),
            (
                format!("a=\"; {SESSION}=v; b=\""),
                "a=\"; b=\"",
                Some("a=\"; b=\"".to_owned()),
            ),
            (format!("__Host-{LOGIN}=v; a=1;  b"), "a=1;  b", None),
            (
                format!("a=1;{}=v;__host-{LOGIN}=v", LOGIN.to_uppercase()),
                "a=1",
                None,
            ),
            (format!("a={LOGIN}=v"), "a=login-0123456789abcdef=v", None),
            (
                "login-state=1; login-0=2".to_owned(),
                "login-state=1; login-0=2",
                None,
            ),
            (
                "signpost=1; __Host-signpost-x=2".to_owned(),
                "signpost=1; __Host-signpost-x=2",
                None,
            ),
            (
                format!("x{SESSION}=1; a={SESSION}"),
                "x__Host-signpost=1; a=__Host-signpost",
                None,
            ),
            (String::new(), "", None),
        ] {
            let text =
                |kind: BackendKind| kind.received(cookies.as_bytes()).escape_ascii().to_string();
            let of_login = of_login.unwrap_or_else(|| cookies.clone());
            assert_eq!(
                text(BackendKind::Route),
                of_route.escape_default().to_string(),
                "{cookies}"
            );
            assert_eq!(
                text(BackendKind::LoginService),
                of_login.escape_default().to_string(),
                "{cookies}"
            );
            assert_eq!(
                has_own_cookie(cookies.as_bytes()),
                of_route != cookies,
                "{cookies}"
            );
        }
    }

    #[test]
    fn every_spelling_that_browsers_send_as_an_own_cookie_is_found() {
        let sets = |kind: BackendKind, text: &str| kind.may_not_set(text.as_bytes());
        for own in [LOGIN, CONSOLE_SESSION, CONSOLE_SIGN_IN] {
            for text in [
                format!("{own}=v"),
                format!("  {own} =v; Path=/login"),
                format!("\t{own}=v; Secure; Path=/"),
                format!("{}=", own.to_uppercase()),
                format!("={own}=v"),
                format!(" = {own}=v"),
                own.to_owned(),
                format!("{own}; Max-Age=0"),
            ] {
                assert!(sets(BackendKind::Route, &text), "{text}");
                assert_eq!(
                    sets(BackendKind::LoginService, &text),
                    own != LOGIN,
                    "{text}"
                );
            }
            for other in [
                format!("a={own}=v"),
                format!("a=1; {own}=v"),
                format!("{own}0=v"),
            ] {
                assert!(!sets(BackendKind::Route, &other), "{other}");
            }
        }
        for other in ["a=1", "login-0123456789abcdeg=v", ""] {
            assert!(!sets(BackendKind::Route, other), "{other}");
        }
    }
}
