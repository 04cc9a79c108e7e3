//! A received HTTP response, with checks for tests.

use http::{HeaderMap, StatusCode};
use serde_json::Value;

/// A complete response.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl Response {
    /// Reads a response to its end.
    ///
    /// # Panics
    ///
    /// When it is incomplete.
    pub async fn read(response: reqwest::Response) -> Self {
        Self::try_read(response)
            .await
            .expect("the response is complete")
    }

    /// Reads a response to its end.
    ///
    /// # Errors
    ///
    /// When it is incomplete.
    pub async fn try_read(response: reqwest::Response) -> reqwest::Result<Self> {
        let status = response.status();
        let headers = response.headers().clone();
        let body = response.bytes().await?.to_vec();
        Ok(Self {
            status,
            headers,
            body,
        })
    }

    /// The value of a header that occurs at most once.
    ///
    /// # Panics
    ///
    /// When it occurs twice, or is not text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next()?;
        assert!(
            values.next().is_none(),
            "{name} occurs twice in {:?}",
            self.headers
        );
        Some(value.to_str().expect("a header is text"))
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    ///
    /// When it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|cause| panic!("not JSON ({cause}): {self:?} {}", self.text()))
    }

    /// Checks for a success, and returns its JSON.
    ///
    /// # Panics
    ///
    /// When the response is anything but 200 with JSON.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/json"));
        self.json()
    }

    /// Checks for this problem, and returns its problem details (RFC 9457, CONTRACT 7).
    ///
    /// # Panics
    ///
    /// When the response is another problem, or not a problem.
    pub fn problem(&self, status: u16, code: &str) -> Value {
        let text = self.text();
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{text}"
        );
        let problem = self.json();
        assert_eq!(problem["code"], code, "{text}");
        assert_eq!(self.status, status, "{text}");
        assert_eq!(problem["status"], status, "{text}");
        assert_eq!(problem["type"], format!("/problems/{code}"), "{text}");
        for member in ["title", "detail"] {
            let value = problem[member].as_str();
            assert!(
                value.is_some_and(|value| !value.is_empty()),
                "no {member}: {text}"
            );
        }
        let request_id = problem["request_id"]
            .as_str()
            .expect("a problem names the request");
        assert_eq!(self.header("x-request-id"), Some(request_id), "{text}");
        assert_eq!(self.missing_help(&problem), None, "{text}");
        problem
    }

    /// The header that tells the client of a problem what to do next, if it is missing. CONTRACT 1.
    #[must_use]
    pub fn missing_help(&self, problem: &Value) -> Option<&'static str> {
        let code = problem["code"].as_str().unwrap_or_default();
        let detail = problem["detail"].as_str().unwrap_or_default();
        let (name, is_right): (_, fn(&str, &str, &str) -> bool) = match self.status.as_u16() {
            401 => ("www-authenticate", |value, code, _| {
                value.contains(&format!("error=\"{code}\""))
            }),
            405 => ("allow", |value, _, detail| detail.contains(value)),
            429 | 503 => ("retry-after", |value, _, _| {
                value.parse::<u64>().is_ok_and(|seconds| seconds > 0)
            }),
            _ => return None,
        };
        let is_right = |value: &str| is_right(value, code, detail);
        (!self.header(name).is_some_and(is_right)).then_some(name)
    }

    /// Checks for this failure, as a browser or a client sees it: a page with the code, or problem details.
    ///
    /// # Panics
    ///
    /// When the response is another failure, or a success.
    pub fn rejected(&self, status: u16, code: &str) {
        if self
            .header("content-type")
            .is_some_and(|media| media.starts_with("text/html"))
        {
            assert_eq!(self.status, status, "{}", self.text());
            assert!(
                self.text().contains(code),
                "no {code} on the page: {}",
                self.text()
            );
        } else {
            self.problem(status, code);
        }
    }

    /// The target of a redirect.
    ///
    /// # Panics
    ///
    /// When the response is not a 302 with `Location`.
    pub fn location(&self) -> &str {
        assert_eq!(self.status, StatusCode::FOUND, "{}", self.text());
        self.header("location").expect("a redirect has a location")
    }

    /// Status and body in one line, for a test's message.
    #[must_use]
    pub fn summary(&self) -> String {
        format!("{} {}", self.status.as_u16(), self.text())
    }
}
