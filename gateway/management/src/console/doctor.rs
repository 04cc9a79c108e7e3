//! Sign Doctor: why a request was rejected, step by step, and how it is right.

use axum::{
    extract::{Path, RawQuery},
    response::Response,
};
use maud::{Markup, html};
use signpost_proxy::SeenRequest;

use super::{
    apps::copied,
    failure::Page,
    fields::Fields,
    links::parameter,
    live::app,
    page::{Reader, Section, page},
    parts::{field, moment, samples, table_of, word_of},
    visitor::Visitor,
};
use crate::{
    administration::printable::{printable, printable_lines},
    api::ApiError,
    doctor::{Findings, Param, Signed, Step, StepState, samples::name_of},
    operations::{
        doctor::{EXAMINE, Sample},
        input::Nothing,
        requests::{GivenId, REJECTION},
    },
};

/// Serves the form for a request.
pub(super) async fn form(visitor: Visitor, RawQuery(query): RawQuery) -> Page {
    let id = parameter(query.as_deref(), "request_id");
    if id.is_empty() {
        return Ok(doctor_page(&visitor.reader, &html! {}, None));
    }
    show_rejection(&visitor, id.trim()).await
}

/// A request that was rejected.
pub(super) async fn rejection(visitor: Visitor, Path(id): Path<String>) -> Page {
    show_rejection(&visitor, &id).await
}

async fn show_rejection(visitor: &Visitor, id: &str) -> Page {
    let reader = &visitor.reader;
    let id = GivenId(id.to_owned());
    let content = match visitor.run(&REJECTION, id, Nothing {}).await {
        Ok(seen) => rejected(reader, &seen, &app(visitor, &seen).await),
        Err(failure) if failure.code() == "not_found" => {
            html! { p.problem role="alert" { (reader.text("console_rejection_gone")) } }
        }
        Err(failure) => return Err(failure),
    };
    Ok(doctor_page(reader, &content, None))
}

/// Examines the request of the form.
pub(super) async fn examine(visitor: Visitor, fields: Fields) -> Page {
    let reader = &visitor.reader;
    match visitor.submit(&EXAMINE, (), sample_of(&fields)).await {
        Ok(findings) => {
            let shown = shown(reader, &findings);
            Ok(doctor_page(reader, &shown, Some(&fields)))
        }
        Err(failure) => {
            let failure = failure.of_input()?;
            let page = doctor_page(reader, &failure.banner(), Some(&fields));
            Ok(failure.with_page(page))
        }
    }
}

fn sample_of(fields: &Fields) -> Result<Sample, ApiError> {
    // Browsers send the lines of a form with CR LF, whatever was pasted.
    let request = fields.get("request").replace("\r\n", "\n").parse();
    let request = request.map_err(|allowed| ApiError::invalid("request", allowed))?;
    Ok(Sample {
        request,
        app: fields.given("app").map(str::to_owned),
        canonical: fields.given("canonical").map(str::to_owned),
    })
}

fn doctor_page(reader: &Reader, result: &Markup, given: Option<&Fields>) -> Response {
    let of = |name| given.map_or("", |given| given.get(name));
    let content = html! {
        (result)
        section aria-labelledby="paste" {
            h2 id="paste" { (reader.text("console_doctor_paste")) }
            form.fields.wide method="post" action="/doctor" {
                (field(reader, "request", of("request")))
                (field(reader, "app", of("app")))
                // The key may be in it: it is not sent back.
                (field(reader, "canonical", ""))
                button { (reader.text("console_examine")) }
            }
        }
        section aria-labelledby="by-id" {
            h2 id="by-id" { (reader.text("console_doctor_by_id")) }
            form.fields.bar action="/doctor" {
                (field(reader, "request_id", ""))
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
fn rejected(reader: &Reader, seen: &SeenRequest, app: &Markup) -> Markup {
    let text = |text: &Option<String>| printable(text.as_deref().unwrap_or_default());
    html! {
        section.card aria-labelledby="rejected" {
            h2 id="rejected" { @if seen.title.is_some() { (text(&seen.title)) " " } code { (text(&seen.code)) } }
            p { (text(&seen.detail)) @if seen.hint_text.is_some() { " " mark { (text(&seen.hint_text)) } } }
            @if seen.error.is_some() { p.warning { (text(&seen.error)) } }
            dl.facts {
                dt { (reader.text("console_request")) } dd { code { (printable(&seen.method)) " " (printable(&seen.path)) } }
                dt { (reader.text("console_when")) } dd { (moment(seen.at)) }
                dt { (reader.text("console_app")) }
                dd { (app) }
                dt { (reader.text("console_client_address")) } dd { code { (printable(&seen.client)) } }
                @for (name, value) in [("console_version", &seen.version), ("console_backend", &seen.backend)] {
                    @if value.is_some() { dt { (reader.text(name)) } dd { code { (text(value)) } } }
                }
                dt { (reader.text("console_status")) } dd { (seen.status) }
                dt { (reader.text("console_field_request_id")) } dd { code { (printable(&seen.request_id)) } }
            }
            @if !seen.params.is_empty() {
                h3 { (reader.text("console_rejection_params")) }
                ul { @for param in &seen.params { li { code { (param.name.as_deref().unwrap_or("–")) } " " (param.length) } } }
            }
            p { (reader.text("console_rejection_how")) }
        }
    }
}

/// What was found of a request.
fn shown(reader: &Reader, findings: &Findings) -> Markup {
    let failed = findings.has(StepState::Wrong);
    let verdict = match failed {
        true => "console_doctor_wrong",
        false if findings.has(StepState::Old) => "console_doctor_old",
        false => "console_doctor_right",
    };
    html! {
        section aria-labelledby="found" {
            h2 id="found" { code { (printable(&findings.method)) " " (printable(&findings.path)) } }
            p.good[!failed].warning[failed] role="status" { (reader.text(verdict)) }
            ol.steps { @for of_step in &findings.steps { li { (step(reader, of_step)) } } }
            ul { @for remark in &findings.remarks { li { (printable(&remark.text)) } } }
            (params(reader, &findings.params))
            (canonical(reader, findings))
            @if let Some(right) = &findings.signed { (signed(reader, right)) }
        }
    }
}

fn step(reader: &Reader, step: &Step) -> Markup {
    let name = reader.word("step", &word_of(&step.step));
    let is_wrong = step.state == StepState::Wrong;
    html! {
        span.state.bad[is_wrong].warn[step.state == StepState::Old].good[step.state == StepState::Ok] { (name) }
        @if let Some(problem) = &step.problem {
            ": " strong { (printable(&problem.title)) } " " code { (problem.code.as_str()) }
            p { (printable(&problem.detail)) @if let Some(hint) = &problem.hint { " " mark { (printable(hint)) } } }
        } @else if is_wrong {
            ": " code { "400" }
        }
    }
}

fn params(reader: &Reader, params: &[Param]) -> Markup {
    html! {
        @if !params.is_empty() {
            h3 { (reader.text("console_doctor_params")) }
            (table_of(reader, &["console_setting", "console_value", "console_doctor_sent", "console_doctor_signed"], &html! {
                @for param in params { tr {
                    th scope="row" { code { (printable(&param.key)) } }
                    td { code { (printable(&param.value)) } }
                    td { code { (printable(&param.sent)) } }
                    td { (reader.text(if param.is_signed { "console_yes" } else { "console_no" })) }
                } }
            }))
        }
    }
}

fn canonical(reader: &Reader, findings: &Findings) -> Markup {
    html! {
        @if let Some(canonical) = &findings.canonical {
            h3 { (reader.text("console_doctor_canonical")) }
            pre { code { (printable_lines(canonical)) } }
        }
        @if let Some(difference) = &findings.difference {
            p.warning { (reader.tell("console_doctor_difference", &[("at", &difference.at.to_string())])) }
            dl.facts {
                dt { (reader.text("console_doctor_expected")) } dd { code { (printable(&difference.expected)) } }
                dt { (reader.text("console_doctor_found")) } dd { code { (printable(&difference.found)) } }
            }
        }
    }
}

/// The right request, for those who may sign one.
fn signed(reader: &Reader, signed: &Signed) -> Markup {
    let code = signed.code.iter();
    let code =
        code.filter_map(|sample| Some((name_of(sample.language)?, printable_lines(&sample.code))));
    html! {
        h3 { (reader.text("console_doctor_request")) }
        dl.facts {
            dt { "sign" } dd { (copied(reader, "right-sign", &signed.sign)) }
        }
        pre { (copied(reader, "right-request", &printable(&signed.curl))) }
        (samples(reader, code))
    }
}
