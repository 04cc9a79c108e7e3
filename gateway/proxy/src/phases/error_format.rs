//! The error format of a request: the language, and whether the client gets a page. CONTRACT 6 and 7.

use std::sync::Arc;

use http::header;
use signpost_protocol::{header::HeaderNames, language::Language};

use super::admit::is_connection_option;
use crate::request::{Headers, is_named};

/// Settings of the phase; built once for each configuration.
#[derive(Debug)]
pub(crate) struct ErrorFormatRules {
    /// The convention headers' names.
    pub names: Arc<HeaderNames>,
    /// Paths that browsers navigate to, callbacks included: there an error is a page.
    pub page_paths: Vec<String>,
}

/// The format of a request's errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorFormat {
    /// The language of the texts.
    pub language: Language,
    /// Whether the client is a browser that shows a page.
    pub wants_page: bool,
}

/// Chooses the error format of a request, admitted or not.
#[must_use]
pub(crate) fn error_format(
    method: &[u8],
    path: &str,
    headers: &(impl Headers + ?Sized),
    rules: &ErrorFormatRules,
) -> ErrorFormat {
    let wants_page = method == b"GET"
        && rules.page_paths.iter().any(|page_path| page_path == path)
        && accepts_html(headers);
    ErrorFormat {
        language: language(headers, rules),
        wants_page,
    }
}

/// Whether the client is a browser that shows pages.
#[must_use]
pub(crate) fn accepts_html(headers: &(impl Headers + ?Sized)) -> bool {
    headers.each().any(|(name, value)| {
        is_named(name, &header::ACCEPT) && memchr::memmem::find(value, b"text/html").is_some()
    })
}

/// The language of a request's texts. CONTRACT 6.
#[must_use]
pub(crate) fn language(headers: &(impl Headers + ?Sized), rules: &ErrorFormatRules) -> Language {
    let lines = |wanted| {
        let of_name = headers
            .each()
            .filter(move |(name, _)| is_named(name, wanted));
        of_name.map(|(_, value)| value)
    };
    let name = &rules.names.language;
    let own = lines(name).next();
    // CONTRACT 1: a header that `Connection` names counts as absent. Looked at again, since an error may come before
    // `admit`.
    let own = own.filter(|_| !is_connection_option(headers, name));
    Language::of_request(own, lines(&header::ACCEPT_LANGUAGE))
}

#[cfg(test)]
mod tests {
    use signpost_protocol::header::HeaderOverrides;

    use super::*;

    fn format_of(method: &str, path: &str, headers: &[(&str, &str)]) -> (Language, bool) {
        let names =
            HeaderNames::new(&"Acme".parse().unwrap(), &HeaderOverrides::default()).unwrap();
        let rules = ErrorFormatRules {
            names: names.into(),
            page_paths: vec!["/login".to_owned()],
        };
        let format = error_format(method.as_bytes(), path, headers, &rules);
        (format.language, format.wants_page)
    }

    const HTML: (&str, &str) = ("Accept", "text/html,application/xhtml+xml");
    const KOREAN: (&str, &str) = ("Accept-Language", "ko-KR,ko;q=0.9");

    #[test]
    fn a_browser_gets_pages_in_its_own_language() {
        assert_eq!(
            format_of("GET", "/login", &[HTML, KOREAN]),
            (Language::Ko, true)
        );
        assert_eq!(format_of("GET", "/login", &[HTML]), (Language::En, true));
        assert_eq!(
            format_of("GET", "/login", &[HTML, KOREAN, ("acme-x-language", "ja")]),
            (Language::Ja, true)
        );
    }

    #[test]
    fn other_clients_get_problems_in_the_same_language() {
        assert_eq!(
            format_of("GET", "/user", &[HTML, KOREAN]),
            (Language::Ko, false)
        );
        assert_eq!(
            format_of("POST", "/login", &[HTML, ("Acme-X-Language", "fr"), KOREAN]),
            (Language::Ko, false)
        );
        assert_eq!(
            format_of("GET", "/login", &[KOREAN, ("Acme-X-Language", "zh_TW")]),
            (Language::ZhTw, false)
        );
    }

    #[test]
    fn a_language_header_that_connection_names_counts_as_absent() {
        let headers = [("Acme-X-Language", "ja"), ("Connection", "Acme-X-Language")];
        assert_eq!(format_of("GET", "/user", &headers), (Language::En, false));
    }
}
