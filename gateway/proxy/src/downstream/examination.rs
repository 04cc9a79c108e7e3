//! Examines a request without its client and without a backend: its bytes pass the functions that a connection's bytes pass, in
//! the order of `serve/receive.rs`. Nothing of it is counted or remembered.

use std::{net::Ipv4Addr, num::NonZeroU32, sync::Arc};

use serde::Serialize;
use signpost_kit::clock::Timestamp;
use signpost_protocol::{credential::Credential, param::Params};
use tokio::{
    io::{join, sink},
    time::Instant,
};

use super::http1::{
    body::read_body,
    connection::read_at_once,
    head::ReadHead,
    stream::{ClientConnection, ReceiveOutcome},
};
use crate::{
    config::{AccountCheck, Limits, Timeouts, Versions},
    directory::apps::{App, directory::AppDirectory},
    phases::{
        admit::{AdmissionRules, Admitted, AppHeader, admit, refused_body},
        bridge::bridge,
        callback::match_callback,
        cors::is_preflight,
        identify_account::identify_account,
        identify_app::identify_app,
        origin::Peer,
        own_page::match_own_page,
        read_params::read_params,
        route::{RoutedRequest, Wanted, route},
        verify::{VerifiedRequest, Verifier},
    },
    request::{
        Head, Headers as _, Target,
        client::{BodyLimits, ConnectionInfo},
        rejection::Rejection,
    },
    wire::io::{SendLimits, Stream},
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

/// The rules by which requests are examined: those of one configuration.
pub struct Examiner<'r> {
    /// Rules for admission.
    pub admission: &'r AdmissionRules,
    /// Verifies signatures.
    pub verifier: &'r Verifier,
    /// Limits of requests.
    pub limits: &'r Limits,
    /// Timeouts, which an incomplete request would meet.
    pub timeouts: &'r Timeouts,
    /// The applications.
    pub apps: &'r AppDirectory,
    /// The versions.
    pub versions: &'r Versions,
    /// Whether pages of other origins may call, so that their preflights are answered.
    pub has_cors: bool,
    /// The time of the examination.
    pub now: Timestamp,
}

/// What was found of a request.
#[derive(Default)]
pub struct Examined {
    /// The steps, each with its rejection. Beyond one that rejects, those that do not depend on it.
    pub steps: Vec<(StepName, Option<Rejection>)>,
    /// Its head, if that is valid.
    pub head: Option<Head>,
    /// Its form.
    pub form: Vec<u8>,
    /// Its application.
    pub app: Option<Arc<App>>,
    /// The bytes that follow it.
    pub left: usize,
    /// Whether it has a credential that only the store can judge.
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

impl Examiner<'_> {
    /// Examines the request that these bytes begin with. If the application that it names cannot be found, `assumed` is taken
    /// for what follows.
    pub async fn examine(&self, sent: &[u8], assumed: Option<&str>) -> Examined {
        let mut examined = Examined::default();
        let send = SendLimits {
            timeout: self.timeouts.send,
            min_rate: NonZeroU32::MIN,
        };
        let mut connection = ClientConnection::new(join(sent, sink()), send);
        let read = read_at_once(&mut connection, &self.limits.head, self.timeouts.head).await;
        let read = match read {
            Ok(read) => read,
            Err(rejection) => {
                examined.steps.push((StepName::Request, Some(rejection)));
                return examined;
            }
        };
        let followed = self.follow(&read, &mut connection, assumed, &mut examined);
        examined.is_complete = followed.await.is_some();
        let has_form =
            |(step, rejection): &(_, Option<_>)| *step == StepName::Params && rejection.is_none();
        // Otherwise what follows the head may be the body.
        if examined.is_complete || examined.steps.iter().any(has_form) {
            let deadline = Instant::now() + self.timeouts.body;
            while connection.receive(deadline).await == ReceiveOutcome::Received {}
            examined.left = connection.ahead().len();
        }
        examined.head = Some(read.head);
        examined
    }

    /// The steps behind the head; `None` if they end early.
    async fn follow<S: Stream>(
        &self,
        read: &ReadHead,
        connection: &mut ClientConnection<S>,
        assumed: Option<&str>,
        examined: &mut Examined,
    ) -> Option<()> {
        let (head, target) = (&read.head, read.head.target());
        let is_preflight = self.has_cors && is_preflight(head.method(), head.body(), head);
        if is_preflight || match_own_page(head, target).is_some() {
            return examined.add(StepName::Request, Ok(()));
        }
        let admitted = self.admit(read, connection).await;
        let admitted = examined.add(StepName::Request, admitted)?;
        let sign = self.verifier.config();
        let verified = match match_callback(admitted.method, head.body(), target, head, sign) {
            Ok(None) => {
                let app = self.find_app(&admitted, target, assumed, examined).await?;
                examined.app = Some(Arc::clone(&app));
                let form = match admitted.must_be_empty {
                    true => Ok(Vec::new()),
                    false => self.read_form(&admitted, head, connection).await,
                };
                let form = match form {
                    Ok(form) => form,
                    Err(rejection) => return examined.add(StepName::Params, Err(rejection)),
                };
                let verified = self.verify(app, &admitted, target, &form, examined);
                examined.form = form;
                verified?
            }
            callback => {
                let callback = examined.add(StepName::Callback, callback)??;
                self.verifier.pass_callback(callback)
            }
        };
        let wanted = Wanted {
            version: admitted.version,
            method: admitted.method,
            target,
            client: admitted.origin.client,
        };
        let routed = route(verified, wanted, self.versions, || self.now, |_| true);
        let routed = routed.map_err(|unrouted| unrouted.rejection);
        let routed = examined.add(StepName::Route, routed)?;
        self.check_account(&routed, &admitted, head, examined)
            .await?;
        match bridge(&routed, admitted.method, target, &examined.form, sign) {
            Ok(_) => Some(()),
            Err(rejection) => examined.add(StepName::Route, Err(rejection)),
        }
    }

    async fn admit<'h, S: Stream>(
        &self,
        read: &'h ReadHead,
        connection: &mut ClientConnection<S>,
    ) -> Result<Admitted<'h>, Rejection> {
        let head = &read.head;
        // No proxy is trusted: the headers of a request prove nothing about its way.
        let peer = Peer::new(&ConnectionInfo::plain(Ipv4Addr::LOCALHOST.into()), &[]);
        let admitted = admit(head.method(), head, head.body(), &peer, self.admission)?;
        if admitted.asks_upgrade && !read.is_http_1_0 {
            return Err(Rejection::UpgradeNotSupported);
        }
        if admitted.must_be_empty {
            self.read_form(&admitted, head, connection).await?;
        }
        Ok(admitted)
    }

    async fn read_form<S: Stream>(
        &self,
        admitted: &Admitted<'_>,
        head: &Head,
        connection: &mut ClientConnection<S>,
    ) -> Result<Vec<u8>, Rejection> {
        let limit = self.timeouts.body;
        let limits = BodyLimits {
            bytes: if admitted.must_be_empty {
                0
            } else {
                self.limits.body
            },
            timeout: limit,
            min_rate: NonZeroU32::MIN,
        };
        match read_body(connection, head.body(), false, limits).await {
            Err(Rejection::BodyTooLarge { .. }) if admitted.must_be_empty => {
                Err(refused_body(admitted.method))
            }
            // A client that waits for its response does not close the connection here.
            Err(Rejection::ClientDisconnected) => Err(Rejection::RequestTimeout { limit }),
            form => form,
        }
    }

    async fn find_app(
        &self,
        admitted: &Admitted<'_>,
        target: Target<'_>,
        assumed: Option<&str>,
        examined: &mut Examined,
    ) -> Option<Arc<App>> {
        let paths = &self.verifier.config().browser_paths;
        let names = &self.admission.names;
        let find = |header| identify_app(header, target, paths, names, self.apps);
        let found = find(admitted.app).await;
        match examined.add(StepName::App, found) {
            Some(app) => Some(app),
            None => find(AppHeader::Ident(assumed?.parse().ok()?)).await.ok(),
        }
    }

    fn verify(
        &self,
        app: Arc<App>,
        admitted: &Admitted<'_>,
        target: Target<'_>,
        form: &[u8],
        examined: &mut Examined,
    ) -> Option<VerifiedRequest> {
        let mut params = Params::default();
        let filled = read_params(&mut params, target, form, self.limits);
        examined.add(StepName::Params, filled)?;
        let (method, now) = (admitted.method, self.now.into());
        // With a memory of its own: the gateway's must not know a signature that was only examined.
        let verifier = Verifier::new(self.verifier.config().clone());
        if params.is_empty() {
            let verified = verifier.verify(app, method, target, &params, now);
            return examined.add(StepName::Sign, verified);
        }
        let [time, sign] = verifier.examine(&app, method, target, &params, now);
        // What follows does not depend on the request's age: it is verified at its own time.
        let at = match &time {
            Err(Rejection::TimeOutOfWindow { time, .. }) => *time,
            _ => now,
        };
        examined.add(StepName::Time, time);
        examined.add(StepName::Sign, sign)?;
        verifier.verify(app, method, target, &params, at).ok()
    }

    async fn check_account(
        &self,
        routed: &RoutedRequest,
        admitted: &Admitted<'_>,
        head: &Head,
        examined: &mut Examined,
    ) -> Option<()> {
        if routed.route().backend().account.check == AccountCheck::None {
            return Some(());
        }
        let index = admitted.authorization.map(usize::from);
        let checked = match index.and_then(|index| head.each().nth(index)) {
            None => identify_account(routed, admitted, head, None, || self.now)
                .await
                .map(drop),
            Some((_, sent)) => {
                examined.has_credential = true;
                let credential = Credential::try_from(sent).map(drop);
                credential.map_err(|_| Rejection::AuthorizationMalformed)
            }
        };
        examined.add(StepName::Account, checked)
    }
}
