//! `/api/v1/apps`: the import of a file, and the export.

use axum::{
    Extension, Json,
    body::Body,
    extract::{Request, State},
    response::IntoResponse,
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, header};
use signpost_proxy::AppStoreError;
use zeroize::Zeroizing;

use super::{
    ApiError, Shared,
    body::{body_timeout, check_content_type, read},
    caller::Caller,
    layers::Call,
};
use crate::{
    administration::{
        apps::{ImportSummary, Listing},
        import::MAX_FILE_BYTES,
    },
    operations::{
        import::{IMPORT, ImportFile, ImportInput, place},
        input::of_query,
    },
};

/// The media types of an import.
const FILE_TYPES: [&str; 3] = ["text/csv", "application/jsonl", "application/x-ndjson"];
/// Applications of an exported piece.
const PIECE: usize = 1000;

/// Adds all applications of a file, with their idents and keys, or none. The file is as in `signpost app import --help`: CSV or
/// JSON lines, up to 64 MiB.
#[utoipa::path(post, path = "/api/v1/apps/import", tag = "apps", params(ImportInput), request_body(content((String = "text/csv"), (String = "application/jsonl"), (String = "application/x-ndjson"))), responses((status = OK, description = "All were imported.", body = ImportSummary)))]
pub(super) async fn import(
    State(api): State<Shared>,
    caller: Caller,
    Extension(call): Extension<Call>,
    request: Request,
) -> Result<Json<ImportSummary>, ApiError> {
    check_content_type(request.headers(), &FILE_TYPES)?;
    let mut input: ImportInput = of_query(request.uri())?;
    input.place = Some(place(body_timeout(&api))?);
    let file = read(request.into_body(), MAX_FILE_BYTES, body_timeout(&api)).await?;
    input.file = ImportFile(Zeroizing::new(file.into()));
    let context = api.context(&caller, call.language);
    Ok(Json((IMPORT.run)(&context, (), input).await?))
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
