//! Copies a request to the version that shadows its own. CONTRACT 5.

use std::sync::Arc;

use signpost_protocol::{cookies::BackendKind, problem::ProblemCode};

use super::{Gateway, accepted::Accepted, convert::conversion, request::Received};
use crate::{
    config::{AccountCheck, Backend, BackendIndex, ServedVersion, Shadow, Unsigned},
    phases::{
        backend_headers::To,
        bridge::{BridgedRequest, changed},
        route::check_path,
    },
    request::{Head, Headers as _, Method, recorder::WholeResponse, rejection::Rejection},
    shadow::{
        CopyPlace, CopyResult,
        copied::{Copied, Entry, GivenCredential, NotCopied},
        is_chosen,
        send::CopyRequest,
    },
    upstream::routing::destination::Callee,
};

/// A request that was chosen to be copied.
pub(super) struct Chosen {
    shadow: Arc<Shadow>,
    entry: Entry,
    place: CopyPlace,
}

/// Chooses some of the requests that a version copies, while there are places. A callback is never copied: it belongs
/// to one login. If the version has changes to prove, requests with a route of their own are not copied: a bridge does
/// not change them.
pub(super) fn choose(gateway: &Gateway, accepted: &Accepted<'_>, path: &str) -> Option<Chosen> {
    let route = accepted.route();
    let shadow = route.version.shadow()?;
    let method = accepted.method();
    shadow.entry(method, path)?;
    let changes = route.version.changes();
    let is_callback = accepted.routed.verified().callback().is_some();
    let is_large = accepted.body().spooled().is_some();
    let is_beside = changes.is_some() && route.backend().name.kind() == BackendKind::Route;
    if is_callback || is_large || is_beside || !is_chosen(shadow.per_million) {
        return None;
    }
    let paths = route.version.compared_by(method, path)?;
    let entry = Entry {
        version: route.version.name().to_string(),
        to: shadow.to.to_string(),
        route: format!("{} {paths}", method.as_str()),
        changes: changes.map_or_else(String::new, |changes| changes.digest().to_owned()),
    };
    // Taken last: a request that chance leaves out must neither occupy a place nor count as dropped.
    match gateway.state.shadows.place() {
        Some(place) => Some(Chosen {
            entry,
            shadow: Arc::clone(shadow),
            place,
        }),
        None => {
            gateway.state.shadows.add_dropped(entry);
            None
        }
    }
}

/// Copies a request whose client has its response.
pub(super) fn copy(
    gateway: &Gateway,
    request: &Received<'_, Head>,
    accepted: &Accepted<'_>,
    chosen: Chosen,
    response: Option<WholeResponse>,
) {
    let shadows = &gateway.state.shadows;
    // What broke off says nothing. A response that is too large does: it is not compared, and the copy is not sent.
    let response = response.filter(|response| response.is_complete);
    let other = chosen.shadow.to.as_str().as_bytes();
    let other = gateway.policy.backends.versions.named(other);
    match response.zip(other) {
        Some((response, other)) => {
            shadows.submit(copied(gateway, request, accepted, other, chosen, response));
        }
        None => {
            shadows.counts.count(CopyResult::Skipped);
            shadows.add_dropped(chosen.entry);
        }
    }
}

fn copied(
    gateway: &Gateway,
    request: &Received<'_, Head>,
    accepted: &Accepted<'_>,
    other: &Arc<ServedVersion>,
    chosen: Chosen,
    response: WholeResponse,
) -> Copied {
    let shadow = chosen.shadow;
    let version = &accepted.route().version;
    let (method, changes) = (accepted.method(), version.changes());
    // Only a GET: its own version gets the request once more, and would execute a POST twice.
    let again = (method == Method::Get && is_chosen(shadow.noise_per_million)).then(|| {
        let backend = accepted.route().backend();
        copy_request(gateway, request, accepted, (version, backend), None)
    });
    let (copy, credential) =
        match copy_to_other(gateway, request, accepted, (other, &shadow), &response) {
            Ok((copy, credential)) => (Ok(copy), credential),
            Err(not_copied) => (Err(not_copied), None),
        };
    Copied {
        entry: chosen.entry,
        changes: changes.map(Arc::clone),
        conversion: copy.as_ref().ok().and_then(|copy| {
            conversion(
                gateway,
                request,
                accepted,
                (other, &copy.callee.backend),
                true,
            )
        }),
        shadow,
        method,
        path: request.target.compared().to_owned(),
        app: accepted.app().map(Arc::clone),
        client: request.client,
        lasted: request.timing.lasted(),
        copy,
        credential,
        again,
        response,
        _place: chosen.place,
    }
}

/// The request as the other version gets it, and the credential whose account is still to be looked up. What that version
/// would reject is rejected here, so that its backend never gets what its own clients could not send.
fn copy_to_other(
    gateway: &Gateway,
    request: &Received<'_, Head>,
    accepted: &Accepted<'_>,
    (other, shadow): (&ServedVersion, &Shadow),
    response: &WholeResponse,
) -> Result<(CopyRequest, Option<GivenCredential>), NotCopied> {
    let (method, target) = (accepted.method(), request.target);
    let changes = accepted.route().version.changes();
    let (body, sign) = (accepted.body(), gateway.policy.verifier.config());
    let change = |_| changed(&accepted.routed, method, target, body, sign);
    // First: that a change does not apply to a request counts, whatever its response was.
    let bridged = changes.map(change).transpose()?;
    if response.is_too_large {
        return Err(NotCopied::Nothing);
    }
    check_path(target, other)?;
    let path = bridged
        .as_ref()
        .map_or(target.compared(), |bridged| &bridged.path);
    let index = other.routed(path);
    let index = index.unwrap_or(BackendIndex::OWN);
    let is_unsigned = accepted.routed.verified().is_unsigned();
    if is_unsigned && other.unsigned(index) == Unsigned::Reject {
        return Err(Rejection::SignMissing(None).into());
    }
    // The shadow's own backend, if it has one: copies then put no load on what serves the other version's clients.
    let backend = shadow.backend.as_ref().unwrap_or(other.backend(index));
    let credential = credential_to_check(gateway, accepted, backend)?;
    let to = (other, backend);
    let copy = copy_request(gateway, request, accepted, to, bridged.as_ref());
    Ok((copy, credential))
}

/// The credential to look up, if a backend needs an account that the request's own version has not asked for.
fn credential_to_check(
    gateway: &Gateway,
    accepted: &Accepted<'_>,
    backend: &Backend,
) -> Result<Option<GivenCredential>, NotCopied> {
    let check = backend.account.check;
    if check == AccountCheck::None || accepted.account.account().is_some() {
        return Ok(None);
    }
    let Some(index) = accepted.admitted.authorization else {
        return match check {
            AccountCheck::Required => Err(Rejection::AuthorizationMissing.into()),
            AccountCheck::Optional | AccountCheck::None => Ok(None),
        };
    };
    let sent = accepted.head.each().nth(usize::from(index));
    let (Some((_, sent)), Some(app)) = (sent, accepted.app()) else {
        return Err(Rejection::AuthorizationMissing.into());
    };
    let accounts = gateway.state.accounts.get();
    let accounts = accounts.ok_or(NotCopied::Rejected(ProblemCode::StoreUnavailable))?;
    // The lookup may wait for the store, so it is left to the thread of copies; by then the request and its head are
    // gone, hence the copied value.
    Ok(Some(GivenCredential {
        sent: sent.to_vec(),
        app: app.id,
        accounts: Arc::clone(&accounts.directory),
        rules: backend.account,
    }))
}

/// The request to a backend of a version.
fn copy_request(
    gateway: &Gateway,
    request: &Received<'_, Head>,
    accepted: &Accepted<'_>,
    (version, backend): (&ServedVersion, &Arc<Backend>),
    bridged: Option<&BridgedRequest>,
) -> CopyRequest {
    // Its backend must be able to tell it from the request, which it may have got, too.
    let to = To {
        backend,
        version: version.name(),
        copy_of: Some(accepted.route().version.name()),
    };
    let changed = bridged.and_then(|bridged| bridged.body.as_deref());
    let body = changed.unwrap_or(accepted.body().in_memory());
    CopyRequest {
        // Without the empty line: an account that is still to be looked up is appended.
        headers: accepted.head_without_end(to, bridged, &request.id, &gateway.state.ids),
        id: request.id,
        body: body.to_vec(),
        method: accepted.method(),
        callee: Callee::clone(gateway.policy.backends.target(backend)),
    }
}
