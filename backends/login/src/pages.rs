//! What people see in a browser: three small pages, in five languages, light or dark as they like it.
//!
//! No script, no picture, nothing from elsewhere: the policy allows one style sheet, by its hash. Every
//! value is escaped by the template library.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use base64::{Engine, engine::general_purpose::STANDARD};
use gateway_protocol::{language::Language, problem::Problem, text::text};
use http::{
    HeaderValue,
    header::{CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_FRAME_OPTIONS},
};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{flow::Page, secret::sha256};

const STYLE: &str = include_str!("pages/style.css");

/// `form-action` and `base-uri` do not fall back to `default-src`, so they are named.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(sha256(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("base64 and our own words are header characters")
});

/// A polling login's page: which application, which code, and the button.
pub(crate) fn confirm(page: &Page, language: Language) -> Response {
    let application = page.application.name.as_str();
    let args = [
        ("application", application),
        ("provider", page.provider.as_str()),
    ];
    // A link, since it is one: a form's way to the provider would have to be allowed by the policy.
    // Both values are base64url with dots, so they stand in a query as they are.
    let href = format!("?state={}&confirm={}", page.state, page.confirm);
    let title = text(language, "page_confirm_title", &args);
    let body = html! {
        p { (text(language, "page_confirm_compare", &args)) }
        p.code aria-label=(text(language, "page_confirm_code", &[])) { (page.user_code) }
        p.warning { (text(language, "page_confirm_warning", &args)) }
        a.button href=(href) rel="nofollow" { (text(language, "page_confirm_button", &args)) }
    };
    document(language, &title, &body)
}

/// A polling login's end: the window may be closed.
pub(crate) fn done(application: &str, language: Language) -> Response {
    let title = text(language, "page_done_title", &[]);
    let body = html! { p { (text(language, "page_done_close", &[("application", application)])) } };
    document(language, &title, &body)
}

/// A problem, with the same code as its data would have.
pub(crate) fn problem(problem: &Problem, request_id: &str) -> Response {
    let language = problem.language();
    let body = html! {
        p { (problem.detail()) }
        dl {
            dt { (text(language, "page_problem_code", &[])) }
            dd { code { (problem.code().as_str()) } }
            dt { (text(language, "page_problem_request", &[])) }
            dd { code { (request_id) } }
        }
    };
    document(language, problem.title(), &body)
}

fn document(language: Language, title: &str, body: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang=(language.tag()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (title) }
                    (body)
                }
            }
        }
    };
    let headers = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (CONTENT_LANGUAGE, HeaderValue::from_static(language.tag())),
        (CONTENT_SECURITY_POLICY, POLICY.clone()),
        // For browsers that do not know `frame-ancestors`.
        (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    ];
    (headers, page.into_string()).into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gateway_protocol::{app::AppId, problem::ProblemCode};

    use super::*;
    use crate::{applications::Application, logins::UserCode};

    async fn body(response: Response) -> String {
        let body = axum::body::to_bytes(response.into_body(), 1 << 16)
            .await
            .unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    fn page(application: &str) -> Page {
        Page {
            application: Arc::new(Application {
                id: AppId::SINGLE,
                name: application.to_owned(),
                is_active: true,
                return_to: Vec::new(),
            }),
            user_code: UserCode::generate(),
            provider: "sandbox".to_owned(),
            state: "v1.abc".to_owned(),
            confirm: "def".to_owned(),
            set_cookie: HeaderValue::from_static("x=y"),
        }
    }

    #[tokio::test]
    async fn the_page_names_the_application_and_shows_the_code_in_every_language() {
        for language in Language::ALL {
            let page = page("Shop & <Co>");
            let html = body(confirm(&page, language)).await;
            assert!(
                html.contains(&format!("<html lang=\"{}\">", language.tag())),
                "{html}"
            );
            assert!(
                html.contains("Shop &amp; &lt;Co&gt;") && !html.contains("<Co>"),
                "{html}"
            );
            assert!(html.contains(page.user_code.as_str()), "{html}");
            assert!(
                html.contains("href=\"?state=v1.abc&amp;confirm=def\""),
                "{html}"
            );
            assert!(!html.contains("page_"), "a text is missing: {html}");
        }
    }

    #[tokio::test]
    async fn the_other_pages_have_their_texts_too() {
        for language in Language::ALL {
            let html = body(done("Shop", language)).await;
            assert!(html.contains("Shop") && !html.contains("page_"), "{html}");
            let html = body(problem(
                &Problem::new(ProblemCode::LoginDenied, language, "r-1"),
                "r-1",
            ))
            .await;
            assert!(
                html.contains("login_denied") && html.contains("r-1") && !html.contains("page_"),
                "{html}"
            );
        }
    }

    #[test]
    fn a_page_may_not_be_framed_nor_load_anything() {
        let response = done("Shop", Language::En);
        let policy = response.headers()[CONTENT_SECURITY_POLICY]
            .to_str()
            .unwrap();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'sha256-"),
            "{policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'none'"),
            "{policy}"
        );
        assert_eq!(response.headers()[X_FRAME_OPTIONS], "DENY");
    }
}
