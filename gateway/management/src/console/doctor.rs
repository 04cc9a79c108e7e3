//! Sign Doctor: why a request was rejected, step by step, and how it is right.

use axum::{
    extract::{Path, RawQuery},
    response::Response,
};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::{
    apps::copied,
    failure::Failure,
    fields::Fields,
    links::{parameter, segment},
    page::{Reader, Section, page},
    parts::{Field, items_of, table_of, text_of, time},
    samples::samples,
    visitor::Visitor,
};
use crate::doctor::samples::name_of;

/// The form.
pub(super) async fn form(visitor: Visitor, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    let id = parameter(query.as_deref(), "request_id");
    if id.is_empty() {
        return Ok(doctor_page(&visitor.reader, &html! {}, None));
    }
    show_rejection(&visitor, id.trim()).await
}

/// A request that was rejected.
pub(super) async fn rejection(
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    show_rejection(&visitor, &id).await
}

async fn show_rejection(visitor: &Visitor, id: &str) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let found = visitor
        .get(&format!("/api/v1/rejections/{}", segment(id)))
        .await;
    let content = match found {
        Ok(seen) => rejected(reader, &seen),
        Err(failure) if failure.code() == "not_found" => {
            html! { p.problem role="alert" { (reader.text("console_rejection_gone")) } }
        }
        Err(failure) => return Err(failure),
    };
    Ok(doctor_page(reader, &content, None))
}

/// Examines the request of the form.
pub(super) async fn examine(visitor: Visitor, fields: Fields) -> Result<Response, Failure> {
    let reader = &visitor.reader;
    let body = Value::Object(fields.object(&["request", "app", "canonical"]));
    match visitor.post("/api/v1/doctor", &body, "").await {
        Ok(findings) => Ok(doctor_page(
            reader,
            &shown(reader, &findings),
            Some(&fields),
        )),
        Err(failure) => {
            let failure = failure.of_input()?;
            let page = doctor_page(reader, &failure.banner(), Some(&fields));
            Ok(failure.with_page(page))
        }
    }
}

fn doctor_page(reader: &Reader, result: &Markup, given: Option<&Fields>) -> Response {
    let of = |name| given.map_or("", |given| given.get(name));
    let content = html! {
        (result)
        section aria-labelledby="paste" {
            h2 id="paste" { (reader.text("console_doctor_paste")) }
            form.fields.wide method="post" action="/doctor" {
                (Field::lines("request", of("request")).required().show(reader))
                (Field::line("app", of("app")).show(reader))
                // The key may be in it: it is not sent back.
                (Field::lines("canonical", "").show(reader))
                button { (reader.text("console_examine")) }
            }
        }
        section aria-labelledby="by-id" {
            h2 id="by-id" { (reader.text("console_doctor_by_id")) }
            form.fields.bar action="/doctor" {
                (Field::line("request_id", "").required().show(reader))
                button { (reader.text("console_find")) }
            }
        }
    };
    page(
        reader,
        Some(Section::Doctor),
        &reader.text("console_doctor"),
        &content,
    )
}

/// What is known of a request that was rejected.
fn rejected(reader: &Reader, seen: &Value) -> Markup {
    let hint = seen["hint"].as_str();
    let params = items_of(seen, "params");
    html! {
        section.card aria-labelledby="rejected" {
            h2 id="rejected" { code { (text_of(seen, "code")) } @if let Some(hint) = hint { " " code { (hint) } } }
            dl.facts {
                dt { (reader.text("console_request")) } dd { code { (text_of(seen, "method")) " " (text_of(seen, "path")) } }
                dt { (reader.text("console_when")) } dd { (time(&seen["at"])) }
                dt { (reader.text("console_app")) }
                dd {
                    @if let Some(app) = seen["app"].as_str() { a href={ "/apps/" (segment(app)) } { code { (text_of(seen, "app")) } } } @else { "–" }
                }
                dt { (reader.text("console_client_address")) } dd { code { (text_of(seen, "client")) } }
                dt { (reader.text("console_status")) } dd { (text_of(seen, "status")) }
                dt { (reader.text("console_problem_request")) } dd { code { (text_of(seen, "request_id")) } }
            }
            @if !params.is_empty() {
                h3 { (reader.text("console_rejection_params")) }
                ul { @for param in params { li { code { (param["name"].as_str().unwrap_or("–")) } " " (text_of(param, "length")) } } }
            }
            p { (reader.text("console_rejection_how")) }
        }
    }
}

/// What was found of a request.
fn shown(reader: &Reader, findings: &Value) -> Markup {
    let steps = items_of(findings, "steps");
    let failed = steps.iter().any(|step| !step["problem"].is_null());
    let verdict = if failed {
        "console_doctor_wrong"
    } else {
        "console_doctor_right"
    };
    html! {
        section aria-labelledby="found" {
            h2 id="found" { code { (text_of(findings, "method")) " " (text_of(findings, "path")) } }
            p.good[!failed].warning[failed] role="status" { (reader.text(verdict)) }
            ol.steps { @for one in steps { li { (step(reader, one)) } } }
            (params(reader, findings))
            (canonical(reader, findings))
            (signed(reader, &findings["signed"]))
        }
    }
}

fn step(reader: &Reader, step: &Value) -> Markup {
    let problem = &step["problem"];
    let name = reader.word("step", &text_of(step, "step"));
    html! {
        @if problem.is_null() {
            span.state.good { (name) }
        } @else {
            span.state.bad { (name) } ": " strong { (text_of(problem, "title")) } " " code { (text_of(problem, "code")) }
            p { (text_of(problem, "detail")) @if !problem["hint"].is_null() { " " mark { (text_of(problem, "hint")) } } }
        }
    }
}

fn params(reader: &Reader, findings: &Value) -> Markup {
    let params = items_of(findings, "params");
    html! {
        @if !params.is_empty() {
            h3 { (reader.text("console_doctor_params")) }
            (table_of(reader, &["console_setting", "console_value", "console_doctor_sent", "console_doctor_signed"], &html! {
                @for param in params { tr {
                    th scope="row" { code { (text_of(param, "key")) } }
                    td { code { (text_of(param, "value")) } }
                    td { code { (text_of(param, "sent")) } }
                    td { (reader.text(if param["is_signed"] == json!(true) { "console_yes" } else { "console_no" })) }
                } }
            }))
        }
    }
}

fn canonical(reader: &Reader, findings: &Value) -> Markup {
    let difference = &findings["difference"];
    html! {
        @if findings["canonical"].is_string() {
            h3 { (reader.text("console_doctor_canonical")) }
            pre { code { (text_of(findings, "canonical")) } }
        }
        @if !difference.is_null() {
            p.warning { (reader.tell("console_doctor_difference", &[("at", &text_of(difference, "at"))])) }
            dl.facts {
                dt { (reader.text("console_doctor_expected")) } dd { code { (text_of(difference, "expected")) } }
                dt { (reader.text("console_doctor_found")) } dd { code { (text_of(difference, "found")) } }
            }
        }
    }
}

/// The right request, for those who may sign one.
fn signed(reader: &Reader, signed: &Value) -> Markup {
    let code = items_of(signed, "code").iter();
    html! {
        @if signed.is_object() {
            h3 { (reader.text("console_doctor_request")) }
            dl.facts {
                dt { "sign" } dd { (copied(reader, "right-sign", &text_of(signed, "sign"))) }
            }
            pre { (copied(reader, "right-request", &text_of(signed, "curl"))) }
            (samples(reader, code.filter_map(|one| Some((name_of(one["language"].as_str()?)?, text_of(one, "code"))))))
        }
    }
}
