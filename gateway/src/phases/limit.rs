//! Decides which requests count against the limit of unsigned requests. CONTRACT 3, 7 and 8.
//!
//! Signed requests are never counted, so a flood of unsigned requests cannot get them rejected.

use gateway_protocol::{param::Params, sign::SIGN};

use crate::{config::SignConfig, request::Target};

/// Whether a request counts: a GET without `sign` on a browser or callback path. A request with a signature is
/// verified; if it is invalid, it never reaches a backend.
#[must_use]
pub(crate) fn is_unsigned(method: &[u8], target: Target<'_>, config: &SignConfig) -> bool {
    let is_target = |path: &String| path == target.path;
    method == b"GET"
        && (config.callback_paths.iter().any(is_target)
            || config.browser_paths.iter().any(is_target))
        && !target.query.split('&').any(is_sign)
}

/// Whether a pair of a query is the parameter `sign`, by its decoded key. CONTRACT 3.
fn is_sign(pair: &str) -> bool {
    let params = Params::parse(pair.as_bytes(), b"", 1);
    params.is_ok_and(|params| params.iter().any(|param| param.is_named(SIGN.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::sign_config;

    #[test]
    fn only_a_get_without_a_signature_on_a_browser_path_counts() {
        let config = sign_config("callback_paths = ['/back']\nbrowser_paths = ['/login']");
        let counts = |method: &str, target: &str| {
            is_unsigned(
                method.as_bytes(),
                Target::parse(target.as_bytes()).unwrap(),
                &config,
            )
        };
        for target in [
            "/login",
            "/login?provider=x",
            "/login?time=1&signs=2",
            "/back?state=a&code=b",
            "/login?%zz",
        ] {
            assert!(counts("GET", target), "{target}");
            assert!(!counts("POST", target), "{target}");
        }
        for target in [
            "/login?sign=",
            "/login?a=1&sign=0",
            "/login?a=1&s%69gn=0",
            "/user",
            "/check?state=a",
        ] {
            assert!(!counts("GET", target), "{target}");
        }
    }
}
