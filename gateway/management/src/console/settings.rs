//! Settings: the configuration in force, and what a reload would change.

pub(super) mod tokens;

use axum::{extract::RawQuery, response::Response};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::{
    failure::Failure,
    fields::Fields,
    links::{address, parameter},
    page::{Reader, Section, page},
    parts::{done, items_of, next_page, of_change, problem_lines, said, table_of, text_of},
    visitor::Visitor,
};
use crate::administration::tokens::Role;

/// Shows the configuration in force.
pub(super) async fn show(visitor: Visitor, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let after = parameter(query.as_deref(), "after");
    let call = [("after", &*after), ("limit", "200")];
    let settings = visitor.get(&address("/api/v1/config", &call)).await?;
    let content = html! {
        (said(reader, query.as_deref()))
        div.bar {
            a.button href="/settings/reload" { (reader.text("console_reload")) }
            a.button.plain href="/settings/tokens" { (reader.text("console_tokens")) }
        }
        h2 { (reader.text("console_configuration")) }
        p.quiet { (reader.text("console_configuration_how")) }
        (table_of(reader, &["console_setting", "console_value", "console_source"], &html! {
            @for setting in items_of(&settings, "items") { tr {
                th scope="row" { code { (text_of(setting, "key")) } }
                td { code { (text_of(setting, "value")) } }
                td { (reader.word("source_of", &text_of(setting, "source"))) }
            } }
        }))
        (next_page(reader, "/settings", &[], settings["next"].as_str()))
    };
    let title = reader.text("console_settings");
    Ok(page(reader, Some(Section::Settings), &title, &content))
}

/// Shows what a reload would change.
pub(super) async fn check(visitor: Visitor) -> Result<Response, Failure> {
    check_page(&visitor, &html! {}).await
}

async fn check_page(visitor: &Visitor, banner: &Markup) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let check = visitor.get("/api/v1/config/check").await?;
    let report = &check["report"];
    let (changed, later) = (
        items_of(report, "changed"),
        items_of(report, "needing_restart"),
    );
    let content = html! {
        (banner)
        @if report.is_null() {
            div.problem role="alert" {
                p { (reader.text("console_reload_rejected")) }
                (problem_lines(&check["problems"]))
            }
        } @else if changed.is_empty() && later.is_empty() {
            p.empty { (reader.text("console_reload_nothing")) }
        } @else {
            @if !changed.is_empty() { h2 { (reader.text("console_reload_changes")) } (differences(reader, changed)) }
            @if !later.is_empty() {
                h2 { (reader.text("console_reload_later")) }
                (differences(reader, later))
                p { code { (text_of(report, "new_process")) } }
            }
        }
        @if reader.may(Role::Operator) && !report.is_null() {
            form.fields method="post" action="/settings/reload" {
                (of_change(reader))
                button { (reader.text("console_reload")) }
            }
        }
    };
    let title = reader.text("console_reload");
    Ok(page(reader, Some(Section::Settings), &title, &content))
}

fn differences(reader: &Reader, changes: &[Value]) -> Markup {
    html! {
        (table_of(reader, &["console_setting", "console_before", "console_afterwards"], &html! {
            @for change in changes { tr {
                th scope="row" { code { (text_of(change, "key")) } }
                td { code { (text_of(change, "from")) } }
                td { code { (text_of(change, "to")) } }
            } }
        }))
    }
}

/// Reloads the configuration of this gateway.
pub(super) async fn reload(visitor: Visitor, fields: Fields) -> Result<Response, Failure> {
    let body = json!(fields.object(&["reason"]));
    match visitor
        .post("/api/v1/config/reload", &body, fields.get("once"))
        .await
    {
        Ok(_) => Ok(done("/settings", "reloaded")),
        Err(failure) => {
            let failure = failure.of_input()?;
            let page = check_page(&visitor, &failure.banner()).await?;
            Ok(failure.with_page(page))
        }
    }
}
