//! `[outgoing]`: the forward proxy of calls to providers and collectors. `conf/gateway.toml`.

use std::{env, net::IpAddr, time::Duration};

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{ClientBuilder, NoProxy, Proxy};
use signpost_protocol::hide_in_debug;
use url::Url;

use crate::config::{Read, Section};

const PROXY: &str = "proxy";
const ALLOWED: &str = "\"http://HOST:PORT\", \"http://USER:PASSWORD@HOST:PORT\" or https, without a path; \"none\"; or \"env:NAME\", \
                       \"file:PATH\" with one of these";
/// Always called directly.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

/// After this time an idle connection is not used again. Node, the strictest of common servers, closes one after 5 s, and a
/// POST that meets the close cannot be repeated: the login fails.
const MAX_IDLE: Duration = Duration::from_secs(4);

/// The proxies of calls by http and by https, and what is called directly. Proxies can have a password. The default has none.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// As URLs; empty: none.
    http: String,
    https: String,
    /// As in the variable `NO_PROXY`.
    direct: String,
}

hide_in_debug!(Outgoing);

impl Outgoing {
    /// Reads `[outgoing]`; without its key, the variables `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.
    ///
    /// # Errors
    ///
    /// A key or a variable is invalid.
    pub fn read(section: &mut Section<'_>) -> Read<Self> {
        Self::read_with(section, |name| env::var(name).ok())
    }

    fn read_with(
        section: &mut Section<'_>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Read<Self> {
        let allowed = "names with all below them, IP addresses, networks, or \"*\"";
        let direct = section.list("no_proxy", &[], allowed, exception);
        let (key, mut direct) = (section.secret(PROXY)?, direct?);
        let named = |name: &str| variable(name).or_else(|| variable(&name.to_lowercase()));
        let read = |source: &str, text: Option<String>| match text.unwrap_or_default() {
            text if text.is_empty() || text == "none" => Ok(String::new()),
            text => proxy(&text).ok_or_else(|| {
                section.problem(PROXY, &format!("a value of {source} that is none"), ALLOWED)
            }),
        };
        let (http, https) = if let Some(key) = key {
            let proxy = read("this key", Some(key.expose().to_owned()))?;
            (Ok(proxy.clone()), Ok(proxy))
        } else {
            direct.extend(named("NO_PROXY"));
            // A CGI program's HTTP_PROXY is a header of its client.
            let http = named("HTTP_PROXY").filter(|_| variable("REQUEST_METHOD").is_none());
            let https = read("the variable HTTPS_PROXY", named("HTTPS_PROXY"));
            (read("the variable HTTP_PROXY", http), https)
        };
        let direct = format!("{LOOPBACK},{}", direct.join(","));
        crate::read_all!(Self {
            http,
            https,
            direct: Ok(direct)
        })
    }

    /// A client that calls by these proxies, and follows no redirects: what it sends is for the configured URL only.
    ///
    /// # Errors
    ///
    /// The library rejects a proxy.
    pub fn client(&self) -> reqwest::Result<ClientBuilder> {
        // An error means that the program has installed one already. Without one, reqwest panics.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let direct = NoProxy::from_string(&self.direct);
        let mut client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            // Those of the environment, which are read above.
            .no_proxy()
            .pool_idle_timeout(MAX_IDLE)
            .user_agent(concat!("signpost/", env!("CARGO_PKG_VERSION")));
        if !self.https.is_empty() {
            client = client.proxy(Proxy::https(&*self.https)?.no_proxy(direct.clone()));
        }
        if !self.http.is_empty() {
            client = client.proxy(Proxy::http(&*self.http)?.no_proxy(direct));
        }
        Ok(client)
    }

    /// How a call gets there, for the log: ` by the proxy http://…/ (outgoing.proxy)`, without its password; or nothing.
    #[must_use]
    pub fn shown(&self, destination: &Uri) -> String {
        let (http, https) = (self.http.clone(), self.https.clone());
        let matcher = Matcher::builder().http(http).https(https);
        let proxy = matcher
            .no(self.direct.clone())
            .build()
            .intercept(destination);
        proxy.map_or_else(String::new, |proxy| {
            format!(" by the proxy {} (outgoing.{PROXY})", proxy.uri())
        })
    }
}

/// A proxy's URL. Without a scheme, as variables often have it, it is http.
fn proxy(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(Url::has_host);
    let url = url.or_else(|| Url::parse(&format!("http://{text}")).ok())?;
    let is_origin = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    (matches!(url.scheme(), "http" | "https") && is_origin).then(|| url.into())
}

/// What the library takes in `NO_PROXY`: of a pattern or a port it would match nothing.
fn exception(text: &str) -> Option<String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let (address, _) = text.split_once('/').unwrap_or((text, ""));
    let is_taken = text == "*" || address.parse::<IpAddr>().is_ok() || text.bytes().all(is_name);
    (is_taken && !text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::{
        path::Path,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::SeqCst},
        },
    };

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;
    use crate::config::parse;

    fn read(text: &str, variables: &[(&str, &str)]) -> Result<Outgoing, String> {
        let variable = |name: &str| {
            let mut all = variables.iter();
            all.find_map(|(key, value)| (*key == name).then(|| (*value).to_owned()))
        };
        let read = parse(Path::new("x.toml"), text, |root| {
            root.section("outgoing", |section| Outgoing::read_with(section, variable))
        });
        let read = read.map_err(|error| error.to_string())?;
        Ok(read.config)
    }

    #[track_caller]
    fn assert_by(text: &str, variables: &[(&str, &str)], destination: &str, proxy: Option<&str>) {
        let outgoing = read(text, variables).unwrap();
        let shown = outgoing.shown(&destination.parse().unwrap());
        let expected = proxy.map(|proxy| format!(" by the proxy {proxy} (outgoing.proxy)"));
        assert_eq!(shown, expected.unwrap_or_default(), "{text} {variables:?}");
        assert!(outgoing.client().unwrap().build().is_ok());
        assert!(!format!("{outgoing:?}{shown}").contains("hush"));
    }

    #[tokio::test]
    async fn a_connection_is_used_again_unless_it_was_idle_for_long() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let accepted = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&accepted);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, SeqCst);
                tokio::spawn(async move {
                    while stream.read(&mut [0; 1024]).await.unwrap() > 0 {
                        let response = b"HTTP/1.1 204 No Content\r\n\r\n";
                        stream.write_all(response).await.unwrap();
                    }
                });
            }
        });
        let client = Outgoing::default().client().unwrap().build().unwrap();
        for (idle, connections) in [(Duration::ZERO, 1), (MAX_IDLE / 8, 1), (MAX_IDLE * 2, 2)] {
            tokio::time::pause();
            tokio::time::advance(idle).await;
            tokio::time::resume();
            client.get(&url).send().await.unwrap();
            assert_eq!(accepted.load(SeqCst), connections, "{idle:?}");
        }
    }

    const KEY: &str = "[outgoing]\nproxy = 'http://me:hush@10.0.0.1:3128'\nno_proxy = ['.near.example', '10.0.0.0/8']";

    #[test]
    fn the_key_is_used_but_for_its_exceptions_and_loopback() {
        let key = Some("http://10.0.0.1:3128/");
        for (destination, proxy) in [
            ("https://far.example/x", key),
            ("http://far.example:8080/x", key),
            ("https://a.near.example", None),
            ("https://near.example", None),
            ("https://10.2.3.4", None),
            ("http://127.0.0.1:4318", None),
            ("http://localhost:4318", None),
            ("http://[::1]:4318", None),
        ] {
            assert_by(KEY, &[], destination, proxy);
        }
    }

    #[test]
    fn without_the_key_variables_are_used() {
        let (https, http) = ("https://far.example", "http://far.example");
        let variables = [
            ("HTTPS_PROXY", "me:hush@s:1"),
            ("http_proxy", "http://p:2/"),
        ];
        assert_by("", &variables, https, Some("http://s:1/"));
        assert_by("", &variables, http, Some("http://p:2/"));
        assert_by("", &variables, "https://localhost", None);
        assert_by("", &[("https_proxy", "")], https, None);
        assert_by("", &[("https_proxy", "https://s:1")], http, None);
        let excepted = [variables[0], ("no_proxy", "far.example, x")];
        assert_by("", &excepted, https, None);
        assert_by(
            "[outgoing]\nno_proxy = ['far.example']",
            &variables,
            https,
            None,
        );
        let cgi = [("HTTP_PROXY", "p:2"), ("REQUEST_METHOD", "GET")];
        assert_by("", &cgi, http, None);
        // The key wins, with its own exceptions.
        let key = Some("http://10.0.0.1:3128/");
        assert_by(KEY, &[("NO_PROXY", "*"), variables[0]], https, key);
        assert_by("[outgoing]\nproxy = 'none'", &variables, https, None);
    }

    #[test]
    fn an_invalid_value_is_named_and_not_shown() {
        for bad in [
            "socks5://hush:1",
            "http://hush:1/path",
            "http://a:hush",
            "http://",
            "hush^",
        ] {
            for (text, variables, source) in [
                (
                    format!("[outgoing]\nproxy = \"{bad}\""),
                    vec![],
                    "a value of this key that is none",
                ),
                (
                    String::new(),
                    vec![("https_proxy", bad)],
                    "a value of the variable HTTPS_PROXY that is none",
                ),
            ] {
                let error = read(&text, &variables).unwrap_err();
                for part in [
                    "x.toml",
                    "outgoing.proxy",
                    source,
                    "allowed: \"http://HOST:PORT\"",
                ] {
                    assert!(error.contains(part), "{bad}: {error}");
                }
                assert!(!error.contains("hush"), "{error}");
            }
        }
        for bad in ["*.example", "a,b", "", "host:80", "http://a"] {
            let error = read(&format!("[outgoing]\nno_proxy = ['{bad}']"), &[]).unwrap_err();
            assert!(error.contains("outgoing.no_proxy"), "{error}");
        }
    }
}
