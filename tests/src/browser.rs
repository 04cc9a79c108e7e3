//! An imitated browser: cookies, redirects one by one, pages and their buttons.

pub use cookie_store::RawCookie as Cookie;
use cookie_store::{CookieError, CookieStore};
use reqwest::{Client, RequestBuilder};
use url::{Origin, Url, form_urlencoded};

use crate::{
    html::{Form, forms, links},
    response::Response,
    signed_client::{http_client, http_client_without_keep_alive},
};

/// A browser with its own cookies. Two of them are two users, or two profiles of one user.
#[derive(Debug)]
pub struct Browser {
    http: Client,
    cookies: CookieStore,
    /// Sent as `Accept`.
    accept: &'static str,
    /// Sent as `Accept-Language`.
    pub accept_language: String,
    detour: Option<Detour>,
}

/// Sends requests for the public origin to one gateway, as a load balancer in front of several gateways would.
#[derive(Clone, Debug)]
struct Detour {
    public: Origin,
    gateway: Url,
}

/// A page: its URL and the response.
#[derive(Clone, Debug)]
pub struct Page {
    /// URL after all redirects.
    pub url: Url,
    /// The whole response.
    pub response: Response,
}

/// The button that the user presses on the provider's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Allow.
    Allow,
    /// Deny.
    Deny,
}

impl Default for Browser {
    fn default() -> Self {
        Self::with_language("en")
    }
}

impl Browser {
    /// A new browser without cookies, with this `Accept-Language`.
    #[must_use]
    pub fn with_language(accept_language: &str) -> Self {
        let accept_language = accept_language.to_owned();
        Self {
            http: http_client(),
            cookies: CookieStore::new(),
            accept: "text/html,application/xhtml+xml,*/*;q=0.8",
            accept_language,
            detour: None,
        }
    }

    /// A client that keeps cookies and follows redirects, and takes data and no pages: a redirect login without `return_to`
    /// gives it the login result.
    #[must_use]
    pub fn for_data() -> Self {
        Self {
            accept: "*/*",
            ..Self::default()
        }
    }

    /// Sends requests for `public` to `gateway` from now on; both are origins.
    ///
    /// # Panics
    ///
    /// When one of them is not a URL.
    pub fn route_through(&mut self, public: &str, gateway: &str) {
        let public = Url::parse(public).expect("an origin").origin();
        let gateway = Url::parse(gateway).expect("an origin");
        self.detour = Some(Detour { public, gateway });
    }

    /// A new browser that opens a connection for every request, so that no idle connection can fail.
    ///
    /// # Panics
    ///
    /// See [`http_client`].
    #[must_use]
    pub fn without_keep_alive() -> Self {
        Self {
            http: http_client_without_keep_alive(),
            ..Self::default()
        }
    }

    /// Its cookies, in the order in which they were received, with their attributes as they were set.
    #[must_use]
    pub fn cookies(&self) -> Vec<Cookie<'static>> {
        let held = self.cookies.iter_unexpired();
        held.map(|cookie| Cookie::clone(cookie)).collect()
    }

    /// Deletes all cookies.
    pub fn clear_cookies(&mut self) {
        self.cookies.clear();
    }

    /// Adds a cookie as if `url` had set it, as an attacker with access to the machine could.
    ///
    /// # Panics
    ///
    /// When a browser would reject it from there.
    pub fn put_cookie(&mut self, cookie: &Cookie<'_>, url: &str) {
        let url = Url::parse(url).expect("the URL that sets it");
        let put = self.cookies.insert_raw(cookie, &url);
        put.expect("a cookie that a browser accepts");
    }

    /// Opens a URL without following a redirect.
    ///
    /// # Panics
    ///
    /// When the URL is invalid, or no response comes.
    pub async fn step(&mut self, url: &str) -> Page {
        self.try_step(url).await.expect("the server answers")
    }

    /// Opens a URL without following a redirect.
    ///
    /// # Errors
    ///
    /// When no response comes.
    ///
    /// # Panics
    ///
    /// When the URL is invalid.
    pub async fn try_step(&mut self, url: &str) -> reqwest::Result<Page> {
        let url = Url::parse(url).expect("a URL to open");
        self.exchange(url, |http, url| http.get(url)).await
    }

    /// Opens a URL and follows redirects, as long as they stay on this machine.
    ///
    /// # Panics
    ///
    /// See [`Browser::step`]; or when the redirects do not end.
    pub async fn open(&mut self, url: &str) -> Page {
        let page = self.step(url).await;
        self.follow(page).await
    }

    /// Submits a form with additional fields, without following a redirect.
    ///
    /// # Panics
    ///
    /// See [`Browser::step`].
    pub async fn submit(&mut self, page: &Page, form: &Form, fields: &[(&str, &str)]) -> Page {
        let mut url = page
            .url
            .join(&form.action)
            .expect("a form has a valid target");
        let encoded = encode(form, fields);
        let sent = if form.method == "post" {
            let request = |http: &Client, url| {
                http.post(url)
                    .header("content-type", "application/x-www-form-urlencoded")
                    .body(encoded)
            };
            self.exchange(url, request).await
        } else {
            url.set_query(Some(&encoded));
            self.exchange(url, |http, url| http.get(url)).await
        };
        sent.expect("the server answers")
    }

    /// On a polling login's page: presses its button, a link or a form, and follows the redirects.
    ///
    /// # Panics
    ///
    /// When the page has no such button.
    pub async fn confirm(&mut self, page: &Page) -> Page {
        if let Some(url) = page.confirmation() {
            return self.open(url.as_str()).await;
        }
        panic!("no button to confirm with: {}", page.response.summary());
    }

    /// On the provider's page: picks a user and presses a button. Stops at the redirect back.
    ///
    /// # Panics
    ///
    /// When this is not the provider's page.
    pub async fn decide(&mut self, page: &Page, user: &str, decision: Decision) -> Page {
        let form = page.forms().into_iter().next();
        let form = form.unwrap_or_else(|| panic!("no form: {}", page.response.summary()));
        let is_providers = form.action.contains("/auth");
        assert!(is_providers, "{}", form.action);
        let pressed = match decision {
            Decision::Allow => "allow",
            Decision::Deny => "deny",
        };
        let field = if user.contains(':') { "other" } else { "user" };
        self.submit(page, &form, &[(field, user), ("decision", pressed)])
            .await
    }

    /// On the provider's page: picks a user, presses a button, and follows the redirects.
    ///
    /// # Panics
    ///
    /// See [`Browser::decide`].
    pub async fn decide_and_follow(&mut self, page: &Page, user: &str, pressed: Decision) -> Page {
        let page = self.decide(page, user, pressed).await;
        self.follow(page).await
    }

    /// Follows redirects from a page, as long as they stay on this machine.
    ///
    /// # Panics
    ///
    /// When they do not end.
    pub async fn follow(&mut self, mut page: Page) -> Page {
        for _ in 0..MAX_REDIRECTS {
            match page.redirect() {
                Some(next) if is_here(&next) => {
                    page = self.step(next.as_str()).await;
                }
                _ => return page,
            }
        }
        panic!("redirected more than {MAX_REDIRECTS} times: {}", page.url);
    }

    async fn exchange(
        &mut self,
        url: Url,
        request: impl FnOnce(&Client, Url) -> RequestBuilder,
    ) -> reqwest::Result<Page> {
        let detour = self.detour.as_ref();
        let detour = detour.filter(|detour| detour.public == url.origin());
        let mut request = request(
            &self.http,
            detour.map_or_else(|| url.clone(), |detour| detour.around(&url)),
        );
        if detour.is_some() {
            request = request.header("host", url.authority());
        }
        request = request
            .header("accept", self.accept)
            .header("accept-language", &self.accept_language)
            .header("sec-fetch-mode", "navigate")
            .header("sec-fetch-dest", "document");
        let sent = self.cookies.get_request_values(&url);
        let sent: Vec<String> = sent
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if !sent.is_empty() {
            request = request.header("cookie", sent.join("; "));
        }
        let response = Response::try_read(request.send().await?).await?;
        for line in response.headers.get_all("set-cookie") {
            self.store_cookie(line.to_str().expect("a cookie is text"), &url);
        }
        Ok(Page { url, response })
    }

    /// Stores a received cookie. All of ours are well-formed and for their own host, so any other one fails the test.
    fn store_cookie(&mut self, line: &str, url: &Url) {
        let cookie =
            Cookie::parse(line).unwrap_or_else(|cause| panic!("not a cookie ({cause}): {line}"));
        // On loopback, too, where the cookie store would accept it from http.
        let is_refused = cookie.secure() == Some(true) && url.scheme() != "https";
        if is_refused {
            return;
        }
        match self.cookies.insert_raw(&cookie, url) {
            // A cookie that is already expired deletes the stored one, if any.
            Ok(_) | Err(CookieError::Expired) => {}
            Err(cause) => panic!("{url} may not set this ({cause}): {line}"),
        }
    }
}

impl Detour {
    fn around(&self, url: &Url) -> Url {
        let mut around = self.gateway.clone();
        around.set_path(url.path());
        around.set_query(url.query());
        around
    }
}

fn encode(form: &Form, fields: &[(&str, &str)]) -> String {
    let mut encoder = form_urlencoded::Serializer::new(String::new());
    encoder.extend_pairs(&form.hidden).extend_pairs(fields);
    encoder.finish()
}

/// More redirects than any login has.
const MAX_REDIRECTS: usize = 10;

impl Page {
    /// The body.
    #[must_use]
    pub fn text(&self) -> String {
        self.response.text()
    }

    /// Its forms.
    #[must_use]
    pub fn forms(&self) -> Vec<Form> {
        forms(&self.text())
    }

    /// The targets of its links, as absolute URLs.
    ///
    /// # Panics
    ///
    /// When a link is invalid.
    #[must_use]
    pub fn links(&self) -> Vec<Url> {
        let resolve = |link: &String| self.url.join(link).expect("a link has a valid target");
        links(&self.text()).iter().map(resolve).collect()
    }

    /// The target of the button on a polling login's page.
    ///
    /// # Panics
    ///
    /// When its form has an invalid target, or must be posted.
    #[must_use]
    pub fn confirmation(&self) -> Option<Url> {
        let link = self
            .links()
            .into_iter()
            .find(|link| param(link, "confirm").is_some());
        link.or_else(|| {
            let has_confirm = |form: &Form| form.hidden.iter().any(|(name, _)| name == "confirm");
            let form = self.forms().into_iter().find(has_confirm)?;
            assert_ne!(form.method, "post", "a POST would have to be signed");
            let mut url = self
                .url
                .join(&form.action)
                .expect("a form has a valid target");
            url.query_pairs_mut().clear().extend_pairs(&form.hidden);
            Some(url)
        })
    }

    /// The target of the redirect, if the page is one.
    ///
    /// # Panics
    ///
    /// When the target is invalid.
    #[must_use]
    pub fn redirect(&self) -> Option<Url> {
        let location = self.response.header("location")?;
        self.response.status.is_redirection().then(|| {
            self.url
                .join(location)
                .expect("a redirect has a valid target")
        })
    }

    /// A parameter of the redirect's target.
    #[must_use]
    pub fn redirect_param(&self, name: &str) -> Option<String> {
        param(&self.redirect()?, name)
    }
}

/// A query parameter of a URL, decoded.
#[must_use]
pub fn param(url: &Url, name: &str) -> Option<String> {
    url.query_pairs()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

/// Whether a URL is on this machine, by address or by the sandbox provider's name in docker-compose.yml.
fn is_here(url: &Url) -> bool {
    matches!(url.host_str(), Some("127.0.0.1" | "provider.localhost"))
}
