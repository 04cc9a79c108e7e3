//! `signpost versions retire`: whether a version can be retired, on one page.

use std::process::ExitCode;

use serde_json::json;
use signpost_management::{
    operations::versions::{RetirementInput, retirement},
    reports::retirement::Retirement,
};
use signpost_proxy::{Config, program::raise_statement_timeout, rfc3339};

use crate::cli::{
    operation::{Told, on_many},
    print_line,
    table::{printable, printable_json},
};

pub(super) async fn run(Told { input, common }: Told<RetirementInput>) -> anyhow::Result<ExitCode> {
    let mut config = Config::load(&common.config)?;
    raise_statement_timeout(&mut config.store);
    let because = "who uses a version is counted in the store of [applications]";
    let context = on_many(&config, &common.config, because).await?;
    let retirement = retirement(&context, &config.versions, input).await?;
    if common.json {
        print_line(&printable_json(&json!(retirement).to_string()));
    } else {
        print(&retirement);
    }
    Ok(ExitCode::from(u8::from(!retirement.is_ready)))
}

fn print(retirement: &Retirement) {
    for stage in &retirement.stages {
        print_line(&printable(&format!("{:11}{}", stage.stage, stage.says)));
        for open in &stage.open {
            print_line(&printable(&format!("{:11}open: {open}", "")));
        }
    }
    let at = retirement.at.map(|at| format!(" at {}", rfc3339(at)));
    let can = if retirement.is_ready {
        "can"
    } else {
        "cannot yet"
    };
    let (name, at) = (&retirement.version, at.unwrap_or_default());
    print_line(&format!("\n{name} {can} be retired{at}"));
}
