//! The headers of a backend's answer as the client sees them. CONTRACT 1 and 5.

use gateway_protocol::header::{HeaderNames, X_REQUEST_ID};
use http::HeaderName;
use pingora::http::ResponseHeader;
use smallvec::SmallVec;

use super::{forward::is_internal, route::Route};
use crate::request_context::RequestContext;

/// Takes the internal headers out, and says which version served the request, and why.
///
/// # Errors
///
/// pingora refuses a header; none of ours is of that kind.
pub fn answer(
    response: &mut ResponseHeader,
    context: &RequestContext,
    route: &Route,
    names: &HeaderNames,
) -> pingora::Result<()> {
    let internal = response.headers.keys().filter(|name| is_internal(name));
    let internal: SmallVec<[HeaderName; 4]> = internal.cloned().collect();
    for name in &internal {
        response.remove_header(name);
    }
    response.insert_header(names.version().clone(), route.backend.version.as_str())?;
    response.insert_header(names.version_source().clone(), route.source.as_str())?;
    response.insert_header(X_REQUEST_ID, context.request_id.as_str())
}
