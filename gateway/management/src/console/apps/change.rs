//! Changes of an application.

use axum::{extract::Path, response::Response};
use maud::{Markup, html};
use signpost_protocol::app::AppIdent;
use signpost_proxy::AppState;

use super::{new_key, path_of, profile_of, settings, show_with};
use crate::{
    administration::summary::AppSummary,
    api::ApiError,
    console::{
        failure::Failure,
        fields::Fields,
        layers::unchanged,
        page::Reader,
        parts::{Field, done, of_change},
        visitor::Visitor,
    },
    operations::{
        apps::{self, DEFAULT_OVERLAP_HOURS, Rotation, Update, UpdateOptions, WithKey},
        input::{Decision, Nothing},
    },
    reports::versions::ListedVersion,
};

/// The forms of an application's page. `given` is what was filled in and not accepted.
pub(super) fn forms(
    reader: &Reader,
    app: &AppSummary,
    versions: &[ListedVersion],
    given: Option<&Fields>,
) -> Markup {
    let is_active = app.state == AppState::Active.as_str();
    let has_overlap = app.previous_key_until.is_some();
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
fn form(reader: &Reader, app: &AppSummary, change: &str, is_open: bool, fields: &Markup) -> Markup {
    let action = format!("{}/{change}", path_of(&app.ident));
    let text = reader.word("change", change);
    html! {
        details open[is_open] {
            summary { (text) }
            form.fields method="post" action=(action) {
                input type="hidden" name="revision" value=(app.revision);
                (fields)
                (of_change(reader))
                button class=[(change == "delete").then_some("danger")] { (text) }
            }
        }
    }
}

/// The fields of an application's settings: as they are, or as they were filled in.
fn edit(
    reader: &Reader,
    app: &AppSummary,
    versions: &[ListedVersion],
    given: Option<&Fields>,
) -> Markup {
    let origins = app.return_to.join("\n");
    let rate_limit = app
        .rate_limit
        .map_or_else(String::new, |rate| rate.to_string());
    let of = |name| match (given, name) {
        (Some(given), _) => given.get(name),
        (None, "name") => &*app.name,
        (None, "return_to") => &*origins,
        (None, "default_version") => app.default_version.as_deref().unwrap_or_default(),
        (None, "rate_limit") => &*rate_limit,
        (None, _) => "",
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
    let target: AppIdent = visitor.target(&ident)?;
    if change == "delete" {
        let app = visitor.run(&apps::SHOW, target, Nothing {}).await?;
        if app.name.trim() != fields.get("confirm") {
            let banner =
                html! { p.problem role="alert" { (reader.text("console_delete_other_name")) } };
            let page = show_with(&visitor, &ident, &banner, None).await?;
            return Ok(unchanged(page));
        }
    }
    match make(&visitor, target, &change, &fields).await {
        Ok(Some(rotated)) => new_key(&visitor, &rotated, "console_rotated").await,
        Ok(None) if change == "delete" => Ok(done("/apps", "app_delete")),
        Ok(None) => Ok(done(&path_of(&ident), &format!("app_{change}"))),
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

/// Makes it, and returns a new key.
async fn make(
    visitor: &Visitor,
    ident: AppIdent,
    change: &str,
    fields: &Fields,
) -> Result<Option<WithKey>, Failure> {
    let decided = match change {
        "update" => {
            visitor.submit(&apps::UPDATE, ident, update(fields)).await?;
            return Ok(None);
        }
        "rotate" => {
            let rotated = visitor.submit(&apps::ROTATE, ident, rotation(fields));
            return rotated.await.map(Some);
        }
        "delete" => {
            visitor
                .submit(&apps::DELETE, ident, decision(fields))
                .await?;
            return Ok(None);
        }
        "end-overlap" => &apps::END_OVERLAP,
        "enable" => &apps::ENABLE,
        "disable" => &apps::DISABLE,
        _ => return Err(Failure::not_found(visitor.reader.clone())),
    };
    visitor.submit(decided, ident, decision(fields)).await?;
    Ok(None)
}

/// The settings of the form: a text that is removed removes its setting.
fn update(fields: &Fields) -> Result<Update, ApiError> {
    Ok(Update {
        name: fields.value("name")?,
        return_to: Some(fields.values("return_to")?),
        profile: profile_of(fields)?,
        default_version: Some(fields.change("default_version")?),
        rate_limit: Some(fields.change("rate_limit")?),
        options: UpdateOptions::default(),
        revision: fields.count("revision")?,
        reason: fields.value("reason")?,
    })
}

fn rotation(fields: &Fields) -> Result<Rotation, ApiError> {
    Ok(Rotation {
        overlap_hours: fields
            .count("overlap_hours")?
            .unwrap_or(DEFAULT_OVERLAP_HOURS),
        revision: fields.count("revision")?,
        reason: fields.value("reason")?,
    })
}

/// The revision that a form was written for, and the reason.
fn decision(fields: &Fields) -> Result<Decision, ApiError> {
    Ok(Decision {
        revision: fields.count("revision")?,
        reason: fields.value("reason")?,
    })
}
