//! Sign Doctor: examines a request that a client has sent, step by step, by the phases that gateways run.
//!
//! | module | subject |
//! | --- | --- |
//! | [`paste`] | reads a request that a person has pasted |
//! | [`samples`] | the same request by each client library |
//! | [`signing`] | what is signed of it, and how it is right |
//! | [`string`] | a client's request, rebuilt from its string to sign |

pub mod paste;
pub mod samples;
mod signing;
pub mod string;

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::json;
use signpost_protocol::{
    language::Language, param::Params, problem::Problem, request_id::RequestId,
    sign::canonical_for_display, text::text,
};
use signpost_proxy::{
    App, Examined, Gateway, Head, Headers as _, Hint, Method, Rejection, StepName, examine,
    problem_of,
};
use utoipa::ToSchema;

pub(crate) use self::signing::{Difference, Param, Signed};
use self::{
    paste::{Pasted, origin},
    signing::{Signing, difference, signed_params, signed_text},
};

/// Stands for the key in a canonical string.
pub const KEY: &str = "<APP_KEY>";

/// What was found.
#[derive(Serialize, ToSchema)]
pub struct Findings {
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The steps, in the order in which the gateway makes them. What follows a failed one may be missing.
    pub steps: Vec<Step>,
    /// What is no fault: what was assumed, left out, or could not be checked.
    pub remarks: Vec<Remark>,
    /// The parameters as they are read, in the order in which they are signed.
    pub params: Vec<Param>,
    /// The string to sign, with `<APP_KEY>` in place of the key; null if it did not come so far.
    #[schema(required)]
    pub canonical: Option<String>,
    /// Where the client's own string begins to differ; null if none was given, or both are the same.
    #[schema(required)]
    pub difference: Option<Difference>,
    /// The same request with the present time and the right signature; null for who may not sign.
    #[schema(required)]
    pub signed: Option<Signed>,
}

impl Findings {
    /// Whether a step is so.
    pub fn has(&self, state: StepState) -> bool {
        self.steps.iter().any(|step| step.state == state)
    }
}

/// A step.
#[derive(Serialize, ToSchema)]
pub struct Step {
    /// What is checked.
    pub step: StepName,
    /// What was found.
    pub state: StepState,
    /// What the client gets if it fails here; null if it is right, or gets a 400 without a body.
    #[schema(required, value_type = Option<Object>)]
    #[serde(serialize_with = "without_id")]
    pub problem: Option<Problem>,
    /// The name of the mistake that explains it, as the access log has it; null if none was found.
    #[schema(required)]
    pub hint: Option<String>,
}

/// What a step has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// It is right.
    Ok,
    /// It is wrong.
    Wrong,
    /// It is right but for its age: sent now it would be rejected, and that is no fault.
    Old,
}

/// A remark.
#[derive(Serialize, ToSchema)]
pub struct Remark {
    /// Its stable name.
    pub code: &'static str,
    /// Its text.
    pub text: String,
}

/// Leaves out the id of the request: it was sent to no gateway.
fn without_id<S: Serializer>(problem: &Option<Problem>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut problem = json!(problem);
    if let Some(members) = problem.as_object_mut() {
        members.remove("request_id");
    }
    problem.serialize(serializer)
}

/// A request that is examined.
pub struct Patient<'p> {
    /// The gateway by whose rules it is examined.
    pub gateway: &'p Gateway,
    /// The language of problems and remarks.
    pub language: Language,
    /// The request as a person has pasted it.
    pub pasted: Pasted,
    /// The ident of the application, which was given beside it.
    pub app: Option<&'p str>,
    /// The client's own string to sign.
    pub own: Option<String>,
    /// Whether it is signed anew for this application, as who has the key or may use it can have it.
    pub may_sign: &'p (dyn Fn(&App) -> bool + Sync),
}

impl Patient<'_> {
    /// What was found, and the application.
    pub async fn examine(mut self) -> (Findings, Option<Arc<App>>) {
        let rules = &self.gateway.policy.rules;
        self.pasted.complete(&rules.public_url);
        if let Some(app) = self.app.filter(|_| self.pasted.is_bare) {
            let names = &rules.admission.names;
            self.pasted.insert(&names.spelled(&names.app), app);
        }
        let mut examined = examine(self.gateway, self.pasted.text.as_bytes(), self.app).await;
        let is_unseen = |(step, rejection): &mut (StepName, Option<Rejection>)| {
            let is_cut = matches!(rejection, Some(Rejection::RequestTimeout { .. }));
            is_cut && *step == StepName::Params
        };
        let hides_body = self.pasted.hides_body && examined.steps.pop_if(is_unseen).is_some();
        let steps = examined.steps.iter();
        let steps = steps.map(|(step, rejection)| self.step(*step, rejection.as_ref()));
        let (method, path) = self.pasted.method_and_path();
        let mut findings = Findings {
            method,
            path,
            steps: steps.collect(),
            remarks: self.remarks(&examined, hides_body),
            params: Vec::new(),
            canonical: None,
            difference: None,
            signed: None,
        };
        let read = (&examined.app, &examined.head, &examined.form);
        if let (Some(app), Some(head), Some(form)) = read {
            let content = (&form[..], examined.in_headers.as_deref());
            self.show_signing(app, head, content, &mut findings);
        }
        (findings, examined.app)
    }

    fn step(&self, step: StepName, rejection: Option<&Rejection>) -> Step {
        let state = match rejection {
            None => StepState::Ok,
            Some(Rejection::TimeOutOfWindow { time, now, .. }) if time < now => StepState::Old,
            Some(_) => StepState::Wrong,
        };
        let problem = rejection.and_then(|rejection| {
            // The type of a problem needs an id; `without_id` removes it.
            let (names, none) = (
                &self.gateway.policy.rules.admission.names,
                RequestId::from_bytes([0; 16]),
            );
            problem_of(rejection, names, self.language, &none)
        });
        let hint = rejection.and_then(Rejection::hint);
        let hint = hint.map(|hint| Hint::name(hint).into_owned());
        Step {
            step,
            state,
            problem,
            hint,
        }
    }

    /// What is no fault.
    fn remarks(&self, examined: &Examined, is_body_unseen: bool) -> Vec<Remark> {
        let mut noticed = self.pasted.noticed.clone();
        let names = &self.gateway.policy.rules.admission.names;
        let sent = examined
            .head
            .as_ref()
            .and_then(|head| header(head, names.app.as_str()));
        if let Some(app) = self.app.filter(|app| sent.is_some_and(|sent| sent != *app)) {
            noticed.push(("doctor_other_app", app.to_owned()));
        }
        for (_, rejection) in &examined.steps {
            match rejection {
                Some(Rejection::NotHttp(why)) => {
                    noticed.push(("doctor_not_http", (*why).to_owned()))
                }
                Some(Rejection::TimeOutOfWindow { time, now, .. }) if time < now => {
                    noticed.push(("doctor_old", age(now.as_millis() - time.as_millis())));
                }
                _ => {}
            }
        }
        let text_of = &self.pasted.text;
        let rest = &text_of.as_bytes()[text_of.len().saturating_sub(examined.left)..];
        // An editor adds line ends.
        let rest = rest.trim_ascii_end().len();
        let none = String::new;
        noticed.extend((rest > 0).then(|| ("doctor_left", rest.to_string())));
        noticed.extend(is_body_unseen.then(|| ("doctor_body", none())));
        let is_cut = !examined.is_complete && !is_body_unseen;
        noticed.extend(is_cut.then(|| ("doctor_unreached", none())));
        noticed.extend(
            examined
                .has_credential
                .then(|| ("doctor_credential", none())),
        );
        noticed.push(("doctor_unchecked", none()));
        let remark = |(code, what): (&'static str, String)| Remark {
            code: code.trim_start_matches("doctor_"),
            text: text(self.language, code, &[("what", &what)]),
        };
        noticed.into_iter().map(remark).collect()
    }

    /// Shows what is signed, and how it is right.
    fn show_signing(
        &self,
        app: &App,
        head: &Head,
        (form, in_headers): (&[u8], Option<&[u8]>),
        findings: &mut Findings,
    ) {
        let (target, policy) = (head.target(), &self.gateway.policy);
        let Some(method) = Method::from_bytes(head.method()) else {
            return;
        };
        let params = Params::parse(target.query.as_bytes(), form, usize::MAX).unwrap_or_default();
        let profile = policy.verifier.profile_of(app);
        let canonical = match in_headers {
            None => {
                let path = target.path;
                let text = canonical_for_display(profile, method.as_str(), path, &params);
                String::from_utf8_lossy(&text).into_owned()
            }
            Some(body) => signed_text(&policy.rules.admission.names, profile, head, body),
        };
        let own = self.own.as_deref().map(|own| without_keys(own, app));
        findings.difference = own.and_then(|own| difference(&canonical, &own));
        if in_headers.is_none() {
            findings.params = signed_params(profile, &params);
        }
        findings.canonical = Some(canonical);
        let public_url = &policy.rules.public_url;
        findings.signed = (self.may_sign)(app).then(|| {
            let scheme = if public_url.is_https() {
                "https"
            } else {
                "http"
            };
            let of_host = || origin(scheme, std::str::from_utf8(head.host()).ok()?);
            let address = self.pasted.origin.clone().or_else(of_host);
            let signing = Signing {
                names: &policy.rules.admission.names,
                address: address.as_ref().unwrap_or(public_url),
                profile,
                app,
                head,
            };
            let now = self.gateway.state.clock.now();
            match in_headers {
                None => signing.sign(method, &String::from_utf8_lossy(form), now),
                Some(body) => signing.sign_in_headers(method, body, now),
            }
        });
    }
}

/// The value of the first header with this name.
fn header<'h>(head: &'h Head, name: &str) -> Option<&'h str> {
    let mut headers = head.each();
    let (_, value) = headers.find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))?;
    std::str::from_utf8(value).ok()
}

/// A duration in its largest unit.
fn age(millis: u64) -> String {
    match millis / 1000 {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// A client's string, with [`KEY`] in place of the application's key, or of the one before.
pub fn without_keys(own: &str, app: &App) -> String {
    let own = own.to_owned();
    app.keys()
        .fold(own, |own, key| own.replace(key.expose(), KEY))
}

#[cfg(test)]
mod tests;
