//! Parts that several pages have: times, states, lists by pages, fields of forms.

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Serialize;
use signpost_kit::clock::Timestamp;
use signpost_proxy::rfc3339;

use super::{
    links::{address, parameter},
    page::Reader,
};
use crate::reports::versions::ListedVersion;

/// A time of RFC 3339 in UTC, to the minute. The script adds the time of the reader's zone.
pub(super) fn time_of(text: Option<&str>) -> Markup {
    let text = text.unwrap_or_default();
    let (date, clock) = text.split_once('T').unwrap_or((text, ""));
    html! {
        @if text.is_empty() { "–" } @else {
            time datetime=(text) { (date) " " (clock.get(..5).unwrap_or(clock)) " UTC" }
        }
    }
}

/// A time in UTC, to the minute.
pub(super) fn moment(time: impl Into<Option<Timestamp>>) -> Markup {
    time_of(time.into().map(rfc3339).as_deref())
}

/// The word by which the API says a value.
pub(super) fn word_of(value: &impl Serialize) -> String {
    let word = serde_json::to_value(value).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

/// A state as a word with a mark: `kind` is that of the texts, `class` its colour.
pub(super) fn state(reader: &Reader, kind: &str, word: &str) -> Markup {
    let class = match word {
        "active" | "healthy" | "current" | "ready" => "good",
        "unhealthy" | "unreachable" | "retired" | "revoked" => "bad",
        "disabled" | "drained" | "deprecated" | "brownout" | "past_sunset" | "not_ready" => "warn",
        _ => "quiet",
    };
    html! { span class={ "state " (class) } { (reader.word(kind, word)) } }
}

/// The heads of columns of numbers.
const NUMBERS: [&str; 6] = [
    "console_answered",
    "console_duration",
    "console_failed",
    "console_pairs",
    "console_rejected",
    "console_requests",
];

/// A table that scrolls where it is wider than the screen, also by the keyboard. `heads` are the texts of its columns; an empty one has none.
pub(super) fn table_of(reader: &Reader, heads: &[&str], rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" { table {
            thead { tr { @for head in heads {
                @if head.is_empty() { td {} } @else {
                    th.number[NUMBERS.contains(head)] { (reader.text(head)) }
                }
            } } }
            tbody { (rows) }
        } }
    }
}

/// The link to a list's next page; `query` are the parameters of this one.
pub(super) fn next_page(
    reader: &Reader,
    path: &str,
    query: &[(&str, &str)],
    next: Option<&str>,
) -> Markup {
    html! {
        @if let Some(next) = next {
            nav.pages {
                a href=(address(path, &[query, &[("after", next)]].concat())) { (reader.text("console_next_page")) }
            }
        }
    }
}

/// A field of a form, with its label and what it is for.
pub(super) struct Field<'f> {
    /// The name, also of its texts: `console_field_NAME`, and `.hint` of it.
    pub name: &'f str,
    /// What it has.
    pub value: &'f str,
    /// The type of the input; `textarea` for several lines.
    pub kind: &'f str,
    /// Whether it must have something.
    pub is_required: bool,
}

impl<'f> Field<'f> {
    /// A line of text.
    pub(super) const fn line(name: &'f str, value: &'f str) -> Self {
        Self {
            name,
            value,
            kind: "text",
            is_required: false,
        }
    }

    /// Several lines.
    pub(super) const fn lines(name: &'f str, value: &'f str) -> Self {
        Self {
            kind: "textarea",
            ..Self::line(name, value)
        }
    }

    /// A number.
    pub(super) const fn number(name: &'f str, value: &'f str) -> Self {
        Self {
            kind: "number",
            ..Self::line(name, value)
        }
    }

    /// A field that must have something.
    pub(super) const fn required(self) -> Self {
        Self {
            is_required: true,
            ..self
        }
    }

    pub(super) fn show(&self, reader: &Reader) -> Markup {
        let text = format!("console_field_{}", self.name);
        let hint = reader.find(&format!("{text}.hint"));
        html! {
            label {
                span { (reader.text(&text)) }
                @if self.kind == "textarea" {
                    textarea name=(self.name) rows="3" spellcheck="false" required[self.is_required] { (self.value) }
                } @else {
                    input type=(self.kind) name=(self.name) value=(self.value) autocomplete="off" required[self.is_required];
                }
                @if let Some(hint) = hint { small { (hint) } }
            }
        }
    }
}

/// A choice of a form; the first option changes nothing.
pub(super) fn choice(
    reader: &Reader,
    name: &str,
    options: &[(&str, String)],
    chosen: &str,
) -> Markup {
    html! {
        label {
            span { (reader.text(&format!("console_field_{name}"))) }
            select name=(name) {
                @for (value, text) in options {
                    option value=(value) selected[*value == chosen] { (text) }
                }
            }
        }
    }
}

/// A choice of a version, before which stands what no version means.
pub(super) fn version_choice(
    reader: &Reader,
    name: &str,
    none: &str,
    versions: &[ListedVersion],
    chosen: &str,
) -> Markup {
    let none = std::iter::once(("", reader.text(none)));
    let names = versions.iter().map(|version| &version.version);
    let options = none.chain(names.map(|name| (&**name, name.clone())));
    choice(reader, name, &options.collect::<Vec<_>>(), chosen)
}

/// What every form of a change has besides its own fields: the reason, and a key by which it is made once.
pub(super) fn of_change(reader: &Reader) -> Markup {
    let mut random = [0; 16];
    // Without one, a form that is sent twice is not recognised.
    let key = getrandom::fill(&mut random).map_or_else(|_| String::new(), |()| hex::encode(random));
    html! {
        (Field::line("reason", "").show(reader))
        input type="hidden" name="once" value=(key);
    }
}

/// The page that follows a change, which says what was done.
pub(super) fn done(path: &str, done: &str) -> Response {
    Redirect::to(&address(path, &[("done", done)])).into_response()
}

/// What the change before this page has done. The word is one of ours, or nothing is said.
pub(super) fn said(reader: &Reader, query: Option<&str>) -> Markup {
    let word = parameter(query, "done");
    let text = reader.word("done", &word);
    html! {
        @if !word.is_empty() && text != word { p.done role="status" { (text) } }
    }
}
