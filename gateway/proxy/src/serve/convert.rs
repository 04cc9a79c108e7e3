//! Has the converter of a bridge, or of copies, change what is forwarded.

use std::{pin::pin, sync::Arc};

use super::{Gateway, accepted::Accepted, request::Received};
use crate::{
    config::{Backend, ServedVersion},
    convert::{Conversion, Converted},
    phases::backend_headers::To,
    request::{
        Head,
        client::{Client, PIECE},
        rejection::Rejection,
    },
    upstream::routing::destination::Callee,
};

/// What a converter does for a request to `backend` of the version `other`; `None` if none does.
pub(super) fn conversion(
    gateway: &Gateway,
    request: &Received<'_, Head>,
    accepted: &Accepted<'_>,
    (other, backend): (&Arc<ServedVersion>, &Arc<Backend>),
    is_copy: bool,
) -> Option<Conversion> {
    let (method, verified) = (accepted.method(), accepted.routed.verified());
    let changes = accepted.route().version.changes();
    // The provider's parameters belong to the login service.
    let changes = changes.filter(|_| verified.callback().is_none())?;
    let (change, converter) = changes.converter(method, request.target.compared())?;
    let target = gateway.policy.backends.target(&converter.backend);
    Some(Conversion {
        change: change.name.clone(),
        converter: Callee::clone(target),
        backend: Arc::clone(backend),
        other: Arc::clone(other),
        version: Arc::clone(&accepted.route().version),
        names: Arc::clone(&gateway.policy.rules.admission.names),
        id: request.id,
        from: (accepted.app().map(Arc::clone), request.client),
        method,
        is_unsigned: verified.is_unsigned(),
        is_copy,
        sent: None,
    })
}

/// Has a converter change a request.
pub(super) async fn convert<C: Client>(
    gateway: &Gateway,
    request: &Received<'_, Head>,
    accepted: &Accepted<'_>,
    conversion: &mut Conversion,
    client: &mut C,
) -> Result<Converted, Rejection> {
    if accepted.body().spooled().is_some() {
        return Err(conversion.failed(format!("the body is larger than {PIECE} bytes")));
    }
    let to = To::route(accepted.route());
    let head = accepted.head_without_end(to, None, &request.id, &gateway.state.ids);
    let parts = (&*head, accepted.body().in_memory());
    let converting = pin!(conversion.request(&gateway.policy.backends.client, parts, client));
    let mut converted = gateway.state.drain.cut_off(converting).await?;
    converted.head.extend_from_slice(b"\r\n");
    Ok(converted)
}
