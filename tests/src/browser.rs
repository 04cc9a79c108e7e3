//! A browser: cookies, redirects one by one, pages and their buttons.

pub use cookie_store::RawCookie as Cookie;
use cookie_store::{CookieError, CookieStore};
use reqwest::{Client, RequestBuilder};
use url::{Origin, Url, form_urlencoded};

use crate::{
    answer::Answer,
    html::{Form, forms, links},
    signed_client::{http_client, http_client_without_kept_connections},
};

/// A browser with its cookies. Two of them are two people, or one person's two profiles.
#[derive(Debug)]
pub struct Browser {
    http: Client,
    cookies: CookieStore,
    /// Sent as `Accept-Language`.
    pub accept_language: String,
    detour: Option<Detour>,
}

/// What is addressed to one origin goes to another, as a balancer before several gateways would send it.
#[derive(Clone, Debug)]
struct Detour {
    public: Origin,
    gateway: Url,
}

/// Where the browser is, and what it shows.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its address.
    pub url: Url,
    /// The whole answer.
    pub answer: Answer,
}

/// What somebody presses on the provider's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Allow.
    Allow,
    /// Deny.
    Deny,
}

impl Default for Browser {
    fn default() -> Self {
        Self::speaking("en")
    }
}

impl Browser {
    /// A new browser without cookies that prefers a language.
    #[must_use]
    pub fn speaking(accept_language: &str) -> Self {
        let accept_language = accept_language.to_owned();
        Self {
            http: http_client(),
            cookies: CookieStore::new(),
            accept_language,
            detour: None,
        }
    }

    /// Sends from now on to `gateway` what is addressed to `public`; both are origins.
    ///
    /// # Panics
    ///
    /// When one of them is none.
    pub fn reach(&mut self, public: &str, gateway: &str) {
        let public = Url::parse(public).expect("an origin").origin();
        let gateway = Url::parse(gateway).expect("an origin");
        self.detour = Some(Detour { public, gateway });
    }

    /// A new browser that opens a connection for every step: none can be one that has just ended.
    ///
    /// # Panics
    ///
    /// See [`http_client`].
    #[must_use]
    pub fn without_kept_connections() -> Self {
        Self {
            http: http_client_without_kept_connections(),
            ..Self::default()
        }
    }

    /// The cookies it holds, in the order they came, with their attributes as they were set.
    #[must_use]
    pub fn cookies(&self) -> Vec<Cookie<'static>> {
        let held = self.cookies.iter_unexpired();
        held.map(|cookie| Cookie::clone(cookie)).collect()
    }

    /// Forgets all cookies.
    pub fn clear_cookies(&mut self) {
        self.cookies.clear();
    }

    /// Puts in a cookie as if `url` had set it, as somebody with a shell could.
    ///
    /// # Panics
    ///
    /// When no browser would take it from there.
    pub fn put_cookie(&mut self, cookie: &Cookie<'_>, url: &str) {
        let url = Url::parse(url).expect("an address that sets it");
        let put = self.cookies.insert_raw(cookie, &url);
        put.expect("a cookie that a browser takes");
    }

    /// Opens an address without following a redirect.
    ///
    /// # Panics
    ///
    /// When the address is none, or nobody answers.
    pub async fn step(&mut self, url: &str) -> Page {
        self.try_step(url).await.expect("somebody answers")
    }

    /// Opens an address without following a redirect.
    ///
    /// # Errors
    ///
    /// When nobody answers.
    ///
    /// # Panics
    ///
    /// When the address is none.
    pub async fn try_step(&mut self, url: &str) -> reqwest::Result<Page> {
        let url = Url::parse(url).expect("an address to open");
        self.exchange(url, |http, url| http.get(url)).await
    }

    /// Opens an address and follows redirects, as far as they stay on this machine.
    ///
    /// # Panics
    ///
    /// See [`Browser::step`]; or when the redirects do not end.
    pub async fn open(&mut self, url: &str) -> Page {
        let page = self.step(url).await;
        self.follow(page).await
    }

    /// Sends a form with further fields, without following a redirect.
    ///
    /// # Panics
    ///
    /// See [`Browser::step`].
    pub async fn submit(&mut self, page: &Page, form: &Form, fields: &[(&str, &str)]) -> Page {
        let mut url = page.url.join(&form.action).expect("a form has an address");
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
        sent.expect("somebody answers")
    }

    /// At a polling login's page: presses its button, a link or a form, and goes wherever that leads.
    ///
    /// # Panics
    ///
    /// When the page has no such button.
    pub async fn confirm(&mut self, page: &Page) -> Page {
        if let Some(url) = page.confirmation() {
            return self.open(url.as_str()).await;
        }
        panic!("no button to confirm with: {}", page.answer.summary());
    }

    /// At the provider's page: picks a user and presses a button. Stops at the redirect back.
    ///
    /// # Panics
    ///
    /// When this is not the provider's page.
    pub async fn decide(&mut self, page: &Page, user: &str, decision: Decision) -> Page {
        let form = page.forms().into_iter().next();
        let form = form.unwrap_or_else(|| panic!("no form: {}", page.answer.summary()));
        assert_eq!(form.action, "/site/oauth2/authorize");
        let pressed = match decision {
            Decision::Allow => "allow",
            Decision::Deny => "deny",
        };
        let field = if user.contains(':') { "other" } else { "user" };
        self.submit(page, &form, &[(field, user), ("decision", pressed)])
            .await
    }

    /// At the provider's page: picks a user, presses a button, and goes wherever that leads.
    ///
    /// # Panics
    ///
    /// See [`Browser::decide`].
    pub async fn decide_and_follow(&mut self, page: &Page, user: &str, pressed: Decision) -> Page {
        let page = self.decide(page, user, pressed).await;
        self.follow(page).await
    }

    /// Follows redirects from a page, as far as they stay on this machine.
    ///
    /// # Panics
    ///
    /// When they do not end.
    pub async fn follow(&mut self, mut page: Page) -> Page {
        for _ in 0..MOST_REDIRECTS {
            match page.redirect() {
                Some(next) if next.host_str() == Some("127.0.0.1") => {
                    page = self.step(next.as_str()).await;
                }
                _ => return page,
            }
        }
        panic!("redirected more than {MOST_REDIRECTS} times: {}", page.url);
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
            .header("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
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
        let answer = Answer::try_read(request.send().await?).await?;
        for line in answer.headers.get_all("set-cookie") {
            self.take_cookie(line.to_str().expect("a cookie is text"), &url);
        }
        Ok(Page { url, answer })
    }

    /// Ours are all well-formed and for their own host: another one is a mistake, and not just dropped.
    fn take_cookie(&mut self, line: &str, url: &Url) {
        let cookie =
            Cookie::parse(line).unwrap_or_else(|cause| panic!("no cookie ({cause}): {line}"));
        // On loopback, too, where the store takes http to be as good as https.
        let is_refused = cookie.secure() == Some(true) && url.scheme() != "https";
        if is_refused {
            return;
        }
        match self.cookies.insert_raw(&cookie, url) {
            // What is expired at once is deleted, be it there or not.
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

/// More than any of our ways has.
const MOST_REDIRECTS: usize = 10;

impl Page {
    /// The body.
    #[must_use]
    pub fn text(&self) -> String {
        self.answer.text()
    }

    /// Its forms.
    #[must_use]
    pub fn forms(&self) -> Vec<Form> {
        forms(&self.text())
    }

    /// Where its links lead, as whole addresses.
    ///
    /// # Panics
    ///
    /// When a link is none.
    #[must_use]
    pub fn links(&self) -> Vec<Url> {
        let resolve = |link: &String| self.url.join(link).expect("a link has an address");
        links(&self.text()).iter().map(resolve).collect()
    }

    /// Where the button of a polling login's page leads.
    ///
    /// # Panics
    ///
    /// When its form has no address.
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
            let mut url = self.url.join(&form.action).expect("a form has an address");
            url.query_pairs_mut().clear().extend_pairs(&form.hidden);
            Some(url)
        })
    }

    /// Where it redirects to, if it does.
    ///
    /// # Panics
    ///
    /// When a redirect leads nowhere.
    #[must_use]
    pub fn redirect(&self) -> Option<Url> {
        let location = self.answer.header("location")?;
        self.answer
            .status
            .is_redirection()
            .then(|| self.url.join(location).expect("a redirect has an address"))
    }

    /// A parameter of the address that it redirects to.
    #[must_use]
    pub fn redirect_param(&self, name: &str) -> Option<String> {
        param(&self.redirect()?, name)
    }
}

/// A parameter of an address, decoded.
#[must_use]
pub fn param(url: &Url, name: &str) -> Option<String> {
    url.query_pairs()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}
