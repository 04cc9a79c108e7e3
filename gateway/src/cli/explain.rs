//! `signpost explain`: why a request was rejected.

use std::process::ExitCode;

use anyhow::bail;
use serde_json::json;
use signpost_management::reports::rejections;
use signpost_protocol::{language::Language, request_id::RequestId};
use signpost_proxy::{Config, SeenRequest, rfc3339};
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
    let common = arguments.common;
    let config = Config::load(&common.config)?;
    many(
        &config,
        &common.config,
        "its rejected requests are in the access log",
    )?;
    let store = Store::open(&config.store).await?;
    let Some(seen) = rejections::ask(&store, &arguments.request_id).await? else {
        bail!(
            "no gateway has rejected this request lately: each thread of a gateway with [management.api] knows its last 200 to 400, \
             and the access log has all of them. Or the problem is its backend's, which the access log says, too"
        );
    };
    let seen = seen.in_language(arguments.language);
    if common.json {
        print_line(&printable_json(&json!(seen).to_string()));
    } else {
        show(&seen);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints it for people.
fn show(seen: &SeenRequest) {
    let text = |text: &Option<String>| text.as_deref().map(printable).unwrap_or_default();
    let line = |name: &str, value: &str| {
        if !value.is_empty() {
            print_line(&format!("{name:12}{value}"));
        }
    };
    let request = format!("{} {}", seen.method, seen.path);
    line("request", &printable(&request));
    line("at", &rfc3339(seen.at));
    line("client", &printable(&seen.client));
    line("application", &text(&seen.app));
    line("version", &text(&seen.version));
    line("backend", &text(&seen.backend));
    line("problem", &format!("{} {}", seen.status, text(&seen.code)));
    line("", &text(&seen.title));
    line("", &text(&seen.detail));
    line("hint", &text(&seen.hint));
    line("", &text(&seen.hint_text));
    line("error", &text(&seen.error));
    for param in &seen.params {
        let name = param.name.as_deref();
        let name = name.map_or("(no name)".into(), printable);
        let place = if param.in_form { "form" } else { "query" };
        let text = format!("{name}: {} bytes, in the {place}", param.length);
        line("parameter", &text);
    }
}
