//! Changes a request of one version into one of the version that serves it, and the response back. CONTRACT 5.
//!
//! | module | subject |
//! | --- | --- |
//! | [`params`] | the parameters of the request |
//! | [`response`] | the response |

mod params;
pub(crate) mod response;

use std::sync::Arc;

use signpost_bridge::apply;
use signpost_protocol::version::Version;

use self::{params::Pairs, response::MAX_CHANGED};
use super::route::RoutedRequest;
use crate::{
    config::{Change, Changes, HeaderChange, RequestChange, SignConfig},
    limits::spool::Body,
    request::{Method, Target, client::PIECE, rejection::Rejection},
};

/// A request as the other version gets it, with the parameters that were verified and changed; only [`changed`] creates
/// one.
pub(crate) struct BridgedRequest {
    /// The target: path and query.
    pub target: String,
    /// The form, or the JSON that was changed; `None`: the body as it was.
    pub body: Option<Vec<u8>>,
    /// The path by which its backend is chosen.
    pub path: String,
    /// What its backend and its response need.
    pub bridged: Bridged,
}

/// What is known of a request that was changed.
pub(crate) struct Bridged {
    /// The version whose request it was.
    pub from: Arc<Version>,
    /// Whether the response may have to be changed.
    pub changes_response: bool,
    /// What happens to its headers.
    pub headers: Vec<HeaderChange>,
}

// Prints no content, which may include credentials.
signpost_protocol::hide_in_debug!(BridgedRequest);

/// Query and form without `time` and `sign`.
pub(crate) fn without_signature(query: &str, form: &[u8]) -> (String, Vec<u8>) {
    let mut pairs = Pairs::read(query, form);
    pairs.remove_signature();
    let (query, form) = pairs.write();
    (query, form.into_bytes())
}

/// The same request as the other version gets it, by the changes of the request's version.
///
/// # Errors
///
/// A change does not apply; or the request is unsigned, and a change adds parameters, or the path at the other version asks
/// for a signature.
pub(crate) fn changed(
    routed: &RoutedRequest,
    method: Method,
    target: Target<'_>,
    body: &Body,
    sign: &SignConfig,
) -> Result<BridgedRequest, Rejection> {
    let version = &routed.route().version;
    // The request of a callback does not change: the provider's parameters belong to the login service. Its response does.
    let is_callback = routed.verified().callback().is_some();
    let changes = version.changes().map(|changes| &**changes);
    let compared = target.compared();
    let mut pairs = Pairs::read(target.query, body.form());
    // Of a request that is signed in headers, a parameter of this name is its API's own.
    if !routed.verified().is_signed_in_headers() {
        pairs.remove_signature();
    }
    let (path, headers, json) = match changes.filter(|_| !is_callback) {
        Some(changes) => apply_all(changes, (method, target), &mut pairs, body)?,
        None => Default::default(),
    };
    // Backends rely on it: a request with parameters has a verified signature.
    if routed.verified().is_unsigned() && !pairs.is_empty() {
        return Err(Rejection::SignMissing(None));
    }
    let (query, form) = pairs.write();
    let at_other = path.as_deref().unwrap_or(compared);
    // By the changed path, too: a bridge must not lead around the signature that the other path needs.
    if routed.verified().is_unsigned() && sign.is_always_signed(method, at_other) {
        return Err(Rejection::SignMissing(None));
    }
    // Without a change the path stays as sent; its compared form is only for rules.
    let at_other = at_other.to_owned();
    let mut changed = path.unwrap_or_else(|| target.path_at_backend().to_owned());
    if !query.is_empty() {
        changed.push('?');
        changed.push_str(&query);
    }
    Ok(BridgedRequest {
        target: changed,
        body: match body {
            Body::Form(_) => Some(form.into_bytes()),
            Body::Memory { .. } | Body::Spooled(_) => json,
        },
        path: at_other,
        bridged: Bridged {
            from: Arc::clone(version.name()),
            headers,
            changes_response: changes.is_some_and(|all| all.change_responses(method, compared)),
        },
    })
}

/// What the changes of a request make of its path, its headers and its JSON body.
type Applied = (Option<String>, Vec<HeaderChange>, Option<Vec<u8>>);

fn apply_all(
    changes: &Changes,
    (method, target): (Method, Target<'_>),
    pairs: &mut Pairs<'_>,
    body: &Body,
) -> Result<Applied, Rejection> {
    let (mut headers, mut json) = (Vec::new(), None);
    let path = changes.path(method, target.compared(), target.query);
    let path = path.map_err(|(change, why)| failed(change, why))?;
    let mut moved = path.as_ref();
    for change in changes.of(method, target.compared()) {
        let of_path = moved.take().map_or(Ok(()), |path| pairs.apply_path(path));
        of_path.map_err(|why| failed(change, why))?;
        for step in &change.request {
            pairs.apply(step).map_err(|why| failed(change, why))?;
            if let RequestChange::Header(header) = step {
                headers.push(header.clone());
            }
        }
        if let Some(changed) = changed_body(change, json.as_deref(), body)? {
            json = Some(changed);
        }
    }
    Ok((path.map(|path| path.path), headers, json))
}

/// The JSON body after a change, if that has steps for it; `before` is what the changes before it have made of the body.
fn changed_body(
    change: &Change,
    before: Option<&[u8]>,
    body: &Body,
) -> Result<Option<Vec<u8>>, Rejection> {
    if change.request_body.is_empty() || body.length() == 0 {
        return Ok(None);
    }
    let bytes = match body {
        Body::Memory { bytes, .. } => before.unwrap_or(bytes),
        Body::Form(_) => return Err(failed(change, "the body is a form".to_owned())),
        Body::Spooled(_) => {
            let why = format!("the body is larger than {PIECE} bytes");
            return Err(failed(change, why));
        }
    };
    let changed = apply(&change.request_body, bytes);
    let changed = changed.map_err(|not_applied| failed(change, not_applied.to_string()))?;
    if changed.len() > MAX_CHANGED {
        let why = format!("the changed body is larger than {MAX_CHANGED} bytes");
        return Err(failed(change, why));
    }
    Ok(Some(changed))
}

/// A change that does not apply. The cause has nothing of the request.
fn failed(change: &Change, why: String) -> Rejection {
    let change = change.name.clone();
    Rejection::BridgeFailed { change, why }
}
