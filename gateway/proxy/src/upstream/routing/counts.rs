//! What the metrics show of a backend beside the state of its addresses. The counts outlive a configuration, as long as
//! it has a backend of this name.

use signpost_kit::{counted_label, label_enum, metrics::cells::LabelCounters};

/// What happened to one backend so far.
pub(crate) type BackendCounts = LabelCounters<BackendEvent>;

label_enum! {
    /// What happens to a backend. Its text is the label `cause` of failures, and `result` of health checks.
    pub enum BackendEvent {
        /// No connection was established, also because that took too long.
        Connect = "connect",
        /// The TLS handshake failed, or took too long.
        Tls = "tls",
        /// The connection was closed or reset.
        Reset = "reset",
        /// The backend did not accept the request, or did not answer, in time.
        Timeout = "timeout",
        /// The response is malformed.
        Malformed = "malformed",
        /// An address was ejected.
        Ejection = "ejection",
        /// A health check passed.
        PassedCheck = "passed",
        /// A health check failed.
        FailedCheck = "failed",
        /// A request was sent again.
        Retry = "retry",
    }
}

counted_label!(BackendEvent);

impl BackendEvent {
    /// Why an attempt to get a response failed.
    pub(crate) const FAILURES: [Self; 5] = [
        Self::Connect,
        Self::Tls,
        Self::Reset,
        Self::Timeout,
        Self::Malformed,
    ];
    /// The results of health checks.
    pub(crate) const CHECKS: [Self; 2] = [Self::PassedCheck, Self::FailedCheck];
}
