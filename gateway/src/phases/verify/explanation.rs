//! Explains mismatched signatures. Their number per second is limited, since each explanation costs many hashes.

use std::sync::atomic::{AtomicU64, Ordering};

use signpost_protocol::{
    param::Params,
    sign::{
        AppKey, SignTime,
        explain::{GivenSign, Slip, explain},
    },
};

use super::Verifier;
use crate::{
    directory::apps::App,
    request::{Method, Target},
};

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
    #[expect(
        clippy::too_many_arguments,
        reason = "a signature depends on all of them"
    )]
    pub(super) fn explain(
        &self,
        given: &GivenSign,
        app: &App,
        expired_key: Option<&AppKey>,
        method: Method,
        target: Target<'_>,
        params: &Params<'_>,
        now: SignTime,
    ) -> Option<Slip> {
        if !self.state.explanations.count(now) {
            return None;
        }
        let request = (method.as_str(), target.path);
        explain(
            given,
            self.profile_of(app),
            &app.key,
            expired_key,
            request,
            params,
        )
    }
}
