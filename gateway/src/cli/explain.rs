//! `signpost explain`: why a request was rejected.

use std::process::ExitCode;

use anyhow::bail;
use serde_json::Value;
use signpost_management::reports::rejections;
use signpost_protocol::{
    language::Language, problem::ProblemCode, request_id::RequestId, text::find,
};
use signpost_proxy::{Config, program::about_with};
use signpost_store::Store;

use super::{
    CommonOptions, language, many, print_line,
    table::{printable, printable_json},
};

#[derive(Debug, clap::Args)]
pub(super) struct ExplainArguments {
    /// The id, as `X-Request-Id` of the response has it, or `request_id` of the problem.
    request_id: RequestId,
    /// The language of the texts.
    #[arg(long, default_value = "en", value_parser = language())]
    language: Language,
    #[command(flatten)]
    common: CommonOptions,
}

pub(super) async fn run(arguments: ExplainArguments) -> anyhow::Result<ExitCode> {
    let ExplainArguments {
        request_id,
        language,
        common,
    } = arguments;
    let config = Config::load(&common.config)?;
    many(
        &config,
        &common.config,
        "its rejected requests are in the access log",
    )?;
    let store = Store::open(&config.store).await?;
    let found = rejections::ask(&store, &request_id).await?;
    let Some(seen) = found else {
        bail!(
            "no gateway has rejected this request lately: each thread of a gateway with [management.api] knows its last 200 to 400, \
             and the access log has all of them. Or the problem is its backend's, which the access log says, too"
        );
    };
    if common.json {
        print_line(&printable_json(&seen.to_string()));
    } else {
        show(&seen, &config, language);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints it for people.
fn show(seen: &Value, config: &Config, language: Language) {
    let text = |name: &str| seen[name].as_str().map(printable).unwrap_or_default();
    let line = |name: &str, value: &str| {
        if !value.is_empty() {
            print_line(&format!("{name:12}{value}"));
        }
    };
    line("request", &format!("{} {}", text("method"), text("path")));
    line("at", &text("at"));
    line("client", &text("client"));
    line("application", &text("app"));
    line("version", &text("version"));
    let code = text("code");
    line("problem", &format!("{} {code}", seen["status"]));
    let known = ProblemCode::of_type_uri(&format!("/problems/{code}"));
    if let Some(code) = known {
        let about = about_with(code, language, &config.headers);
        line("", &about.title);
        // A text that points to the problem's own detail, which is not kept, would say nothing.
        if !about.detail.contains("detail") {
            line("", &about.detail);
        }
    }
    let hints = text("hint");
    for hint in hints.split('+').filter(|hint| !hint.is_empty()) {
        line("hint", hint);
        let word = hint.split(':').next().unwrap_or_default();
        // What depends on the request is not kept.
        let said = find(language, word, &[]).filter(|said| !said.contains("{$"));
        line("", &said.unwrap_or_default());
    }
    let params = seen["params"].as_array().into_iter().flatten();
    for param in params {
        let name = param["name"].as_str().map_or("(no name)".into(), printable);
        let place = match param["in_form"].as_bool() {
            Some(true) => "form",
            _ => "query",
        };
        line(
            "parameter",
            &format!("{name}: {} bytes, in the {place}", param["length"]),
        );
    }
}
