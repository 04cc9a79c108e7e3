//! Checks time, signature and replay; the only place that creates a [`VerifiedRequest`]. CONTRACT 3.

pub(crate) mod clock_skew;
mod explanation;
mod in_headers;
mod transition;

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use signpost_kit::metrics::cells::LabelCounters;
use signpost_protocol::{
    param::{DuplicatedParam, Param, Params},
    sign::{
        AppKey, ReplayPolicy, SIGN, Sign, SignProfile, SignTime, TIME, canonical_for_client,
        explain::{Explanation, GivenSign, ShortText, Slip, explain_form},
        sign,
    },
};
use signpost_store::Store;

pub use self::in_headers::HeaderSign;
pub(crate) use self::in_headers::SignedBody;
use self::{
    clock_skew::ClockSkew, explanation::SearchLimit, in_headers::read_head_time,
    transition::Transition,
};
use super::callback::Callback;
use crate::{
    config::SignConfig,
    directory::apps::App,
    limits::replay::{
        ReplayInsertError, ReplayLimits, ReplayMemory,
        shared::{ShareError, ShareOutcome, SharedReplays, UsedSign},
    },
    request::{
        Headers, Method, Target,
        quotas::RequestLimit,
        rejection::{Canonical, Rejection},
    },
    wire::syntax::field::NameAndValue,
};

/// A request that may reach a backend; only this module creates one.
#[derive(Debug)]
pub struct VerifiedRequest(Verified);

#[derive(Debug)]
enum Verified {
    /// A request without parameters: its application is only a claim.
    Unsigned(Arc<App>),
    Signed {
        app: Arc<App>,
        signed: Signed,
    },
    Callback(Callback),
}

/// How a request is signed.
#[derive(Debug)]
struct Signed {
    in_headers: bool,
    /// The signature, until the replay memory of all gateways has it.
    unshared: Option<Box<UsedSign>>,
}

impl VerifiedRequest {
    /// The application of the request; `None` for a callback.
    #[must_use]
    pub fn app(&self) -> Option<&Arc<App>> {
        match &self.0 {
            Verified::Unsigned(app) | Verified::Signed { app, .. } => Some(app),
            Verified::Callback(_) => None,
        }
    }

    /// The application, if the request was signed with its key: nobody else can have sent it.
    #[must_use]
    pub(crate) fn signed_app(&self) -> Option<&Arc<App>> {
        match &self.0 {
            Verified::Signed { app, .. } => Some(app),
            Verified::Unsigned(_) | Verified::Callback(_) => None,
        }
    }

    /// Whether it has no parameters, and so no signature. A callback is not meant.
    #[must_use]
    pub(crate) const fn is_unsigned(&self) -> bool {
        matches!(self.0, Verified::Unsigned(_))
    }

    /// Whether its signature is in headers, which end here.
    #[must_use]
    pub(crate) const fn is_signed_in_headers(&self) -> bool {
        matches!(&self.0, Verified::Signed { signed, .. } if signed.in_headers)
    }

    /// Whether [`Verifier::share`] must accept its signature before it is forwarded.
    #[must_use]
    pub(crate) const fn is_unshared(&self) -> bool {
        matches!(&self.0, Verified::Signed { signed, .. } if signed.unshared.is_some())
    }

    /// The callback, if it is one.
    #[must_use]
    pub fn callback(&self) -> Option<&Callback> {
        match &self.0 {
            Verified::Unsigned(_) | Verified::Signed { .. } => None,
            Verified::Callback(callback) => Some(callback),
        }
    }

    /// The same, to say what is known of its version.
    pub(crate) const fn callback_mut(&mut self) -> Option<&mut Callback> {
        match &mut self.0 {
            Verified::Unsigned(_) | Verified::Signed { .. } => None,
            Verified::Callback(callback) => Some(callback),
        }
    }
}

/// Verifies requests by one configuration.
#[derive(Debug)]
pub struct Verifier {
    config: SignConfig,
    transition: Option<Transition>,
    /// Where the clocks of clients are observed; `None`: nowhere.
    clock_skew: Option<Arc<ClockSkew>>,
    state: Arc<VerifierState>,
}

/// What a signature depends on, beside the key.
#[derive(Clone, Copy)]
struct SignedRequest<'r, 'p> {
    app: &'r App,
    method: Method,
    target: Target<'r>,
    params: &'r Params<'p>,
    headers: HeaderSign<'r>,
    now: SignTime,
}

/// State that requests share, and that survives a reload.
#[derive(Debug, Default)]
struct VerifierState {
    replays: ReplayMemory,
    /// From the first signature on that all gateways must remember.
    shared_replays: OnceLock<SharedReplays>,
    shared: LabelCounters<ShareOutcome>,
    searches: SearchLimit,
}

/// A key of the application is among the parameters.
struct KeySent;

impl Verifier {
    /// Creates a verifier with an empty replay memory.
    #[must_use]
    pub fn new(config: SignConfig) -> Self {
        Self {
            config,
            transition: None,
            clock_skew: None,
            state: Arc::default(),
        }
    }

    /// The same verifier, which observes the clocks of clients there.
    #[must_use]
    pub(crate) fn observing(self, clock_skew: Arc<ClockSkew>) -> Self {
        let clock_skew = Some(clock_skew);
        Self { clock_skew, ..self }
    }

    /// Returns a verifier with another configuration, valid from `now` on, that shares this one's state. Requests that
    /// began under this configuration are verified within `in_flight`.
    #[must_use]
    pub fn with_config(&self, config: SignConfig, now: SignTime, in_flight: Duration) -> Self {
        let windows = (self.config.window, config.window);
        let transition = Transition::after(self.transition, windows, now, in_flight);
        Self {
            config,
            transition,
            clock_skew: None,
            state: Arc::clone(&self.state),
        }
    }

    /// The configuration of signatures.
    #[must_use]
    pub fn config(&self) -> &SignConfig {
        &self.config
    }

    /// Accepts a callback without a signature: its one-time `state` authenticates it, which the backend checks.
    #[must_use]
    pub(crate) fn pass_callback(&self, callback: Callback) -> VerifiedRequest {
        VerifiedRequest(Verified::Callback(callback))
    }

    /// Verifies a request of `app`. Without parameters it needs no signature, unless its path is always signed; `route`
    /// decides whether its backend takes it then.
    ///
    /// # Errors
    ///
    /// In this order: `time` (duplicate, missing, malformed, outside the window), `sign` (duplicate, missing,
    /// mismatched), replayed. If the request [is unshared](VerifiedRequest::is_unshared), another gateway may have
    /// accepted its signature.
    pub fn verify(
        &self,
        app: Arc<App>,
        method: Method,
        target: Target<'_>,
        params: &Params<'_>,
        (headers, in_headers): (&(impl Headers + ?Sized), HeaderSign<'_>),
        now: SignTime,
    ) -> Result<VerifiedRequest, Rejection> {
        let request = SignedRequest {
            app: &app,
            method,
            target,
            params,
            headers: in_headers,
            now,
        };
        match self.check(request) {
            Ok(Some(signed)) => Ok(VerifiedRequest(Verified::Signed { app, signed })),
            Ok(None) => Ok(VerifiedRequest(Verified::Unsigned(app))),
            Err(rejection) => {
                Err(self.explained(rejection, request, headers, || self.may_search(request)))
            }
        }
    }

    /// Inserts the signature of a client's request into the replay memory of all gateways, if it has to be there.
    ///
    /// # Errors
    ///
    /// Another gateway has accepted it; or the store is unavailable, and the configuration has no fallback.
    pub(crate) async fn share(
        &self,
        request: &mut VerifiedRequest,
        client: IpAddr,
        store: Option<&Store>,
    ) -> Result<(), Rejection> {
        let Verified::Signed { signed, .. } = &mut request.0 else {
            return Ok(());
        };
        let Some(sign) = signed.unshared.take() else {
            return Ok(());
        };
        let inserted = match store {
            Some(store) => {
                let shared = &self.state.shared_replays;
                let shared = shared.get_or_init(|| SharedReplays::start(store));
                shared.insert(*sign, client).await
            }
            None => Err(ShareError::NoAnswer),
        };
        self.judge_shared(inserted)
    }

    fn judge_shared(&self, inserted: Result<(), ShareError>) -> Result<(), Rejection> {
        self.state.shared.count(match inserted {
            Ok(()) => ShareOutcome::Accepted,
            Err(ShareError::Replayed) => ShareOutcome::Replayed,
            Err(ShareError::NoAnswer | ShareError::Lost) => ShareOutcome::Unavailable,
            Err(ShareError::Full) => ShareOutcome::Full,
        });
        match (inserted, self.config.has_replay_fallback) {
            (Ok(()), _) => Ok(()),
            (Err(ShareError::Replayed), _) => Err(Rejection::RequestReplayed),
            // A full queue has no fallback: clients could fill it in order to repeat a request.
            (Err(ShareError::NoAnswer | ShareError::Lost), true) => Ok(()),
            (Err(cause), _) => Err(Rejection::StoreUnavailable(Box::new(cause))),
        }
    }

    /// Checks all that a request must have. Returns how it is signed, if it is.
    fn check(&self, request: SignedRequest<'_, '_>) -> Result<Option<Signed>, Rejection> {
        let SignedRequest { app, params, .. } = request;
        let is_in_headers = self.is_in_headers(request.app, &request.headers);
        let is_absent = match is_in_headers {
            true => request.headers.fields.are_absent() && !request.headers.has_body(),
            false => true,
        };
        if params.is_empty() && is_absent {
            let target = request.target.compared();
            return if self.config.is_always_signed(request.method, target) {
                Err(Rejection::SignMissing(None))
            } else {
                Ok(None)
            };
        }
        let (time, now) = (time_of(request, is_in_headers)?, request.now);
        // The window first: a request that is too old costs no hash.
        let given = self
            .check_window(time, now)
            .and_then(|()| match is_in_headers {
                false => self.check_sign(request, || self.may_search(request)),
                true => self.check_head(request, || self.may_search(request)),
            });
        // Also of a rejected request: the clocks that are wrong are the ones to see.
        if let Some(clock_skew) = &self.clock_skew {
            clock_skew.observe(time, now, given.is_ok());
        }
        let given = given?;
        // Only after the signature: otherwise anyone could fill the memory of an application.
        let unshared = match self.profile_of(app).replay {
            ReplayPolicy::Reject => self.check_replay(app, &given, time, now)?,
            ReplayPolicy::Allow => None,
        };
        Ok(Some(Signed {
            in_headers: is_in_headers,
            unshared,
        }))
    }

    /// Checks time and signature, each by itself. Nothing is remembered of it, and a mistake is always searched for.
    pub(crate) fn examine(
        &self,
        app: &App,
        method: Method,
        target: Target<'_>,
        params: &Params<'_>,
        (headers, in_headers): (&(impl Headers + ?Sized), HeaderSign<'_>),
        now: SignTime,
    ) -> [Result<(), Rejection>; 2] {
        let request = SignedRequest {
            app,
            method,
            target,
            params,
            headers: in_headers,
            now,
        };
        let is_in_headers = self.is_in_headers(app, &in_headers);
        let time = time_of(request, is_in_headers);
        let time = time.and_then(|time| self.check_window(time, now));
        let sign = match is_in_headers {
            false => self.check_sign(request, || true),
            true => self.check_head(request, || true),
        };
        [time, sign.map(drop)].map(|checked| {
            checked.map_err(|rejection| self.explained(rejection, request, headers, || true))
        })
    }

    /// The application's sign profile, or the gateway's.
    pub fn profile_of<'a>(&'a self, app: &'a App) -> &'a SignProfile {
        app.profile.as_deref().unwrap_or(&self.config.profile)
    }

    fn check_window(&self, time: SignTime, now: SignTime) -> Result<(), Rejection> {
        let window = self.config.window;
        if window.contains(time, now) {
            Ok(())
        } else {
            Err(Rejection::TimeOutOfWindow { time, now, window })
        }
    }

    /// Checks the signature, and returns it. If it does not match, `may_search` is asked whether to look for the mistake.
    fn check_sign(
        &self,
        request: SignedRequest<'_, '_>,
        may_search: impl FnOnce() -> bool,
    ) -> Result<Sign, Rejection> {
        let SignedRequest { app, params, .. } = request;
        let sent = single(params, SIGN)?.ok_or(Rejection::SignMissing(None))?;
        let digits = sent.value();
        let Some(given) = Sign::from_hex(&digits) else {
            // Not in the form of a supported algorithm, but perhaps of one that clients use by mistake.
            let explanation = match GivenSign::new(&digits) {
                Some(given) => self.explain(&given, None, request, may_search),
                None if may_search() => explain_form(self.profile_of(app).algorithm),
                None => return Err(explain_form(self.profile_of(app).algorithm).into()),
            };
            return Err(self.mismatch(explanation, request));
        };
        let (profile, method, path) = (
            self.profile_of(app),
            request.method.as_str(),
            request.target.path,
        );
        let matches = |key: &AppKey| sign(profile, key, method, path, params).matches(&given);
        // A key whose overlap has ended verifies nothing, but it may be the mistake that the hint names.
        let (overlapping, expired) = match &app.previous_key {
            Some(previous) if previous.until >= request.now => (Some(&previous.key), None),
            Some(previous) => (None, Some(&previous.key)),
            None => (None, None),
        };
        // The current key first: soon all clients have it.
        if matches(&app.key) || overlapping.is_some_and(matches) {
            return Ok(given);
        }
        let explanation = self.explain(&GivenSign::from(given), expired, request, may_search);
        Err(self.mismatch(explanation, request))
    }

    /// The rejection of a signature that does not match. A key that was sent is worse than that.
    fn mismatch(&self, explanation: Explanation, request: SignedRequest<'_, '_>) -> Rejection {
        // Within the bounds of searches: anyone can send any number of wrong signatures.
        if matches!(explanation.slip, Slip::NotSearched | Slip::TooLarge) {
            return explanation.into();
        }
        match self.shown(request) {
            Err(KeySent) => Explanation::from(Slip::KeySent).into(),
            Ok(canonical) => {
                let canonical = canonical.filter(|_| self.config.shows_canonical);
                let canonical = canonical.map(|canonical| Canonical(canonical).into());
                Rejection::SignMismatch(explanation.into(), canonical)
            }
        }
    }

    /// The canonical string for the client, unless it has sent a key of its application. None for a weak key: whether the
    /// request has it would let a stranger try thousands at once.
    fn shown(&self, request: SignedRequest<'_, '_>) -> Result<Option<String>, KeySent> {
        let SignedRequest { app, params, .. } = request;
        let keys: Vec<_> = app.keys().collect();
        if keys.iter().any(|key| key.check_strength().is_err()) {
            return Ok(None);
        }
        let target = (request.method.as_str(), request.target.path);
        let canonical = canonical_for_client(self.profile_of(app), target, params, &keys);
        canonical.map(Some).ok_or(KeySent)
    }

    /// Adds to the rejection of a request without `time` or `sign` how it was sent instead. Whether a key was sent is
    /// looked up within the bounds of searches.
    fn explained(
        &self,
        mut rejection: Rejection,
        request: SignedRequest<'_, '_>,
        headers: &(impl Headers + ?Sized),
        may_search: impl FnOnce() -> bool,
    ) -> Rejection {
        let Some((name, hint)) = rejection.missing() else {
            return rejection;
        };
        let is_in_headers = self.is_in_headers(request.app, &request.headers);
        let mut params = request.params.iter();
        let misnamed = params.find(|param| means(name, param.key()));
        if is_in_headers {
            let slip = match misnamed {
                Some(_) => Slip::InParameters(name),
                None => Slip::HeadersMissing,
            };
            hint.get_or_insert_with(|| Box::new(slip.into()));
            return rejection;
        }
        let is_header = |(field, _): NameAndValue<'_>| {
            let mut words = field.rsplit(|byte| *byte == b'-');
            words.next().is_some_and(|word| means(name, word))
        };
        let is_key_sent = may_search() && self.shown(request).is_err();
        let slip = if is_key_sent {
            Slip::KeySent
        } else if let Some(param) = misnamed {
            Slip::Misnamed(ShortText::new(param.key()))
        } else if headers.each().any(is_header) {
            Slip::InHeader(name)
        } else {
            return rejection;
        };
        *hint = Some(Box::new(slip.into()));
        rejection
    }

    /// The number of signatures in the replay memory.
    #[must_use]
    pub(crate) fn stored_signatures(&self) -> usize {
        self.state.replays.stored()
    }

    /// What became of signatures in the replay memory of all gateways.
    #[must_use]
    pub(crate) fn shared_signatures(&self) -> &LabelCounters<ShareOutcome> {
        &self.state.shared
    }

    /// Inserts a signature into this gateway's memory. Returns it if all gateways must remember it.
    fn check_replay(
        &self,
        app: &App,
        sign: &Sign,
        time: SignTime,
        now: SignTime,
    ) -> Result<Option<Box<UsedSign>>, Rejection> {
        let window = self.config.window;
        if let Some(window) = self.transition.and_then(|rule| rule.window_of(time))
            && !window.contains(time, now)
        {
            return Err(Rejection::TimeOutOfWindow { time, now, window });
        }
        let limits = ReplayLimits {
            window,
            entries_per_app: self.config.replay_entries,
        };
        let inserted = self.state.replays.insert(app.id, sign, time, limits, now);
        inserted.map_err(|error| match error {
            ReplayInsertError::Replayed => Rejection::RequestReplayed,
            ReplayInsertError::Full { until_room } => Rejection::RateLimited {
                limit: RequestLimit::ReplayMemory,
                retry_after: until_room,
                quota: None,
            },
        })?;
        let used = || Box::new(UsedSign::new(app.id, sign, time, window));
        Ok(self.config.shares_replays.then(used))
    }
}

/// The time of a request, from where its signature is.
fn time_of(request: SignedRequest<'_, '_>, is_in_headers: bool) -> Result<SignTime, Rejection> {
    match is_in_headers {
        false => read_time(request.params),
        true => read_head_time(request.headers.fields),
    }
}

fn read_time(params: &Params<'_>) -> Result<SignTime, Rejection> {
    let given = single(params, TIME)?.ok_or(Rejection::TimeMissing(None))?;
    SignTime::try_from(&*given.value()).map_err(|error| Rejection::TimeInvalid { slip: error.slip })
}

/// Whether a parameter or a header with this name was meant to be `time`, or `sign`.
fn means(name: &str, sent: &[u8]) -> bool {
    const TIMES: [&str; 5] = ["time", "timestamp", "ts", "t", "_time"];
    const SIGNS: [&str; 5] = ["sign", "signature", "sig", "_sign", "mac"];
    let sent = String::from_utf8_lossy(sent).to_lowercase();
    let sent = sent.replace("amp;", "").replace("[]", "");
    let names = if name == TIME { TIMES } else { SIGNS };
    names.contains(&&*sent)
}

fn single<'p, 'a>(
    params: &'p Params<'a>,
    name: &'static str,
) -> Result<Option<&'p Param<'a>>, Rejection> {
    params
        .single(name)
        .map_err(|DuplicatedParam| Rejection::ParamDuplicated { name })
}

#[cfg(test)]
mod tests;
