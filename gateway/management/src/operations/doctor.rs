//! A request that a client has sent, examined by Sign Doctor.

use serde::Deserialize;
use signpost_store::tables::audit::add;
use utoipa::ToSchema;

use super::{Context, Face, Input, Kind, Operation, Output, Result, input::Text, role_for};
use crate::{
    administration::{audit, tokens::Role},
    doctor::{Findings, Patient, paste::Pasted},
};

pub(super) fn all<F: Face>(face: F) -> F {
    face.add(&EXAMINE)
}

/// A request to examine.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample {
    /// The request: as it is sent; a command of curl or PowerShell, or output of `curl -v`; `fetch(…)`; a HAR; or a URL.
    #[schema(value_type = String)]
    pub request: Text<Pasted>,
    /// The ident of the application, if the request does not name it.
    pub app: Option<String>,
    /// The string that the client has hashed, or whose HMAC it has computed. The key in it is not shown again.
    pub canonical: Option<String>,
}

impl Input for Sample {}
impl Output for Findings {}

/// Examines a request.
pub(crate) const EXAMINE: Operation<(), Sample, Findings> = Operation::of(
    (Kind::Ask, Role::Viewer),
    "/api/v1/doctor",
    "Examines a request that a client has sent, step by step as the gateway does, and says what is wrong with it. It is not forwarded, \
     and may have been sent at any time. The remarks say what was not checked. Of a request that it signs, the audit has a row.",
    |context, target, sample| Box::pin(examine(context, target, sample)),
);

async fn examine(context: &Context, (): (), sample: Sample) -> Result<Findings> {
    let running = context.running();
    let (gateway, caller) = (&running.gateway, &context.caller);
    let Text(pasted) = sample.request;
    let patient = Patient {
        gateway,
        language: caller.language,
        pasted,
        app: sample.app.as_deref(),
        // Browsers send the lines of a form so.
        own: sample.canonical.map(|own| own.replace("\r\n", "\n")),
        may_sign: &|app| caller.role >= role_for(running.console, app.ident, Role::Operator),
    };
    let (findings, app) = patient.examine().await;
    if let (Some(_), Some(app)) = (&findings.signed, app) {
        let subject = app
            .ident
            .as_ref()
            .map_or("application", |ident| ident.as_str());
        let (method, path) = (&findings.method, &findings.path);
        let row = audit::of_signing(subject, method, path, context.author(None), caller.at);
        // The response has a signature only if its row was written.
        add(&context.store, row).await?;
    }
    Ok(findings)
}
