//! Sign Doctor: examines a request that a client has sent, step by step, by the phases that gateways run.
//!
//! | module | subject |
//! | --- | --- |
//! | [`paste`] | reads a request that a person has pasted |
//! | [`samples`] | the same request by each client library |
//! | [`signing`] | what is signed of it, and how it is right |
//! | [`string`] | the request of which only the string to sign is known |

pub mod paste;
pub mod samples;
mod signing;
pub mod string;

use std::{net::Ipv4Addr, sync::Arc};

use serde::{Serialize, Serializer};
use serde_json::json;
use signpost_kit::{clock::Timestamp, config::origin::Origin};
use signpost_protocol::{
    language::Language, param::Params, problem::Problem, request_id::RequestId,
    sign::canonical_for_display,
};
use signpost_proxy::{
    AdmissionRules, Admitted, App, AppDirectory, BodyLength, CheckedTarget, ConnectionInfo, Hint,
    Limits, Method, Peer, Rejection, Target, Verifier, Versions, admit, check_path, check_target,
    identify_app, match_callback, problem_of, read_params, rejection,
};
use utoipa::ToSchema;

pub(crate) use self::signing::{Difference, Param, Signed};
use self::{
    paste::Pasted,
    signing::{Signing, difference, signed_params},
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

/// A step.
#[derive(Serialize, ToSchema)]
pub struct Step {
    /// What is checked.
    pub step: StepName,
    /// What the client gets if it fails here; null if it is right.
    #[schema(required, value_type = Option<Object>)]
    #[serde(serialize_with = "without_id")]
    pub problem: Option<Problem>,
    /// The name of the mistake that explains it, as the access log has it; null if none was found.
    #[schema(required)]
    pub hint: Option<String>,
}

/// Leaves out the id of the request: it was sent to no gateway.
fn without_id<S: Serializer>(problem: &Option<Problem>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut problem = json!(problem);
    if let Some(members) = problem.as_object_mut() {
        members.remove("request_id");
    }
    problem.serialize(serializer)
}

/// What a step checks.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepName {
    /// Method, headers and body.
    Request,
    /// That it is a provider's redirect: it needs neither application nor signature, and no further step.
    Callback,
    /// The application.
    App,
    /// The parameters of query and form.
    Params,
    /// The parameter `time`.
    Time,
    /// The parameter `sign`.
    Sign,
}

/// The rules by which a request is examined.
pub struct Rules<'r> {
    /// Rules for admission.
    pub admission: &'r AdmissionRules,
    /// Verifies signatures.
    pub verifier: &'r Verifier,
    /// Limits of requests.
    pub limits: &'r Limits,
    /// The applications.
    pub apps: &'r AppDirectory,
    /// The versions.
    pub versions: &'r Versions,
    /// Where clients call the gateway.
    pub public_url: &'r Origin,
    /// The time of the examination.
    pub now: Timestamp,
    /// The language of problems.
    pub language: Language,
}

/// A request that is examined.
pub struct Patient<'p> {
    /// The rules by which it is examined.
    pub rules: &'p Rules<'p>,
    /// The request as a person has pasted it.
    pub pasted: &'p Pasted,
    /// The client's own string to sign.
    pub own: Option<String>,
    /// Whether it is signed anew for this application, as who has the key or may use it can have it.
    pub may_sign: &'p (dyn Fn(&App) -> bool + Sync),
}

impl Patient<'_> {
    /// What was found, and the application.
    pub async fn examine(&self) -> (Findings, Option<Arc<App>>) {
        let mut findings = Findings {
            method: self.pasted.method.clone(),
            path: self.target(&CheckedTarget::default()).path.to_owned(),
            steps: Vec::new(),
            params: Vec::new(),
            canonical: None,
            difference: None,
            signed: None,
        };
        let step = |step, result: Result<(), &Rejection>| Step {
            step,
            problem: result.err().and_then(|rejection| self.problem(rejection)),
            hint: result.err().and_then(hint_name),
        };
        let admitted = self.admit();
        let result = admitted.as_ref().map(drop);
        findings.steps.push(step(StepName::Request, result));
        let Ok((admitted, checked)) = admitted else {
            return (findings, None);
        };
        let target = self.target(&checked);
        let (verifier, method, body) = (
            self.rules.verifier,
            admitted.method,
            self.pasted.body.as_bytes(),
        );
        // The provider's redirect names no application, and needs no signature.
        let (body_length, sign) = (self.body_length(), verifier.config());
        let callback = match_callback(method, body_length, target, self.pasted, sign);
        if callback.as_ref().map_or(true, Option::is_some) {
            let result = callback.as_ref().map(drop);
            findings.steps.push(step(StepName::Callback, result));
            return (findings, None);
        }
        let app = self.find_app(&admitted, target).await;
        findings
            .steps
            .push(step(StepName::App, app.as_ref().map(drop)));
        let Ok(app) = app else {
            return (findings, None);
        };
        let mut params = Params::default();
        let filled = read_params(&mut params, target, body, self.rules.limits);
        findings
            .steps
            .push(step(StepName::Params, filled.as_ref().copied()));
        if filled.is_err() {
            return (findings, None);
        }
        let now = self.rules.now.into();
        // Without parameters there is nothing to examine but whether `always_signed` demands a signature.
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
        self.show_signing(&app, method, target, &params, &mut findings);
        (findings, Some(app))
    }

    fn target<'t>(&'t self, checked: &'t CheckedTarget) -> Target<'t> {
        let target = Target::parse(self.pasted.target.as_bytes());
        Target {
            unusual: checked.unusual.as_deref(),
            ..target.unwrap_or_default()
        }
    }

    fn admit(&self) -> Result<(Admitted<'_>, CheckedTarget), Rejection> {
        let rules = self.rules.admission;
        let limits = &rules.limits;
        let line = format!("GET {} HTTP/1.1\r\n", self.pasted.target);
        let checked = check_target(self.pasted.target.as_bytes(), limits)
            .map_err(|fault| rejection(limits, fault, line.as_bytes()))?;
        let connection = ConnectionInfo::plain(Ipv4Addr::LOCALHOST.into());
        let (method, body) = (self.pasted.method.as_bytes(), self.body_length());
        // No proxy is trusted: the headers of a pasted request prove nothing about its way.
        let peer = Peer::new(&connection, &[]);
        let admitted = admit(method, self.pasted, body, &peer, rules)?;
        if admitted.asks_upgrade {
            return Err(Rejection::UpgradeNotSupported);
        }
        let version = self.rules.versions.named(admitted.version);
        let version = version.unwrap_or(self.rules.versions.default());
        check_path(self.target(&checked), version)?;
        Ok((admitted, checked))
    }

    fn body_length(&self) -> BodyLength {
        match self.pasted.body.len() {
            0 => BodyLength::None,
            length => BodyLength::Known(length as u64),
        }
    }

    /// The application that the request names, if it can be found.
    pub async fn app(&self) -> Option<Arc<App>> {
        let (admitted, checked) = self.admit().ok()?;
        let target = self.target(&checked);
        self.find_app(&admitted, target).await.ok()
    }

    async fn find_app(
        &self,
        admitted: &Admitted<'_>,
        target: Target<'_>,
    ) -> Result<Arc<App>, Rejection> {
        let rules = self.rules;
        let paths = &rules.verifier.config().browser_paths;
        let names = &rules.admission.names;
        identify_app(admitted.app, target, paths, names, rules.apps).await
    }

    /// What the client of a rejected request gets.
    fn problem(&self, rejection: &Rejection) -> Option<Problem> {
        let (names, language) = (&self.rules.admission.names, self.rules.language);
        // The type of a problem needs an id; `without_id` removes it.
        let none = RequestId::from_bytes([0; 16]);
        problem_of(rejection, names, language, &none)
    }

    /// Shows what is signed, and how it is right.
    fn show_signing(
        &self,
        app: &App,
        method: Method,
        target: Target<'_>,
        params: &Params<'_>,
        findings: &mut Findings,
    ) {
        let profile = self.rules.verifier.profile_of(app);
        let canonical = canonical_for_display(profile, method.as_str(), target.path, params);
        let canonical = String::from_utf8_lossy(&canonical).into_owned();
        let own = self.own.as_deref().map(|own| without_keys(own, app));
        findings.difference = own.and_then(|own| difference(&canonical, &own));
        findings.params = signed_params(profile, params);
        findings.canonical = Some(canonical);
        findings.signed = (self.may_sign)(app).then(|| {
            let signing = Signing {
                names: &self.rules.admission.names,
                public_url: self.rules.public_url,
                profile,
                app,
            };
            signing.sign(self.pasted, method, target, self.rules.now)
        });
    }
}

/// A client's string, with [`KEY`] in place of the application's key, or of the one before.
pub fn without_keys(own: &str, app: &App) -> String {
    let previous = app.previous_key.as_ref().map(|previous| &previous.key);
    let keys = [Some(&app.key), previous].into_iter().flatten();
    keys.fold(own.to_owned(), |own, key| own.replace(key.expose(), KEY))
}

/// The name of the mistake that explains a rejection.
fn hint_name(rejection: &Rejection) -> Option<String> {
    rejection.hint().map(|hint| Hint::name(hint).into_owned())
}

#[cfg(test)]
mod tests;
