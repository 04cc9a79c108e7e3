//! The callback: the provider's redirect, which can neither be signed nor carry the gateway's headers. CONTRACT 3.
//!
//! It is recognised as narrowly as possible; everything else is an ordinary request.

use signpost_protocol::{
    login_state::version_of,
    param::Params,
    sign::{SIGN, TIME},
};

use crate::{
    config::SignConfig,
    request::{BodyLength, Method, Target},
};

/// Parameters that providers add to a redirect, and the provider that the user chooses on login's own page; each at most
/// once.
const FURTHER_PARAMS: [&str; 9] = [
    "error_description",
    "error_uri",
    "iss",
    "scope",
    "session_state",
    "authuser",
    "hd",
    "prompt",
    "provider",
];

/// The outcome beside `state`: the provider's response, or the button of login's own page. At most one of them.
const OUTCOME_PARAMS: [&str; 3] = ["code", "error", "confirm"];

/// A callback request; only [`match_callback`] creates one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Callback {
    version: Option<String>,
}

impl Callback {
    /// The version in `state`, which claims to have issued it; it may not exist.
    #[must_use]
    pub(crate) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }
}

/// Returns the callback if the request is one.
#[must_use]
pub(crate) fn match_callback(
    method: Method,
    body: BodyLength,
    target: Target<'_>,
    config: &SignConfig,
) -> Option<Callback> {
    let is_callback_path = config.callback_paths.iter().any(|path| path == target.path);
    if method != Method::Get || body != BodyLength::None || !is_callback_path {
        return None;
    }
    // `state`, one outcome and the further ones; a request with more is not a redirect.
    let params = Params::parse(target.query.as_bytes(), b"", 1 + 1 + FURTHER_PARAMS.len()).ok()?;
    let count = |name: &str| {
        params
            .iter()
            .filter(|param| param.key() == name.as_bytes())
            .count()
    };
    let is_allowed = |name: &[u8]| {
        name == b"state"
            || OUTCOME_PARAMS
                .iter()
                .chain(&FURTHER_PARAMS)
                .any(|allowed| allowed.as_bytes() == name)
    };
    let has_one_state = count("state") == 1;
    let has_no_sign = count(TIME) == 0 && count(SIGN) == 0;
    let has_one_outcome = OUTCOME_PARAMS.iter().map(|name| count(name)).sum::<usize>() <= 1;
    let has_no_doubles = FURTHER_PARAMS.iter().all(|name| count(name) <= 1);
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

    fn match_target(method: Method, body: BodyLength, target: &str) -> Option<Callback> {
        let target = Target::parse(target.as_bytes()).unwrap();
        match_callback(method, body, target, &sign_config(""))
    }

    #[test]
    fn a_providers_redirect_is_a_callback() {
        for target in [
            "/login?state=v1.abc",
            "/login?state=v1.abc&code=xyz",
            "/login?code=xyz&state=v1.abc",
            "/login?state=v1.abc&error=access_denied&error_description=no&error_uri=u",
            "/login?state=v1.abc&confirm=c",
            "/login?state=v1.abc&provider=github",
            "/login?provider=github&code=x&state=v1.abc&iss=i",
            "/login?state=v1.abc&confirm=c&provider=github",
            "/login?state=v1.abc&code=x&iss=i&scope=s&session_state=t&authuser=0&hd=h&prompt=none",
            "/login?%73tate=v1.abc&code=",
            "/login?&state=v1.abc&",
        ] {
            let callback = match_target(Method::Get, BodyLength::None, target);
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
    fn other_requests_are_not_callbacks() {
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
                match_target(Method::Get, BodyLength::None, target),
                None,
                "{target}"
            );
        }
        assert_eq!(
            match_target(Method::Post, BodyLength::None, "/login?state=a&code=b"),
            None
        );
        assert_eq!(
            match_target(Method::Get, BodyLength::Known(1), "/login?state=a&code=b"),
            None
        );
        assert_eq!(
            match_target(Method::Get, BodyLength::Unknown, "/login?state=a&code=b"),
            None
        );
    }

    #[test]
    fn a_state_without_a_version_is_a_callback_too() {
        let callback = match_target(Method::Get, BodyLength::None, "/login?state=abc");
        assert_eq!(callback, Some(Callback { version: None }));
    }
}
