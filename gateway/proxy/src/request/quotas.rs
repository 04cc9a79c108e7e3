//! What rate limits leave to a request, and which of them rejected it.

use std::fmt::{self, Write as _};

use http::HeaderName;
use signpost_kit::{counted_label, label_enum, limits::Quota};
use signpost_protocol::header::{RATELIMIT, RATELIMIT_POLICY};
use smallvec::SmallVec;

use crate::wire::syntax::field::NameAndValue;

label_enum! {
    /// A limit above which requests are rejected with 429: the label `limit`, and the name in `RateLimit-Policy`.
    pub enum RequestLimit {
        /// Unsigned requests of a client's network.
        Unsigned = "unsigned",
        /// The limit of each client address.
        Address = "address",
        /// The limit of each application.
        Application = "app",
        /// A limit on a path.
        Path = "path",
        /// An application's signatures in the replay memory.
        ReplayMemory = "replay_memory",
    }
}

counted_label!(RequestLimit);

impl RequestLimit {
    /// The limits with a rate.
    pub(crate) const RATES: [Self; 4] =
        [Self::Unsigned, Self::Address, Self::Application, Self::Path];

    /// The limits that gateways on one store can share. Their responses say in `RateLimit` what is left.
    pub const SHARED: [Self; 3] = [Self::Address, Self::Application, Self::Path];
}

/// What the limits that counted a request leave: of its application, and of its application on its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quotas(pub [Option<(RequestLimit, Quota)>; 2]);

impl Quotas {
    /// What one limit leaves.
    pub(crate) const fn one(limit: RequestLimit, quota: Quota) -> Self {
        Self([Some((limit, quota)), None])
    }

    /// Writes the values of `RateLimit` and `RateLimit-Policy`. No allocation.
    pub(crate) fn to_fields(self) -> QuotaFields {
        let (mut policies, mut states) = (Text::default(), Text::default());
        for (index, (limit, quota)) in self.0.into_iter().flatten().enumerate() {
            let between = if index == 0 { "" } else { ", " };
            let (name, burst, remaining) = (limit.as_str(), quota.burst, quota.remaining);
            let seconds = |time: std::time::Duration| time.as_millis().div_ceil(1000);
            // `w` is at least 1, also where the burst is whole within a millisecond.
            let (window, whole) = (seconds(quota.window).max(1), seconds(quota.whole_after));
            // Writing into memory cannot fail.
            let _ = write!(policies, "{between}\"{name}\";q={burst};w={window}");
            let _ = write!(states, "{between}\"{name}\";r={remaining};t={whole}");
        }
        QuotaFields { policies, states }
    }
}

/// The fields `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10) of a response; none if no
/// limit counted the request.
#[derive(Debug, Default)]
pub(crate) struct QuotaFields {
    policies: Text,
    states: Text,
}

/// A field's value. Two policies with usual numbers fit without an allocation.
#[derive(Debug, Default)]
struct Text(SmallVec<[u8; 64]>);

impl QuotaFields {
    /// The fields.
    pub(crate) fn iter(&self) -> impl Iterator<Item = NameAndValue<'_>> {
        // Statics, since the fields borrow the names: a constant would be dropped here.
        static POLICY: HeaderName = RATELIMIT_POLICY;
        static STATE: HeaderName = RATELIMIT;
        let fields = [(&POLICY, &self.policies), (&STATE, &self.states)];
        let fields = fields.map(|(name, Text(value))| (name.as_str().as_bytes(), &value[..]));
        fields.into_iter().filter(|(_, value)| !value.is_empty())
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU32, time::Duration};

    use super::*;

    fn fields(quotas: Quotas) -> Vec<String> {
        let fields = quotas.to_fields();
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).unwrap().to_owned();
        let line = |(name, value)| format!("{}: {}", text(name), text(value));
        fields.iter().map(line).collect()
    }

    #[test]
    fn the_fields_name_each_policy_with_quota_window_remainder_and_time() {
        let quota = |burst, remaining, window, whole| Quota {
            burst: NonZeroU32::new(burst).unwrap(),
            remaining,
            window: Duration::from_millis(window),
            whole_after: Duration::from_millis(whole),
        };
        let app = (RequestLimit::Application, quota(200, 12, 2000, 1880));
        let path = (RequestLimit::Path, quota(20, 0, 100, 0));
        assert_eq!(
            fields(Quotas([Some(app), Some(path)])),
            [
                "ratelimit-policy: \"app\";q=200;w=2, \"path\";q=20;w=1",
                "ratelimit: \"app\";r=12;t=2, \"path\";r=0;t=0"
            ]
        );
        assert_eq!(
            fields(Quotas::one(RequestLimit::Address, quota(5, 1, 5000, 4001))),
            [
                "ratelimit-policy: \"address\";q=5;w=5",
                "ratelimit: \"address\";r=1;t=5"
            ]
        );
        assert_eq!(fields(Quotas::default()), [""; 0]);
    }
}
