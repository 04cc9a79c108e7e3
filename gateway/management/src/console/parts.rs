//! Parts that several pages have: times, states, lists by pages, fields of forms.

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Serialize;
use signpost_kit::clock::Timestamp;
use signpost_proxy::rfc3339;

use super::{
    fields::Fields,
    links::{address, parameter},
    page::Reader,
    session::random_id,
};
use crate::reports::versions::ListedVersion;

/// A time of RFC 3339 in UTC, to the second. The script writes it in the reader's zone.
pub(super) fn time_of(text: Option<&str>) -> Markup {
    let text = text.unwrap_or_default();
    let (date, clock) = text.split_once('T').unwrap_or((text, ""));
    html! {
        @if text.is_empty() { "–" } @else {
            time datetime=(text) { (date) " " (clock.get(..8).unwrap_or(clock)) "\u{a0}UTC" }
        }
    }
}

/// A time in UTC, to the second.
pub(super) fn moment(time: impl Into<Option<Timestamp>>) -> Markup {
    time_of(time.into().map(rfc3339).as_deref())
}

/// The word by which the API says a value.
pub(super) fn word_of(value: &impl Serialize) -> String {
    let word = serde_json::to_value(value).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

/// A state as a word with a mark. `kind` selects the word's texts; the word decides the mark's colour.
pub(super) fn state(reader: &Reader, kind: &str, word: &str) -> Markup {
    let class = match word {
        "active" | "healthy" | "current" | "ready" | "proven" => "good",
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

/// Pages of a list that a page's address names, so that they can be gone back to. Before them stands the first one.
const MAX_BACK: usize = 100;

/// The links to the previous and the next page of a list. Both links have the parameters `query`; `given` are the
/// parameters of this page.
pub(super) fn pages(
    reader: &Reader,
    path: &str,
    query: &[(&str, &str)],
    (given, next): (&Fields, Option<&str>),
) -> Markup {
    let after = given.get("after");
    let mut back: Vec<_> = given.all("back").map(|page| ("back", page)).collect();
    let page = |after, back: &[_]| address(path, &[query, &[("after", after)], back].concat());
    let previous = (!after.is_empty()).then(|| match back.split_last() {
        Some(((_, last), rest)) => page(last, rest),
        None => page("", &[]),
    });
    let next = next.map(|next| {
        back.push(("back", after));
        page(next, &back[back.len().saturating_sub(MAX_BACK)..])
    });
    html! {
        @if previous.is_some() || next.is_some() {
            nav.pages aria-label=(reader.text("console_pages")) {
                @if let Some(previous) = previous { a rel="prev" href=(previous) { (reader.text("console_previous_page")) } }
                @if let Some(next) = next { a rel="next" href=(next) { (reader.text("console_next_page")) } }
            }
        }
    }
}

/// The fields that are no line of text which may be empty: the type of the input, and whether it must have something.
const FIELDS: [(&str, &str, bool); 14] = [
    ("canonical", "textarea", false),
    ("confirm", "text", true),
    ("days", "number", true),
    ("file", "textarea", true),
    ("minutes", "number", true),
    ("name", "text", true),
    ("overlap_hours", "number", false),
    ("provider", "text", true),
    ("request", "textarea", true),
    ("request_id", "text", true),
    ("return_to", "textarea", false),
    ("token", "password", true),
    ("token_name", "text", true),
    ("username", "text", true),
];

/// A field of a form, with its label and what it is for: the texts `console_field_NAME`, and `.hint` of it.
pub(super) fn field(reader: &Reader, name: &str, first: &str) -> Markup {
    let known = FIELDS.iter().find(|(known, ..)| *known == name);
    let (_, kind, is_required) = known.unwrap_or(&("", "text", false));
    let (text, value) = (format!("console_field_{name}"), reader.kept(name, first));
    let hint = reader.find(&format!("{text}.hint"));
    html! {
        label {
            span { (reader.text(&text)) }
            @if *kind == "textarea" {
                textarea name=(name) rows="3" spellcheck="false" required[*is_required] { (value) }
            } @else {
                input type=(kind) name=(name) value=(value) autocomplete="off" required[*is_required];
            }
            @if let Some(hint) = hint { small { (hint) } }
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
                    option value=(value) selected[*value == reader.kept(name, chosen)] { (text) }
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

/// A field that is on or off. Its text is `console_NAME`.
pub(super) fn check(reader: &Reader, name: &str) -> Markup {
    html! {
        label.check {
            input type="checkbox" name=(name) value="true" checked[reader.kept(name, "") == "true"];
            span { (reader.text(&format!("console_{name}"))) }
        }
    }
}

/// Changes that cannot be taken back.
const DANGERS: [&str; 4] = ["delete", "end-overlap", "logout", "revoke"];

/// The form of a change, which is folded until it is needed; open if it was not accepted.
pub(super) fn folded(
    reader: &Reader,
    (change, address): (&str, &str),
    fields: impl FnOnce(&Reader) -> Markup,
) -> Markup {
    let (reader, text) = (&reader.of_form(address), reader.word("change", change));
    html! {
        details open[reader.kept.is_some() || change == "update"] {
            summary { (text) }
            form.fields method="post" action=(address) {
                (fields(reader))
                (of_change(reader))
                button.danger[DANGERS.contains(&change)] { (text) }
            }
        }
    }
}

/// What every form of a change has besides its own fields: the reason, and a key by which it is made once.
pub(super) fn of_change(reader: &Reader) -> Markup {
    html! {
        (field(reader, "reason", ""))
        // Without a random key, a form that is sent twice is not recognised.
        input type="hidden" name="once" value=(random_id().unwrap_or_default());
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

/// Calls by the client libraries, folded: the name of each language, and its lines.
pub(super) fn samples(
    reader: &Reader,
    samples: impl Iterator<Item = (&'static str, String)>,
) -> Markup {
    html! {
        h2 { (reader.text("console_samples")) }
        p { (reader.text("console_samples_how")) }
        @for (name, code) in samples {
            details { summary { (name) } pre { code { (code) } } }
        }
    }
}
