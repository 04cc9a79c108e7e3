//! Settings: the configuration in force, and what a reload would change.

pub(super) mod tokens;

use axum::extract::RawQuery;
use maud::{Markup, html};
use signpost_kit::config::{Change, Problem};

use super::{
    failure::Page,
    fields::Fields,
    page::{Reader, Section, page},
    parts::{done, of_change, pages, table_of, word_of},
    visitor::Visitor,
};
use crate::{
    administration::{printable::printable, tokens::Role},
    operations::{
        config::{CHECK, LIST, RELOAD},
        input::{Limit, NamedPage, Nothing, Why},
    },
};

/// Settings of a page.
const ITEMS: u16 = 200;

/// Shows the configuration in force.
pub(super) async fn show(visitor: Visitor, RawQuery(query): RawQuery) -> Page {
    let reader = &visitor.reader;
    let given = Fields::of_query(query.as_deref());
    let after = given.given("after").map(str::to_owned);
    let limit = Limit::new(ITEMS);
    let settings = visitor.run(&LIST, (), NamedPage { limit, after }).await?;
    let content = html! {
        div.bar {
            a.button href="/settings/reload" { (reader.text("console_reload")) }
            a.button.plain href="/settings/tokens" { (reader.text("console_tokens")) }
        }
        h2 { (reader.text("console_configuration")) }
        p.quiet { (reader.text("console_configuration_how")) }
        (table_of(reader, &["console_setting", "console_value", "console_source"], &html! {
            @for setting in &settings.items { tr {
                th scope="row" { code { (printable(&setting.key)) } }
                td { code { (printable(&setting.shown)) } }
                td { (reader.word("source_of", &word_of(&setting.source))) }
            } }
        }))
        (pages(reader, "/settings", &[], (&given, settings.next.as_deref())))
    };
    let title = reader.text("console_settings");
    Ok(page(reader, Some(Section::Settings), &title, &content))
}

/// Shows what a reload would change.
pub(super) async fn check(visitor: Visitor) -> Page {
    let reader = &visitor.reader;
    let check = visitor.run(&CHECK, (), Nothing {}).await?;
    let content = html! {
        @match &check.report {
            None => div.problem role="alert" {
                p { (reader.text("console_reload_rejected")) }
                (problems(&check.problems))
            },
            Some(report) => {
                @for warning in &report.warnings { p.warning { (printable(warning)) } }
                @if report.changed.is_empty() && report.needing_restart.is_empty() {
                    p.empty { (reader.text("console_reload_nothing")) }
                }
                @if !report.changed.is_empty() {
                    h2 { (reader.text("console_reload_changes")) }
                    (differences(reader, &report.changed))
                }
                @if !report.needing_restart.is_empty() {
                    h2 { (reader.text("console_reload_later")) }
                    (differences(reader, &report.needing_restart))
                    p { code { (printable(&report.new_process)) } }
                }
                @if reader.may(Role::Operator) {
                    form.fields method="post" action="/settings/reload" {
                        (of_change(reader))
                        button { (reader.text("console_reload")) }
                    }
                }
            }
        }
    };
    let title = reader.text("console_reload");
    Ok(page(reader, Some(Section::Settings), &title, &content))
}

/// What is wrong with the files.
fn problems(problems: &[Problem]) -> Markup {
    html! {
        ul.lines { @for problem in problems.iter().take(100) { li {
            @if let Some(line) = problem.line { (line) ": " }
            code { (printable(&problem.key)) } " " (printable(&problem.text))
        } } }
    }
}

fn differences(reader: &Reader, changes: &[Change]) -> Markup {
    let text = |text: &Option<String>| printable(text.as_deref().unwrap_or_default());
    html! {
        (table_of(reader, &["console_setting", "console_before", "console_afterwards"], &html! {
            @for change in changes { tr {
                th scope="row" { code { (printable(&change.key)) } }
                td { code { (text(&change.from)) } }
                td { code { (text(&change.to)) } }
            } }
        }))
    }
}

/// Reloads the configuration of this gateway.
pub(super) async fn reload(visitor: Visitor, fields: Fields) -> Page {
    let why = fields.value("reason").map(|reason| Why { reason });
    let reloaded = visitor.submit(&RELOAD, (), why).await;
    let done = reloaded.map(|_| done("/settings", "reloaded"));
    visitor.or_again(done, fields, check).await
}
