//! The providers' rules for `redirect_uri`.

use url::Url;

/// How a request's `redirect_uri` must relate to the registered callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The registered callback or a path below it; may be absent. Bitbucket's rule.
    RegisteredOrBelow,
    /// Byte for byte the registered callback (RFC 9700 section 2.1).
    Exact,
    /// As [`Self::Exact`], but it may be absent, and a mismatch is reported at the registered callback. GitHub's rule.
    ExactOrAbsent,
}

impl Rule {
    /// The callback to use: `given` if the rule allows it, or the registered one where nothing need be given.
    #[must_use]
    pub fn choose(self, registered: &Url, given: Option<&str>) -> Option<Url> {
        let Some(given) = given else {
            return (self != Self::Exact).then(|| registered.clone());
        };
        match self {
            Self::RegisteredOrBelow => below(registered, given),
            Self::Exact | Self::ExactOrAbsent => {
                (given == registered.as_str()).then(|| registered.clone())
            }
        }
    }
}

fn below(registered: &Url, given: &str) -> Option<Url> {
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
                Rule::RegisteredOrBelow
                    .choose(&registered, Some(allowed))
                    .unwrap()
                    .as_str(),
                allowed
            );
        }
        assert_eq!(
            Rule::RegisteredOrBelow.choose(&registered, None).unwrap(),
            registered
        );
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
            assert_eq!(
                Rule::RegisteredOrBelow.choose(&registered, Some(rejected)),
                None,
                "{rejected}"
            );
        }
    }

    #[test]
    fn an_exact_rule_takes_only_the_registered_callback() {
        let registered = Url::parse("http://127.0.0.1:8080/login").unwrap();
        for rule in [Rule::Exact, Rule::ExactOrAbsent] {
            let same = rule.choose(&registered, Some("http://127.0.0.1:8080/login"));
            assert_eq!(same.as_ref(), Some(&registered));
            for rejected in [
                "http://127.0.0.1:8080/login/",
                "http://127.0.0.1:8080/login/v1",
            ] {
                assert_eq!(rule.choose(&registered, Some(rejected)), None, "{rejected}");
            }
        }
        assert_eq!(Rule::Exact.choose(&registered, None), None);
        assert_eq!(
            Rule::ExactOrAbsent.choose(&registered, None),
            Some(registered)
        );
    }
}
