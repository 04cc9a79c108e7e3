//! Limits on what clients can start. CONTRACT 8.
//!
//! | what | limit |
//! | --- | --- |
//! | callbacks that call a provider, of browsers with the login's cookie | rate for each client network; an IPv6 /48 has a higher one |
//! | calls to providers in flight | number in total, and for each site |
//! | failed redirect logins that are stored | number in total for each `login_ttl` |
//! | polling logins, which are signed | rate for each application |
//!
//! Requests that wait for a login are limited by [`Waiters`].
//!
//! Each process counts for itself, in a fixed amount of memory. A flood from some addresses does not affect others. The
//! counts outlive a reload, also if it changes the limits.

mod held;
mod waiters;

use std::{
    net::IpAddr,
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use signpost_kit::limits::{Exceeded, Key, Network, Rate, RateTable, Subject, retry_after_seconds};
use signpost_protocol::app::AppId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::held::{Held, HeldValues};
pub(crate) use self::waiters::{Waiter, Waiters};
use crate::{config::LoginLimits, error::LoginError};

/// The number of the only rule of each table.
const RULE: u64 = 0;
/// A site gets at most one part in this many of the calls to providers in flight.
const SITE_SHARE: usize = 8;
/// How long a callback waits for a permit before it is rejected.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Failed redirect logins that are stored at once, so that second callbacks get `login_used`: 20 MB of rows.
const MAX_STORED_FAILURES: NonZeroU32 = NonZeroU32::new(50_000).expect("not zero");

/// All limits on what clients can start.
#[derive(Clone)]
pub(crate) struct Limits {
    starts: Limited,
    callbacks: Limited,
    stored_failures: Limited,
    provider_calls: Arc<ProviderCalls>,
}

/// A rate, and what was used of it, which outlives the rate.
#[derive(Clone)]
struct Limited {
    rate: Rate,
    used: Arc<RateTable>,
}

impl Limited {
    fn count(&self, subject: Subject, now: Instant) -> Result<(), Exceeded> {
        let key = Key {
            rule: RULE,
            subject,
        };
        self.used.count(&key, self.rate, now).map(drop)
    }
}

impl Limits {
    pub(crate) fn new(limits: LoginLimits, login_ttl: Duration, now: Instant) -> Self {
        let limited = |rate| Limited {
            rate,
            used: Arc::new(RateTable::new(now)),
        };
        Self {
            starts: limited(limits.starts),
            callbacks: limited(limits.callbacks),
            stored_failures: limited(stored_failures(login_ttl)),
            provider_calls: Arc::new(ProviderCalls::new(limits.provider_calls)),
        }
    }

    /// Returns limits with other values and the same counts.
    ///
    /// If the limit of calls to providers changes, new calls get new permits, and those in flight keep the old ones.
    /// Until these have ended, at most 10 s, there can be as many calls as both limits allow together.
    pub(crate) fn reloaded(&self, limits: LoginLimits, login_ttl: Duration) -> Self {
        let mut new = self.clone();
        new.starts.rate = limits.starts;
        new.callbacks.rate = limits.callbacks;
        new.stored_failures.rate = stored_failures(login_ttl);
        // Calls in flight keep their old permits, so for some seconds both limits together are the limit.
        if limits.provider_calls != self.provider_calls.limit {
            new.provider_calls = Arc::new(ProviderCalls::new(limits.provider_calls));
        }
        new
    }

    /// Counts a polling login of this application.
    ///
    /// # Errors
    ///
    /// [`LoginError::RateLimited`]: the application has exceeded its rate.
    pub(crate) fn count_start(&self, application: AppId, now: Instant) -> Result<(), LoginError> {
        let subject = Subject::Application(application.get());
        let counted = self.starts.count(subject, now);
        counted.map_err(|exceeded| rate_limited("starts", exceeded.retry_after))
    }

    /// Counts a callback of this client; its call to the provider must hold the permit.
    ///
    /// # Errors
    ///
    /// [`LoginError::RateLimited`]: too many callbacks of its network or site, or too many calls in flight.
    pub(crate) async fn count_callback(
        &self,
        client: IpAddr,
        now: Instant,
    ) -> Result<ProviderPermit, LoginError> {
        // First the rate: a flood must not fill the queue for permits.
        self.count_callback_without_calls(client, now)?;
        let permit = self.provider_calls.begin(Network::from_site(client)).await;
        permit.ok_or_else(|| rate_limited("provider_calls", Duration::ZERO))
    }

    /// Counts a callback of this client that calls no provider.
    ///
    /// # Errors
    ///
    /// [`LoginError::RateLimited`]: too many callbacks of its network or site.
    pub(crate) fn count_callback_without_calls(
        &self,
        client: IpAddr,
        now: Instant,
    ) -> Result<(), LoginError> {
        let Limited { rate, used } = &self.callbacks;
        let counted = used.count_client(RULE, client, *rate, now).map(drop);
        counted.map_err(|exceeded| rate_limited("callbacks", exceeded.retry_after))
    }

    /// Counts a failed redirect login; `false` if it must not be stored.
    pub(crate) fn count_failure(&self, now: Instant) -> bool {
        self.stored_failures.count(Subject::All, now).is_ok()
    }
}

/// The rate at which stored failures expire, with the limit as the burst.
fn stored_failures(login_ttl: Duration) -> Rate {
    let seconds = u32::try_from(login_ttl.as_secs()).unwrap_or(u32::MAX);
    let per_second = NonZeroU32::new(MAX_STORED_FAILURES.get() / seconds.max(1));
    Rate {
        per_second: per_second.unwrap_or(NonZeroU32::MIN),
        burst: MAX_STORED_FAILURES,
    }
}

/// The rejection by a limit, named as its keys of `[limits]` begin.
fn rate_limited(limit: &'static str, retry_after: Duration) -> LoginError {
    LoginError::RateLimited {
        limit,
        retry_after: retry_after_seconds(retry_after),
    }
}

/// The limits of calls to providers in flight: in total, and for each site, so that one site cannot use all. Callbacks
/// above a limit wait for up to [`PERMIT_TIMEOUT`], callbacks of one site in order of arrival.
struct ProviderCalls {
    limit: usize,
    total: Arc<Semaphore>,
    /// The permits of each site that has a call in flight or waiting.
    sites: HeldValues<Network, Semaphore>,
}

impl ProviderCalls {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            total: Arc::new(Semaphore::new(limit)),
            sites: HeldValues::default(),
        }
    }

    /// Waits for a permit; `None` after the timeout.
    async fn begin(&self, site: Network) -> Option<ProviderPermit> {
        let permits = || Semaphore::new(self.limit.div_ceil(SITE_SHARE));
        let site = self.sites.hold(site, usize::MAX, permits)?;
        let permits = async {
            // The site's permit first: a site that waits for its own must not hold one of all meanwhile.
            let of_site = Arc::clone(site.value()).acquire_owned().await.ok()?;
            let total = Arc::clone(&self.total).acquire_owned().await.ok()?;
            Some((of_site, total))
        };
        let permits = tokio::time::timeout(PERMIT_TIMEOUT, permits).await;
        Some(ProviderPermit {
            _permits: permits.ok()??,
            _site: site,
        })
    }
}

/// Permits one call to a provider; dropping it returns the permit.
pub(crate) struct ProviderPermit {
    _permits: (OwnedSemaphorePermit, OwnedSemaphorePermit),
    _site: Held<Network, Semaphore>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    const LOGIN_TTL: Duration = Duration::from_secs(600);

    fn settings(callbacks_burst: u32, provider_calls: usize) -> LoginLimits {
        let rate = |burst| Rate::new(1, burst).unwrap();
        LoginLimits {
            starts: rate(2),
            callbacks: rate(callbacks_burst),
            provider_calls,
            connections: 100,
        }
    }

    fn limits(callbacks_burst: u32, provider_calls: usize, now: Instant) -> Limits {
        Limits::new(settings(callbacks_burst, provider_calls), LOGIN_TTL, now)
    }

    #[tokio::test]
    async fn counts_outlive_a_change_of_limits() {
        let now = Instant::now();
        let old = limits(2, 100, now);
        let hers = client("192.0.2.1");
        for _ in 0..2 {
            assert!(old.count_callback(hers, now).await.is_ok());
            assert!(old.count_start(AppId::new(1), now).is_ok());
        }
        let new = old.reloaded(settings(3, 100), LOGIN_TTL);
        assert!(new.count_start(AppId::new(1), now).is_err());
        assert!(new.count_callback(hers, now).await.is_ok());
        assert!(new.count_callback(hers, now).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_in_flight_still_count_unless_their_limit_changes() {
        let now = Instant::now();
        let old = limits(1000, 1, now);
        let address = client("192.0.2.1");
        let in_flight = old.count_callback(address, now).await.unwrap();
        let same = old.reloaded(settings(1000, 1), LOGIN_TTL);
        assert!(same.count_callback(address, now).await.is_err());
        let more = old.reloaded(settings(1000, 2), LOGIN_TTL);
        let first = more.count_callback(address, now).await.unwrap();
        drop((in_flight, first));
        assert_eq!(old.provider_calls.sites.len(), 0);
    }

    #[tokio::test]
    async fn a_network_above_its_rate_does_not_affect_others() {
        let now = Instant::now();
        let limits = limits(2, 100, now);
        let hers = client("192.0.2.1");
        for _ in 0..2 {
            assert!(limits.count_callback(hers, now).await.is_ok());
        }
        let refused = limits.count_callback(hers, now).await;
        let Err(LoginError::RateLimited { retry_after, .. }) = refused else {
            panic!("the burst is used up");
        };
        assert_eq!(retry_after, 1);
        let others = client("192.0.2.2");
        assert!(limits.count_callback(others, now).await.is_ok());
    }

    #[tokio::test]
    async fn the_networks_of_one_site_share_a_higher_rate() {
        let now = Instant::now();
        let limits = limits(2, 100, now);
        let mut admitted = 0;
        for index in 0..100 {
            let address = client(&format!("2001:db8:0:{index:x}::1"));
            admitted += usize::from(limits.count_callback(address, now).await.is_ok());
        }
        assert_eq!(admitted, 8);
        let elsewhere = client("2001:db8:1:1::1");
        assert!(limits.count_callback(elsewhere, now).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn one_site_cannot_use_all_calls_to_providers() {
        let now = Instant::now();
        let limits = limits(1000, 16, now);
        let hers = client("192.0.2.1");
        let begin = async |address| limits.count_callback(address, now).await;
        let (one, other) = (begin(hers).await.unwrap(), begin(hers).await.unwrap());
        assert!(begin(hers).await.is_err(), "after the timeout");
        let mut others = Vec::new();
        for index in 2..16 {
            others.push(begin(client(&format!("192.0.2.{index}"))).await.unwrap());
        }
        assert!(begin(client("192.0.2.99")).await.is_err());
        // A waiting callback continues as soon as a permit is free.
        let (waiting, ()) = tokio::join!(begin(hers), async { drop(one) });
        assert!(waiting.is_ok());
        drop((waiting, other, others));
        assert_eq!(limits.provider_calls.sites.len(), 0);
    }

    #[test]
    fn an_application_above_its_rate_does_not_affect_others() {
        let now = Instant::now();
        let limits = limits(1, 1, now);
        for _ in 0..2 {
            assert!(limits.count_start(AppId::new(1), now).is_ok());
        }
        assert!(limits.count_start(AppId::new(1), now).is_err());
        assert!(limits.count_start(AppId::new(2), now).is_ok());
    }

    #[test]
    fn failures_are_stored_up_to_the_limit() {
        let now = Instant::now();
        let limits = limits(1, 1, now);
        let stored = (0..60_000).filter(|_| limits.count_failure(now)).count();
        assert_eq!(stored, 50_000);
    }
}
