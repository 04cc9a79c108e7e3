//! Versions: their stage and dates, who uses them, their backends, and addresses to take out.

use axum::{
    extract::{Path, RawQuery},
    response::Response,
};
use maud::{Markup, html};
use serde_json::{Map, Value, json};
use signpost_proxy::rfc3339;

use super::{
    failure::Failure,
    fields::Fields,
    links::segment,
    page::{Reader, Section, page},
    parts::{Field, done, items_of, of_change, said, state, table_of, text_of, time},
    shadows::Shadows,
    visitor::Visitor,
};
use crate::administration::tokens::Role;

/// Applications of a version that the page names.
const MAX_SHOWN_APPS: usize = 20;

/// Shows all versions.
pub(super) async fn show(visitor: Visitor, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    let banner = said(&visitor.reader, query.as_deref());
    show_with(&visitor, &banner).await
}

async fn show_with(visitor: &Visitor, banner: &Markup) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let (versions, backends) = tokio::try_join!(
        visitor.get("/api/v1/versions?limit=1000"),
        visitor.get("/api/v1/backends?limit=1000"),
    )?;
    // A report that is too large for the API is no reason to show nothing.
    let report = visitor.get("/api/v1/versions/report").await;
    let (report, problem) = match report {
        Ok(report) => (report, None),
        Err(failure) => (Value::Null, Some(failure.of_input()?)),
    };
    let all = items_of(&report, "versions").iter();
    let all: u64 = all.filter_map(|version| version["requests"].as_u64()).sum();
    let now = rfc3339(visitor.now());
    let mut shadows = Vec::new();
    for version in items_of(&versions, "items") {
        shadows.push(Shadows::read(visitor, version).await?);
    }
    let content = html! {
        (banner)
        @if let Some(problem) = &problem { (problem.banner()) }
        @for (version, shadows) in items_of(&versions, "items").iter().zip(&shadows) {
            @let name = text_of(version, "version");
            @let mut reported = items_of(&report, "versions").iter();
            @let usage = reported.find(|one| one["version"] == version["version"]).unwrap_or(&Value::Null);
            section.card aria-labelledby={ "version-" (name) } {
                h2 id={ "version-" (name) } {
                    (name) " " (state(reader, "stage_of", &text_of(version, "stage")))
                    @if version["is_default"] == true { " " span.quiet { (reader.text("console_default")) } }
                }
                (time_line(reader, version, &now))
                (users(reader, usage, all))
                (shadows.show(reader, version))
                @for backend in items_of(version, "backends") { (self::backend(reader, backend, &backends)) }
            }
        }
    };
    let title = reader.text("console_versions");
    Ok(page(reader, Some(Section::Versions), &title, &content))
}

/// The dates of a version on a time line, and where `now` is on it.
fn time_line(reader: &Reader, version: &Value, now: &str) -> Markup {
    let brownouts = items_of(version, "brownouts").iter();
    let brownouts = brownouts.map(|one| ("console_brownout", &one["start"], &one["end"]));
    let [deprecated, sunset] = ["deprecated", "sunset"].map(|member| &version[member]);
    let dates = [
        ("console_deprecated", deprecated, &Value::Null),
        ("console_sunset", sunset, &Value::Null),
    ];
    let dates = dates.into_iter().chain(brownouts);
    let mut dates: Vec<_> = dates.filter(|(_, date, _)| date.is_string()).collect();
    // All are written alike, and in UTC.
    dates.sort_by_key(|(_, date, _)| date.as_str());
    let is_past = |date: &Value| date.as_str().is_some_and(|date| date <= now);
    let past = dates
        .iter()
        .take_while(|(_, date, _)| is_past(date))
        .count();
    html! {
        @if !dates.is_empty() {
            ol.timeline {
                @for (place, (text, date, end)) in dates.iter().enumerate() {
                    @if place == past { li.today { (reader.text("console_today")) } }
                    li.past[place < past] {
                        (reader.text(text)) br; (time(date)) @if end.is_string() { " – " (time(end)) }
                    }
                }
                @if past == dates.len() { li.today { (reader.text("console_today")) } }
            }
        }
        @if !version["after_sunset"].is_null() {
            p { (reader.text("console_after_sunset")) ": " (reader.word("after", &text_of(version, "after_sunset"))) }
        }
    }
}

/// Who still uses a version, by the report of the last 30 days.
fn users(reader: &Reader, usage: &Value, all: u64) -> Markup {
    let requests = usage["requests"].as_u64().unwrap_or_default();
    let percent = (requests * 100)
        .checked_div(all)
        .unwrap_or_default()
        .to_string();
    let apps = items_of(usage, "applications");
    let args = [
        ("requests", &*requests.to_string()),
        ("percent", &percent),
        ("applications", &apps.len().to_string()),
    ];
    html! {
        p {
            (reader.tell("console_used_by", &args))
            " " meter min="0" max="100" value=(percent) aria-label=(reader.text("console_share")) {}
        }
        @if !apps.is_empty() {
            details {
                summary { (reader.text("console_users")) }
                (table_of(reader, &["console_name", "console_requests", "console_client"], &html! {
                    @for app in apps.iter().take(MAX_SHOWN_APPS) { tr {
                        th scope="row" { (user(reader, app)) }
                        td.number { (text_of(app, "requests")) }
                        td { (text_of(&app["client"], "user_agent")) }
                    } }
                }))
            }
        }
    }
}

/// An application of the report, with a link to its page while it exists.
fn user(reader: &Reader, app: &Value) -> Markup {
    let (kind, ident) = (text_of(app, "kind"), text_of(app, "ident"));
    html! {
        @if let Some(name) = app["name"].as_str() {
            a href={ "/apps/" (segment(&ident)) } { (crate::administration::printable::printable(name)) }
        } @else if kind == "application" { code { (ident) } } @else { (reader.word("kind", &kind)) }
    }
}

/// A backend's addresses, each with what can be done with it.
fn backend(reader: &Reader, backend: &Value, backends: &Value) -> Markup {
    let name = text_of(backend, "backend");
    let known = items_of(backends, "items").iter();
    let known = known
        .into_iter()
        .find(|one| one["backend"] == backend["backend"]);
    let addresses = items_of(known.unwrap_or(backend), "addresses");
    html! {
        h3 {
            (name) " " span.quiet {
                (reader.word("part", &text_of(backend, "part")))
                @if let Some(percent) = backend["percent"].as_u64() { " " (percent) " %" }
            }
        }
        ul.addresses { @for address in addresses { li {
            code { (text_of(address, "address")) } " "
            (state(reader, "health", &text_of(address, "health"))) " "
            @if !address["drained_until"].is_null() {
                span.quiet { (reader.text("console_until")) " " (time(&address["drained_until"])) } " "
            }
            @if reader.may(Role::Operator) { (drain(reader, &name, address)) }
        } } }
    }
}

fn drain(reader: &Reader, backend: &str, address: &Value) -> Markup {
    let is_drained = !address["drained_until"].is_null();
    let change = if is_drained { "undrain" } else { "drain" };
    let text = reader.word("change", change);
    html! {
        details {
            summary { (text) }
            form.fields method="post" action={ "/versions/" (change) } {
                input type="hidden" name="backend" value=(backend);
                input type="hidden" name="address" value=(text_of(address, "address"));
                @if !is_drained {
                    (Field::number("minutes", "30").required().show(reader))
                    label.check {
                        input type="checkbox" name="force" value="true";
                        span { (reader.text("console_force")) }
                    }
                }
                (of_change(reader))
                button { (text) }
            }
        }
    }
}

/// Takes an address out, or back.
pub(super) async fn change(
    visitor: Visitor,
    Path(change): Path<String>,
    fields: Fields,
) -> Result<Response, Failure> {
    let mut body: Map<_, _> = fields.object(&["backend", "address", "reason"]);
    match &*change {
        "drain" => {
            let minutes = fields.number("minutes").unwrap_or_default();
            let seconds = minutes.as_u64().map(|minutes| minutes.saturating_mul(60));
            body.insert(
                "seconds".to_owned(),
                seconds.map_or(minutes, |seconds| json!(seconds)),
            );
            body.insert("force".to_owned(), json!(fields.get("force") == "true"));
        }
        "undrain" => {}
        _ => return Err(Failure::not_found(visitor.reader)),
    }
    let path = format!("/api/v1/backends/{change}");
    match visitor
        .post(&path, &Value::Object(body), fields.get("once"))
        .await
    {
        Ok(_) => Ok(done("/versions", &change)),
        Err(failure) => {
            let failure = failure.of_input()?;
            let page = show_with(&visitor, &failure.banner()).await?;
            Ok(failure.with_page(page))
        }
    }
}
