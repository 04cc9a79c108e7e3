//! The callback: the provider's redirect, which can neither be signed nor carry the gateway's headers, and the page of a
//! login with its links. CONTRACT 3.
//!
//! The path and `state` recognise it. What else it has is ignored (RFC 6749 section 4.1.2), and read as browsers read it
//! (the URL standard), so that no bytes of an unknown parameter matter.

use std::borrow::Cow;

use signpost_kit::clock::Timestamp;
use signpost_protocol::{
    param::CALLBACK_PARAMS,
    sign::{SIGN, TIME},
    version::version_of,
};
use url::form_urlencoded::parse;

use crate::{
    config::SignConfig,
    request::{BodyLength, Headers, Method, Target, rejection::Rejection},
};

/// A callback request; only [`match_callback`] creates one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callback {
    version: Option<String>,
    /// Until when some application may use its version longer: it names none.
    pub(crate) extended: Option<Timestamp>,
}

impl Callback {
    /// The version in `state`, which claims to have issued it; it may not exist.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }
}

/// Returns the callback if the request is one.
///
/// # Errors
///
/// A browser only prefetches the path; or a parameter that has a meaning in a callback appears twice.
pub(crate) fn match_callback(
    method: Method,
    body: BodyLength,
    target: Target<'_>,
    headers: &(impl Headers + ?Sized),
    config: &SignConfig,
) -> Result<Option<Callback>, Rejection> {
    let is_callback_path = config
        .callback_paths
        .iter()
        .any(|path| path == target.compared());
    // A body of unknown length has turned out to be empty by now: `receive` reads it first.
    if method != Method::Get || matches!(body, BodyLength::Known(_)) || !is_callback_path {
        return Ok(None);
    }
    // Before the query is read: a prefetch would use up a login that its user has not opened.
    if is_prefetch(headers) {
        return Err(Rejection::PrefetchRefused);
    }
    if !is_callback(target.query) {
        return Ok(None);
    }
    let twice = |name: &&&str| values(target.query, &[**name]).nth(1).is_some();
    if let Some(name) = CALLBACK_PARAMS.iter().find(twice) {
        return Err(Rejection::ParamDuplicated { name });
    }
    // One without a value counts as absent beside the other: RFC 6749 section 3.1.
    let outcomes = values(target.query, &["code", "error"]);
    if outcomes.filter(|value| !value.is_empty()).count() > 1 {
        let name = "code|error";
        return Err(Rejection::ParamDuplicated { name });
    }
    let state = values(target.query, &["state"]).next().unwrap_or_default();
    let version = version_of(&state).map(str::to_owned);
    Ok(Some(Callback {
        version,
        extended: None,
    }))
}

/// Whether a query is a callback's: it has `state`, and an outcome or no signature.
pub(crate) fn is_callback(query: &str) -> bool {
    has_any(query, &["state"])
        && (has_any(query, &["code", "error"]) || !has_any(query, &[TIME, SIGN]))
}

/// Whether a query has one of these parameters.
pub(super) fn has_any(query: &str, names: &[&str]) -> bool {
    values(query, names).next().is_some()
}

fn values<'q>(query: &'q str, names: &[&str]) -> impl Iterator<Item = Cow<'q, str>> {
    let named = parse(query.as_bytes()).filter(|(name, _)| names.contains(&&**name));
    named.map(|(_, value)| value)
}

/// Whether a browser loads the address before its user has opened it: <https://wicg.github.io/nav-speculation/prefetch.html>,
/// and the headers that preceded `Sec-Purpose`.
fn is_prefetch(headers: &(impl Headers + ?Sized)) -> bool {
    let is_one_of = |word: &[u8], known: &[&str]| {
        let mut known = known.iter();
        known.any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
    };
    headers.each().any(|(name, value)| {
        let mut words = value.split(|byte| !byte.is_ascii_alphabetic());
        is_one_of(name, &["sec-purpose", "purpose", "x-moz", "x-purpose"])
            && words.any(|word| is_one_of(word, &["prefetch", "prerender", "preview"]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::tests::sign_config, request::RawHeaders};

    fn match_head(
        method: Method,
        body: BodyLength,
        target: &str,
        head: &str,
    ) -> Result<Option<Callback>, Rejection> {
        let target = Target::parse(target.as_bytes()).unwrap();
        match_callback(
            method,
            body,
            target,
            &RawHeaders(head.as_bytes()),
            &sign_config(""),
        )
    }

    fn match_get(target: &str) -> Result<Option<Callback>, Rejection> {
        match_head(Method::Get, BodyLength::None, target, "")
    }

    fn of_v1() -> Callback {
        let version = Some("v1".to_owned());
        Callback {
            version,
            extended: None,
        }
    }

    #[test]
    fn a_providers_redirect_is_a_callback_whatever_else_it_has() {
        let many = format!("/login?state=v1.abc&code=x&{}", "a=b&".repeat(1000));
        for target in [
            "/login?state=v1.abc&code=xyz",
            "/login?code=xyz&state=v1.abc",
            "/login?state=v1.abc&error=access_denied&error_description=no&error_uri=u",
            "/login?provider=github&code=x&state=v1.abc&iss=i",
            "/login?state=v1.abc&code=x&iss=i&scope=s&session_state=t&authuser=0&hd=h&prompt=none",
            "/login?%73tate=v1.abc&code=",
            "/login?&state=v1.abc&code&",
            "/login?code=x&state=v1.abc&userState=Authenticated&locale=en",
            "/login?code=x&state=v1.abc&cid=abc",
            "/login?code=x&state=v1.abc&scope=a&scope=b",
            "/login?error=access_denied&state=v1.abc&locale=en&locale=de",
            "/login?code=x&state=v1.abc&time=1&sign=2&%73ign=3&app=b",
            "/login?code=x&state=v1.abc&confirm=c&return_to=d",
            "/login?code=x&state=v1.abc&error=",
            "/login?code=&state=v1.abc&error=access_denied",
            "/login?code=x&state=v1.abc&a=%zz&%&b=%ff&%fe=%e4%f6&error_description=Acc%E8s",
            "/login?code=x&state=v1.abc&State=b&state[]=c&sign",
            &many,
        ] {
            assert_eq!(match_get(target).unwrap(), Some(of_v1()), "{target}");
        }
    }

    #[test]
    fn the_page_of_a_login_and_its_links_are_callbacks_unless_they_are_signed() {
        for target in [
            "/login?state=v1.abc",
            "/login?&state=v1.abc&",
            "/login?state=v1.abc&confirm=c&provider=github",
            "/login?state=v1.abc&fbclid=a&utm_source=b&utm_source=c&x=%zz",
            "/login?state=v1.abc&confirm=c&gclid=d",
        ] {
            assert_eq!(match_get(target).unwrap(), Some(of_v1()), "{target}");
        }
        for target in [
            "/login?state=v1.abc&sign=b",
            "/login?state=v1.abc&%73ign=b&time=1",
            "/login?state=v1.abc&state=v1.abc&time=1",
            "/login?state=v1.abc&confirm=c&time",
        ] {
            assert_eq!(match_get(target).unwrap(), None, "{target}");
        }
    }

    #[test]
    fn other_requests_are_not_callbacks() {
        for target in [
            "/login",
            "/login?code=xyz",
            "/login?error=xyz&sign=a",
            "/login?State=a&code=b",
            "/login?stat%zz=a&code=b",
            "/LOGIN?state=a&code=b",
            "//login?state=a&code=b",
            "/login/?state=a&code=b",
            "/%6cogin?state=a&code=b",
            "/login;x?state=a&code=b",
            "/check?state=a&code=b&state=c",
        ] {
            assert_eq!(match_get(target).unwrap(), None, "{target}");
        }
        let matched = |method, body| {
            let prefetch = "\r\nSec-Purpose: prefetch\r\n";
            match_head(method, body, "/login?state=a&code=b", prefetch).unwrap()
        };
        assert_eq!(matched(Method::Post, BodyLength::None), None);
        assert_eq!(matched(Method::Get, BodyLength::Known(1)), None);
    }

    #[test]
    fn what_has_a_meaning_may_appear_once() {
        for (target, expected) in [
            ("/login?state=a&state=a&code=b", "state"),
            ("/login?state=a&st%61te=b", "state"),
            ("/login?state=a&code=b&code=", "code"),
            ("/login?state=a&error=b&error=b&sign=c", "error"),
            ("/login?state=a&confirm=b&confirm=c", "confirm"),
            ("/login?state=a&code=b&iss=c&%69ss=c", "iss"),
            ("/login?state=a&provider=b&provider=b", "provider"),
            ("/login?state=a&code=b&error=c", "code|error"),
        ] {
            let error = match_get(target).unwrap_err();
            let Rejection::ParamDuplicated { name } = error else {
                panic!("{target}: {error}")
            };
            assert_eq!(name, expected, "{target}");
        }
    }

    #[test]
    fn a_state_without_a_version_is_a_callback_too() {
        for target in [
            "/login?state=abc",
            "/login?state",
            "/login?state=%ff%zz&code=x",
        ] {
            let callback = match_get(target).unwrap();
            assert_eq!(callback.unwrap().version, None, "{target}");
        }
    }

    #[test]
    fn a_prefetch_of_any_address_of_logins_is_refused() {
        for header in [
            "Sec-Purpose: prefetch",
            "sec-purpose: prefetch;prerender",
            "Sec-Purpose: prefetch; anonymous-client-ip",
            "Sec-Purpose: Prefetch,x",
            "Purpose: prefetch",
            "X-Moz: prefetch",
            "X-Purpose: preview",
        ] {
            let head = format!("GET /login HTTP/1.1\r\nHost: a\r\n{header}\r\n");
            for query in [
                "",
                "?state=a",
                "?state=a&code=b",
                "?return_to=a&time=1&sign=b",
            ] {
                let target = format!("/login{query}");
                let error = match_head(Method::Get, BodyLength::None, &target, &head).unwrap_err();
                assert!(
                    matches!(error, Rejection::PrefetchRefused),
                    "{header}: {error}"
                );
            }
            match_head(Method::Get, BodyLength::None, "/user", &head).unwrap();
        }
        for other in [
            "Sec-Purpose: navigate",
            "Purpose: x",
            "Accept: prefetch",
            "Sec-Purpose-X: prefetch",
        ] {
            let head = format!("GET /login HTTP/1.1\r\n{other}\r\n");
            match_head(Method::Get, BodyLength::None, "/login", &head).unwrap();
        }
    }
}
