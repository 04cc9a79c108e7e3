//! Whether a version can be retired: what each stage says, and what is open.

use axum::extract::RawQuery;
use maud::{Markup, html};

use super::{
    failure::Page,
    fields::Fields,
    page::{Reader, Section, page},
    parts::{field, moment, state, table_of},
    visitor::Visitor,
};
use crate::{
    administration::printable::printable,
    operations::versions::{RETIREMENT, RetirementInput},
    reports::retirement::Retirement,
};

pub(super) const PATH: &str = "/versions/retirement";

/// Checks a version.
pub(super) async fn show(visitor: Visitor, RawQuery(query): RawQuery) -> Page {
    let reader = &visitor.reader;
    let given = Fields::of_query(query.as_deref());
    let version = given.get("version");
    let input = RetirementInput {
        version: version.to_owned(),
        at: given.given("at").map(str::to_owned),
    };
    let retirement = visitor.run(&RETIREMENT, (), input).await?;
    let content = html! {
        (stages(reader, &retirement))
        form.fields.bar action=(PATH) {
            input type="hidden" name="version" value=(version);
            (field(reader, "at", given.get("at")))
            button { (reader.text("console_check_date")) }
        }
    };
    let title = reader.tell("console_retirement", &[("version", &*retirement.version)]);
    Ok(page(reader, Some(Section::Versions), &title, &content))
}

fn stages(reader: &Reader, retirement: &Retirement) -> Markup {
    let readiness = ["not_ready", "ready"][usize::from(retirement.is_ready)];
    html! {
        p {
            (state(reader, "readiness", readiness))
            @if retirement.at.is_some() { " " (moment(retirement.at)) }
        }
        (table_of(reader, &["console_checked", "console_found", "console_open"], &html! {
            @for stage in &retirement.stages { tr {
                th scope="row" { (reader.word("checked", stage.stage)) }
                td { (printable(&stage.says)) }
                td { @for open in &stage.open { div { (printable(open)) } } @if stage.open.is_empty() { "–" } }
            } }
        }))
    }
}
