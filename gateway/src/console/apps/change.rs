//! Changes of an application.

use axum::{extract::Path, response::Response};
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::{new_key, settings, settings_of, show_with};
use crate::console::{
    failure::Failure,
    fields::Fields,
    links::segment,
    page::Reader,
    parts::{Field, done, items_of, of_change, text_of},
    visitor::Visitor,
};

/// The forms of an application's page. `given` is what was filled in and not accepted.
pub(super) fn forms(
    reader: &Reader,
    app: &Value,
    versions: &Value,
    given: Option<&Fields>,
) -> Markup {
    let is_active = app["state"] == "active";
    let has_overlap = !app["previous_key_until"].is_null();
    html! {
        section.changes {
            (form(reader, app, "update", true, &edit(reader, app, versions, given)))
            (form(reader, app, "rotate", false, &html! {
                p { (reader.text("console_rotate_how")) }
                (Field::number("overlap_hours", "24").show(reader))
            }))
            @if has_overlap {
                (form(reader, app, "end-overlap", false, &html! { p { (reader.text("console_end_overlap_how")) } }))
            }
            @if is_active {
                (form(reader, app, "disable", false, &html! { p { (reader.text("console_disable_how")) } }))
            } @else {
                (form(reader, app, "enable", false, &html! { p { (reader.text("console_enable_how")) } }))
            }
            (form(reader, app, "delete", false, &html! {
                p.warning { (reader.text("console_delete_how")) }
                (Field::line("confirm", "").required().show(reader))
            }))
        }
    }
}

/// A form that is folded until it is needed.
fn form(reader: &Reader, app: &Value, change: &str, is_open: bool, fields: &Markup) -> Markup {
    let action = format!("{}/{change}", super::path_of(app));
    let text = reader.word("change", change);
    html! {
        details open[is_open] {
            summary { (text) }
            form.fields method="post" action=(action) {
                input type="hidden" name="revision" value=(text_of(app, "revision"));
                (fields)
                (of_change(reader))
                button class=[(change == "delete").then_some("danger")] { (text) }
            }
        }
    }
}

/// The fields of an application's settings: as they are, or as they were filled in.
fn edit(reader: &Reader, app: &Value, versions: &Value, given: Option<&Fields>) -> Markup {
    let origins = items_of(app, "return_to").iter().filter_map(Value::as_str);
    let origins = origins.collect::<Vec<_>>().join("\n");
    let of = |name| match (given, name) {
        (Some(given), _) => given.get(name),
        (None, "return_to") => &*origins,
        (None, _) => app[name].as_str().unwrap_or_default(),
    };
    html! {
        (Field::line("name", of("name")).required().show(reader))
        (settings(reader, versions, of))
    }
}

/// Makes a change of an application.
pub(in crate::console) async fn change(
    visitor: Visitor,
    Path((ident, change)): Path<(String, String)>,
    fields: Fields,
) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let of_app = format!("/api/v1/apps/{}", segment(&ident));
    let body = match &*change {
        "update" => settings_of(&fields),
        "rotate" => {
            let hours = fields.number("overlap_hours");
            hours
                .into_iter()
                .map(|hours| ("overlap_hours".to_owned(), hours))
                .collect()
        }
        "delete" => {
            let app = visitor.get(&of_app).await?;
            if app["name"].as_str().map(str::trim) != Some(fields.get("confirm")) {
                let banner =
                    html! { p.problem role="alert" { (reader.text("console_delete_other_name")) } };
                return show_with(&visitor, &ident, &banner, None).await;
            }
            Map::new()
        }
        "end-overlap" | "enable" | "disable" => Map::new(),
        _ => return Err(Failure::not_found(reader.clone())),
    };
    let (path, body) = (format!("{of_app}/{change}"), decided(body, &fields));
    match visitor.post(&path, &body, fields.get("once")).await {
        Ok(rotated) if change == "rotate" => Ok(new_key(reader, &rotated, "console_rotated")),
        Ok(_) if change == "delete" => Ok(done("/apps", "app_delete")),
        Ok(_) => Ok(done(
            &format!("/apps/{}", segment(&ident)),
            &format!("app_{change}"),
        )),
        Err(failure) => {
            let failure = failure.of_input()?;
            // What others have changed meanwhile is shown above the form, which keeps what was filled in.
            let banner = html! {
                (failure.banner())
                @if failure.code() == "revision_stale" { p { (reader.text("console_stale")) } }
            };
            let given = (change == "update").then_some(&fields);
            let page = show_with(&visitor, &ident, &banner, given).await?;
            Ok(failure.with_page(page))
        }
    }
}

/// With the revision that the form was written for, and the reason.
fn decided(mut body: Map<String, Value>, fields: &Fields) -> Value {
    if let Some(revision) = fields.number("revision") {
        body.insert("revision".to_owned(), revision);
    }
    if let Some(reason) = fields.given("reason") {
        body.insert("reason".to_owned(), json!(reason));
    }
    Value::Object(body)
}
