//! Explains mismatched signatures. Their number per second is limited, since each explanation costs many hashes.

use std::sync::atomic::{AtomicU64, Ordering};

use signpost_protocol::sign::{
    AppKey, SignTime,
    explain::{GivenSign, Slip, explain},
};

use super::{SignedRequest, Verifier};

/// Limit of explained mismatches per second: each costs about thirty hashes.
pub(super) const MAX_EXPLANATIONS_PER_SECOND: u64 = 50;

/// Limits the explanations: the second (UTC) of the last one, times 2^16, plus their number in it.
#[derive(Debug, Default)]
pub(super) struct ExplanationLimit(AtomicU64);

impl ExplanationLimit {
    /// Counts an explanation; `false` if no further one is allowed in this second.
    fn count(&self, now: SignTime) -> bool {
        let second = (now.as_millis() / 1000) << 16;
        let count_one = |last: u64| {
            let count = if last & !0xffff == second {
                last & 0xffff
            } else {
                0
            };
            (count < MAX_EXPLANATIONS_PER_SECOND).then_some(second | (count + 1))
        };
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, count_one)
            .is_ok()
    }
}

impl Verifier {
    /// The mistake that explains a mismatched signature, if one is found.
    pub(super) fn explain(
        &self,
        given: &GivenSign,
        expired_key: Option<&AppKey>,
        request: SignedRequest<'_, '_>,
    ) -> Option<Slip> {
        if !self.state.explanations.count(request.now) {
            return None;
        }
        let SignedRequest { app, params, .. } = request;
        let signed = (request.method.as_str(), request.target.path);
        let profile = self.profile_of(app);
        explain(given, profile, &app.key, expired_key, signed, params)
    }
}
