//! The import of applications: the API has a route of its own for it, since its body is a file.

use std::{fmt, time::Duration};

use clap::Args;
use serde::Deserialize;
use tokio::{
    runtime::Handle,
    sync::{Semaphore, SemaphorePermit},
    task::spawn_blocking,
};
use utoipa::{IntoParams, ToSchema};
use zeroize::Zeroizing;

use super::{
    Context, Input, Operation, Output, Result,
    input::Text,
    problem::{ApiError, Code},
};
use crate::administration::{
    apps::ImportSummary,
    import::{ImportError, MAX_FILE_BYTES},
    rules::Reason,
};

/// An import holds a file of up to 64 MiB in memory: one at a time. Unit tests share a process.
static IMPORTS: Semaphore = Semaphore::const_new(if cfg!(test) { 64 } else { 1 });
/// In which most imports end.
const IMPORT_TIME: Duration = Duration::from_secs(10);

/// How a file is imported, and the file.
#[derive(Debug, Args, Default, Deserialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ImportInput {
    /// Accept keys under 128 bits, like `allow_weak_key = true` in the configuration.
    #[arg(long)]
    #[serde(default)]
    pub allow_weak_key: bool,
    /// Why, for the audit: up to 200 characters.
    #[arg(long, value_name = "TEXT")]
    #[param(value_type = Option<String>)]
    #[schema(value_type = Option<String>)]
    pub reason: Option<Text<Reason>>,
    /// CSV or JSON lines.
    #[arg(skip)]
    #[serde(skip)]
    pub file: ImportFile,
    /// Of a caller that has waited for the file; the import takes one otherwise.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) place: Option<SemaphorePermit<'static>>,
}

impl Input for ImportInput {
    const TAKES_TURN: bool = false;
}

/// What is imported: it has keys.
#[derive(Default)]
pub struct ImportFile(pub Zeroizing<Vec<u8>>);

impl fmt::Debug for ImportFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.0.len())
    }
}

impl Output for ImportSummary {}

/// Imports all of a file, or nothing.
pub const IMPORT: Operation<(), ImportInput, ImportSummary> = Operation::change(
    "/api/v1/apps/import",
    "Adds all applications of a file, with their idents and keys, or none.",
    |context, (), input| Box::pin(import(context, input)),
);

/// The place of an import: it is held from before its file is read. If another one runs, it may be over after `wait`.
pub(crate) fn place(wait: Duration) -> Result<SemaphorePermit<'static>, ApiError> {
    let busy = |_| ApiError::from(Code::RateLimited).retry_after(wait);
    IMPORTS.try_acquire().map_err(busy)
}

async fn import(context: &Context, mut input: ImportInput) -> Result<ImportSummary> {
    let place = match input.place.take() {
        Some(place) => place,
        None => place(IMPORT_TIME)?,
    };
    let administration = context.apps().clone();
    let (author, at) = (context.author(input.reason), context.caller.at);
    let import = async move {
        let _place = place;
        let ImportFile(file) = &input.file;
        administration
            .import(file, input.allow_weak_key, author, at)
            .await
    };
    // It computes for seconds, in which this thread has health checks to answer.
    let runtime = Handle::current();
    let imported = spawn_blocking(move || runtime.block_on(import)).await;
    Ok(imported.map_err(ApiError::internal)??)
}

impl From<ImportError> for ApiError {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Store(error) => error.into(),
            ImportError::TooLarge => {
                Self::from(Code::BodyTooLarge).arg("limit", MAX_FILE_BYTES.to_string())
            }
            ImportError::Problems(_) | ImportError::TooMany | ImportError::Unreadable => {
                let text = error.to_string();
                let problems: Vec<_> = text.lines().collect();
                Self::from(Code::ImportInvalid).member("problems", problems)
            }
            ImportError::Io(_) => Self::internal(error),
        }
    }
}
