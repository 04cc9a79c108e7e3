//! Copies a request to the version that shadows its own. CONTRACT 5.

use std::{mem, sync::Arc};

use http::HeaderValue;
use signpost_protocol::{cookies::BackendKind, problem::ProblemCode};

use super::{Gateway, accepted::Accepted, request::Received};
use crate::{
    config::{AccountCheck, Backend, BackendIndex, Paths, ServedVersion, Shadow, Unsigned},
    phases::{
        backend_headers::{Identified, To, write_backend_headers, write_request_line},
        bridge::{BridgedRequest, changed},
    },
    request::{Head, Headers as _, Method, recorder::WholeResponse, rejection::Rejection},
    shadow::{
        CopyResult, Place,
        copied::{Copied, Entry, GivenCredential, NotCopied},
        is_chosen,
        send::CopyRequest,
    },
};

/// A request that was chosen to be copied.
pub(super) struct Chosen {
    shadow: Arc<Shadow>,
    route: String,
    place: Place,
}

/// Chooses some of the requests that a version has copied, as long as there are places. A callback is never copied: it
/// belongs to one login. Neither is what takes a route of the version, if changes are to be proven: a bridge leaves it alone.
pub(super) fn choose(gateway: &Gateway, accepted: &Accepted<'_>, path: &str) -> Option<Chosen> {
    let route = accepted.route();
    let shadow = route.version.shadow()?;
    let method = accepted.method();
    let entry = shadow.entry(method, path)?;
    let changes = route.version.changes();
    let is_callback = accepted.routed.verified().callback().is_some();
    let is_beside = changes.is_some() && route.backend().name.kind() == BackendKind::Route;
    if is_callback || is_beside || !is_chosen(shadow.per_million) {
        return None;
    }
    let place = gateway.state.shadows.place()?;
    // What a change is for is told apart, so that each change has its own proof.
    let patterns = changes
        .into_iter()
        .flat_map(|changes| changes.patterns(method, path));
    let paths = patterns.chain([entry]).min_by_key(|one| one.precedence())?;
    Some(Chosen {
        route: format!("{} {paths}", method.as_str()),
        shadow: Arc::clone(shadow),
        place,
    })
}

/// Copies a request whose client has its response.
pub(super) fn copy(
    gateway: &Gateway,
    request: &Received<'_, Head>,
    mut accepted: Accepted<'_>,
    chosen: Chosen,
    response: Option<WholeResponse>,
) {
    let shadows = &gateway.state.shadows;
    // What broke off says nothing. A response that is too large does: it is not compared, and the copy is not sent.
    let response = response.filter(|kept| kept.is_complete);
    let copied = response.and_then(|response| {
        let other = chosen.shadow.to.as_str().as_bytes();
        let other = gateway.policy.backends.versions.named(other)?;
        Some(copied(
            gateway,
            request,
            &mut accepted,
            other,
            chosen,
            response,
        ))
    });
    match copied {
        Some(copied) => shadows.submit(copied),
        None => shadows.counts.count(CopyResult::Skipped),
    }
}

fn copied(
    gateway: &Gateway,
    request: &Received<'_, Head>,
    accepted: &mut Accepted<'_>,
    other: &ServedVersion,
    chosen: Chosen,
    response: WholeResponse,
) -> Copied {
    let Chosen {
        shadow,
        route,
        place,
    } = chosen;
    let version = Arc::clone(&accepted.route().version);
    let method = accepted.method();
    let changes = version.changes();
    let again = (method == Method::Get && is_chosen(shadow.noise_per_million)).then(|| {
        let backend = Arc::clone(accepted.route().backend());
        request_of(gateway, request, accepted, (&version, &backend), None)
    });
    let mut credential = None;
    let copy = changed_request(gateway, request, accepted).and_then(|changed| {
        if response.is_too_large {
            return Err(NotCopied::TooLarge);
        }
        if request.target.ambiguity().is_some() && other.paths() == Paths::Canonical {
            return Err(NotCopied::Rejected(ProblemCode::TargetAmbiguous));
        }
        let path = request.target.compared();
        let changed_path = changes.and_then(|changes| changes.path(method, path));
        let index = other.routed(changed_path.as_deref().unwrap_or(path));
        let index = index.unwrap_or(BackendIndex::OWN);
        let is_unsigned = accepted.routed.verified().is_unsigned();
        if is_unsigned && other.unsigned(index) == Unsigned::Reject {
            return Err(NotCopied::Rejected(ProblemCode::SignMissing));
        }
        let backend = shadow.backend.as_ref().unwrap_or(other.backend(index));
        credential = prepare_account(gateway, accepted, backend)?;
        let (to, changed) = ((other, backend), changed.as_ref());
        Ok(request_of(gateway, request, accepted, to, changed))
    });
    Copied {
        entry: Entry {
            version: version.name().to_string(),
            to: other.name().to_string(),
            route,
            changes: changes.map_or_else(String::new, |all| all.digest().to_owned()),
        },
        changes: changes.map(Arc::clone),
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
        _place: place,
    }
}

/// The request as a bridge would change it; `None` if the version has no changes.
fn changed_request(
    gateway: &Gateway,
    request: &Received<'_, Head>,
    accepted: &Accepted<'_>,
) -> Result<Option<BridgedRequest>, NotCopied> {
    if accepted.route().version.changes().is_none() {
        return Ok(None);
    }
    let (method, form) = (accepted.method(), accepted.outgoing.form());
    let sign = gateway.policy.verifier.config();
    let changed = changed(&accepted.routed, method, request.target, form, sign);
    changed.map(Some).map_err(|rejection| match rejection {
        Rejection::BridgeFailed { change, .. } => NotCopied::NotChanged(change),
        other => NotCopied::Rejected(other.code().unwrap_or(ProblemCode::Internal)),
    })
}

/// Passes the credential to a backend that gets it, and to no other. Returns the one to look up, if the backend needs an
/// account that the request's own version has not asked for.
fn prepare_account(
    gateway: &Gateway,
    accepted: &mut Accepted<'_>,
    backend: &Backend,
) -> Result<Option<GivenCredential>, NotCopied> {
    let rules = backend.account;
    match rules.passes_authorization {
        true => accepted.admitted.pass_authorization(),
        false => accepted.admitted.withhold_authorization(),
    }
    if rules.check == AccountCheck::None || accepted.account.account().is_some() {
        return Ok(None);
    }
    let missing = NotCopied::Rejected(ProblemCode::AuthorizationMissing);
    let Some(index) = accepted.admitted.authorization else {
        return match rules.check {
            AccountCheck::Required => Err(missing),
            AccountCheck::Optional | AccountCheck::None => Ok(None),
        };
    };
    let sent = accepted.head.each().nth(usize::from(index));
    let (Some((_, sent)), Some(app)) = (sent, accepted.app()) else {
        return Err(missing);
    };
    let accounts = gateway.state.accounts.get();
    let accounts = accounts.ok_or(NotCopied::Rejected(ProblemCode::StoreUnavailable))?;
    Ok(Some(GivenCredential {
        sent: sent.to_vec(),
        app: app.id,
        accounts: Arc::clone(&accounts.directory),
    }))
}

/// The request to a backend of a version.
fn request_of(
    gateway: &Gateway,
    request: &Received<'_, Head>,
    accepted: &mut Accepted<'_>,
    (version, backend): (&ServedVersion, &Arc<Backend>),
    changed: Option<&BridgedRequest>,
) -> CopyRequest {
    let form = changed.map_or(accepted.outgoing.form(), |changed| &changed.form);
    let target = changed.map(|changed| &*changed.target);
    let mut head = Vec::new();
    write_request_line(accepted.head, target, form, &mut head);
    // The copy is no part of the trace of the request.
    let ids = &gateway.state.ids;
    let new_trace = HeaderValue::from_bytes(&ids.traceparent(&ids.next())).ok();
    let traceparent = mem::replace(&mut accepted.admitted.traceparent, new_trace);
    let account = accepted.account.account();
    write_backend_headers(
        Identified {
            routed: &accepted.routed,
            to: To {
                backend,
                version: version.name(),
                copy_of: Some(accepted.route().version.name()),
            },
            account: account.filter(|_| backend.account.check != AccountCheck::None),
            bridged: changed,
        },
        accepted.head,
        &accepted.admitted,
        &request.id,
        ids,
        &mut head,
    );
    let form = form.to_vec();
    accepted.admitted.traceparent = traceparent;
    let target = gateway.policy.backends.target(backend);
    CopyRequest {
        headers: head,
        id: request.id,
        form,
        is_get: accepted.method() == Method::Get,
        backend: Arc::clone(backend),
        balancer: target.balancer.as_ref().map(Arc::clone),
        fixed: Arc::clone(&target.fixed),
    }
}
