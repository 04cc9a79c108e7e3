//! The HTML pages of the login service: confirm, finishing, done, finished, cancelled, too late and problem.
//!
//! Layout, response headers and the problem page come from `signpost_kit::page`, which the gateway uses, too.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header::REFRESH};
use maud::{Markup, html};
use signpost_kit::page::{self, Outcome};
use signpost_protocol::{language::Language, problem::Problem, text::text};

use crate::flow::Page;

/// The confirmation page of a polling login: the application, the user code, the button, and the link that cancels.
pub(crate) fn confirm(page: &Page, language: Language) -> Response {
    let application = page.application.name.as_str();
    let args = [
        ("application", application),
        ("provider", page.provider.as_str()),
    ];
    // A link and not a form: `form-action` in the policy would have to allow the provider's origin.
    // Both values are base64url with dots and need no escaping in a query.
    let href = |confirm: &str| format!("?state={}&confirm={confirm}", page.state);
    let title = text(language, "page_confirm_title", &args);
    let body = html! {
        p { (text(language, "page_confirm_compare", &args)) }
        p.code aria-label=(text(language, "page_confirm_code", &[])) { (page.user_code.as_str()) }
        p.warning { (text(language, "page_confirm_warning", &args)) }
        a.button href=(href(&page.confirm)) rel="nofollow" {
            (text(language, "page_confirm_button", &args))
        }
        p.cancel {
            a href=(href(&page.cancel)) rel="nofollow" { (text(language, "page_confirm_cancel", &[])) }
        }
    };
    response(language, page::document(language, &title, &body))
}

/// The user is logged in, and the window can be closed.
pub(crate) fn done(application: &str, language: Language) -> Response {
    let args = [("application", application)];
    let body = html! { p { (text(language, "page_done_close", &args)) } };
    outcome(Outcome::Success, language, "page_done_title", &body)
}

/// A redirect login that was completed before, with a link to the origin of its `return_to`.
pub(crate) fn finished(application: &str, origin: &str, language: Language) -> Response {
    let args = [("application", application)];
    let body = html! { p { a href=(origin) { (text(language, "page_finished_link", &args)) } } };
    outcome(Outcome::Success, language, "page_finished_title", &body)
}

/// The user cancelled the login.
pub(crate) fn cancelled(language: Language) -> Response {
    let body = html! { p { (text(language, "page_cancelled_close", &[])) } };
    outcome(Outcome::Neutral, language, "page_cancelled_title", &body)
}

/// The user wanted to cancel a login that was complete.
pub(crate) fn too_late(application: &str, language: Language) -> Response {
    let args = [("application", application)];
    let body = html! { p { (text(language, "page_late_warning", &args)) } };
    outcome(Outcome::Failure, language, "page_late_title", &body)
}

/// An earlier request of this browser is still completing the login; the page reloads itself until it has.
pub(crate) fn finishing(language: Language) -> Response {
    let title = text(language, "page_finishing_title", &[]);
    let body = html! { p { (text(language, "page_finishing_wait", &[])) } };
    let page = response(language, page::document(language, &title, &body));
    ([(REFRESH, HeaderValue::from_static("2"))], page).into_response()
}

/// The page of a problem, with the code that its JSON would have.
pub(crate) fn problem(problem: &Problem) -> Response {
    response(problem.language, page::problem(problem))
}

fn outcome(outcome: Outcome, language: Language, title: &str, body: &Markup) -> Response {
    let title = text(language, title, &[]);
    response(language, page::outcome(outcome, language, &title, body))
}

fn response(language: Language, page: String) -> Response {
    (page::headers(language), page).into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use signpost_protocol::{app::AppId, problem::ProblemCode};

    use super::*;
    use crate::records::{applications::Application, logins::UserCode};

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
            cancel: "ghi".to_owned(),
            set_cookie: HeaderValue::from_static("x=y"),
        }
    }

    #[tokio::test]
    async fn the_confirm_page_shows_application_and_user_code_in_every_language() {
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
    async fn the_last_pages_have_their_texts_in_every_language() {
        for language in Language::ALL {
            let finished = finished("Shop", "https://shop.example", language);
            let too_late = too_late("Shop", language);
            for page in [done("Shop", language), finished, too_late] {
                let html = body(page).await;
                assert!(html.contains("Shop") && !html.contains("page_"), "{html}");
            }
            for page in [cancelled(language), finishing(language)] {
                let html = body(page).await;
                assert!(!html.contains("page_"), "{html}");
            }
        }
    }

    #[test]
    fn every_page_has_the_page_headers() {
        let denied = Problem::new(ProblemCode::LoginDenied, Language::Ja, "r-1");
        for response in [done("Shop", Language::Ja), problem(&denied)] {
            for (name, value) in page::headers(Language::Ja) {
                assert_eq!(response.headers()[name], value);
            }
        }
    }
}
