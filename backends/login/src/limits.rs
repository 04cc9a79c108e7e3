//! Limits on what a caller can start. CONTRACT 8.
//!
//! | what | limit |
//! | --- | --- |
//! | callbacks that ask a provider | per client network and time, an IPv6 /48 more generously |
//! | calls to providers in flight | in all, and for each site a share |
//! | failed redirect logins that are kept | in all, per `login_ttl` |
//! | polling logins, which are signed | per application and time |
//!
//! All of it is this process' own, in memory, and bounded: a flood of addresses makes the limiter forget those that it
//! has not seen for the longest time, and refuses nobody else.

use std::{
    collections::HashMap,
    hash::Hash,
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gateway_protocol::app::AppId;
use governor::{
    DefaultDirectRateLimiter, Quota, RateLimiter,
    clock::{Clock, DefaultClock},
};
use moka::{policy::EvictionPolicy, sync::Cache};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    client_address::ClientAddress,
    config::{LoginLimits, Rate},
    error::LoginError,
};

/// Networks, or applications, that one limiter knows at once: some 200 bytes each.
const MAX_TRACKED: u64 = 50_000;
/// An IPv6 /48 may do so many times what a /64 may.
const SITE_FACTOR: u32 = 4;
/// A site may have this part of the calls to providers that may be in flight.
const SITE_SHARE: usize = 4;
/// Failed redirect logins that this process keeps at once, so that a second callback hears `login_used`: 20 MB of rows.
const MAX_KEPT_FAILURES: u32 = 50_000;

/// What limits a login service's work for others.
pub(crate) struct Limits {
    starts: Limiter<AppId>,
    callbacks: Limiter<ClientAddress>,
    site_callbacks: Limiter<ClientAddress>,
    kept_failures: DefaultDirectRateLimiter,
    provider_calls: ProviderCalls,
}

impl Limits {
    pub(crate) fn new(limits: LoginLimits, login_ttl: Duration) -> Self {
        let kept = Rate {
            per_second: f64::from(MAX_KEPT_FAILURES) / login_ttl.as_secs_f64().max(1.0),
            burst: MAX_KEPT_FAILURES,
        };
        Self {
            starts: Limiter::new(limits.starts),
            callbacks: Limiter::new(limits.callbacks),
            site_callbacks: Limiter::new(limits.callbacks.times(SITE_FACTOR)),
            kept_failures: RateLimiter::direct(quota(kept)),
            provider_calls: ProviderCalls::new(limits.provider_calls),
        }
    }

    /// A polling login of this application may begin.
    ///
    /// # Errors
    ///
    /// [`LoginError::RateLimited`]: its share is used up. No other application notices.
    pub(crate) fn admit_start(&self, application: AppId) -> Result<(), LoginError> {
        self.starts.admit(application)
    }

    /// A callback of this client may ask a provider; the permit is held as long as it does.
    ///
    /// # Errors
    ///
    /// [`LoginError::RateLimited`]: too many of its network or site, or too many calls in flight.
    pub(crate) fn admit_callback(
        &self,
        client: ClientAddress,
    ) -> Result<ProviderPermit, LoginError> {
        self.callbacks.admit(client)?;
        // An IPv4 address is its own site, which has been asked about.
        if client.site() != client {
            self.site_callbacks.admit(client.site())?;
        }
        let permit = self.provider_calls.begin(client.site());
        permit.ok_or(LoginError::RateLimited { retry_after: 1 })
    }

    /// Whether one more failed redirect login may be kept until it expires.
    pub(crate) fn keeps_failure(&self) -> bool {
        self.kept_failures.check().is_ok()
    }
}

/// GCRA for each key; forgets the key that was used least recently when there are too many.
struct Limiter<K> {
    quota: Quota,
    keys: Cache<K, Arc<DefaultDirectRateLimiter>>,
}

impl<K: Copy + Eq + Hash + Send + Sync + 'static> Limiter<K> {
    fn new(rate: Rate) -> Self {
        let quota = quota(rate);
        let keys = Cache::builder()
            .max_capacity(MAX_TRACKED)
            .eviction_policy(EvictionPolicy::lru())
            // After this the whole burst is there again, as for a key that is unknown.
            .time_to_idle(quota.burst_size_replenished_in() + Duration::from_secs(1))
            .build();
        Self { quota, keys }
    }

    fn admit(&self, key: K) -> Result<(), LoginError> {
        let limiter = self
            .keys
            .get_with(key, || Arc::new(RateLimiter::direct(self.quota)));
        limiter.check().map_err(|refused| {
            let wait = refused.wait_time_from(DefaultClock::default().now());
            LoginError::RateLimited {
                retry_after: wait.as_secs() + 1,
            }
        })
    }
}

fn quota(rate: Rate) -> Quota {
    let period = Duration::from_secs_f64(1.0 / rate.per_second);
    let burst = NonZeroU32::new(rate.burst).unwrap_or(NonZeroU32::MIN);
    Quota::with_period(period)
        .expect("no rate is so large that its period is nothing: at most 1,000,000 a second")
        .allow_burst(burst)
}

/// Calls to providers in flight: so many in all, and for each site a share, so that one site cannot take all.
struct ProviderCalls {
    in_all: Arc<Semaphore>,
    site_limit: usize,
    sites: Arc<Sites>,
}

#[derive(Default)]
struct Sites(Mutex<HashMap<ClientAddress, usize>>);

impl ProviderCalls {
    fn new(limit: usize) -> Self {
        Self {
            in_all: Arc::new(Semaphore::new(limit)),
            site_limit: limit.div_ceil(SITE_SHARE),
            sites: Arc::default(),
        }
    }

    fn begin(&self, site: ClientAddress) -> Option<ProviderPermit> {
        let in_all = Arc::clone(&self.in_all).try_acquire_owned().ok()?;
        let mut sites = self.sites.lock();
        let in_flight = sites.entry(site).or_default();
        if *in_flight >= self.site_limit {
            return None;
        }
        *in_flight += 1;
        drop(sites);
        Some(ProviderPermit {
            _in_all: in_all,
            site,
            sites: Arc::clone(&self.sites),
        })
    }
}

impl Sites {
    fn lock(&self) -> MutexGuard<'_, HashMap<ClientAddress, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to one call to a provider; its end gives it back.
pub(crate) struct ProviderPermit {
    _in_all: OwnedSemaphorePermit,
    site: ClientAddress,
    sites: Arc<Sites>,
}

impl Drop for ProviderPermit {
    fn drop(&mut self) {
        let mut sites = self.sites.lock();
        if let Some(in_flight) = sites.get_mut(&self.site) {
            *in_flight -= 1;
            if *in_flight == 0 {
                sites.remove(&self.site);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn client(address: &str) -> ClientAddress {
        address.parse::<IpAddr>().unwrap().into()
    }

    fn limits(callbacks_burst: u32, provider_calls: usize) -> Limits {
        let rate = |burst| Rate {
            per_second: 0.01,
            burst,
        };
        let limits = LoginLimits {
            starts: rate(2),
            callbacks: rate(callbacks_burst),
            provider_calls,
        };
        Limits::new(limits, Duration::from_secs(600))
    }

    #[test]
    fn a_network_that_uses_up_its_callbacks_disturbs_no_other() {
        let limits = limits(2, 100);
        let hers = client("192.0.2.1");
        for _ in 0..2 {
            assert!(limits.admit_callback(hers).is_ok());
        }
        let Err(LoginError::RateLimited { retry_after }) = limits.admit_callback(hers) else {
            panic!("the burst is used up");
        };
        assert!((90..=101).contains(&retry_after), "{retry_after}");
        assert!(limits.admit_callback(client("192.0.2.2")).is_ok());
    }

    #[test]
    fn the_networks_of_one_site_share_a_larger_allowance() {
        let limits = limits(2, 100);
        let admitted = (0..100)
            .filter(|index| {
                let address = client(&format!("2001:db8:0:{index:x}::1"));
                limits.admit_callback(address).is_ok()
            })
            .count();
        assert_eq!(admitted, 8);
        assert!(limits.admit_callback(client("2001:db8:1:1::1")).is_ok());
    }

    #[test]
    fn one_site_cannot_take_all_calls_to_providers() {
        let limits = limits(1000, 8);
        let hers = client("192.0.2.1");
        let held: Vec<_> = (0..2)
            .map(|_| limits.admit_callback(hers).unwrap())
            .collect();
        assert!(limits.admit_callback(hers).is_err());
        let others: Vec<_> = (2..8)
            .map(|index| limits.admit_callback(client(&format!("192.0.2.{index}"))))
            .collect();
        assert!(others.iter().all(Result::is_ok));
        assert!(limits.admit_callback(client("192.0.2.9")).is_err());
        drop(held);
        assert!(limits.admit_callback(hers).is_ok());
        drop(others);
        assert!(limits.provider_calls.sites.lock().is_empty());
    }

    #[test]
    fn an_application_that_uses_up_its_starts_disturbs_no_other() {
        let limits = limits(1, 1);
        for _ in 0..2 {
            assert!(limits.admit_start(AppId::new(1)).is_ok());
        }
        assert!(limits.admit_start(AppId::new(1)).is_err());
        assert!(limits.admit_start(AppId::new(2)).is_ok());
    }

    #[test]
    fn a_flood_of_networks_is_forgotten_and_refuses_nobody() {
        let limits = limits(1, 100);
        let address = |index: u32| ClientAddress::from(IpAddr::from(index.to_be_bytes()));
        let flood = u32::try_from(MAX_TRACKED).unwrap() * 3;
        for index in 0..flood {
            assert!(limits.admit_callback(address(index)).is_ok(), "{index}");
        }
        limits.callbacks.keys.run_pending_tasks();
        assert!(limits.callbacks.keys.entry_count() <= MAX_TRACKED);
    }
}
