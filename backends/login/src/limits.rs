//! Limits on what a caller can start. CONTRACT 8.
//!
//! | what | limit |
//! | --- | --- |
//! | callbacks that ask a provider | per client network and time, an IPv6 /48 more generously |
//! | calls to providers in flight | in all, and for each site a share |
//! | failed redirect logins that are kept | in all, per `login_ttl` |
//! | polling logins, which are signed | per application and time |
//!
//! All of it is this process' own, in fixed memory. A flood of addresses refuses no other address. The memory
//! outlives a reload, also one that changes the limits.

use std::{
    collections::HashMap,
    net::IpAddr,
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gateway_protocol::app::AppId;
use signpost_kit::rate_limit::{Network, NetworkLimiter, Rate, RateLimiter, TooMany};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{config::LoginLimits, error::LoginError};

/// An IPv6 /48 may do so many times what a /64 may.
const SITE_FACTOR: NonZeroU32 = NonZeroU32::new(4).expect("not zero");
/// A site may have this part of the calls to providers that may be in flight.
const SITE_SHARE: usize = 8;
/// How long a callback waits for others to end, before it is refused.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Failed redirect logins that this process keeps at once, so that a second callback hears `login_used`: 20 MB of rows.
const MAX_KEPT_FAILURES: NonZeroU32 = NonZeroU32::new(50_000).expect("not zero");

/// What limits a login service's work for others.
pub(crate) struct Limits {
    starts: RateLimiter,
    callbacks: NetworkLimiter,
    kept_failures: RateLimiter,
    provider_calls: Arc<ProviderCalls>,
}

impl Limits {
    pub(crate) fn new(limits: LoginLimits, login_ttl: Duration, now: Instant) -> Self {
        Self {
            starts: RateLimiter::new(limits.starts, now),
            callbacks: NetworkLimiter::new(
                limits.callbacks,
                limits.callbacks.times(SITE_FACTOR),
                now,
            ),
            kept_failures: RateLimiter::new(kept_failures(login_ttl), now),
            provider_calls: Arc::new(ProviderCalls::new(limits.provider_calls)),
        }
    }

    /// Other limits over the same memory.
    ///
    /// If the number of calls to providers changes, new calls count on permits of their own, and those in flight end on
    /// the old ones: for as long as these take, 10 s at most, there may be as many calls as both numbers allow.
    pub(crate) fn reloaded(&self, limits: LoginLimits, login_ttl: Duration) -> Self {
        let provider_calls = if limits.provider_calls == self.provider_calls.limit {
            Arc::clone(&self.provider_calls)
        } else {
            Arc::new(ProviderCalls::new(limits.provider_calls))
        };
        Self {
            starts: self.starts.with_rate(limits.starts),
            callbacks: self
                .callbacks
                .with_rates(limits.callbacks, limits.callbacks.times(SITE_FACTOR)),
            kept_failures: self.kept_failures.with_rate(kept_failures(login_ttl)),
            provider_calls,
        }
    }

    /// A polling login of this application may begin.
    ///
    /// # Errors
    ///
    /// [`LoginError::RateLimited`]: its share is used up. No other application notices.
    pub(crate) fn admit_start(&self, application: AppId, now: Instant) -> Result<(), LoginError> {
        Ok(self.starts.count(&application.get(), now)?)
    }

    /// A callback of this client may ask a provider; the permit is held as long as it does.
    ///
    /// # Errors
    ///
    /// [`LoginError::RateLimited`]: too many of its network or site, or too many calls in flight.
    pub(crate) async fn admit_callback(
        &self,
        client: IpAddr,
        now: Instant,
    ) -> Result<ProviderPermit, LoginError> {
        self.callbacks.count(client, now)?;
        let permit = self.provider_calls.begin(Network::from_site(client)).await;
        permit.ok_or(LoginError::RateLimited { retry_after: 1 })
    }

    /// Whether one more failed redirect login may be kept until it expires.
    pub(crate) fn keeps_failure(&self, now: Instant) -> bool {
        self.kept_failures.count(&(), now).is_ok()
    }
}

/// So many at once, each until it expires.
fn kept_failures(login_ttl: Duration) -> Rate {
    let seconds = u32::try_from(login_ttl.as_secs()).unwrap_or(u32::MAX);
    let per_second = NonZeroU32::new(MAX_KEPT_FAILURES.get() / seconds.max(1));
    Rate {
        per_second: per_second.unwrap_or(NonZeroU32::MIN),
        burst: MAX_KEPT_FAILURES,
    }
}

impl From<TooMany> for LoginError {
    fn from(TooMany { retry_after }: TooMany) -> Self {
        let millis = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
        Self::RateLimited {
            retry_after: millis.div_ceil(1000).max(1),
        }
    }
}

/// Calls to providers in flight: so many in all, and for each site a share, so that one site cannot take all. Callbacks
/// beyond that wait for a moment, each site's in order of arrival.
struct ProviderCalls {
    limit: usize,
    in_all: Arc<Semaphore>,
    site_limit: usize,
    sites: Arc<Sites>,
}

/// The permits of each site that has a call in flight or waiting.
#[derive(Default)]
struct Sites(Mutex<HashMap<Network, Arc<Semaphore>>>);

impl ProviderCalls {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            in_all: Arc::new(Semaphore::new(limit)),
            site_limit: limit.div_ceil(SITE_SHARE),
            sites: Arc::default(),
        }
    }

    /// `None` if no call may begin within the timeout.
    async fn begin(&self, site: Network) -> Option<ProviderPermit> {
        let place = self.sites.enter(site, self.site_limit);
        let permits = async {
            let of_site = Arc::clone(&place.permits).acquire_owned().await.ok()?;
            let in_all = Arc::clone(&self.in_all).acquire_owned().await.ok()?;
            Some((of_site, in_all))
        };
        let permits = tokio::time::timeout(PERMIT_TIMEOUT, permits).await;
        Some(ProviderPermit {
            _permits: permits.ok()??,
            _place: place,
        })
    }
}

impl Sites {
    fn enter(self: &Arc<Self>, site: Network, limit: usize) -> SitePlace {
        let mut sites = self.lock();
        let permits = sites
            .entry(site)
            .or_insert_with(|| Arc::new(Semaphore::new(limit)));
        SitePlace {
            permits: Arc::clone(permits),
            site,
            sites: Arc::clone(self),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Network, Arc<Semaphore>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One call of a site, in flight or waiting; the last one takes the site's entry away when dropped.
struct SitePlace {
    permits: Arc<Semaphore>,
    site: Network,
    sites: Arc<Sites>,
}

impl Drop for SitePlace {
    fn drop(&mut self) {
        let mut sites = self.sites.lock();
        // The map's own and this one: permits, which hold another, are dropped before.
        if Arc::strong_count(&self.permits) == 2 {
            sites.remove(&self.site);
        }
    }
}

/// The right to one call to a provider; its end gives it back.
pub(crate) struct ProviderPermit {
    _permits: (OwnedSemaphorePermit, OwnedSemaphorePermit),
    _place: SitePlace,
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
    async fn the_memory_outlives_a_change_of_limits() {
        let now = Instant::now();
        let old = limits(2, 100, now);
        let hers = client("192.0.2.1");
        for _ in 0..2 {
            assert!(old.admit_callback(hers, now).await.is_ok());
            assert!(old.admit_start(AppId::new(1), now).is_ok());
        }
        let new = old.reloaded(settings(3, 100), LOGIN_TTL);
        assert!(new.admit_start(AppId::new(1), now).is_err());
        assert!(new.admit_callback(hers, now).await.is_ok());
        assert!(new.admit_callback(hers, now).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_in_flight_count_on_unless_their_number_changes() {
        let now = Instant::now();
        let old = limits(1000, 1, now);
        let address = client("192.0.2.1");
        let in_flight = old.admit_callback(address, now).await.unwrap();
        let same = old.reloaded(settings(1000, 1), LOGIN_TTL);
        assert!(same.admit_callback(address, now).await.is_err());
        let more = old.reloaded(settings(1000, 2), LOGIN_TTL);
        let first = more.admit_callback(address, now).await.unwrap();
        drop((in_flight, first));
        assert!(old.provider_calls.sites.lock().is_empty());
    }

    #[tokio::test]
    async fn a_network_that_uses_up_its_callbacks_disturbs_no_other() {
        let now = Instant::now();
        let limits = limits(2, 100, now);
        let hers = client("192.0.2.1");
        for _ in 0..2 {
            assert!(limits.admit_callback(hers, now).await.is_ok());
        }
        let refused = limits.admit_callback(hers, now).await;
        let Err(LoginError::RateLimited { retry_after }) = refused else {
            panic!("the burst is used up");
        };
        assert_eq!(retry_after, 1);
        let others = client("192.0.2.2");
        assert!(limits.admit_callback(others, now).await.is_ok());
    }

    #[tokio::test]
    async fn the_networks_of_one_site_share_a_larger_allowance() {
        let now = Instant::now();
        let limits = limits(2, 100, now);
        let mut admitted = 0;
        for index in 0..100 {
            let address = client(&format!("2001:db8:0:{index:x}::1"));
            admitted += usize::from(limits.admit_callback(address, now).await.is_ok());
        }
        assert_eq!(admitted, 8);
        let elsewhere = client("2001:db8:1:1::1");
        assert!(limits.admit_callback(elsewhere, now).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn one_site_cannot_take_all_calls_to_providers() {
        let now = Instant::now();
        let limits = limits(1000, 16, now);
        let hers = client("192.0.2.1");
        let begin = async |address| limits.admit_callback(address, now).await;
        let (one, other) = (begin(hers).await.unwrap(), begin(hers).await.unwrap());
        assert!(begin(hers).await.is_err(), "after the timeout");
        let mut others = Vec::new();
        for index in 2..16 {
            others.push(begin(client(&format!("192.0.2.{index}"))).await.unwrap());
        }
        assert!(begin(client("192.0.2.99")).await.is_err());
        // Who waits goes on as soon as there is room.
        let (waiting, ()) = tokio::join!(begin(hers), async { drop(one) });
        assert!(waiting.is_ok());
        drop((waiting, other, others));
        assert!(limits.provider_calls.sites.lock().is_empty());
    }

    #[test]
    fn an_application_that_uses_up_its_starts_disturbs_no_other() {
        let now = Instant::now();
        let limits = limits(1, 1, now);
        for _ in 0..2 {
            assert!(limits.admit_start(AppId::new(1), now).is_ok());
        }
        assert!(limits.admit_start(AppId::new(1), now).is_err());
        assert!(limits.admit_start(AppId::new(2), now).is_ok());
    }

    #[test]
    fn failures_are_kept_up_to_a_number() {
        let now = Instant::now();
        let limits = limits(1, 1, now);
        let kept = (0..60_000).filter(|_| limits.keeps_failure(now)).count();
        assert_eq!(kept, 50_000);
    }
}
