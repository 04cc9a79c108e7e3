//! `/api/v1/doctor`: examines a request that a client has sent, and says what is wrong with it.

use axum::{Extension, Json, extract::State};
use serde::Deserialize;
use signpost_store::tables::audit::add;
use utoipa::ToSchema;

use super::{
    ApiError, Shared,
    body::{Input, parsed},
    caller::{Caller, role_for},
    layers::Call,
};
use crate::{
    administration::{audit, tokens::Role},
    doctor::{Findings, Patient, Rules, paste::Pasted},
};

/// A request to examine.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Sample {
    /// The request: as it is sent, a command of curl, or a URL.
    request: String,
    /// The ident of the application, if the request does not name it.
    app: Option<String>,
    /// The string that the client has hashed, or whose HMAC it has computed. The key in it is not shown again.
    canonical: Option<String>,
}

/// Examines a request that a client has sent, step by step, and says what is wrong with it. It is not forwarded, and may have been
/// sent at any time. Its version, limits, and whether it is a repetition, are not checked. Of a request that it signs, the audit
/// has a row.
#[utoipa::path(post, path = "/api/v1/doctor", tag = "requests", request_body = Sample, responses((status = OK, description = "What was found.", body = Findings)))]
pub(super) async fn examine(
    State(api): State<Shared>,
    caller: Caller,
    Extension(call): Extension<Call>,
    Input(sample): Input<Sample>,
) -> Result<Json<Findings>, ApiError> {
    let gateway = api.current.load_full();
    let mut pasted: Pasted = parsed("request", &sample.request)?;
    if let Some(app) = sample.app {
        pasted.name_app(&gateway.policy.rules.admission.names, app);
    }
    let policy = &gateway.policy;
    let rules = Rules {
        admission: &policy.rules.admission,
        verifier: &policy.verifier,
        limits: &policy.bounds.requests,
        apps: &policy.apps,
        versions: &policy.backends.versions,
        public_url: &policy.rules.public_url,
        now: gateway.state.clock.now(),
        language: call.language,
    };
    let patient = Patient {
        rules: &rules,
        pasted: &pasted,
        // Browsers send the lines of a form so.
        own: sample.canonical.map(|own| own.replace("\r\n", "\n")),
        may_sign: &|app| caller.token.role >= role_for(&api, app.ident, Role::Operator),
    };
    let (findings, app) = patient.examine().await;
    if let (Some(_), Some(app)) = (&findings.signed, app) {
        let subject = app
            .ident
            .as_ref()
            .map_or("application", |ident| ident.as_str());
        let (method, path) = (&findings.method, &findings.path);
        let row = audit::of_signing(subject, method, path, caller.author(None)?, caller.at);
        // The response has a signature only if its row was written.
        add(api.store(), row).await?;
    }
    Ok(Json(findings))
}
