//! Examines a request for a person: the steps of [`receive`](mod@super::receive), each noted, without a backend. Nothing of it is
//! counted or remembered.

use std::{net::Ipv4Addr, sync::Arc};

use serde::Serialize;
use signpost_protocol::{param::Params, sign::BodyHash};

use super::{
    Gateway,
    accepted::Outgoing,
    receive::{choose_route, find_app, judge, read_form, refuse_upgrade, wanted},
    request::Received,
};
use crate::{
    config::AccountCheck,
    directory::apps::App,
    limits::spool::Body,
    phases::{
        admit::{Admitted, AppHeader, BodyKind, admit},
        callback::match_callback,
        cors::is_preflight,
        identify_account::identify_account,
        origin::Peer,
        own_page::match_own_page,
        read_params::read_params,
        verify::{HeaderSign, SignedBody, VerifiedRequest, Verifier},
    },
    request::{
        Head,
        client::{Client, ConnectionInfo},
        rejection::Rejection,
    },
};

/// What a step checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepName {
    /// Method, target, headers and the body's framing.
    Request,
    /// That it is a provider's redirect: it needs neither application nor signature.
    Callback,
    /// The application.
    App,
    /// The form, and the parameters of query and form.
    Params,
    /// The parameter `time`.
    Time,
    /// The parameter `sign`.
    Sign,
    /// The version and its route.
    Route,
    /// The user's credential, on routes that ask for one.
    Account,
}

/// What was found of a request.
#[derive(Default)]
pub struct Examined {
    /// The steps, each with its rejection. Beyond one that rejects, those that do not depend on it.
    pub steps: Vec<(StepName, Option<Rejection>)>,
    /// Its head, if that is valid.
    pub head: Option<Head>,
    /// Its form, if it was read.
    pub form: Option<Vec<u8>>,
    /// The body that a signature in headers signs, if the request is judged by one.
    pub in_headers: Option<Vec<u8>>,
    /// Its application.
    pub app: Option<Arc<App>>,
    /// The bytes that follow it.
    pub left: usize,
    /// Whether it has a credential, which was not checked.
    pub has_credential: bool,
    /// Whether it came to the last step.
    pub is_complete: bool,
}

impl Examined {
    /// Adds a step, and returns what it has led to.
    fn add<T>(&mut self, step: StepName, result: Result<T, Rejection>) -> Option<T> {
        let (value, rejection) = match result {
            Ok(value) => (Some(value), None),
            Err(rejection) => (None, Some(rejection)),
        };
        self.steps.push((step, rejection));
        value
    }
}

/// Examines a request whose head was read; `None` if it does not come to its end. If the application that it names cannot be
/// found, `assumed` is taken for what follows.
pub(crate) async fn examine<C: Client>(
    gateway: &Gateway,
    head: &Head,
    assumed: Option<&str>,
    client: &mut C,
    examined: &mut Examined,
) -> Option<()> {
    let policy = &gateway.policy;
    // No proxy is trusted: the headers of a request prove nothing about its way.
    let peer = Peer::new(&ConnectionInfo::plain(Ipv4Addr::LOCALHOST.into()), &[]);
    let protocol = client.protocol();
    let target = head.target();
    let mut request = Received::new(gateway, head.method(), target, head, &peer, protocol);
    // Without the version's prefix.
    let target = request.target;
    let is_preflight =
        policy.rules.cors.is_some() && is_preflight(head.method(), head.body(), head);
    if is_preflight || match_own_page(head, target).is_some() {
        return examined.add(StepName::Request, Ok(()));
    }
    let admitted = admit_and_end(gateway, head, &peer, &mut request, client).await;
    let mut admitted = examined.add(StepName::Request, admitted)?;
    let is_read = admitted.body.must_be_empty();
    let sign = policy.verifier.config();
    let verified = match match_callback(admitted.method, head.body(), target, head, sign) {
        Ok(None) => {
            let app = app_of(gateway, &admitted, assumed, &mut request, examined).await?;
            let judged = judge(gateway, &app, &mut admitted, &request);
            if let Err(rejection) = judged {
                return examined.add(StepName::Request, Err(rejection));
            }
            let body = read(gateway, &admitted, is_read, &mut request, client).await;
            verify(gateway, app, &admitted, &request, body, examined)?
        }
        callback => policy
            .verifier
            .pass_callback(examined.add(StepName::Callback, callback)??),
    };
    follow_route(gateway, verified, &admitted, &request, examined).await
}

/// The steps behind the verification.
async fn follow_route(
    gateway: &Gateway,
    verified: VerifiedRequest,
    admitted: &Admitted<'_>,
    request: &Received<'_, Head>,
    examined: &mut Examined,
) -> Option<()> {
    let (head, target) = (request.headers, request.target);
    let now = || gateway.state.clock.now();
    let routed = choose_route(gateway, verified, wanted(admitted, request), now);
    let routed = routed.map_err(|rejected| rejected.rejection);
    let routed = examined.add(StepName::Route, routed)?;
    if routed.route().backend().account.check != AccountCheck::None {
        examined.has_credential = admitted.authorization.is_some();
        if !examined.has_credential {
            let account = identify_account(&routed, admitted, head, None, now).await;
            examined.add(StepName::Account, account)?;
        }
    }
    let form = examined.form.clone().unwrap_or_default();
    let sign = gateway.policy.verifier.config();
    match Outgoing::new(&routed, admitted.method, target, Body::Form(form), sign) {
        Ok(_) => Some(()),
        Err(rejection) => examined.add(StepName::Route, Err(rejection)),
    }
}

/// Reads the body, of which a form is told apart.
async fn read<C: Client>(
    gateway: &Gateway,
    admitted: &Admitted<'_>,
    is_read: bool,
    request: &mut Received<'_, Head>,
    client: &mut C,
) -> Result<(Vec<u8>, bool), Rejection> {
    if is_read {
        return Ok((Vec::new(), true));
    }
    let is_form = !matches!(admitted.body, BodyKind::Other(_));
    Ok((
        read_form(gateway, admitted, request, client).await?,
        is_form,
    ))
}

/// What `receive` judges before it looks for the application.
async fn admit_and_end<'h, C: Client>(
    gateway: &Gateway,
    head: &'h Head,
    peer: &Peer,
    request: &mut Received<'_, Head>,
    client: &mut C,
) -> Result<Admitted<'h>, Rejection> {
    let rules = &gateway.policy.rules.admission;
    let admitted = admit(head.method(), head, head.body(), peer, rules)?;
    refuse_upgrade(&admitted, request.protocol)?;
    if admitted.body.must_be_empty() {
        read_form(gateway, &admitted, request, client).await?;
    }
    Ok(admitted)
}

async fn app_of(
    gateway: &Gateway,
    admitted: &Admitted<'_>,
    assumed: Option<&str>,
    request: &mut Received<'_, Head>,
    examined: &mut Examined,
) -> Option<Arc<App>> {
    let found = find_app(gateway, admitted.app, request).await;
    examined.app = match examined.add(StepName::App, found) {
        None => {
            let assumed = AppHeader::Ident(assumed?.parse().ok()?);
            find_app(gateway, assumed, request).await.ok()
        }
        found => found,
    };
    examined.app.clone()
}

fn verify(
    gateway: &Gateway,
    app: Arc<App>,
    admitted: &Admitted<'_>,
    request: &Received<'_, Head>,
    body: Result<(Vec<u8>, bool), Rejection>,
    examined: &mut Examined,
) -> Option<VerifiedRequest> {
    let (policy, method, target) = (&gateway.policy, admitted.method, request.target);
    let (body, is_form) = match body {
        Ok(body) => body,
        // A client that waits for its response does not close the connection here.
        Err(Rejection::ClientDisconnected) => {
            let limit = policy.bounds.timeouts.body;
            return examined.add(StepName::Params, Err(Rejection::RequestTimeout { limit }));
        }
        Err(rejection) => return examined.add(StepName::Params, Err(rejection)),
    };
    let mut params = Params::default();
    let form = if is_form { &body[..] } else { b"" };
    let filled = read_params(&mut params, target, form, &policy.bounds.requests);
    examined.add(StepName::Params, filled)?;
    examined.form = Some(form.to_vec());
    let now = gateway.state.clock.now().into();
    // With a memory of its own: the gateway's must not know a signature that was only examined.
    let verifier = Verifier::new(policy.verifier.config().clone());
    let hash = BodyHash::of(&body);
    let in_headers = HeaderSign {
        fields: admitted.signed(),
        body: match is_form {
            true => SignedBody::Bytes(&body),
            false => SignedBody::Hashed(&hash),
        },
    };
    if verifier.is_in_headers(&app, &in_headers) {
        examined.in_headers = Some(body.clone());
    }
    if !is_form
        && let Err(rejection) = verifier.check_before_body(&app, admitted.signed(), now)
        && !matches!(rejection, Rejection::TimeOutOfWindow { .. })
    {
        return examined.add(StepName::Sign, Err(rejection));
    }
    let headers = (request.headers, in_headers);
    if params.is_empty() && is_form && body.is_empty() && admitted.signed().are_absent() {
        let verified = verifier.verify(app, method, target, &params, headers, now);
        return examined.add(StepName::Sign, verified);
    }
    let [time, sign] = verifier.examine(&app, method, target, &params, headers, now);
    // What follows does not depend on the request's age: it is verified at its own time.
    let at = match &time {
        Err(Rejection::TimeOutOfWindow { time, .. }) => *time,
        _ => now,
    };
    examined.add(StepName::Time, time);
    examined.add(StepName::Sign, sign)?;
    verifier
        .verify(app, method, target, &params, headers, at)
        .ok()
}
