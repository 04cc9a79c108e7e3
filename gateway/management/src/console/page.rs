//! The frame of every page, its style sheet and its script, and the texts.

use std::sync::{Arc, LazyLock};

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};
use maud::{DOCTYPE, Markup, html};
use ring::digest;
use signpost_kit::page::COLOURS;
use signpost_protocol::{
    language::Language,
    problem::ProblemCode,
    text::{Texts, text},
};

use super::session::{Session, Sessions};
use crate::administration::{printable::printable, tokens::Role};

/// The texts of the console: a Fluent file for each language.
static TEXTS: Texts = Texts::new([
    include_str!("languages/en.ftl"),
    include_str!("languages/zh-CN.ftl"),
    include_str!("languages/zh-TW.ftl"),
    include_str!("languages/ja.ftl"),
    include_str!("languages/ko.ftl"),
]);

pub(super) const STYLE_PATH: &str = "/console.css";
pub(super) const SCRIPT_PATH: &str = "/console.js";

/// The style sheet, and the words that a browser keeps it by.
static STYLE: LazyLock<(String, String)> = LazyLock::new(|| {
    let style = [COLOURS, include_str!("style.css")].concat();
    let address = versioned(STYLE_PATH, &style);
    (style, address)
});
const SCRIPT: &str = include_str!("console.js");
static SCRIPT_ADDRESS: LazyLock<String> = LazyLock::new(|| versioned(SCRIPT_PATH, SCRIPT));

/// Changes with the content, so that a browser can keep it for ever.
fn versioned(path: &str, content: &str) -> String {
    let hash = digest::digest(&digest::SHA256, content.as_bytes());
    format!("{path}?{}", hex::encode(&hash.as_ref()[..8]))
}

/// A form's address, and its fields.
pub(super) type Kept = (String, Vec<(String, String)>);

/// For whom a page is written.
#[derive(Clone)]
pub(super) struct Reader {
    pub language: Language,
    /// `None` without a session.
    pub session: Option<Arc<Session>>,
    /// What the page says above its content.
    pub banner: Markup,
    /// The form that was not accepted: its address, and what was filled in.
    pub kept: Option<Arc<Kept>>,
}

signpost_protocol::hide_in_debug!(Reader);

impl Reader {
    pub(super) fn new(headers: &HeaderMap, session: &Arc<Session>) -> Self {
        Self {
            session: Some(Arc::clone(session)),
            ..Self::of_request(headers)
        }
    }

    /// The reader of a request without a session. The request's `Accept-Language` decides the language.
    pub(super) fn of_request(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(header::ACCEPT_LANGUAGE).iter();
        Self {
            language: Language::of_request(None, accepted.map(HeaderValue::as_bytes)),
            session: None,
            banner: Markup::default(),
            kept: None,
        }
    }

    /// Of a request that may belong to a session.
    pub(super) fn of_session(sessions: &Sessions, headers: &HeaderMap) -> Self {
        Self {
            session: sessions.find(headers),
            ..Self::of_request(headers)
        }
    }

    /// The same for the fields of one of several forms.
    pub(super) fn of_form(&self, address: &str) -> Self {
        let mut reader = self.clone();
        reader.kept = reader.kept.filter(|kept| kept.0 == address);
        reader
    }

    /// What a field has: what was filled in and not accepted, or what it has at first.
    pub(super) fn kept<'r>(&'r self, name: &str, first: &'r str) -> &'r str {
        let Some(kept) = &self.kept else {
            return first;
        };
        let field = kept.1.iter().find(|(field, _)| field == name);
        field.map_or("", |(_, value)| value.trim())
    }

    /// A text of the console.
    pub(super) fn text(&self, id: &str) -> String {
        self.tell(id, &[])
    }

    /// A text of the console with arguments.
    pub(super) fn tell(&self, id: &str, args: &[(&str, &str)]) -> String {
        let found = TEXTS.find(self.language, id, args);
        found.unwrap_or_else(|| id.to_owned())
    }

    /// A text of the console, if there is one.
    pub(super) fn find(&self, id: &str) -> Option<String> {
        TEXTS.find(self.language, id, &[])
    }

    /// A text for a word of the API, for example of a state; the word itself if there is none.
    pub(super) fn word(&self, kind: &str, word: &str) -> String {
        let id = format!("console_{kind}.{}", word.replace(['_', '.'], "-"));
        self.find(&id).unwrap_or_else(|| word.to_owned())
    }

    /// The title of a problem's code; the code itself if the contract has no such code.
    pub(super) fn title(&self, code: &str) -> String {
        let known = ProblemCode::of_word(code);
        known.map_or_else(
            || printable(code),
            |code| text(self.language, code.as_str(), &[]),
        )
    }

    /// Whether the user's role allows what this role does.
    pub(super) fn may(&self, role: Role) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| session.role >= role)
    }
}

/// A part of the console: a link of its navigation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Overview,
    Apps,
    Versions,
    Doctor,
    Live,
    Audit,
    Settings,
}

const SECTIONS: [(Section, &str, &str); 7] = [
    (Section::Overview, "/", "console_overview"),
    (Section::Apps, "/apps", "console_apps"),
    (Section::Versions, "/versions", "console_versions"),
    (Section::Doctor, "/doctor", "console_doctor"),
    (Section::Live, "/live", "console_live"),
    (Section::Audit, "/audit", "console_audit"),
    (Section::Settings, "/settings", "console_settings"),
];

/// A page with a title and a content. Without a section, it is none that the navigation leads to.
pub(super) fn page(
    reader: &Reader,
    section: Option<Section>,
    title: &str,
    content: &Markup,
) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang=(reader.language.tag()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) " · Signpost" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href=(STYLE.1);
                script type="module" src=(*SCRIPT_ADDRESS) {}
            }
            body {
                a.skip href="#content" { (reader.text("console_skip")) }
                @if let Some(session) = &reader.session { (header(reader, session, section)) }
                main id="content" {
                    h1 { (title) }
                    (reader.banner)
                    (content)
                }
            }
        }
    };
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (
            header::CONTENT_LANGUAGE,
            HeaderValue::from_static(reader.language.tag()),
        ),
    ];
    (headers, page.into_string()).into_response()
}

fn header(reader: &Reader, session: &Session, section: Option<Section>) -> Markup {
    html! {
        header {
            nav aria-label=(reader.text("console_navigation")) {
                @for (one, path, text) in SECTIONS {
                    a href=(path) aria-current=[(section == Some(one)).then_some("page")] { (reader.text(text)) }
                }
            }
            form.who method="post" action="/sign-out" {
                span { (session.name) " · " (reader.word("role", session.role.as_str())) }
                button.plain { (reader.text("console_sign_out")) }
            }
        }
    }
}

/// Serves the style sheet.
pub(super) async fn style() -> Response {
    kept("text/css; charset=utf-8", &STYLE.0)
}

/// The script: what makes pages live. They work without it.
pub(super) async fn script() -> Response {
    kept("text/javascript; charset=utf-8", SCRIPT)
}

fn kept(content_type: &'static str, content: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, max-age=31536000, immutable"),
        ),
    ];
    (headers, content).into_response()
}
