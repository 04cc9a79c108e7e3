//! `/api/v1/doctor`: examines a request that a client has sent, step by step, and says what is wrong with it.

mod paste;

use std::{net::Ipv4Addr, sync::Arc};

use axum::{Extension, Json, extract::State};
use http::HeaderName;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use signpost_kit::clock::Timestamp;
use signpost_protocol::{
    param::Params,
    sign::{SIGN, SignProfile, TIME, canonical_for_display, sign},
};
use signpost_store::tables::audit::add;
use utoipa::ToSchema;

use self::paste::Pasted;
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

/// Characters around a difference that are shown.
const SHOWN: usize = 24;
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

/// A parameter.
#[derive(Serialize, ToSchema)]
struct Param {
    /// The decoded key.
    key: String,
    /// The decoded value.
    value: String,
    /// The pair as sent.
    sent: String,
    /// Whether it is in the string to sign.
    is_signed: bool,
}

/// The first difference between two strings to sign.
#[derive(Serialize, ToSchema)]
struct Difference {
    /// Characters before it.
    at: usize,
    /// What the string to sign has from a little before it on.
    expected: String,
    /// What the client's has there.
    found: String,
}

/// A signed request.
#[derive(Serialize, ToSchema)]
struct Signed {
    /// The value of `sign`.
    sign: String,
    /// Path and query.
    target: String,
    /// The form, if there is one.
    #[schema(required)]
    form: Option<String>,
    /// A command of curl that sends it. `$GATEWAY` is the gateway's address.
    curl: String,
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
        // Without its row, nobody gets a signature.
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
        findings.signed = self.may_sign.then(|| self.sign(app, profile, method));
    }

    /// The request with the present time and the right signature, in the form if it has one.
    fn sign(&self, app: &App, profile: &SignProfile, method: Method) -> Signed {
        let target = self.target();
        let (mut query, mut form) = (unsigned(target.query), unsigned(&self.pasted.body));
        let has_form = method == Method::Post && !form.is_empty();
        let time = format!("{TIME}={}", self.now().as_millis());
        push_pair(if has_form { &mut form } else { &mut query }, &time);
        let params = Params::parse(query.as_bytes(), form.as_bytes(), usize::MAX);
        let params = params.unwrap_or_default();
        let sign = sign(profile, &app.key, method.as_str(), target.path, &params).to_hex();
        drop(params);
        let pair = format!("{SIGN}={sign}");
        push_pair(if has_form { &mut form } else { &mut query }, &pair);
        let target = match &*query {
            "" => target.path.to_owned(),
            query => format!("{}?{query}", target.path),
        };
        let form = has_form.then_some(form);
        Signed {
            curl: self.curl(&target, form.as_deref()),
            sign,
            target,
            form,
        }
    }

    fn curl(&self, target: &str, form: Option<&str>) -> String {
        let names = &self.gateway.policy.rules.admission.names;
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
        let mut command = format!("curl \"$GATEWAY\"{}", quoted(target));
        let is_ours = |name: &str| {
            let ours: [&HeaderName; 2] = [&names.app, &names.version];
            ours.into_iter()
                .any(|our| our.as_str().eq_ignore_ascii_case(name))
        };
        for (name, value) in self.pasted.headers.iter().filter(|(name, _)| is_ours(name)) {
            command += &format!(" -H {}", quoted(&format!("{name}: {value}")));
        }
        if let Some(form) = form {
            command += &format!(" --data-raw {}", quoted(form));
        } else if self.pasted.method == "POST" {
            command += " -X POST";
        }
        command
    }
}

/// The pairs without `time` and `sign`, as they were sent.
fn unsigned(pairs: &str) -> String {
    let is_own = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        name == TIME || name == SIGN
    };
    let others = pairs
        .split('&')
        .filter(|pair| !pair.is_empty() && !is_own(pair));
    others.collect::<Vec<_>>().join("&")
}

fn push_pair(pairs: &mut String, pair: &str) {
    if !pairs.is_empty() {
        pairs.push('&');
    }
    pairs.push_str(pair);
}

/// The parameters in the order in which they are signed.
fn signed_params(profile: &SignProfile, params: &Params<'_>) -> Vec<Param> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut shown: Vec<_> = params.iter().collect();
    shown.sort_by(|one, other| one.key().cmp(other.key()));
    let shown = shown.into_iter().map(|param| Param {
        key: text(param.key()),
        value: text(&param.value()),
        sent: format!("{}={}", text(param.wire_key()), text(param.wire_value())),
        is_signed: profile.signs(param),
    });
    shown.collect()
}

/// The first difference of two strings.
fn difference(expected: &str, found: &str) -> Option<Difference> {
    let at = {
        let pairs = expected.chars().zip(found.chars());
        pairs.take_while(|(one, other)| one == other).count()
    };
    let around = |text: &str| {
        let around = text.chars().skip(at.saturating_sub(SHOWN));
        around.take(2 * SHOWN).collect()
    };
    (expected != found).then(|| Difference {
        at,
        expected: around(expected),
        found: around(found),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_of_two_strings_is_shown_with_what_is_around_it() {
        for (expected, found, shown) in [
            ("a=1", "a=1", None),
            ("a=1&b=2", "a=1&b=3", Some((6, "a=1&b=2", "a=1&b=3"))),
            ("a=1", "a=1&", Some((3, "a=1", "a=1&"))),
            ("é=1", "é", Some((1, "é=1", "é"))),
        ] {
            let difference = difference(expected, found);
            let parts = difference
                .as_ref()
                .map(|one| (one.at, &*one.expected, &*one.found));
            assert_eq!(parts, shown, "{found}");
        }
    }

    #[test]
    fn a_request_is_signed_anew_without_what_signed_it_before() {
        for (pairs, expected) in [
            ("", ""),
            ("time=1&sign=2", ""),
            ("a=1&time=1&&b=%20&sign=2", "a=1&b=%20"),
            ("signs=1&timely", "signs=1&timely"),
        ] {
            assert_eq!(unsigned(pairs), expected, "{pairs}");
        }
    }
}
