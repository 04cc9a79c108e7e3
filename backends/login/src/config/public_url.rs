//! How browsers reach the gateway.

use std::str::FromStr;

use url::Url;

use crate::logins::LoginState;

/// The gateway's origin as browsers see it. What it decides: addresses handed out, and how cookies are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(Url);

impl PublicUrl {
    /// Whether browsers come by https, and so take `Secure` cookies.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Where the provider sends the browser back to: OAuth's `redirect_uri`. CONTRACT 8.
    #[must_use]
    pub fn callback(&self) -> Url {
        let mut url = self.0.clone();
        url.set_path("/login");
        url
    }

    /// A polling login's page.
    #[must_use]
    pub fn page(&self, state: &LoginState) -> Url {
        let mut url = self.callback();
        url.query_pairs_mut().append_pair("state", &state.encode());
        url
    }
}

impl FromStr for PublicUrl {
    type Err = ParsePublicUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text).map_err(|_| ParsePublicUrlError)?;
        let is_web = matches!(url.scheme(), "http" | "https");
        let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let is_anonymous = url.username().is_empty() && url.password().is_none();
        if is_web && is_bare && is_anonymous {
            Ok(Self(url))
        } else {
            Err(ParsePublicUrlError)
        }
    }
}

/// The address is not one that a gateway can be reached by: paths pass it unchanged, so it has none.
#[derive(Debug, thiserror::Error)]
#[error("an http or https origin without a path")]
pub struct ParsePublicUrlError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_an_origin() {
        for good in [
            "http://127.0.0.1:8080",
            "https://login.example/",
            "http://[::1]:80",
        ] {
            assert!(good.parse::<PublicUrl>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "login.example",
            "ftp://x",
            "https://x/path",
            "https://x/?q",
            "https://x/#f",
            "https://a@x/",
        ] {
            assert!(bad.parse::<PublicUrl>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_callback_is_its_login_path() {
        let url: PublicUrl = "https://login.example:8443".parse().unwrap();
        assert_eq!(url.callback().as_str(), "https://login.example:8443/login");
    }
}
