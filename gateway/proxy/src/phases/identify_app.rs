//! Identifies the application of a request. CONTRACT 4.

use std::sync::Arc;

use signpost_protocol::{app::AppIdent, header::HeaderNames, malformed::Malformed, param::Params};

use super::admit::AppHeader;
use crate::{
    directory::apps::{App, AppState, directory::AppDirectory},
    request::{Target, rejection::Rejection},
};

/// The parameter that replaces the application header for browsers, which cannot set one.
const APP: &str = "app";

/// Finds the application of a request; it is active.
///
/// # Errors
///
/// The ident is missing or unknown, the application is disabled, or the store is unavailable.
pub(crate) async fn identify_app(
    header: AppHeader<'_>,
    target: Target<'_>,
    browser_paths: &[String],
    names: &HeaderNames,
    directory: &AppDirectory,
) -> Result<Arc<App>, Rejection> {
    let apps = match directory {
        AppDirectory::Single(app) => return Ok(Arc::clone(app)),
        AppDirectory::Multi(apps) => apps,
    };
    let ident = match header {
        AppHeader::Ident(ident) => ident,
        AppHeader::Malformed(sent) => return Err(Rejection::app_not_found(sent)),
        AppHeader::Absent if browser_paths.iter().any(|path| path == target.compared()) => {
            ident_of_query(target.query)?.ok_or_else(|| missing(names, None))?
        }
        AppHeader::Absent => {
            let is_in_query = matches!(ident_of_query(target.query), Ok(Some(_)));
            return Err(missing(names, is_in_query.then_some("hint_app_in_query")));
        }
    };
    let lookup = apps.find(ident).await;
    let app = lookup
        .map_err(|cause| Rejection::StoreUnavailable(Box::new(cause)))?
        .ok_or_else(|| Rejection::app_not_found(ident.as_str().as_bytes()))?;
    match app.state {
        AppState::Active => Ok(app),
        AppState::Disabled => Err(Rejection::AppDisabled {
            ident: ident.as_str().into(),
        }),
    }
}

fn missing(names: &HeaderNames, hint: Option<&'static str>) -> Rejection {
    Rejection::AppMissing {
        header: names.spelled(&names.app),
        hint,
    }
}

/// The `app` parameter of the query. Like the header, it is not trusted before `verify` has checked the signature.
fn ident_of_query(query: &str) -> Result<Option<AppIdent>, Rejection> {
    let query = query.as_bytes();
    // Without a limit of their number: `read_params` checks it later, in step 7 of CONTRACT 7. The head limits the
    // bytes.
    let params = Params::parse(query, b"", usize::MAX)
        .map_err(|_| Rejection::ParamsMalformed(Malformed::of_params(query, b"").into()))?;
    let app = params
        .single(APP)
        .map_err(|_| Rejection::ParamDuplicated { name: APP })?;
    let ident = |sent: &[u8]| AppIdent::try_from(sent).map_err(|_| Rejection::app_not_found(sent));
    app.map(|app| ident(&app.value())).transpose()
}
