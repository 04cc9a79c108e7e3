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
    log::once_a_minute::OnceAMinute,
    metrics::cells::{Buckets, Counters, Histogram},
};

use crate::{
    config::ProviderName,
    error::LoginError,
    records::logins::{FailureReason, Mode},
};

/// The label of everything that has no label of its own.
pub(super) const OTHER: &str = "other";

/// All providers that a configuration of this process has had.
#[derive(Debug, Default)]
pub(crate) struct Providers {
    known: Mutex<BTreeMap<ProviderName, Arc<ProviderMetrics>>>,
    /// The logins of providers that another process' configuration has.
    pub(super) other: Arc<ProviderMetrics>,
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
        self.lock().clone().into_iter().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ProviderName, Arc<ProviderMetrics>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The logins and calls of a provider.
#[derive(Debug)]
pub(crate) struct ProviderMetrics {
    /// Begun logins by mode.
    begun: Counters,
    /// By mode and outcome.
    finished: Counters,
    /// By call and result.
    calls: Vec<Histogram>,
    in_flight: AtomicUsize,
    /// The log lines about logins that fail at the provider.
    pub(crate) failures: OnceAMinute,
    /// The log lines about errors of callbacks: a browser can send them, so they hide no other line.
    pub(crate) refusals: OnceAMinute,
    /// The log lines about users whose name the provider did not give.
    pub(crate) nameless: OnceAMinute,
}

impl Default for ProviderMetrics {
    fn default() -> Self {
        let histogram = || Histogram::new(Buckets::DURATION);
        let calls = CallKind::ALL.len() * CallResult::ALL.len();
        Self {
            begun: Counters::new(LoginMode::ALL.len()),
            finished: Counters::new(LoginMode::ALL.len() * LoginOutcome::ALL.len()),
            calls: std::iter::repeat_with(histogram).take(calls).collect(),
            in_flight: AtomicUsize::new(0),
            failures: OnceAMinute::new(),
            refusals: OnceAMinute::new(),
            nameless: OnceAMinute::new(),
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
        self.finished.add(finished_index(mode, outcome), 1);
    }

    /// Measures a call. If it is aborted, its result is a timeout.
    pub(crate) async fn measure<T, E>(
        &self,
        kind: CallKind,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let mut running = RunningCall {
            provider: self,
            kind,
            begun_at: Instant::now(),
            // The result of a call that is dropped: only its deadline, or a stop, does that.
            result: CallResult::Timeout,
        };
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
    pub(super) fn finished(&self, mode: LoginMode, outcome: LoginOutcome) -> u64 {
        self.finished.value(finished_index(mode, outcome))
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

fn finished_index(mode: LoginMode, outcome: LoginOutcome) -> usize {
    mode as usize * LoginOutcome::ALL.len() + outcome as usize
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

label_enum! {
    /// How a login ended: the label `outcome`. Problem codes beyond these are `other`.
    pub(crate) enum LoginOutcome {
        Success = "success",
        Denied = "denied",
        ProviderFailed = "provider_failed",
        ProviderTimeout = "provider_timeout",
        Expired = "login_expired",
        StoreUnavailable = "store_unavailable",
        Internal = "internal",
        Other = OTHER,
    }
}

impl From<FailureReason> for LoginOutcome {
    fn from(reason: FailureReason) -> Self {
        match reason {
            FailureReason::AccessDenied => Self::Denied,
            FailureReason::ProviderFailed => Self::ProviderFailed,
            FailureReason::ProviderTimeout => Self::ProviderTimeout,
        }
    }
}

impl From<&LoginError> for LoginOutcome {
    fn from(error: &LoginError) -> Self {
        Self::from_word(error.code()).unwrap_or(Self::Other)
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

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.provider.in_flight.fetch_sub(1, Ordering::Relaxed);
        let histogram = self.provider.calls(self.kind, self.result);
        histogram.observe_duration(self.begun_at.elapsed());
    }
}
