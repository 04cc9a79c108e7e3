//! `signpost problems`: prints what `/problems/CODE` says of each problem code.

use std::process::ExitCode;

use serde_json::json;
use signpost_kit::command::{Entry, Selection, print_text};
use signpost_protocol::{
    header::{HeaderNames, HeaderOverrides},
    language::Language,
    problem::{About, ProblemCode},
};

use super::language;

/// The prefix of the headers that the texts name: the command reads no file.
const PREFIX: &str = "Acme";

#[derive(Debug, clap::Args)]
pub(super) struct ProblemsArguments {
    #[command(flatten)]
    selection: Selection,
    /// The language of the texts.
    #[arg(long, default_value = "en", value_parser = language())]
    language: Language,
}

pub(super) fn run(arguments: &ProblemsArguments) -> anyhow::Result<ExitCode> {
    let names = HeaderNames::new(&PREFIX.parse()?, &HeaderOverrides::default())?;
    let about = |code: &ProblemCode| About::new(*code, arguments.language, &names);
    let problems = ProblemCode::ALL.iter().map(about).collect();
    print_text(&arguments.selection.list("problem code", problems, entry)?)
}

fn entry(about: &About) -> Entry {
    // The word of the JSON.
    let retry = json!(about.retry);
    let retry = retry.as_str().unwrap_or_default();
    let facts = format!("{}, retry: {retry}. {}", about.status, about.title);
    [about.code.as_str().to_owned(), facts, about.detail.clone()]
}
