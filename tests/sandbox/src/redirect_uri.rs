//! Bitbucket's rule for `redirect_uri`: the registered callback, or a path below it.

use url::Url;

/// The callback to use: `given` if the rule allows it, the registered one if nothing was given, else `None`.
#[must_use]
pub fn choose(registered: &Url, given: Option<&str>) -> Option<Url> {
    let Some(given) = given else {
        return Some(registered.clone());
    };
    let base = registered.as_str();
    let extends = given
        .strip_prefix(base)
        .is_some_and(|rest| base.ends_with('/') || rest.is_empty() || rest.starts_with('/'));
    let url = Url::parse(given).ok()?;
    // Parsing resolves `..`. A URL that it changes does not match the registered one.
    (extends && url.as_str() == given && url.query().is_none() && url.fragment().is_none())
        .then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registered_callback_may_be_extended_by_a_path() {
        let registered = Url::parse("http://127.0.0.1:8080/login").unwrap();
        for allowed in [
            "http://127.0.0.1:8080/login",
            "http://127.0.0.1:8080/login/v1",
        ] {
            assert_eq!(
                choose(&registered, Some(allowed)).unwrap().as_str(),
                allowed
            );
        }
        assert_eq!(choose(&registered, None).unwrap(), registered);
    }

    #[test]
    fn anything_else_is_rejected() {
        let registered = Url::parse("http://127.0.0.1:8080/login").unwrap();
        for rejected in [
            "http://127.0.0.1:8080/loginx",
            "http://127.0.0.1:8080/",
            "http://127.0.0.1:8080/login/../x",
            "http://127.0.0.1:8080/login?x=1",
            "http://127.0.0.1:8080/login#x",
            "http://127.0.0.1:8081/login",
            "https://127.0.0.1:8080/login",
            "/login",
        ] {
            assert_eq!(choose(&registered, Some(rejected)), None, "{rejected}");
        }
    }
}
