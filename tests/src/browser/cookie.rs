//! Cookies as a browser keeps them (RFC 6265).

use std::time::{Duration, Instant};

use url::Url;

/// A cookie as RFC 6265 has it. Like a real one, it knows no ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Where it is sent.
    pub path: String,
    /// Kept from scripts.
    pub is_http_only: bool,
    /// Sent over https only.
    pub is_secure: bool,
    /// `Lax`, `Strict`, `None`, or nothing.
    pub same_site: String,
    /// How long it lives.
    pub max_age: Option<Duration>,
    host: String,
    received: Instant,
}

impl Cookie {
    /// Reads a `Set-Cookie` line (RFC 6265 section 5.2).
    ///
    /// # Panics
    ///
    /// When it is none.
    #[must_use]
    pub fn parse(line: &str, url: &Url) -> Self {
        let mut parts = line.split(';').map(str::trim);
        let first = parts.next().and_then(|pair| pair.split_once('='));
        let (name, value) = first.unwrap_or_else(|| panic!("a cookie is a pair: {line}"));
        let mut cookie = Self {
            name: name.to_owned(),
            value: value.to_owned(),
            path: default_path(url),
            is_http_only: false,
            is_secure: false,
            same_site: String::new(),
            max_age: None,
            host: url.host_str().unwrap_or_default().to_owned(),
            received: Instant::now(),
        };
        for part in parts {
            let (attribute, value) = part.split_once('=').unwrap_or((part, ""));
            match attribute.to_ascii_lowercase().as_str() {
                "path" => cookie.path = value.to_owned(),
                "httponly" => cookie.is_http_only = true,
                "secure" => cookie.is_secure = true,
                "samesite" => cookie.same_site = value.to_owned(),
                "max-age" => {
                    let seconds: i64 = value.parse().expect("Max-Age is a number");
                    let seconds = u64::try_from(seconds).unwrap_or(0);
                    cookie.max_age = Some(Duration::from_secs(seconds));
                }
                _ => {}
            }
        }
        cookie
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.name, &self.path, &self.host) == (&other.name, &other.path, &other.host)
    }

    pub(super) fn goes_to(&self, url: &Url) -> bool {
        let path = url.path();
        let is_inside = path.strip_prefix(self.path.as_str()).is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/')
        });
        let is_alive = self.max_age.is_none_or(|age| self.received.elapsed() < age);
        let is_allowed = !self.is_secure || url.scheme() == "https";
        url.host_str() == Some(&self.host) && is_inside && is_alive && is_allowed
    }
}

/// RFC 6265 section 5.1.4.
fn default_path(url: &Url) -> String {
    match url.path().rsplit_once('/') {
        Some((folder, _)) if !folder.is_empty() => folder.to_owned(),
        _ => "/".to_owned(),
    }
}
