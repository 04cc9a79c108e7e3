//! `/api/v1/apps`: the import of a file, and the export.

use axum::{
    Json,
    body::Body,
    extract::{Request, State},
    response::IntoResponse,
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, header};
use serde::Deserialize;
use signpost_proxy::AppStoreError;
use tokio::{runtime::Handle, sync::Semaphore, task::spawn_blocking};

use super::{
    ApiError, Shared,
    body::{Params, body_timeout, check_content_type, read},
    caller::Caller,
    problem::Code,
};
use crate::{
    administration::{
        apps::{ImportSummary, Listing},
        import::{ImportError, MAX_FILE_BYTES},
        tokens::Role,
    },
    operations::role_for,
};

/// The media types of an import.
const FILE_TYPES: [&str; 3] = ["text/csv", "application/jsonl", "application/x-ndjson"];
/// An import holds a file of up to 64 MiB in memory: one at a time.
static IMPORTS: Semaphore = Semaphore::const_new(1);
/// Applications of an exported piece.
const PIECE: usize = 1000;

/// How a file is imported.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ImportParams {
    /// Accept keys under 128 bits.
    #[serde(default)]
    allow_weak_key: bool,
    /// Why, for the audit: up to 200 characters.
    reason: Option<String>,
}

/// Adds all applications of a file, with their idents and keys, or none. The file is as in `signpost app import --help`: CSV or
/// JSON lines, up to 64 MiB.
#[utoipa::path(post, path = "/api/v1/apps/import", tag = "apps", params(ImportParams), request_body(content((String = "text/csv"), (String = "application/jsonl"), (String = "application/x-ndjson"))), responses((status = OK, description = "All were imported.", body = ImportSummary)))]
pub(super) async fn import(
    State(api): State<Shared>,
    caller: Caller,
    Params(params): Params<ImportParams>,
    request: Request,
) -> Result<Json<ImportSummary>, ApiError> {
    check_content_type(request.headers(), &FILE_TYPES)?;
    let author = caller.author(params.reason.as_deref())?;
    let busy = |_| ApiError::from(Code::RateLimited).retry_after(body_timeout(&api));
    let permit = IMPORTS.try_acquire().map_err(busy)?;
    let file = read(request.into_body(), MAX_FILE_BYTES, body_timeout(&api)).await?;
    let (mut administration, role) = (api.administration(), caller.token.role);
    let is_reserved = |ident: &_| role < role_for(api.console, Some(*ident), Role::Operator);
    administration.reserved = api.console.filter(is_reserved);
    let import = async move {
        let _permit = permit;
        administration
            .import(&file, params.allow_weak_key, author, caller.at)
            .await
    };
    // It computes for seconds, in which this thread has health checks to answer.
    let runtime = Handle::current();
    let imported = spawn_blocking(move || runtime.block_on(import)).await;
    Ok(Json(imported.map_err(ApiError::internal)??))
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

/// All applications as JSON lines, without keys, oldest first: what `import` reads once each has a key.
#[utoipa::path(get, path = "/api/v1/apps/export", tag = "apps", responses((status = OK, description = "JSON lines.", body = String, content_type = "application/jsonl")))]
pub(super) async fn export(
    State(api): State<Shared>,
    caller: Caller,
) -> Result<impl IntoResponse, ApiError> {
    let token = caller.token.id;
    let first = Listing {
        limit: PIECE,
        ..Listing::default()
    };
    // The first piece is read here, so that an unavailable store is a problem and no broken body.
    let first = piece(&api, first).await?;
    let pieces = stream::unfold(Some(Ok(first)), move |next| {
        let api = api.clone();
        async move {
            match next? {
                Err(error) => Some((Err(error), None)),
                Ok((lines, None)) => Some((Ok(lines), None)),
                Ok((lines, Some(listing))) => {
                    // The call that began this is over.
                    let turn = api.turns.of_stream(token).await;
                    let next = piece(&api, listing).await;
                    drop(turn);
                    Some((Ok(lines), Some(next)))
                }
            }
        }
    });
    let jsonl = HeaderValue::from_static("application/jsonl");
    Ok(([(header::CONTENT_TYPE, jsonl)], Body::from_stream(pieces)))
}

/// Some lines, and what follows them.
async fn piece(api: &Shared, listing: Listing) -> Result<(Bytes, Option<Listing>), AppStoreError> {
    let page = api.administration().list(&listing).await?;
    let mut lines = String::new();
    for app in &page.apps {
        lines.push_str(&app.exported());
        lines.push('\n');
    }
    let next = page.next.map(|after| Listing {
        after: Some(after),
        ..listing
    });
    Ok((lines.into(), next))
}
