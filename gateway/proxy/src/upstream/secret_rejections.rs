//! Backends that reject the gateway's secret: detected in their responses, logged, and reported by `/readyz`. CONTRACT 9.
//!
//! A login service marks such a response, and the client gets a 502. A rejection ends with the backend's next unmarked
//! answer, or `REJECTION_LIFETIME` after the last marked one. It must expire: a gateway that gets no requests because it
//! is not ready would never become ready again.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::config::BackendName;

/// Minimum time between two log lines about the same backend.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// A rejection expires after this time.
const REJECTION_LIFETIME: Duration = Duration::from_secs(60);
/// Limit of stored rejections: names may resolve to new addresses all the time.
const MAX_REJECTIONS: usize = 1024;

/// Backends that recently rejected the gateway's secret.
#[derive(Debug, Default)]
pub struct SecretRejections {
    noted: Mutex<BTreeMap<(String, SocketAddr), SecretRejection>>,
    /// Whether there are any; read for every response.
    has_any: AtomicBool,
}

/// The readiness report about backends that reject it.
#[derive(Debug)]
pub struct SecretReport {
    /// Names the backends and their addresses.
    pub text: String,
    /// Whether every address of every backend that decides rejects the secret.
    pub is_down: bool,
}

/// The rejections of one backend: when the last came, and when one was last logged.
#[derive(Clone, Copy, Debug)]
struct SecretRejection {
    last: Instant,
    logged: Instant,
}

impl SecretRejections {
    /// Whether there are no rejections. Takes no lock.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_any.load(Ordering::Relaxed)
    }

    /// Records that the backend `name` at `address` rejected the secret, and logs it at most once a minute.
    pub fn note(&self, name: &BackendName, address: SocketAddr, now: Instant) {
        let mut noted = self.noted();
        let key = (name.to_string(), address);
        let before = noted.get(&key).map(|before| before.logged);
        let is_due = before.is_none_or(|logged| now.duration_since(logged) >= LOG_INTERVAL);
        // Expired entries are removed only when the map is full: usually it has a few.
        if before.is_none() && noted.len() >= MAX_REJECTIONS {
            noted.retain(|_, noted| is_current(noted, now));
            if noted.len() >= MAX_REJECTIONS {
                return;
            }
        }
        let logged = before.filter(|_| !is_due).unwrap_or(now);
        noted.insert(key, SecretRejection { last: now, logged });
        self.has_any.store(true, Ordering::Relaxed);
        drop(noted);
        if is_due {
            tracing::error!(
                backend = %name,
                version = name.version(),
                backend.addr = %address,
                "the backend rejects this gateway: gateway_secret is not the same in both configurations"
            );
        }
    }

    /// Removes the backend: it has accepted the secret.
    pub fn remove(&self, name: &BackendName, address: SocketAddr) {
        let mut noted = self.noted();
        if noted.remove(&(name.to_string(), address)).is_some() {
            tracing::info!(
                backend = %name, version = name.version(), backend.addr = %address,
                "the backend accepts this gateway's secret"
            );
        }
        // While the lock is held: otherwise it could hide a rejection that is noted in between.
        self.has_any.store(!noted.is_empty(), Ordering::Relaxed);
    }

    /// Removes all rejections: the secret or the backends have changed.
    pub fn clear(&self) {
        let mut noted = self.noted();
        noted.clear();
        self.has_any.store(false, Ordering::Relaxed);
    }

    /// Names and addresses of the backends whose rejections have not expired.
    #[must_use]
    pub fn current(&self, now: Instant) -> Vec<(String, SocketAddr)> {
        if self.is_empty() {
            return Vec::new();
        }
        let noted = self.noted();
        let current = noted.iter().filter(|(_, noted)| is_current(noted, now));
        current.map(|(key, _)| key.clone()).collect()
    }

    /// The report for `/readyz`; `None` without rejections. `backends` are those that decide, with their numbers of addresses.
    ///
    /// The gateway is down only if all addresses of all of these reject it: one misconfigured backend does not make it
    /// unready for the others.
    #[must_use]
    pub fn report<'b>(
        &self,
        now: Instant,
        mut backends: impl Iterator<Item = (&'b BackendName, usize)>,
    ) -> Option<SecretReport> {
        let current = self.current(now);
        let rejecting = |name: &BackendName| {
            let name = name.to_string();
            current.iter().filter(|(of, _)| *of == name).count()
        };
        // Not at which addresses: anyone may read it. The log names them.
        let named = current.chunk_by(|(name, _), (next, _)| name == next);
        let named: Vec<_> = named
            .map(|all| match all.len() {
                1 => format!("{} at one address", all[0].0),
                count => format!("{} at {count} addresses", all[0].0),
            })
            .collect();
        (!named.is_empty()).then(|| SecretReport {
            text: format!("gateway_secret is rejected by {}", named.join(", ")),
            is_down: backends.all(|(name, addresses)| rejecting(name) >= addresses),
        })
    }

    fn noted(&self) -> MutexGuard<'_, BTreeMap<(String, SocketAddr), SecretRejection>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_current(noted: &SecretRejection, now: Instant) -> bool {
    now.duration_since(noted.last) < REJECTION_LIFETIME
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(version: &str) -> BackendName {
        BackendName::own(version.parse().unwrap())
    }

    #[test]
    fn a_rejection_is_stored_until_the_backend_accepts_the_secret() {
        let (rejections, now) = (SecretRejections::default(), Instant::now());
        let version = name("v1");
        let [one, other] = ["127.0.0.1:1", "127.0.0.1:2"].map(|text| text.parse().unwrap());
        assert!(rejections.is_empty());
        rejections.note(&version, one, now);
        rejections.note(&version, other, now);
        assert_eq!(rejections.current(now).len(), 2);
        for (versions, is_down) in [
            (vec![("v1", 2)], true),
            (vec![("v1", 3)], false),
            (vec![("v1", 2), ("v2", 1)], false),
        ] {
            let backends: Vec<_> = versions
                .into_iter()
                .map(|(version, addresses)| (name(version), addresses))
                .collect();
            let backends = backends.iter().map(|(name, addresses)| (name, *addresses));
            let report = rejections.report(now, backends).unwrap();
            assert_eq!(report.is_down, is_down);
            let expected = "gateway_secret is rejected by v1 at 2 addresses";
            assert_eq!(report.text, expected);
        }
        rejections.remove(&version, other);
        assert_eq!(rejections.current(now), [("v1".to_owned(), one)]);
        rejections.remove(&version, one);
        assert!(rejections.is_empty());
        assert!(
            rejections
                .report(now, [(&version, 1)].into_iter())
                .is_none()
        );
    }

    #[test]
    fn a_rejection_expires_after_a_minute() {
        let (rejections, now) = (SecretRejections::default(), Instant::now());
        let address = "127.0.0.1:1".parse().unwrap();
        rejections.note(&name("v1"), address, now);
        let just_before = now + REJECTION_LIFETIME - Duration::from_millis(1);
        assert_eq!(rejections.current(just_before).len(), 1);
        assert_eq!(rejections.current(now + REJECTION_LIFETIME), []);
    }

    #[test]
    fn the_number_of_rejections_is_limited() {
        let (rejections, now) = (SecretRejections::default(), Instant::now());
        let version = name("v1");
        for port in 0..3000 {
            rejections.note(&version, SocketAddr::from(([127, 0, 0, 1], port)), now);
        }
        assert_eq!(rejections.current(now).len(), MAX_REJECTIONS);
    }
}
