//! The gateway's origin as browsers see it.

use std::str::FromStr;

use signpost_kit::config::origin::{Origin, ParseOriginError};
use url::Url;

/// The gateway's origin as browsers see it. Determines the URLs sent to browsers, and the cookies' attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(Origin);

impl PublicUrl {
    /// Whether the scheme is https, so that cookies can be `Secure`.
    pub(crate) fn is_https(&self) -> bool {
        self.0.is_https()
    }

    /// OAuth's `redirect_uri`, where the provider sends the browser back to. CONTRACT 8.
    pub(crate) fn callback(&self) -> Url {
        let mut url = self.0.to_url();
        url.set_path("/login");
        url
    }

    /// The URL of the page of the polling login of `state`.
    pub(crate) fn page(&self, state: &str) -> Url {
        let mut url = self.callback();
        url.query_pairs_mut().append_pair("state", state);
        url
    }
}

impl FromStr for PublicUrl {
    type Err = ParseOriginError;

    /// Parses an origin. It has no path, since the gateway forwards paths unchanged.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_origin_is_accepted() {
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
    fn the_callback_is_the_login_path() {
        let url: PublicUrl = "https://login.example:8443".parse().unwrap();
        assert_eq!(url.callback().as_str(), "https://login.example:8443/login");
    }
}
