//! `/api/v1/doctor`: examines a request that a client has sent, step by step, and says what is wrong with it.

mod paste;
mod signing;

use std::{net::Ipv4Addr, sync::Arc};

use axum::{Extension, Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use signpost_kit::clock::Timestamp;
use signpost_protocol::{param::Params, sign::canonical_for_display};
use signpost_store::tables::audit::add;
use utoipa::ToSchema;

use self::{
    paste::Pasted,
    signing::{Difference, Param, Signed, Signing, difference, signed_params},
};
use super::{
    ApiError, Shared,
    body::{Input, parsed},
    caller::Caller,
    layers::Call,
};
use crate::{
    directory::{apps::App, audit, tokens::Role},
    downstream::http1::{connection::rejection, head::check_target},
    gateway::Gateway,
    phases::{
        admit::{Admitted, admit},
        callback::match_callback,
        error_response::problem_of,
        identify_app::identify_app,
        origin::Peer,
        read_params::read_params,
    },
    request::{BodyLength, Method, Target, client::ConnectionInfo, rejection::Rejection},
};

/// Stands for the key in a canonical string.
const KEY: &str = "<APP_KEY>";

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

/// What was found.
#[derive(Serialize, ToSchema)]
pub(super) struct Findings {
    /// The method.
    method: String,
    /// The path.
    path: String,
    /// The steps, in the order in which the gateway makes them. What follows a failed one may be missing.
    steps: Vec<Step>,
    /// The parameters as they are read, in the order in which they are signed.
    params: Vec<Param>,
    /// The string to sign, with `<APP_KEY>` in place of the key; null if it did not come so far.
    #[schema(required)]
    canonical: Option<String>,
    /// Where the client's own string begins to differ; null if none was given, or both are the same.
    #[schema(required)]
    difference: Option<Difference>,
    /// The same request with the present time and the right signature; null for viewers, who may not sign.
    #[schema(required)]
    signed: Option<Signed>,
}

/// A step.
#[derive(Serialize, ToSchema)]
struct Step {
    /// What is checked.
    step: StepName,
    /// What the client gets if it fails here; null if it is right.
    #[schema(required, value_type = Option<Object>)]
    problem: Option<Value>,
}

/// What a step checks.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum StepName {
    /// Method, headers and body.
    Request,
    /// The application.
    App,
    /// The parameters of query and form.
    Params,
    /// The parameter `time`.
    Time,
    /// The parameter `sign`.
    Sign,
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
    let names = &gateway.policy.rules.admission.names;
    if let Some(app) = sample
        .app
        .filter(|_| pasted.header(names.app.as_str()).is_none())
    {
        pasted.headers.push((names.spelled(&names.app), app));
    }
    let patient = Patient {
        gateway: &gateway,
        pasted: &pasted,
        // Browsers send the lines of a form so.
        own: sample.canonical.map(|own| own.replace("\r\n", "\n")),
        may_sign: caller.token.role >= Role::Operator,
        call: &call,
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

/// A request that is examined.
struct Patient<'p> {
    gateway: &'p Gateway,
    pasted: &'p Pasted,
    /// The client's own string to sign.
    own: Option<String>,
    may_sign: bool,
    call: &'p Call,
}

impl Patient<'_> {
    /// What was found, and the application.
    async fn examine(&self) -> (Findings, Option<Arc<App>>) {
        let target = self.target();
        let mut findings = Findings {
            method: self.pasted.method.clone(),
            path: target.path.to_owned(),
            steps: Vec::new(),
            params: Vec::new(),
            canonical: None,
            difference: None,
            signed: None,
        };
        let step = |step, result: Result<(), &Rejection>| Step {
            step,
            problem: result.err().and_then(|rejection| self.problem(rejection)),
        };
        let admitted = self.admit();
        let result = admitted.as_ref().map(drop);
        findings.steps.push(step(StepName::Request, result));
        let Ok(admitted) = admitted else {
            return (findings, None);
        };
        let (verifier, method, body) = (
            &self.gateway.policy.verifier,
            admitted.method,
            self.pasted.body.as_bytes(),
        );
        // The provider's redirect names no application, and needs no signature.
        if match_callback(method, self.body_length(), target, verifier.config()).is_some() {
            return (findings, None);
        }
        let app = self.find_app(&admitted).await;
        findings
            .steps
            .push(step(StepName::App, app.as_ref().map(drop)));
        let Ok(app) = app else {
            return (findings, None);
        };
        let params = read_params(target, body, &self.gateway.policy.bounds.requests);
        findings
            .steps
            .push(step(StepName::Params, params.as_ref().map(drop)));
        let Ok(params) = params else {
            return (findings, None);
        };
        let now = self.now().into();
        if params.is_empty() {
            let verified = verifier.verify(Arc::clone(&app), method, target, &params, now);
            findings
                .steps
                .push(step(StepName::Sign, verified.as_ref().map(drop)));
        } else {
            let [time, sign] = verifier.examine(&app, method, target, &params, now);
            findings
                .steps
                .push(step(StepName::Time, time.as_ref().copied()));
            findings
                .steps
                .push(step(StepName::Sign, sign.as_ref().copied()));
        }
        self.show_signing(&app, method, &params, &mut findings);
        (findings, Some(app))
    }

    fn target(&self) -> Target<'_> {
        Target::parse(self.pasted.target.as_bytes()).unwrap_or_default()
    }

    fn now(&self) -> Timestamp {
        self.gateway.state.clock.now()
    }

    fn admit(&self) -> Result<Admitted<'_>, Rejection> {
        let rules = &self.gateway.policy.rules.admission;
        let limits = &rules.limits;
        check_target(self.pasted.target.as_bytes(), limits)
            .map_err(|fault| rejection(limits, fault))?;
        let connection = ConnectionInfo::plain(Ipv4Addr::LOCALHOST.into());
        let (method, body) = (self.pasted.method.as_bytes(), self.body_length());
        admit(
            method,
            self.pasted,
            body,
            &Peer::new(&connection, &[]),
            rules,
        )
    }

    fn body_length(&self) -> BodyLength {
        match self.pasted.body.len() {
            0 => BodyLength::None,
            length => BodyLength::Known(length as u64),
        }
    }

    async fn find_app(&self, admitted: &Admitted<'_>) -> Result<Arc<App>, Rejection> {
        let policy = &self.gateway.policy;
        let paths = &policy.verifier.config().browser_paths;
        let names = &policy.rules.admission.names;
        identify_app(admitted.app, self.target(), paths, names, &policy.apps).await
    }

    /// What the client of a rejected request gets.
    fn problem(&self, rejection: &Rejection) -> Option<Value> {
        let names = &self.gateway.policy.rules.admission.names;
        let problem = problem_of(rejection, names, self.call.language, &self.call.id)?;
        let mut problem = json!(problem);
        if let Some(members) = problem.as_object_mut() {
            // It is that of this call.
            members.remove("request_id");
        }
        Some(problem)
    }

    /// Shows what is signed, and how it is right.
    fn show_signing(
        &self,
        app: &App,
        method: Method,
        params: &Params<'_>,
        findings: &mut Findings,
    ) {
        let profile = self.gateway.policy.verifier.profile_of(app);
        let path = self.target().path;
        let canonical = canonical_for_display(profile, method.as_str(), path, params);
        let canonical = String::from_utf8_lossy(&canonical).into_owned();
        let keys = [
            Some(&app.key),
            app.previous_key.as_ref().map(|one| &one.key),
        ];
        let own = self.own.clone().map(|own| {
            let keys = keys.into_iter().flatten();
            keys.fold(own, |own, key| own.replace(key.expose(), KEY))
        });
        findings.difference = own.and_then(|own| difference(&canonical, &own));
        findings.params = signed_params(profile, params);
        findings.canonical = Some(canonical);
        let names = &self.gateway.policy.rules.admission.names;
        let now = self.now();
        findings.signed = self.may_sign.then(|| {
            let signing = Signing {
                names,
                profile,
                app,
            };
            signing.sign(self.pasted, method, self.target(), now)
        });
    }
}
