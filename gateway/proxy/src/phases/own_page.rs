//! Pages that the gateway has itself, on each listener for clients, whatever a version serves. CONTRACT 7.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use signpost_kit::page;
use signpost_protocol::problem::{About, ProblemCode};

use super::{
    error_format::{ErrorFormatRules, accepts_html, language},
    error_response::OwnResponse,
};
use crate::request::{BodyLength, Head, Headers, Target};

/// Browsers cache the pages for a day. A shared cache would give one request id to several clients.
const CACHED: HeaderValue = HeaderValue::from_static("private, max-age=86400");

/// A page of the gateway itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnPage {
    /// `/problems/CODE`: what a problem's `type` refers to.
    About(ProblemCode),
    /// `/favicon.ico`: there is none. A browser asks for it on its own, so that is no error of its user.
    Icon,
}

/// The gateway's own page that a request asks for: a GET or HEAD without a body, for the icon also without a query.
#[must_use]
pub(crate) fn match_own_page(head: &Head, target: Target<'_>) -> Option<OwnPage> {
    // Checked first: what other requests pay.
    if !matches!(target.path.as_bytes(), [b'/', b'p' | b'f', ..]) {
        return None;
    }
    let is_read = matches!(head.method(), b"GET" | b"HEAD") && head.body() == BodyLength::None;
    match target.path {
        _ if !is_read => None,
        "/favicon.ico" => target.query.is_empty().then_some(OwnPage::Icon),
        path => ProblemCode::of_type_uri(path).map(OwnPage::About),
    }
}

/// Creates the page.
#[must_use]
pub(crate) fn own_page(
    page: OwnPage,
    headers: &(impl Headers + ?Sized),
    rules: &ErrorFormatRules,
) -> OwnResponse {
    match page {
        OwnPage::About(code) => about(code, headers, rules),
        OwnPage::Icon => OwnResponse {
            status: StatusCode::NO_CONTENT,
            headers: vec![(header::CACHE_CONTROL, CACHED)],
            body: Bytes::new(),
        },
    }
}

fn about(
    code: ProblemCode,
    headers: &(impl Headers + ?Sized),
    rules: &ErrorFormatRules,
) -> OwnResponse {
    let (names, language) = (&rules.names, language(headers, rules));
    let about = About::new(code, language, names);
    let (mut headers, body) = if accepts_html(headers) {
        let headers = page::headers(language).to_vec();
        (headers, page::about(&about).into_bytes())
    } else {
        let json = HeaderValue::from_static("application/json");
        let tag = HeaderValue::from_static(language.tag());
        let headers = vec![
            (header::CONTENT_TYPE, json),
            (header::CONTENT_LANGUAGE, tag),
        ];
        (headers, about.to_json())
    };
    // The headers of pages are made for errors, which no cache may store.
    headers.retain(|(name, _)| name != header::CACHE_CONTROL);
    headers.extend([(header::CACHE_CONTROL, CACHED), vary(&names.language)]);
    OwnResponse {
        status: StatusCode::OK,
        headers,
        body: body.into(),
    }
}

/// The headers that choose form and language.
fn vary(language: &HeaderName) -> (HeaderName, HeaderValue) {
    let names = format!("accept, accept-language, {language}");
    let names = HeaderValue::try_from(names).expect("a header's name is visible ASCII");
    (header::VARY, names)
}
