//! Logins and calls to providers, by provider.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use signpost_kit::{
    label_enum,
    metrics::cells::{Buckets, Counters, Histogram},
};

use crate::{
    config::ProviderName,
    error::LoginError,
    records::logins::{FailureReason, Mode},
};

/// How logins end. Problem codes beyond these are `other`.
pub(super) const OUTCOMES: [&str; 8] = [
    SUCCESS,
    DENIED,
    "provider_failed",
    "provider_timeout",
    "login_expired",
    "store_unavailable",
    "internal",
    OTHER,
];

const SUCCESS: &str = "success";
const DENIED: &str = "denied";
pub(super) const OTHER: &str = "other";

/// All providers that a configuration of this process has had.
#[derive(Debug, Default)]
pub(crate) struct Providers {
    known: Mutex<BTreeMap<ProviderName, Arc<ProviderMetrics>>>,
    /// The logins of providers that another process' configuration has.
    other: Arc<ProviderMetrics>,
}

impl Providers {
    /// The counters of a configured provider: new ones if no configuration has had it before.
    pub(crate) fn register(&self, name: &ProviderName) -> Arc<ProviderMetrics> {
        let mut known = self.lock();
        Arc::clone(known.entry(name.clone()).or_default())
    }

    /// The counters of a login's provider.
    pub(crate) fn of(&self, name: &ProviderName) -> Arc<ProviderMetrics> {
        Arc::clone(self.lock().get(name).unwrap_or(&self.other))
    }

    /// All configured providers so far, by name.
    pub(super) fn all(&self) -> Vec<(ProviderName, Arc<ProviderMetrics>)> {
        let known = self.lock();
        let all = known
            .iter()
            .map(|(name, one)| (name.clone(), Arc::clone(one)));
        all.collect()
    }

    /// All others.
    pub(super) fn other(&self) -> &ProviderMetrics {
        &self.other
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ProviderName, Arc<ProviderMetrics>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The logins and calls of a provider.
#[derive(Debug)]
pub(crate) struct ProviderMetrics {
    /// By mode.
    begun: Counters,
    /// By mode and outcome.
    finished: Counters,
    /// By call and result.
    calls: Vec<Histogram>,
    in_flight: AtomicUsize,
}

impl Default for ProviderMetrics {
    fn default() -> Self {
        let calls = CallKind::ALL.len() * CallResult::ALL.len();
        Self {
            begun: Counters::new(LoginMode::ALL.len()),
            finished: Counters::new(LoginMode::ALL.len() * OUTCOMES.len()),
            calls: (0..calls)
                .map(|_| Histogram::new(Buckets::DURATION))
                .collect(),
            in_flight: AtomicUsize::new(0),
        }
    }
}

impl ProviderMetrics {
    /// Counts a login that was begun.
    pub(crate) fn count_begun(&self, mode: LoginMode) {
        self.begun.add(mode as usize, 1);
    }

    /// Counts a login that ended.
    pub(crate) fn count_finished(&self, mode: LoginMode, outcome: LoginOutcome) {
        let index = mode as usize * OUTCOMES.len() + outcome.0;
        self.finished.add(index, 1);
    }

    /// Measures a call. If it is aborted, its result is a timeout.
    pub(crate) async fn measure<T, E>(
        &self,
        kind: CallKind,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut running = RunningCall::begin(self, kind);
        let done = call.await;
        running.result = match done {
            Ok(_) => CallResult::Success,
            Err(_) => CallResult::Failure,
        };
        done
    }

    /// The number of logins that were begun.
    pub(super) fn begun(&self, mode: LoginMode) -> u64 {
        self.begun.value(mode as usize)
    }

    /// The number of logins that ended.
    pub(super) fn finished(&self, mode: LoginMode, outcome: usize) -> u64 {
        self.finished
            .value(mode as usize * OUTCOMES.len() + outcome)
    }

    /// The durations of calls.
    pub(super) fn calls(&self, kind: CallKind, result: CallResult) -> &Histogram {
        &self.calls[kind as usize * CallResult::ALL.len() + result as usize]
    }

    /// The number of calls in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

label_enum! {
    /// How a login's outcome is delivered: the label `mode`.
    pub(crate) enum LoginMode {
        Polling = "polling",
        Redirect = "redirect",
    }
}

impl From<&Mode> for LoginMode {
    fn from(mode: &Mode) -> Self {
        match mode {
            Mode::Polling { .. } => Self::Polling,
            Mode::Redirect { .. } => Self::Redirect,
        }
    }
}

/// How a login ended: an index of [`OUTCOMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoginOutcome(usize);

impl LoginOutcome {
    /// The user is logged in.
    pub(crate) const SUCCESS: Self = Self(0);

    fn named(name: &str) -> Self {
        let index = OUTCOMES.iter().position(|outcome| *outcome == name);
        Self(index.unwrap_or(OUTCOMES.len() - 1))
    }
}

impl From<FailureReason> for LoginOutcome {
    fn from(reason: FailureReason) -> Self {
        Self::named(match reason {
            FailureReason::AccessDenied => DENIED,
            FailureReason::ProviderFailed | FailureReason::ProviderTimeout => reason.as_str(),
        })
    }
}

impl From<&LoginError> for LoginOutcome {
    fn from(error: &LoginError) -> Self {
        Self::named(error.code())
    }
}

label_enum! {
    /// The kind of a call to a provider: the label `call`.
    pub(crate) enum CallKind {
        /// The exchange of the code.
        Token = "token",
        /// The request for the profile.
        User = "user",
    }
}

label_enum! {
    /// How a call ended: the label `result`.
    pub(super) enum CallResult {
        Success = "success",
        Failure = "failure",
        Timeout = "timeout",
    }
}

/// A call in flight, until this is dropped.
struct RunningCall<'p> {
    provider: &'p ProviderMetrics,
    kind: CallKind,
    begun_at: Instant,
    result: CallResult,
}

impl<'p> RunningCall<'p> {
    fn begin(provider: &'p ProviderMetrics, kind: CallKind) -> Self {
        provider.in_flight.fetch_add(1, Ordering::Relaxed);
        Self {
            provider,
            kind,
            begun_at: Instant::now(),
            result: CallResult::Timeout,
        }
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.provider.in_flight.fetch_sub(1, Ordering::Relaxed);
        let histogram = self.provider.calls(self.kind, self.result);
        histogram.observe_duration(self.begun_at.elapsed());
    }
}
