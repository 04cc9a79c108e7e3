//! The HTML pages of the login service: login, try again, finishing, done, finished, cancelled, too late and problem.
//!
//! Layout, response headers and the problem page come from `signpost_kit::page`, which the gateway uses, too.

use std::fmt::Write as _;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header::REFRESH};
use maud::{Markup, html};
use signpost_kit::page::{self, Html, Outcome};
use signpost_protocol::{language::Language, problem::Problem, text::text};

use url::Url;

use crate::{
    error::LoginError,
    flow::{Button, Page, PollingPage},
};

/// The page of a login: a button for each provider. That of a polling login has the user code above them, and the link that
/// cancels below.
pub(crate) fn login(page: &Page, language: Language) -> Response {
    let application = page.application.name.as_str();
    // The name is an operator's text, which `html!` escapes.
    let args = [("application", application)];
    let title = text(language, "page_confirm_title", &args);
    let begun = |polling: &PollingPage| {
        let minutes = match polling.age_minutes {
            0 => "<1".to_owned(),
            minutes => minutes.to_string(),
        };
        let args = [("minutes", &*minutes), ("network", &polling.network)];
        text(language, "page_confirm_begun", &args)
    };
    let body = match &page.polling {
        None => html! { (buttons(page, language, "page_choose_button", None)) },
        Some(polling) => html! {
            p { (text(language, "page_confirm_compare", &args)) }
            p.code aria-label=(text(language, "page_confirm_code", &[])) { (polling.user_code.as_str()) }
            p { (begun(polling)) }
            p.warning { (text(language, "page_confirm_warning", &args)) }
            @if polling.is_elsewhere {
                p.warning { (text(language, "page_confirm_network", &args)) }
            }
            (buttons(page, language, "page_confirm_button", Some(polling)))
            p.cancel {
                a href=(href(page, &[("confirm", &polling.cancel)])) rel="nofollow" {
                    (text(language, "page_confirm_cancel", &[]))
                }
            }
        },
    };
    response(
        language,
        page::document(language, &title, &Html::escaped(body.into_string())),
    )
}

/// Links and not forms: `form-action` in the policy would have to allow the providers' origins.
fn buttons(page: &Page, language: Language, key: &str, polling: Option<&PollingPage>) -> Markup {
    let target = |button: &Button| {
        let mut query = Vec::new();
        if let Some(polling) = polling {
            query.push(("confirm", polling.confirm.as_str()));
        }
        if polling.is_none_or(|polling| polling.user_chooses) {
            query.push(("provider", button.name.as_str()));
        }
        href(page, &query)
    };
    html! {
        @for button in &page.providers {
            a.button href=(target(button)) rel="nofollow" {
                (text(language, key, &[("provider", button.label.in_language(language))]))
            }
        }
    }
}

/// The values are base64url with dots, or names of providers, and need no escaping in a query.
fn href(page: &Page, query: &[(&str, &str)]) -> String {
    let mut href = format!("?state={}", page.state);
    for (name, value) in query {
        let _ = write!(href, "&{name}={value}");
    }
    href
}

/// The page of a problem that has one of its own.
#[derive(Clone)]
pub(crate) struct OwnPage(String);

/// The provider is unavailable: a link that leads to it again, and one back to the application, if it has an address.
pub(crate) fn try_again(
    application: &str,
    state: &str,
    back: Option<&Url>,
    language: Language,
) -> Response {
    let args = [("application", application)];
    let body = html! {
        p { (text(language, "page_again_wait", &[])) }
        a.button href=(format!("?state={state}")) rel="nofollow" { (text(language, "page_again_button", &[])) }
        @if let Some(back) = back {
            p.cancel { a href=(back) { (text(language, "page_finished_link", &args)) } }
        }
    };
    let title = text(language, "page_again_title", &[]);
    let page = page::outcome(
        Outcome::Failure,
        language,
        &title,
        &Html::escaped(body.into_string()),
    );
    let mut problem = LoginError::ProviderFailed.into_response();
    problem.extensions_mut().insert(OwnPage(page));
    problem
}

/// The user is logged in, and the window can be closed.
pub(crate) fn done(application: &str, language: Language) -> Response {
    let args = [("application", application)];
    let body = html! { p { (text(language, "page_done_close", &args)) } };
    outcome(Outcome::Success, language, "page_done_title", body)
}

/// A redirect login that was completed before, with a link to the origin of its `return_to`.
pub(crate) fn finished(application: &str, origin: &str, language: Language) -> Response {
    let args = [("application", application)];
    let body = html! { p { a href=(origin) { (text(language, "page_finished_link", &args)) } } };
    outcome(Outcome::Success, language, "page_finished_title", body)
}

/// The user cancelled the login.
pub(crate) fn cancelled(language: Language) -> Response {
    let body = html! { p { (text(language, "page_cancelled_close", &[])) } };
    outcome(Outcome::Neutral, language, "page_cancelled_title", body)
}

/// The user wanted to cancel a login that was complete.
pub(crate) fn too_late(application: &str, language: Language) -> Response {
    let args = [("application", application)];
    let body = html! { p { (text(language, "page_late_warning", &args)) } };
    outcome(Outcome::Failure, language, "page_late_title", body)
}

/// An earlier request of this browser is still completing the login; the page reloads itself until it has.
pub(crate) fn finishing(language: Language) -> Response {
    let title = text(language, "page_finishing_title", &[]);
    let body = html! { p { (text(language, "page_finishing_wait", &[])) } };
    let page = response(
        language,
        page::document(language, &title, &Html::escaped(body.into_string())),
    );
    ([(REFRESH, HeaderValue::from_static("2"))], page).into_response()
}

/// The page of a problem, with the code that its JSON would have, or its own.
pub(crate) fn problem(problem: &Problem, own: Option<&OwnPage>) -> Response {
    let page = own.map_or_else(|| page::problem(problem), |OwnPage(page)| page.clone());
    response(problem.language, page)
}

fn outcome(outcome: Outcome, language: Language, title: &str, body: Markup) -> Response {
    let title = text(language, title, &[]);
    response(
        language,
        page::outcome(
            outcome,
            language,
            &title,
            &Html::escaped(body.into_string()),
        ),
    )
}

fn response(language: Language, page: String) -> Response {
    (page::headers(language), page).into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::StatusCode;

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
        let config = crate::testing::config(
            "[providers.company]\nkind = \"oidc\"\nissuer = \"https://id.example\"\nclient_id = \"i\"\n\
             client_secret = \"s\"\nlabel = { en = \"R&D\", ja = \"会社\" }\n",
        );
        let button = |config: &crate::config::ProviderConfig| Button {
            name: config.name.clone(),
            label: config.label.clone(),
        };
        Page {
            application: Arc::new(Application {
                id: AppId::SINGLE,
                name: application.to_owned(),
                is_active: true,
                return_to: Vec::new(),
            }),
            providers: config.providers.all.iter().map(button).collect(),
            state: "v1.abc".to_owned(),
            polling: Some(PollingPage {
                user_code: UserCode::generate(),
                age_minutes: 3,
                network: "192.0.2.0/24".to_owned(),
                is_elsewhere: true,
                confirm: "def".to_owned(),
                cancel: "ghi".to_owned(),
                set_cookie: HeaderValue::from_static("x=y"),
                user_chooses: true,
            }),
        }
    }

    #[tokio::test]
    async fn the_page_shows_application_user_code_and_providers_in_every_language() {
        for language in Language::ALL {
            let mut page = page("Shop & <Co>");
            let html = body(login(&page, language)).await;
            let polling = page.polling.take().unwrap();
            let label = if language == Language::Ja {
                "会社"
            } else {
                "R&amp;D"
            };
            for expected in [
                &format!("<html lang=\"{}\">", language.tag()),
                "Shop &amp; &lt;Co&gt;",
                polling.user_code.as_str(),
                "href=\"?state=v1.abc&amp;confirm=def&amp;provider=company\"",
                "href=\"?state=v1.abc&amp;confirm=def&amp;provider=sandbox\"",
                "href=\"?state=v1.abc&amp;confirm=ghi\"",
                label,
                "Bitbucket",
            ] {
                assert!(html.contains(expected), "{expected}: {html}");
            }
            assert!(!html.contains("page_") && !html.contains("<Co>"), "{html}");
            // In redirect mode there is no code, and nothing to cancel.
            let html = body(login(&page, language)).await;
            assert!(
                html.contains("href=\"?state=v1.abc&amp;provider=company\""),
                "{html}"
            );
            assert!(
                !html.contains("confirm=") && !html.contains("page_"),
                "{html}"
            );
            // With one provider that the client has named, the button needs no name.
            page.polling = Some(PollingPage {
                user_chooses: false,
                ..polling
            });
            let html = body(login(&page, language)).await;
            assert!(!html.contains("provider="), "{html}");
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
            let back = "https://shop.example/done?error=provider_failed"
                .parse()
                .unwrap();
            let again = try_again("Shop", "v1.abc", Some(&back), language);
            assert_eq!(again.status(), StatusCode::BAD_GATEWAY);
            let failed = Problem::new(ProblemCode::ProviderFailed, language, "r-1");
            let html = body(problem(&failed, again.extensions().get())).await;
            for expected in ["\"?state=v1.abc\"", back.as_str(), "Shop"] {
                assert!(html.contains(expected), "{expected}: {html}");
            }
            assert!(!html.contains("page_"), "{html}");
            for page in [cancelled(language), finishing(language)] {
                let html = body(page).await;
                assert!(!html.contains("page_"), "{html}");
            }
        }
    }

    #[test]
    fn every_page_has_the_page_headers() {
        let denied = Problem::new(ProblemCode::LoginDenied, Language::Ja, "r-1");
        for response in [done("Shop", Language::Ja), problem(&denied, None)] {
            for (name, value) in page::headers(Language::Ja) {
                assert_eq!(response.headers()[name], value);
            }
        }
    }
}
