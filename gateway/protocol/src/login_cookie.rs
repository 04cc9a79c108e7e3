//! The names of the cookies that bind a login to a browser, and where a header has them. CONTRACT 8.
//!
//! Only a login service may read or set them: the gateway takes them out of what routes get and answer.

use std::borrow::Cow;

/// The prefix with an https `public_url`: browsers accept it only with `Secure` and `Path=/`, not from a subdomain.
pub const HOST_PREFIX: &str = "__Host-";
/// The name without that prefix, before its digits.
pub const NAME: &str = "login-";
/// The bytes that follow, in hex: they identify the login.
pub const ID_BYTES: usize = 8;

/// Whether a cookie of this name belongs to a login, in any letter case.
#[must_use]
pub fn is_login_cookie(name: &[u8]) -> bool {
    let name = without_prefix(name, HOST_PREFIX).unwrap_or(name);
    without_prefix(name, NAME)
        .is_some_and(|id| id.len() == 2 * ID_BYTES && id.iter().all(u8::is_ascii_hexdigit))
}

/// The value of a `Cookie` without the cookies of logins; empty if it has no others. These stay byte for byte.
#[must_use]
pub fn without_login_cookies(cookies: &[u8]) -> Cow<'_, [u8]> {
    let pairs = || cookies.split(|&byte| byte == b';');
    if !pairs().any(names_login) {
        return Cow::Borrowed(cookies);
    }
    let others: Vec<_> = pairs().filter(|pair| !names_login(pair)).collect();
    Cow::Owned(others.join(&b';').trim_ascii_start().to_vec())
}

/// Whether a `Set-Cookie` sets or removes the cookie of a login.
#[must_use]
pub fn sets_login_cookie(set_cookie: &[u8]) -> bool {
    set_cookie
        .split(|&byte| byte == b';')
        .next()
        .is_some_and(names_login)
}

/// Whether a pair names the cookie of a login, as browsers understand and send it: white space around the name does not
/// count, and neither does a `=` before it. A cookie without a name is sent as its value (RFC 6265bis section 5.8.3).
fn names_login(pair: &[u8]) -> bool {
    let is_before = |byte: &u8| matches!(byte, b' ' | b'\t' | b'=');
    let start = pair.iter().position(|byte| !is_before(byte));
    let named = &pair[start.unwrap_or(pair.len())..];
    let name = named.split(|&byte| byte == b'=').next();
    name.is_some_and(|name| is_login_cookie(name.trim_ascii_end()))
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

    #[test]
    fn only_cookies_of_logins_are_taken_out() {
        let host = format!("__Host-{LOGIN}");
        for (cookies, left) in [
            ("a=1; b=\"2\"".to_owned(), "a=1; b=\"2\""),
            (format!("{LOGIN}=v"), ""),
            (format!(" {LOGIN}=v ;"), ""),
            (format!("a=1; {LOGIN}=v; b=2"), "a=1; b=2"),
            (format!("{host}=v; a=1;  b"), "a=1;  b"),
            (format!("a=\"; {LOGIN}=v; b=\""), "a=\"; b=\""),
            (format!("a=1;{}=v;{host}=v", LOGIN.to_uppercase()), "a=1"),
            (format!("a={LOGIN}=v"), "a=login-0123456789abcdef=v"),
            (
                "login-state=1; login-0=2".to_owned(),
                "login-state=1; login-0=2",
            ),
            (String::new(), ""),
        ] {
            let found = without_login_cookies(cookies.as_bytes());
            assert_eq!(
                found.escape_ascii().to_string(),
                left.escape_default().to_string(),
                "{cookies}"
            );
        }
    }

    #[test]
    fn every_spelling_that_browsers_send_as_a_login_cookie_is_found() {
        for sets in [
            format!("{LOGIN}=v"),
            format!("  {LOGIN} =v; Path=/login"),
            format!("\t__Host-{LOGIN}=v; Secure; Path=/"),
            format!("__host-{}=", LOGIN.to_uppercase()),
            format!("={LOGIN}=v"),
            format!(" = {LOGIN}=v"),
            LOGIN.to_owned(),
        ] {
            assert!(sets_login_cookie(sets.as_bytes()), "{sets}");
        }
        for other in [
            "a=1".to_owned(),
            format!("a={LOGIN}=v"),
            format!("a=1; {LOGIN}=v"),
            format!("{LOGIN}0=v"),
            "login-0123456789abcdeg=v".to_owned(),
            String::new(),
        ] {
            assert!(!sets_login_cookie(other.as_bytes()), "{other}");
        }
    }
}
