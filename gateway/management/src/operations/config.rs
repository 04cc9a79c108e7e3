//! The configuration in effect, and its reload. Files stay the only truth: nothing here edits them.

use serde::Serialize;
use serde_json::{Value, json};
use signpost_kit::{
    config::{Problem, Setting},
    reload::{ReloadError, Report},
};
use signpost_store::tables::audit::add;
use utoipa::ToSchema;

use super::{
    Context, Face, Operation, Output, Result,
    input::{List, NamedPage, Nothing, Why},
    problem::{ApiError, Code},
};
use crate::administration::audit;

pub(super) fn all<F: Face>(face: F) -> F {
    face.add(&LIST).add(&CHECK).add(&RELOAD)
}

/// Lists the settings.
pub(crate) const LIST: Operation<(), NamedPage, List<Setting>> = Operation::read(
    "/api/v1/config",
    "Lists every key of this gateway's configuration with its value in effect; secrets are hidden.",
    |context, target, page| Box::pin(list(context, target, page)),
);

async fn list(context: &Context, (): (), page: NamedPage) -> Result<List<Setting>> {
    let settings = context.running().reload.settings();
    Ok(page.of(settings.iter().cloned().collect(), |setting| &setting.key)?)
}

/// What a reload would do.
#[derive(Serialize, ToSchema)]
pub(crate) struct Check {
    /// What is wrong with the files; a reload would be rejected.
    pub problems: Vec<Problem>,
    /// What a reload would change; null if it would be rejected.
    pub report: Option<Report>,
}

impl Output for Check {}
impl Output for Report {}

/// Compares the files with what is in effect.
pub(crate) const CHECK: Operation<(), Nothing, Check> = Operation::read(
    "/api/v1/config/check",
    "Has this gateway read its files, and compares them with the configuration in effect.",
    |context, target, input| Box::pin(check(context, target, input)),
);

async fn check(context: &Context, (): (), _: Nothing) -> Result<Check> {
    match context.running().reload.compare().await {
        Ok(report) => Ok(Check {
            problems: Vec::new(),
            report: Some(report),
        }),
        Err(ReloadError::Rejected(error)) => Ok(Check {
            problems: error.problems,
            report: None,
        }),
        Err(error @ ReloadError::Ended) => Err(error.into()),
    }
}

/// Reloads the configuration.
pub(crate) const RELOAD: Operation<(), Why, Report> = Operation::change(
    "/api/v1/config/reload",
    "Reloads this gateway's configuration from its files. Keys that need a new process keep their values. The audit has what is \
     to change before it is done, and in a further row what became of it, if that is something else.",
    |context, target, why| Box::pin(reload(context, target, why)),
);

async fn reload(context: &Context, (): (), why: Why) -> Result<Report> {
    let (running, store) = (context.running(), &context.store);
    let (author, at) = (context.author(why.reason), context.caller.at);
    let expected = running.reload.compare().await?;
    let number = running.gateway.policy.generation + 1;
    let row = |changes: &Value| audit::of_reload(changes, number, author.clone(), at);
    let announced = audit::changes_of(&expected.changed);
    // First: without its row, nothing is reloaded.
    add(store, row(&announced)).await?;
    let done = running.reload.reload().await;
    let outcome = match &done {
        // The files may have changed meanwhile.
        Ok(report) => audit::changes_of(&report.changed),
        Err(_) => json!({"outcome": "rejected"}),
    };
    if outcome != announced
        && let Err(error) = add(store, row(&outcome)).await
    {
        tracing::warn!(cause = %error.in_short(), %outcome, "the audit lacks a reload's outcome");
    }
    Ok(done?)
}

impl From<ReloadError> for ApiError {
    fn from(error: ReloadError) -> Self {
        match error {
            ReloadError::Rejected(error) => {
                Self::from(Code::ConfigInvalid).member("problems", json!(error.problems))
            }
            ReloadError::Ended => Code::GatewayStopping.into(),
        }
    }
}
