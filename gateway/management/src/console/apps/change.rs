//! Changes of an application.

use axum::extract::Path;
use maud::{Markup, html};
use signpost_protocol::app::AppIdent;
use signpost_proxy::AppState;

use super::{new_key, path_of, profile_of, settings, show};
use crate::{
    administration::summary::AppSummary,
    api::ApiError,
    console::{
        failure::{Failure, Page},
        fields::Fields,
        page::Reader,
        parts::{done, field, folded, version_choice},
        visitor::Visitor,
    },
    operations::{
        apps::{self, DEFAULT_OVERLAP_HOURS, Rotation, Update, UpdateOptions},
        input::{Decision, Nothing, Why},
    },
    reports::versions::ListedVersion,
};

/// The forms of an application's page.
pub(super) fn forms(reader: &Reader, app: &AppSummary, versions: &[ListedVersion]) -> Markup {
    let form = |change, fields: &dyn Fn(&Reader) -> Markup| {
        let address = format!("{}/{change}", path_of(&app.ident));
        folded(reader, (change, &address), |reader| {
            html! { input type="hidden" name="revision" value=(app.revision); (fields(reader)) }
        })
    };
    let how = |change: &str| {
        let text = format!("console_{}_how", change.replace('-', "_"));
        html! { p.warning[change == "delete"] { (reader.text(&text)) } }
    };
    let is_active = app.state == AppState::Active.as_str();
    let has_overlap = app.previous_key_until.is_some();
    html! {
        section.changes {
            (form("update", &|reader| edit(reader, app, versions)))
            (form("rotate", &|reader| html! {
                (how("rotate")) (field(reader, "overlap_hours", "24"))
            }))
            (form("extend", &|reader| html! {
                (how("extend"))
                (version_choice(reader, "version", "console_choose", versions, ""))
                (field(reader, "until", ""))
            }))
            @if has_overlap { (form("end-overlap", &|_| how("end-overlap"))) }
            @let switch = if is_active { "disable" } else { "enable" };
            (form(switch, &|_| how(switch)))
            (form("logout", &|_| how("logout")))
            (form("delete", &|reader| html! {
                (how("delete")) (field(reader, "confirm", ""))
            }))
        }
    }
}

/// The fields of an application's settings.
fn edit(reader: &Reader, app: &AppSummary, versions: &[ListedVersion]) -> Markup {
    let origins = app.return_to.join("\n");
    let rate_limit = app
        .rate_limit
        .map_or_else(String::new, |rate| rate.to_string());
    let of = |name| match name {
        "return_to" => &*origins,
        "default_version" => app.default_version.as_deref().unwrap_or_default(),
        "rate_limit" => &*rate_limit,
        _ => "",
    };
    html! {
        (field(reader, "name", &app.name))
        (settings(reader, versions, of))
    }
}

/// Makes a change of an application.
pub(in crate::console) async fn change(
    visitor: Visitor,
    Path((ident, change)): Path<(String, String)>,
    fields: Fields,
) -> Page {
    let target: AppIdent = visitor.target(&ident)?;
    let made = make(&visitor, target, &change, &fields).await;
    let again = |visitor| show(visitor, Path(ident));
    visitor.or_again(made, fields, again).await
}

/// Makes it, and returns the page that follows.
async fn make(visitor: &Visitor, ident: AppIdent, change: &str, fields: &Fields) -> Page {
    let path = path_of(ident.as_str());
    let decided = match change {
        "update" => {
            visitor.submit(&apps::UPDATE, ident, update(fields)).await?;
            return Ok(done(&path, "app_update"));
        }
        "extend" => {
            visitor.submit(&apps::UPDATE, ident, extend(fields)).await?;
            return Ok(done(&path, "app_update"));
        }
        "rotate" => {
            let rotated = visitor.submit(&apps::ROTATE, ident, rotation(fields));
            return new_key(visitor, &rotated.await?, "console_rotated").await;
        }
        "logout" => {
            let why = fields.value("reason").map(|reason| Why { reason });
            visitor.submit(&apps::LOGOUT, ident, why).await?;
            return Ok(done(&path, "logout"));
        }
        "delete" => {
            let name = visitor.run(&apps::SHOW, ident, Nothing {}).await?.name;
            let confirmed = match fields.get("confirm") == name.trim() {
                true => decision(fields),
                false => Err(ApiError::invalid("confirm", name)),
            };
            visitor.submit(&apps::DELETE, ident, confirmed).await?;
            return Ok(done("/apps", "app_delete"));
        }
        "end-overlap" => &apps::END_OVERLAP,
        "enable" => &apps::ENABLE,
        "disable" => &apps::DISABLE,
        _ => return Err(Failure::not_found(visitor.reader.clone())),
    };
    visitor.submit(decided, ident, decision(fields)).await?;
    Ok(done(&path, &format!("app_{change}")))
}

/// The settings of the form: a text that is removed removes its setting.
fn update(fields: &Fields) -> Result<Update, ApiError> {
    Ok(Update {
        name: fields.value("name")?,
        return_to: Some(fields.values("return_to")?),
        profile: profile_of(fields)?,
        default_version: Some(fields.change("default_version")?),
        rate_limit: Some(fields.change("rate_limit")?),
        extend: None,
        options: UpdateOptions::default(),
        revision: fields.count("revision")?,
        reason: fields.value("reason")?,
    })
}

/// An extension of a version; without a date, its end.
fn extend(fields: &Fields) -> Result<Update, ApiError> {
    let until = fields.given("until").unwrap_or("none");
    let extend = format!("{}={until}", fields.get("version")).parse();
    let extend = extend.map_err(|allowed: String| ApiError::invalid("until", allowed))?;
    Ok(Update {
        extend: Some(vec![extend]),
        revision: fields.count("revision")?,
        reason: fields.value("reason")?,
        ..Update::default()
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
