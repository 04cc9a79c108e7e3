//! HTML pages for browsers: the frame of every page, the error page, and their response headers.
//!
//! Pages have no scripts and no external resources: the policy allows one style sheet, by its hash, and the empty icon,
//! so that browsers do not request `/favicon.ico`. [`Html`] escapes every value. The gateway and the login
//! service share the layout and look like one service.

use std::sync::LazyLock;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{
    HeaderName, HeaderValue,
    header::{
        CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
        X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use sha2::{Digest, Sha256};
use signpost_protocol::{
    language::Language,
    problem::{About, Problem},
    text::text,
};

/// The colours of all pages, light and dark, as CSS variables.
pub const COLOURS: &str = include_str!("page/colours.css");

static STYLE: LazyLock<String> =
    LazyLock::new(|| [COLOURS, include_str!("page/style.css")].concat());

/// The Content-Security-Policy. `form-action` and `base-uri` do not fall back to `default-src`, so they are listed.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(&*STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("base64 and our own words are header characters")
});

/// The response headers of a page in `language`.
#[must_use]
pub fn headers(language: Language) -> [(HeaderName, HeaderValue); 7] {
    let fixed = HeaderValue::from_static;
    [
        (CONTENT_TYPE, fixed("text/html; charset=utf-8")),
        (CONTENT_LANGUAGE, fixed(language.tag())),
        (CONTENT_SECURITY_POLICY, POLICY.clone()),
        // For browsers that do not know `frame-ancestors`.
        (X_FRAME_OPTIONS, fixed("DENY")),
        (X_CONTENT_TYPE_OPTIONS, fixed("nosniff")),
        // The URL of a page may hold `state` or a code, which no other site may learn.
        (REFERRER_POLICY, fixed("no-referrer")),
        (CACHE_CONTROL, fixed("no-store")),
    ]
}

/// What a page reports. It has a mark and a colour, and screen readers announce it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Something succeeded.
    Success,
    /// Something was cancelled, as the person wanted.
    Neutral,
    /// Something failed.
    Failure,
}

/// HTML: text that is escaped, between markup that is the program's own.
#[derive(Clone, Debug, Default)]
pub struct Html(String);

impl Html {
    /// What a template library has written, which escapes every value.
    #[must_use]
    pub const fn escaped(html: String) -> Self {
        Self(html)
    }

    /// Adds markup. It is fixed, so that no value gets in unescaped.
    fn markup(mut self, markup: &'static str) -> Self {
        self.0.push_str(markup);
        self
    }

    /// Adds a text, also as an attribute's value in double quotes.
    fn text(mut self, text: &str) -> Self {
        for letter in text.chars() {
            match letter {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                // Attributes are in double quotes throughout, so a single one needs no escape.
                '"' => self.0.push_str("&quot;"),
                _ => self.0.push(letter),
            }
        }
        self
    }

    /// Adds HTML.
    fn html(mut self, other: &Self) -> Self {
        self.0.push_str(&other.0);
        self
    }

    /// Adds a term and its description.
    fn described(self, term: &str, open: &'static str, text: &str, close: &'static str) -> Self {
        let term = self.markup("<dt>").text(term).markup("</dt><dd>");
        term.markup(open).text(text).markup(close).markup("</dd>")
    }
}

/// Returns a complete page: the title, and `body` below it.
#[must_use]
pub fn document(language: Language, title: &str, body: &Html) -> String {
    let heading = Html::default().markup("<h1>").text(title).markup("</h1>");
    frame(language, title, &heading.html(body))
}

/// Returns the page of an outcome: its mark, the title, and `body` below them.
#[must_use]
pub fn outcome(outcome: Outcome, language: Language, title: &str, body: &Html) -> String {
    let begin = match outcome {
        Outcome::Success => {
            r#"<div class="success" role="status"><span class="mark" aria-hidden="true">✓"#
        }
        Outcome::Neutral => {
            r#"<div class="neutral" role="status"><span class="mark" aria-hidden="true">✓"#
        }
        Outcome::Failure => {
            r#"<div class="failure" role="alert"><span class="mark" aria-hidden="true">!"#
        }
    };
    let heading = Html::default().markup(begin).markup("</span><h1>");
    let content = heading.text(title).markup("</h1></div>").html(body);
    frame(language, title, &content)
}

fn frame(language: Language, title: &str, content: &Html) -> String {
    let head = r#"<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><meta name="robots" content="noindex"><link rel="icon" href="data:,"><title>"#;
    let begin = Html::default().markup("<!DOCTYPE html><html lang=\"");
    let page = begin.text(language.tag()).markup("\">").markup(head);
    let page = page.text(title).markup("</title><style>").markup(&STYLE);
    let page = page.markup("</style></head><body><main>").html(content);
    page.markup("</main></body></html>").0
}

/// Returns the page of a problem, with the code and the request ID that its JSON would have.
#[must_use]
pub fn problem(problem: &Problem) -> String {
    let language = problem.language;
    let term = |key| text(language, key, &[]);
    let body = Html::default().markup("<p>").text(&problem.page_detail());
    let mut body = body.markup("</p>");
    if let Some(link) = &problem.link {
        body = body.markup("<p><a href=\"").text(link).markup("\">");
        body = body.text(&term("page_problem_link")).markup("</a></p>");
    }
    let (code, id) = (problem.code.as_str(), &problem.request_id);
    let body = body.markup("<dl>");
    let body = body.described(&term("page_problem_code"), "<code>", code, "</code>");
    let mut body = body.described(&term("page_problem_request"), "<code>", id, "</code>");
    if let Some(detail) = problem.developer_detail() {
        body = body.described(&term("page_problem_developer"), "", &detail, "");
    }
    let body = body.markup("</dl>");
    outcome(Outcome::Failure, language, &problem.page_title(), &body)
}

/// Returns the page that a problem's `type` refers to.
#[must_use]
pub fn about(about: &About) -> String {
    let language = about.language;
    let term = |key| text(language, key, &[]);
    let (code, status) = (about.code.as_str(), about.status.to_string());
    let body = Html::default().markup("<p>").text(&about.detail);
    let body = body.markup("</p><dl>");
    let body = body.described(&term("page_problem_code"), "<code>", code, "</code>");
    let body = body.described(&term("page_problem_status"), "", &status, "");
    let body = body.described(
        &term("page_problem_retry"),
        "",
        &term(about.retry.as_str()),
        "",
    );
    document(language, &about.title, &body.markup("</dl>"))
}

#[cfg(test)]
mod tests {
    use signpost_protocol::problem::ProblemCode;

    use super::*;

    #[test]
    fn a_problem_shows_its_detail_code_and_request_id_in_every_language() {
        for language in Language::ALL {
            let login_denied = Problem::new(ProblemCode::LoginDenied, language, "r-1");
            let page = problem(&login_denied);
            let begin = format!("<!DOCTYPE html><html lang=\"{}\">", language.tag());
            assert!(page.starts_with(&begin), "{page}");
            assert!(page.contains(&*login_denied.detail), "{page}");
            assert!(page.contains("<code>login_denied</code>"), "{page}");
            assert!(page.contains("<code>r-1</code>"), "{page}");
            assert!(!page.contains("page_"), "a text is missing: {page}");
        }
    }

    /// Relative luminance of a colour `#rrggbb`. WCAG 2.2.
    fn luminance(colour: &str) -> f64 {
        let channel = |index: usize| {
            let value = u8::from_str_radix(&colour[index..index + 2], 16).unwrap();
            let value = f64::from(value) / 255.0;
            if value <= 0.040_45 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    #[test]
    fn every_text_has_enough_contrast_in_both_colour_schemes() {
        let (light, dark) = COLOURS.split_once("prefers-color-scheme: dark").unwrap();
        for scheme in [light, dark] {
            let luminance_of = |name: &str| {
                let (_, rest) = scheme.split_once(&format!("--{name}: ")).unwrap();
                luminance(&rest[..7])
            };
            for (text, ground) in [
                ("text", "card"),
                ("quiet", "card"),
                ("accent", "card"),
                ("success", "card"),
                ("failure", "card"),
                ("on-accent", "accent"),
                ("on-accent", "success"),
                ("on-accent", "failure"),
            ] {
                let (one, other) = (luminance_of(text), luminance_of(ground));
                let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
                assert!(contrast >= 4.5, "{text} on {ground}: {contrast}");
            }
        }
    }

    #[test]
    fn a_hint_is_shown_if_present() {
        let mismatch = Problem::new(ProblemCode::SignMismatch, Language::En, "r-1");
        assert!(!problem(&mismatch).contains("look again"));
        let page = problem(&mismatch.hint("look again".to_owned()));
        let (person, maker) = page.split_once("For the maker").unwrap();
        assert!(
            maker.contains("look again") && !person.contains("look again"),
            "{page}"
        );
    }

    #[test]
    fn a_link_is_shown_if_present_in_every_language() {
        for language in Language::ALL {
            let retired = Problem::new(ProblemCode::VersionRetired, language, "r-1");
            assert!(!problem(&retired).contains("<a "));
            let page = problem(&retired.link("https://acme.example/?a=1&b=\"".to_owned()));
            let link = "<a href=\"https://acme.example/?a=1&amp;b=&quot;\">";
            assert!(page.contains(link), "{page}");
            assert!(!page.contains("page_"), "a text is missing: {page}");
        }
    }

    #[test]
    fn a_page_does_not_ask_for_a_header() {
        let missing = Problem::new(ProblemCode::AppMissing, Language::En, "r-1")
            .detail_args(&[("name", "Acme-X-App")]);
        let page = problem(&missing);
        assert!(page.contains("signed query parameter"), "{page}");
        assert!(!page.contains("Acme-X-App"), "{page}");
    }

    #[test]
    fn every_value_is_escaped() {
        let missing = Problem::new(ProblemCode::ParamMissing, Language::En, "r-1")
            .detail_args(&[("name", "<script>")])
            .hint("\"a\" & <b>".to_owned());
        let page = problem(&missing);
        assert!(page.contains("&lt;script&gt;"), "{page}");
        assert!(page.contains("&amp; &lt;b&gt;"), "{page}");
        assert!(
            !page.contains("<script>") && !page.contains("<b>"),
            "{page}"
        );
    }

    #[test]
    fn a_page_cannot_be_framed_load_resources_or_be_indexed() {
        let headers = http::HeaderMap::from_iter(headers(Language::Ja));
        let policy = headers[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'sha256-"),
            "{policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'none'"),
            "{policy}"
        );
        assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(headers[CONTENT_LANGUAGE], "ja");
        assert_eq!(headers[X_FRAME_OPTIONS], "DENY");
        assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(headers[REFERRER_POLICY], "no-referrer");
        assert_eq!(headers[CACHE_CONTROL], "no-store");
        let page = document(Language::Ja, "t", &Html::default());
        assert!(page.contains("content=\"noindex\""), "{page}");
    }
}
