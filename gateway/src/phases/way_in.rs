//! The unsigned way in: the provider's redirect, which can neither be signed nor carry our headers.
//!
//! CONTRACT 3. It is exactly as narrow as it can be; anything else is an ordinary request.

use gateway_protocol::{
    login_state::version_of,
    param::Params,
    sign::{SIGN, TIME},
};

use crate::{
    config::SignConfig,
    request::{BodyLength, Method, Target},
};

/// Names that providers add to a redirect, each at most once.
const PROVIDERS_OWN: [&str; 8] = [
    "error_description",
    "error_uri",
    "iss",
    "scope",
    "session_state",
    "authuser",
    "hd",
    "prompt",
];

/// What may stand beside `state`: the provider's answer, or our own page's button. At most one of them.
const OUTCOMES: [&str; 3] = ["code", "error", "confirm"];

/// A request on the unsigned way in. Only [`callback`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Callback {
    version: Option<String>,
}

impl Callback {
    /// The version that `state` says it was issued by, not yet known to exist.
    #[must_use]
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }
}

/// Whether a request is on the unsigned way in.
#[must_use]
pub(crate) fn callback(
    method: Method,
    body: BodyLength,
    target: Target<'_>,
    config: &SignConfig,
) -> Option<Callback> {
    let is_callback_path = config.callback_paths.iter().any(|path| path == target.path);
    if method != Method::Get || body != BodyLength::None || !is_callback_path {
        return None;
    }
    // A redirect has a handful of parameters; a request with more is no redirect.
    let params = Params::parse(target.query.as_bytes(), b"", 1 + 1 + PROVIDERS_OWN.len()).ok()?;
    let count = |name: &str| {
        params
            .iter()
            .filter(|param| param.key() == name.as_bytes())
            .count()
    };
    let is_allowed = |name: &[u8]| {
        name == b"state"
            || OUTCOMES
                .iter()
                .chain(&PROVIDERS_OWN)
                .any(|allowed| allowed.as_bytes() == name)
    };
    let has_one_state = count("state") == 1;
    let has_no_sign = count(TIME) == 0 && count(SIGN) == 0;
    let has_one_outcome = OUTCOMES.iter().map(|name| count(name)).sum::<usize>() <= 1;
    let has_no_doubles = PROVIDERS_OWN.iter().all(|name| count(name) <= 1);
    let has_nothing_else = params.iter().all(|param| is_allowed(param.key()));
    if !(has_one_state && has_no_sign && has_one_outcome && has_no_doubles && has_nothing_else) {
        return None;
    }
    let state = params.iter().find(|param| param.key() == b"state")?.value();
    let version = std::str::from_utf8(&state)
        .ok()
        .and_then(version_of)
        .map(str::to_owned);
    Some(Callback { version })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::sign_config;

    fn way_in(method: Method, body: BodyLength, target: &str) -> Option<Callback> {
        let target = Target::parse(target.as_bytes()).unwrap();
        callback(method, body, target, &sign_config(""))
    }

    #[test]
    fn the_providers_redirect_is_on_it() {
        for target in [
            "/login?state=v1.abc",
            "/login?state=v1.abc&code=xyz",
            "/login?code=xyz&state=v1.abc",
            "/login?state=v1.abc&error=access_denied&error_description=no&error_uri=u",
            "/login?state=v1.abc&confirm=c",
            "/login?state=v1.abc&code=x&iss=i&scope=s&session_state=t&authuser=0&hd=h&prompt=none",
            "/login?%73tate=v1.abc&code=",
            "/login?&state=v1.abc&",
        ] {
            let callback = way_in(Method::Get, BodyLength::None, target);
            assert_eq!(
                callback,
                Some(Callback {
                    version: Some("v1".to_owned())
                }),
                "{target}"
            );
        }
    }

    #[test]
    fn nothing_else_is_on_it() {
        for target in [
            "/login",
            "/login?code=xyz",
            "/login?state=a&state=b",
            "/login?state=a&code=b&code=c",
            "/login?state=a&code=b&error=c",
            "/login?state=a&code=b&confirm=c",
            "/login?state=a&scope=b&scope=c",
            "/login?state=a&code=b&other=c",
            "/login?state=a&app=b",
            "/login?state=a&sign=b",
            "/login?state=a&%73ign=b",
            "/login?state=a&time=1",
            "/login?state=%ff",
            "/login?state=%zz",
            "/LOGIN?state=a",
            "//login?state=a",
            "/login/?state=a",
            "/%6cogin?state=a",
            "/login;x?state=a",
            "/check?state=a",
        ] {
            assert_eq!(
                way_in(Method::Get, BodyLength::None, target),
                None,
                "{target}"
            );
        }
        assert_eq!(
            way_in(Method::Post, BodyLength::None, "/login?state=a&code=b"),
            None
        );
        assert_eq!(
            way_in(Method::Get, BodyLength::Known(1), "/login?state=a&code=b"),
            None
        );
        assert_eq!(
            way_in(Method::Get, BodyLength::Unknown, "/login?state=a&code=b"),
            None
        );
    }

    #[test]
    fn a_state_without_a_version_is_on_it_all_the_same() {
        let callback = way_in(Method::Get, BodyLength::None, "/login?state=abc");
        assert_eq!(callback, Some(Callback { version: None }));
    }
}
