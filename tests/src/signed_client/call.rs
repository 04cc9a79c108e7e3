//! Builder of a call: parameters, headers, `time` and `sign`.

use std::sync::atomic::{AtomicU64, Ordering};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;

use super::SignedClient;
use crate::{
    clock::now_ms,
    raw_connection::request,
    response::Response,
    signer::{Request, hmac_hex, sha256_hex, sign},
};

/// A call that is not sent yet.
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is sent"]
pub struct Call<'c> {
    client: &'c SignedClient,
    method: Method,
    path: String,
    query: Vec<(String, String)>,
    form: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    time: Option<String>,
    sign: Signing,
    /// A body that is no form, signed in headers.
    body: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum Signing {
    WhenNeeded,
    Always,
    Never,
    Given(String),
}

impl<'c> Call<'c> {
    pub(super) fn new(client: &'c SignedClient, method: Method, path: &str) -> Self {
        Self {
            client,
            method,
            path: path.to_owned(),
            query: Vec::new(),
            form: Vec::new(),
            headers: Vec::new(),
            time: Some(now_ms().to_string()),
            sign: Signing::WhenNeeded,
            body: None,
        }
    }

    /// With this body, which may be empty: signed in headers by HMAC-SHA-256.
    pub fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        if !content_type.is_empty() {
            self = self.header("Content-Type", content_type);
        }
        self
    }

    /// With this JSON body, signed in headers.
    pub fn json(self, json: &serde_json::Value) -> Self {
        self.body("application/json", json.to_string())
    }

    /// The target, and the headers that sign it with this body.
    #[must_use]
    pub fn signed_head(&self, body: &[u8]) -> (String, Vec<(String, String)>) {
        let query = encode(&self.query);
        let target = match &*query {
            "" => self.path.clone(),
            query => format!("{}?{query}", self.path),
        };
        let time = self.time.clone().unwrap_or_default();
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        // Tells equal calls of a millisecond apart.
        let nonce = format!("n-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let lines = [
            self.method.as_str(),
            &target,
            &time,
            &nonce,
            &sha256_hex(body),
        ];
        let sign = match &self.sign {
            Signing::Given(sign) => sign.clone(),
            Signing::Never => String::new(),
            Signing::WhenNeeded | Signing::Always => {
                hmac_hex(&self.client.key, lines.join("\n").as_bytes())
            }
        };
        let headers = [("Time", time), ("Sign", sign), ("Nonce", nonce)];
        let headers = headers.into_iter().filter(|(_, value)| !value.is_empty());
        let named =
            headers.map(|(name, value)| (format!("{}-X-{name}", self.client.prefix), value));
        (target, named.collect())
    }

    /// A parameter: in the query of a GET, in the form of a POST.
    pub fn param(mut self, name: &str, value: &str) -> Self {
        let pair = (name.to_owned(), value.to_owned());
        if self.method == Method::POST {
            self.form.push(pair)
        } else {
            self.query.push(pair)
        }
        self
    }

    /// A parameter in the query, for any method.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.query.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A header by its full name. It may be added twice.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A header with the client's prefix: `App`, `Version`, `Language`, `Authorization`.
    pub fn convention(self, name: &str, value: &str) -> Self {
        let name = format!("{}-X-{name}", self.client.prefix);
        self.header(&name, value)
    }

    /// Sets the version header.
    pub fn version(self, version: &str) -> Self {
        self.convention("Version", version)
    }

    /// Sets the language header.
    pub fn language(self, language: &str) -> Self {
        self.convention("Language", language)
    }

    /// Sets the authorization header.
    pub fn authorization(self, credential: &str) -> Self {
        self.convention("Authorization", credential)
    }

    /// Signed even if it has no parameters.
    pub fn signed(mut self) -> Self {
        self.sign = Signing::Always;
        self
    }

    /// Without `time` and `sign`.
    pub fn unsigned(mut self) -> Self {
        self.sign = Signing::Never;
        self.time = None;
        self
    }

    /// With this `sign`, valid or not.
    pub fn sign_given(mut self, sign: &str) -> Self {
        self.sign = Signing::Given(sign.to_owned());
        self
    }

    /// With `time` but without `sign`.
    pub fn without_sign(mut self) -> Self {
        self.sign = Signing::Never;
        self
    }

    /// With this `time`, as text.
    pub fn time(mut self, time: &str) -> Self {
        self.time = Some(time.to_owned());
        self
    }

    /// With a `time` this many milliseconds after now, or before it if negative.
    pub fn later_by_ms(self, milliseconds: i64) -> Self {
        let time = now_ms() + milliseconds;
        self.time(&time.to_string())
    }

    /// Signed, but without `time`.
    pub fn without_time(mut self) -> Self {
        self.time = None;
        self
    }

    /// The target and the form, as they are sent.
    #[must_use]
    pub fn parts(&self) -> (String, String) {
        let has_parameters = !self.query.is_empty() || !self.form.is_empty();
        let needed = has_parameters || !matches!(self.sign, Signing::WhenNeeded);
        let (mut query, mut form) = (self.query.clone(), self.form.clone());
        let in_form = self.method == Method::POST && (!form.is_empty() || query.is_empty());
        let mut add = |name: &str, value: &str| {
            let pair = (name.to_owned(), value.to_owned());
            if in_form {
                form.push(pair)
            } else {
                query.push(pair)
            }
        };
        if needed && let Some(time) = &self.time {
            add("time", time);
        }
        let (mut query, mut form) = (encode(&query), encode(&form));
        let computed = || {
            let method = self.method.as_str();
            let request = Request {
                method,
                path: &self.path,
                query: &query,
                body: &form,
            };
            sign(&self.client.profile, &self.client.key, request)
        };
        let sign = match &self.sign {
            Signing::WhenNeeded => has_parameters.then(computed),
            Signing::Always => Some(computed()),
            Signing::Never => None,
            Signing::Given(sign) => Some(sign.clone()),
        };
        if let Some(sign) = sign {
            let end = if in_form { &mut form } else { &mut query };
            let between = if end.is_empty() { "" } else { "&" };
            *end = format!("{end}{between}sign={sign}");
        }
        let target = if query.is_empty() {
            self.path.clone()
        } else {
            format!("{}?{query}", self.path)
        };
        (target, form)
    }

    /// Its method.
    #[must_use]
    pub const fn method(&self) -> &Method {
        &self.method
    }

    /// The URL, for a browser.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}{}", self.client.base, self.parts().0)
    }

    /// Its bytes for a raw connection, with additional header lines.
    #[must_use]
    pub fn bytes(&self, further: &[&str]) -> Vec<u8> {
        let (target, form) = self.parts();
        let mut lines: Vec<String> = self
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        lines.extend(further.iter().map(|line| (*line).to_owned()));
        if !form.is_empty() {
            lines.push("Content-Type: application/x-www-form-urlencoded".to_owned());
            lines.push(format!("Content-Length: {}", form.len()));
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        request(self.method.as_str(), &target, &lines, form.as_bytes())
    }

    /// Sends it, and reads the response.
    ///
    /// # Panics
    ///
    /// When no response comes.
    pub async fn send(&self) -> Response {
        self.try_send().await.expect("the gateway answers")
    }

    /// Sends it; the connection may fail.
    ///
    /// # Errors
    ///
    /// When no response comes, or an incomplete one.
    pub async fn try_send(&self) -> reqwest::Result<Response> {
        Response::try_read(self.begin().await?).await
    }

    /// Target, headers and body, as they are sent.
    #[must_use]
    pub fn message(&self) -> (String, Vec<(String, String)>, Vec<u8>) {
        let mut headers = self.headers.clone();
        let Some(body) = &self.body else {
            let (target, form) = self.parts();
            if !form.is_empty() {
                let media_type = "application/x-www-form-urlencoded".to_owned();
                headers.push(("content-type".to_owned(), media_type));
            }
            return (target, headers, form.into_bytes());
        };
        let (target, signed) = self.signed_head(body);
        headers.extend(signed);
        (target, headers, body.clone())
    }

    /// Sends it, and reads the head of the response. The body can be read piece by piece.
    ///
    /// # Errors
    ///
    /// When no response comes.
    pub async fn begin(&self) -> reqwest::Result<reqwest::Response> {
        let (target, headers, body) = self.message();
        let url = format!("{}{target}", self.client.base);
        let mut request = self.client.http.request(self.method.clone(), url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if !body.is_empty() {
            request = request.body(body);
        }
        request.send().await
    }
}

/// All bytes are escaped except the unreserved characters of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

fn encode(pairs: &[(String, String)]) -> String {
    let escape = |text| utf8_percent_encode(text, ESCAPED);
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", escape(name), escape(value)))
        .collect();
    pairs.join("&")
}
