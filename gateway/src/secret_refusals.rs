//! Backends that do not accept the gateway's secret: noticed in their answers, logged, and told by `/readyz`. CONTRACT 9.
//!
//! A login service marks such an answer, and the gateway's client gets a 502 for it. What is noted ends with the next
//! answer of the same backend that is not so marked, or `NOTED_FOR` after the last that was: a gateway that is sent
//! nothing because it is not ready must get another chance.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use gateway_protocol::version::Version;

/// One backend's refusals are logged once in this time.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// A refusal is believed for so long.
const NOTED_FOR: Duration = Duration::from_secs(60);
/// Most backends that are noted: names may stand for new addresses all the time.
const MAX_NOTED: usize = 1024;

/// The backends that refused the gateway's secret lately.
#[derive(Debug, Default)]
pub(crate) struct SecretRefusals {
    noted: Mutex<BTreeMap<(String, SocketAddr), Noted>>,
    /// Whether any is noted; looked at for every answer.
    any: AtomicBool,
}

/// What is to be said of backends that refuse the secret.
#[derive(Debug)]
pub(crate) struct Report {
    /// Their versions and addresses.
    pub text: String,
    /// Whether every address of some version is among them.
    pub is_down: bool,
}

#[derive(Clone, Copy, Debug)]
struct Noted {
    last: Instant,
    logged: Instant,
}

impl SecretRefusals {
    /// Whether nothing is noted. Costs no lock.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Relaxed)
    }

    /// Notes that the backend of `version` at `address` refused the gateway's secret, and logs it, once a minute.
    pub(crate) fn note(&self, version: &Version, address: SocketAddr, now: Instant) {
        let mut noted = self.noted();
        let key = (version.to_string(), address);
        let before = noted.get(&key).map(|before| before.logged);
        let is_due = before.is_none_or(|logged| now.duration_since(logged) >= LOG_INTERVAL);
        if before.is_none() && noted.len() >= MAX_NOTED {
            noted.retain(|_, noted| is_current(noted, now));
            if noted.len() >= MAX_NOTED {
                return;
            }
        }
        let logged = before.filter(|_| !is_due).unwrap_or(now);
        noted.insert(key, Noted { last: now, logged });
        self.any.store(true, Ordering::Relaxed);
        drop(noted);
        if is_due {
            tracing::error!(
                %version,
                backend.addr = %address,
                "{version} at {address} refuses this gateway: gateway_secret is not the same in both configurations"
            );
        }
    }

    /// The backend accepts the secret.
    pub(crate) fn forget(&self, version: &Version, address: SocketAddr) {
        let mut noted = self.noted();
        if noted.remove(&(version.to_string(), address)).is_some() {
            tracing::info!(%version, backend.addr = %address, "{version} at {address} accepts this gateway's secret");
        }
        self.any.store(!noted.is_empty(), Ordering::Relaxed);
    }

    /// Forgets all of them: the secret or the backends are others.
    pub(crate) fn clear(&self) {
        let mut noted = self.noted();
        noted.clear();
        self.any.store(false, Ordering::Relaxed);
    }

    /// The backends that refused the secret lately: their versions and addresses.
    #[must_use]
    pub(crate) fn current(&self, now: Instant) -> Vec<(String, SocketAddr)> {
        if self.is_empty() {
            return Vec::new();
        }
        let noted = self.noted();
        let current = noted.iter().filter(|(_, noted)| is_current(noted, now));
        current.map(|(key, _)| key.clone()).collect()
    }

    /// What `/readyz` says of them, and whether nothing can be served: `versions` are all that there are, each with
    /// its number of addresses. `None` where there is nothing to say. One version that is set up wrong does not make the
    /// gateway unready for the others.
    #[must_use]
    pub(crate) fn report<'v>(
        &self,
        now: Instant,
        mut versions: impl Iterator<Item = (&'v str, usize)>,
    ) -> Option<Report> {
        let current = self.current(now);
        let refusing = |version: &str| current.iter().filter(|(of, _)| of == version).count();
        let named = |(version, address): &(String, SocketAddr)| format!("{version} at {address}");
        let named: Vec<_> = current.iter().map(named).collect();
        (!named.is_empty()).then(|| Report {
            text: format!("gateway_secret is refused by {}", named.join(", ")),
            is_down: versions.all(|(version, addresses)| refusing(version) >= addresses),
        })
    }

    fn noted(&self) -> MutexGuard<'_, BTreeMap<(String, SocketAddr), Noted>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_current(noted: &Noted, now: Instant) -> bool {
    now.duration_since(noted.last) < NOTED_FOR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_noted_until_the_backend_accepts_the_secret() {
        let (refusals, now) = (SecretRefusals::default(), Instant::now());
        let version: Version = "v1".parse().unwrap();
        let [one, other] = ["127.0.0.1:1", "127.0.0.1:2"].map(|text| text.parse().unwrap());
        assert!(refusals.is_empty());
        refusals.note(&version, one, now);
        refusals.note(&version, other, now);
        assert_eq!(refusals.current(now).len(), 2);
        for (versions, is_down) in [
            (vec![("v1", 2)], true),
            (vec![("v1", 3)], false),
            (vec![("v1", 2), ("v2", 1)], false),
        ] {
            let report = refusals.report(now, versions.into_iter()).unwrap();
            assert_eq!(report.is_down, is_down);
            assert!(
                report
                    .text
                    .ends_with("v1 at 127.0.0.1:1, v1 at 127.0.0.1:2")
            );
        }
        refusals.forget(&version, other);
        assert_eq!(refusals.current(now), [("v1".to_owned(), one)]);
        refusals.forget(&version, one);
        assert!(refusals.is_empty());
        assert!(refusals.report(now, [("v1", 1)].into_iter()).is_none());
    }

    #[test]
    fn a_refusal_is_believed_for_a_minute() {
        let (refusals, now) = (SecretRefusals::default(), Instant::now());
        let address = "127.0.0.1:1".parse().unwrap();
        refusals.note(&"v1".parse().unwrap(), address, now);
        let just = now + NOTED_FOR - Duration::from_millis(1);
        assert_eq!(refusals.current(just).len(), 1);
        assert_eq!(refusals.current(now + NOTED_FOR), []);
    }

    #[test]
    fn no_more_are_noted_than_that() {
        let (refusals, now) = (SecretRefusals::default(), Instant::now());
        let version: Version = "v1".parse().unwrap();
        for port in 0..3000 {
            refusals.note(&version, SocketAddr::from(([127, 0, 0, 1], port)), now);
        }
        assert_eq!(refusals.current(now).len(), MAX_NOTED);
    }
}
