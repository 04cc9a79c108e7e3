//! The only place where the gateway creates error bodies. CONTRACT 7.
//!
//! A rejection becomes an [`OwnResponse`]: RFC 9457 problem details, a page with the same code for a browser, or a
//! bare 400 if the request was not HTTP. The client's side of the connection writes it.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use signpost_kit::{
    limits::{RETRY_SECONDS, retry_after_seconds},
    page,
};
use signpost_protocol::{
    header::HeaderNames,
    language::Language,
    malformed::Malformed,
    problem::{self, Problem, ProblemCode},
    request_id::RequestId,
};

use super::error_format::ErrorFormat;
use crate::{
    request::rejection::{Arguments, Rejection, pairs},
    wire::syntax::field::NameAndValue,
};

/// A response of the gateway itself, ready to be written.
#[derive(Debug)]
pub(crate) struct OwnResponse {
    /// The status.
    pub status: StatusCode,
    /// Its headers, without the headers of every response, of the connection, and of the body's length.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: Bytes,
}

impl OwnResponse {
    /// The headers as fields of a head.
    pub(crate) fn fields(&self) -> impl Iterator<Item = NameAndValue<'_>> {
        self.headers
            .iter()
            .map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
    }

    /// Whether it has a header of this name, in lower case.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|(known, _)| known.as_str().as_bytes() == name)
    }
}

/// The reason phrase of a status.
#[must_use]
pub(crate) fn reason(status: StatusCode) -> &'static [u8] {
    status.canonical_reason().unwrap_or_default().as_bytes()
}

/// Creates the response to a rejected request.
#[must_use]
pub(crate) fn error_response(
    rejection: &Rejection,
    format: ErrorFormat,
    names: &HeaderNames,
    request_id: &RequestId,
) -> OwnResponse {
    let Some(code) = rejection.code() else {
        return bare_400();
    };
    let language = format.language;
    let arguments = arguments(rejection, names);
    let problem = || problem(rejection, code, &arguments, language, request_id);
    let (mut headers, body) = if format.wants_page {
        let page = page::problem(&problem());
        let headers = page::headers(format.language);
        (headers.to_vec(), page.into_bytes())
    } else if arguments.is_empty() && rejection.hint().is_none() {
        // Most rejections have nothing to fill in.
        let body = problem::plain_json(code, format.language, request_id);
        (json_headers(format.language), body)
    } else {
        let body = problem().to_json();
        (json_headers(format.language), body)
    };
    match rejection {
        Rejection::MethodNotAllowed { allowed, .. } => {
            headers.push((header::ALLOW, value(&allowed.to_string())));
        }
        Rejection::NoHealthyBackend { .. }
        | Rejection::StoreUnavailable(_)
        | Rejection::SpoolFull(_) => {
            headers.push((header::RETRY_AFTER, RETRY_SECONDS.into()));
        }
        Rejection::RateLimited { retry_after, .. }
        | Rejection::VersionBrownout { retry_after, .. } => {
            let seconds = retry_after_seconds(*retry_after);
            headers.push((header::RETRY_AFTER, value(&seconds.to_string())));
        }
        _ => {}
    }
    // RFC 9110 section 15.5.2: a 401 has a challenge.
    if code.status() == StatusCode::UNAUTHORIZED {
        let challenge = value(&names.challenge(code.as_str()));
        headers.push((header::WWW_AUTHENTICATE, challenge));
    }
    OwnResponse {
        status: code.status(),
        headers,
        body: body.into(),
    }
}

/// The problem of a rejection; `None` if the request is not HTTP, or is gone.
pub fn problem_of(
    rejection: &Rejection,
    names: &HeaderNames,
    language: Language,
    request_id: &RequestId,
) -> Option<Problem> {
    let (code, arguments) = (rejection.code()?, arguments(rejection, names));
    Some(problem(rejection, code, &arguments, language, request_id))
}

fn json_headers(language: Language) -> Vec<(HeaderName, HeaderValue)> {
    let fixed = HeaderValue::from_static;
    vec![
        (header::CONTENT_TYPE, fixed(problem::MEDIA_TYPE)),
        (header::CONTENT_LANGUAGE, fixed(language.tag())),
        (header::CACHE_CONTROL, fixed("no-store")),
    ]
}

fn bare_400() -> OwnResponse {
    OwnResponse {
        status: StatusCode::BAD_REQUEST,
        headers: Vec::new(),
        body: Bytes::new(),
    }
}

/// The arguments of the problem's text.
pub(crate) fn arguments(rejection: &Rejection, names: &HeaderNames) -> Arguments {
    match rejection {
        Rejection::ParamsTooMany { limit }
        | Rejection::UriTooLong { limit }
        | Rejection::BodyTooLarge { limit } => vec![("limit", limit.to_string())],
        Rejection::HeadersTooLarge { bytes, headers } => {
            vec![("limit", bytes.to_string()), ("count", headers.to_string())]
        }
        Rejection::MethodNotAllowed {
            allowed,
            is_of_path,
        } => {
            let scope = if *is_of_path { "path" } else { "gateway" };
            vec![
                ("methods", allowed.to_string()),
                ("scope", scope.to_owned()),
            ]
        }
        Rejection::ContentTypeUnsupported {
            beside: Some(beside),
        } => vec![
            ("kind", "api".to_owned()),
            ("allowed", (*beside).to_owned()),
        ],
        Rejection::VersionContradictory { placed } => vec![("placed", placed.to_string())],
        Rejection::AuthorizationMissing
        | Rejection::AuthorizationMalformed
        | Rejection::AuthorizationInvalid => vec![("name", names.spelled(&names.authorization))],
        Rejection::RequestTimeout { limit } => vec![("seconds", limit.as_secs().to_string())],
        Rejection::ParamDuplicated { name } => vec![("name", (*name).to_owned())],
        Rejection::HeaderDuplicated { name } | Rejection::AppMissing { header: name, .. } => {
            vec![("name", name.clone())]
        }
        Rejection::TimeOutOfWindow { window, .. } => {
            vec![("window", window.duration().as_secs().to_string())]
        }
        Rejection::RateLimited {
            limit,
            quota: Some(_),
            ..
        } => vec![("limit", limit.as_str().to_owned())],
        Rejection::BridgeFailed { change, .. } => vec![("change", change.to_string())],
        Rejection::VersionUnknown { known } => vec![("versions", known.clone())],
        Rejection::VersionRetired { migration } | Rejection::VersionBrownout { migration, .. } => {
            let is_any = !migration.versions.is_empty();
            let versions = if is_any { &*migration.versions } else { "none" };
            let scope = match migration.is_of_endpoint {
                true => "endpoint",
                false => "version",
            };
            vec![
                ("versions", versions.to_owned()),
                ("scope", scope.to_owned()),
            ]
        }
        _ => rejection
            .malformed()
            .map_or_else(Vec::new, Malformed::arguments),
    }
}

fn problem(
    rejection: &Rejection,
    code: ProblemCode,
    arguments: &Arguments,
    language: Language,
    request_id: &RequestId,
) -> Problem {
    let problem = Problem::new(code, language, request_id.as_str());
    let problem = problem.detail_args(&pairs(arguments));
    let problem = match rejection.hint() {
        Some(hint) => problem.hint(hint.text(language)),
        None => problem,
    };
    match rejection {
        Rejection::TimeOutOfWindow { now, .. } => problem.member("server_time", now.as_millis()),
        Rejection::SignMismatch(_, Some(canonical)) => {
            problem.member("canonical", canonical.0.as_str())
        }
        Rejection::VersionRetired { migration } | Rejection::VersionBrownout { migration, .. } => {
            match &migration.link {
                Some(link) => problem.link(link.to_string()),
                None => problem,
            }
        }
        _ => problem,
    }
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("ids, versions and numbers are visible ASCII")
}

#[cfg(test)]
mod tests {
    use signpost_protocol::{header::HeaderOverrides, sign::SignTime};

    use super::*;
    use crate::request::quotas::RequestLimit;
    use crate::request::{Method, Methods};

    fn rejected(
        rejection: &Rejection,
        language: Language,
        wants_page: bool,
    ) -> (OwnResponse, String) {
        let request_id = "r-1".parse().unwrap();
        let names =
            HeaderNames::new(&"Acme".parse().unwrap(), &HeaderOverrides::default()).unwrap();
        let format = ErrorFormat {
            language,
            wants_page,
        };
        let response = error_response(rejection, format, &names, &request_id);
        let body = String::from_utf8(response.body.to_vec()).unwrap();
        (response, body)
    }

    fn header<'a>(response: &'a OwnResponse, name: &HeaderName) -> Option<&'a str> {
        let found = response.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.to_str().unwrap())
    }

    #[test]
    fn a_rejection_is_a_localized_problem() {
        let rejection = Rejection::TimeOutOfWindow {
            time: SignTime::from_millis(1),
            now: SignTime::from_millis(1_732_104_000_000),
            window: Default::default(),
        };
        let (response, body) = rejected(&rejection, Language::Ja, false);
        assert_eq!(response.status, 403);
        assert_eq!(
            header(&response, &header::CONTENT_TYPE),
            Some("application/problem+json")
        );
        assert_eq!(header(&response, &header::CONTENT_LANGUAGE), Some("ja"));
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["code"], "time_out_of_window");
        assert_eq!(body["server_time"], 1_732_104_000_000_u64);
        assert!(body["detail"].as_str().unwrap().contains("60"), "{body}");
    }

    #[test]
    fn a_browser_gets_a_page_with_the_same_code() {
        let rejection = Rejection::VersionUnknown {
            known: "<script>".to_owned(),
        };
        let (response, body) = rejected(&rejection, Language::En, true);
        assert_eq!(
            header(&response, &header::CONTENT_TYPE),
            Some("text/html; charset=utf-8")
        );
        assert!(
            header(&response, &header::CONTENT_SECURITY_POLICY)
                .unwrap()
                .contains("frame-ancestors 'none'")
        );
        assert!(
            body.contains("version_unknown") && body.contains("&lt;script&gt;"),
            "{body}"
        );
        assert!(!body.contains("<script>"));
    }

    #[test]
    fn a_request_that_is_not_http_gets_a_bare_400() {
        let (response, body) = rejected(&Rejection::NotHttp("x"), Language::En, false);
        assert_eq!(
            (response.status, body.as_str()),
            (StatusCode::BAD_REQUEST, "")
        );
    }

    #[test]
    fn the_response_to_a_wrong_method_lists_the_allowed_ones() {
        let read = Methods::of(&[Method::Get, Method::Head]);
        for (methods, is_of_path, allowed, scope) in [
            (Methods::USUAL, false, "GET, POST", "gateway"),
            (read, true, "GET, HEAD", "path"),
        ] {
            let rejection = Rejection::MethodNotAllowed {
                allowed: methods,
                is_of_path,
            };
            let (response, body) = rejected(&rejection, Language::En, false);
            assert_eq!(header(&response, &header::ALLOW), Some(allowed));
            let text = format!("This {scope} accepts only {allowed}.");
            assert!(body.contains(&text), "{body}");
        }
    }

    #[test]
    fn every_503_says_when_to_retry() {
        let backend = "v1".to_owned();
        for rejection in [
            Rejection::NoHealthyBackend { backend },
            Rejection::StoreUnavailable("down".into()),
            Rejection::SpoolFull(None),
        ] {
            let (response, _) = rejected(&rejection, Language::En, false);
            assert_eq!(response.status, 503);
            assert_eq!(header(&response, &header::RETRY_AFTER), Some("5"));
        }
    }

    #[test]
    fn a_401_names_its_header_in_every_language_and_has_a_challenge() {
        for (rejection, code) in [
            (Rejection::AuthorizationMissing, "authorization_missing"),
            (Rejection::AuthorizationMalformed, "authorization_malformed"),
            (Rejection::AuthorizationInvalid, "authorization_invalid"),
        ] {
            for language in Language::ALL {
                let (response, body) = rejected(&rejection, language, false);
                assert!(body.contains("Acme-X-Authorization"), "{body}");
                let challenge = format!(
                    "Signpost realm=\"Acme\", header=\"Acme-X-Authorization\", error=\"{code}\""
                );
                let found = header(&response, &header::WWW_AUTHENTICATE);
                assert_eq!(found, Some(&*challenge));
            }
        }
    }

    #[test]
    fn retry_after_is_rounded_up_and_never_0() {
        let micros = std::time::Duration::from_micros;
        for (retry_after, seconds) in [(1_001_000, "2"), (1_000_000, "1"), (1, "1")] {
            let rejection = Rejection::RateLimited {
                limit: RequestLimit::ReplayMemory,
                retry_after: micros(retry_after),
                quota: None,
            };
            let (response, _) = rejected(&rejection, Language::En, false);
            assert_eq!(header(&response, &header::RETRY_AFTER), Some(seconds));
        }
    }

    fn brownout(link: Option<&str>, versions: &str) -> Rejection {
        Rejection::VersionBrownout {
            migration: crate::request::rejection::Migration {
                versions: versions.to_owned(),
                link: link.map(Into::into),
                is_of_endpoint: false,
            },
            retry_after: std::time::Duration::from_millis(59_001),
        }
    }

    #[test]
    fn a_brownout_says_when_and_where_to_go_on() {
        for language in Language::ALL {
            let link = "https://acme.example/v2?a=1&b=2";
            let (response, body) = rejected(&brownout(Some(link), "v2, v3"), language, false);
            assert_eq!(response.status, 503);
            assert_eq!(header(&response, &header::RETRY_AFTER), Some("60"));
            let body: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body["code"], "version_brownout");
            assert_eq!(body["link"], link);
            assert!(
                body["detail"].as_str().unwrap().contains("v2, v3"),
                "{body}"
            );
            let (_, page) = rejected(&brownout(Some(link), "v2, v3"), language, true);
            assert!(
                page.contains("href=\"https://acme.example/v2?a=1&amp;b=2\""),
                "{page}"
            );
        }
    }

    #[test]
    fn without_a_link_or_another_version_none_is_named() {
        for language in Language::ALL {
            let (_, body) = rejected(&brownout(None, ""), language, false);
            let body: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body.get("link"), None);
            let detail = body["detail"].as_str().unwrap();
            assert!(
                !detail.contains("none") && !detail.contains('$'),
                "{detail}"
            );
        }
    }
}
