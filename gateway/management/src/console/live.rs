//! Requests as they come. The script adds them to the table; without it, the page has the last rejected ones.

use axum::{
    body::Body,
    extract::{RawQuery, State},
    response::Response,
};
use futures_util::StreamExt;
use http::HeaderMap;
use maud::{Markup, html};
use serde_json::Value;
use tokio::time::sleep;

use super::{
    Shared,
    failure::Failure,
    links::{address, parameter, segment},
    page::{Reader, Section, page},
    parts::{Field, choice, items_of, table_of, text_of, time, version_choice},
    visitor::Visitor,
};
use crate::api::CHECK_INTERVAL;

/// The parameters that choose requests.
const FILTERS: [&str; 3] = ["version", "app", "status"];

/// Columns of the table.
const HEADS: [&str; 7] = [
    "console_when",
    "console_request",
    "console_app",
    "console_version",
    "console_status",
    "console_duration",
    "console_problem_code",
];

/// Shows the page.
pub(super) async fn show(visitor: Visitor, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let given = FILTERS.map(|name| parameter(query.as_deref(), name));
    let versions = visitor.get("/api/v1/versions?limit=1000").await?;
    let call = [("app", &*given[1]), ("limit", "50")];
    let rejections = visitor.get(&address("/api/v1/rejections", &call)).await?;
    let content = html! {
        (filter(reader, &versions, &given))
        section aria-labelledby="stream-title" data-stream=(with("/live/stream", &given)) {
            h2 id="stream-title" { (reader.text("console_live_now")) }
            p role="status" data-on=(reader.text("console_live_on")) data-off=(reader.text("console_live_off")) data-ended=(reader.text("console_live_ended")) data-missed=(reader.text("console_live_missed")) {
                (reader.text("console_live_script"))
            }
            (table_of(reader, &HEADS, &html! {}))
        }
        section aria-labelledby="rejected-title" {
            h2 id="rejected-title" { (reader.text("console_live_rejected")) }
            (table(reader, &rejections))
        }
    };
    let title = reader.text("console_live");
    Ok(page(reader, Some(Section::Live), &title, &content))
}

/// The requests as the API streams them.
pub(super) async fn stream(
    State(console): State<Shared>,
    visitor: Visitor,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let given = FILTERS.map(|name| parameter(query.as_deref(), name));
    let response = visitor.open(&with("/api/v1/requests", &given)).await?;
    let ended = Box::pin(async move {
        while console.sessions.lives(&headers) {
            sleep(CHECK_INTERVAL).await;
        }
    });
    Ok(response.map(|body| Body::from_stream(body.into_data_stream().take_until(ended))))
}

/// A path with the filters.
fn with(path: &str, given: &[String; 3]) -> String {
    let [version, app, status] = given;
    address(
        path,
        &[("version", version), ("app", app), ("status", status)],
    )
}

fn filter(reader: &Reader, versions: &Value, given: &[String; 3]) -> Markup {
    let statuses = ["2", "3", "4", "5"].map(|class| (class, format!("{class}xx")));
    let statuses: Vec<_> = std::iter::once(("", reader.text("console_all")))
        .chain(statuses)
        .collect();
    html! {
        form.fields.bar action="/live" {
            (version_choice(reader, "version", "console_all", versions, &given[0]))
            (Field::line("app", &given[1]).show(reader))
            (choice(reader, "status", &statuses, &given[2]))
            button { (reader.text("console_filter")) }
        }
    }
}

/// Rejected requests, each with a link to what explains it.
pub(super) fn table(reader: &Reader, rejections: &Value) -> Markup {
    let items = items_of(rejections, "items");
    html! {
        @if items.is_empty() { p.empty { (reader.text("console_rejections_none")) } } @else {
            (table_of(reader, &HEADS, &html! { @for seen in items { (row(reader, seen)) } }))
        }
    }
}

fn row(reader: &Reader, seen: &Value) -> Markup {
    let id = text_of(seen, "request_id");
    html! { tr {
        td { (time(&seen["at"])) }
        td { code { (text_of(seen, "method")) " " (text_of(seen, "path")) } }
        td { code { (text_of(seen, "app")) } }
        td { (text_of(seen, "version")) }
        td { (text_of(seen, "status")) }
        td.number { (text_of(seen, "duration_ms")) }
        td {
            a href={ "/doctor/" (segment(&id)) } aria-label=(reader.tell("console_explain", &[("id", &id)])) {
                code { (text_of(seen, "code")) @if !seen["hint"].is_null() { " " (text_of(seen, "hint")) } }
            }
        }
    } }
}
