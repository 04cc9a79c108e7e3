//! Decides which requests count against which rate limit. CONTRACT 3, 7 and 8.
//!
//! Client addresses are counted before a request is verified, applications after that: nobody can use up what an
//! application may send. The limit of unsigned requests never counts a signed one, so a flood of unsigned requests cannot
//! get signed ones rejected.

use std::{net::IpAddr, sync::Arc, time::Instant};

use signpost_kit::limits::{Key, QuotaExceeded, Rate, Subject};
use signpost_protocol::{param::Params, sign::SIGN};

use crate::{
    config::{ADDRESS_RULE, APPLICATION_RULE, OwnRate, PathLimit, RateLimits, SignConfig},
    directory::apps::App,
    limits::rates::RateDebts,
    request::{
        Method, Target,
        quotas::{Policy, Quotas},
        rejection::Rejection,
    },
};

/// Counts requests by the rate limits of one configuration. The debts outlive it.
#[derive(Debug)]
pub(crate) struct RequestLimiter {
    limits: RateLimits,
    debts: Arc<RateDebts>,
}

impl RequestLimiter {
    /// A limiter that continues with the debts of its predecessor.
    #[must_use]
    pub(crate) fn new(limits: RateLimits, before: Option<&Self>, now: Instant) -> Self {
        let debts = before.map_or_else(Arc::default, |before| Arc::clone(&before.debts));
        let was_shared = before.is_some_and(|before| before.limits.is_shared);
        if limits.is_shared && !was_shared {
            for table in debts.all(now) {
                table.begin_sharing();
            }
        }
        Self { limits, debts }
    }

    /// The debts, if gateways share them.
    #[must_use]
    pub(crate) fn shared_debts(&self) -> Option<&RateDebts> {
        self.limits.is_shared.then_some(&*self.debts)
    }

    /// The number of keys with a debt.
    #[must_use]
    pub(crate) fn keys_with_debt(&self, policy: Policy, now: Instant) -> usize {
        self.debts.keys_with_debt(policy, now)
    }

    /// Whether requests are counted by client address.
    #[must_use]
    pub(crate) const fn counts_addresses(&self) -> bool {
        self.limits.address.is_some() || !self.limits.paths_by_address.is_empty()
    }

    /// Counts a request, signed or not, for its client's address, and for that address on its path. Others than GET and
    /// POST do not count: they are rejected anyway.
    ///
    /// # Errors
    ///
    /// A limit is exceeded. Then none counts the request.
    pub(crate) fn count_address(
        &self,
        method: &[u8],
        path: &str,
        client: IpAddr,
        now: Instant,
    ) -> Result<(), Rejection> {
        let Some(method) = Method::from_bytes(method) else {
            return Ok(());
        };
        if let Some(rate) = self.limits.address {
            let addresses = self.debts.addresses(now);
            let counted = addresses.count_client(ADDRESS_RULE, client, rate, now);
            counted.map_err(|exceeded| rejection(Policy::Address, exceeded))?;
        }
        let Some(limit) = first(&self.limits.paths_by_address, method, path) else {
            return Ok(());
        };
        let paths = self.debts.paths(now);
        let counted = paths.count_client(limit.rule, client, limit.rate, now);
        counted.map(drop).map_err(|exceeded| {
            if let Some(rate) = self.limits.address {
                let addresses = self.debts.addresses(now);
                addresses.give_back_client(ADDRESS_RULE, client, rate);
            }
            rejection(Policy::Path, exceeded)
        })
    }

    /// Whether requests of this application are counted.
    #[must_use]
    pub(crate) fn counts(&self, app: &App) -> bool {
        self.limits.application.is_some()
            || app.rate_limit.is_some()
            || !self.limits.paths_by_application.is_empty()
    }

    /// Counts a signed request for its application, and for that application on its path. Returns what remains.
    ///
    /// # Errors
    ///
    /// A limit is exceeded. Then none counts the request.
    pub(crate) fn count_app(
        &self,
        app: &App,
        method: Method,
        path: &str,
        now: Instant,
    ) -> Result<Quotas, Rejection> {
        let key = |rule| Key {
            rule,
            subject: Subject::Application(app.id.get()),
        };
        let mut quotas = Quotas::default();
        let rate = self.rate_of(app);
        if let Some(rate) = rate {
            let applications = self.debts.applications(now);
            let counted = applications.count(&key(APPLICATION_RULE), rate, now);
            let quota = counted.map_err(|exceeded| rejection(Policy::Application, exceeded))?;
            quotas.0[0] = Some((Policy::Application, quota));
        }
        if let Some(limit) = first(&self.limits.paths_by_application, method, path) {
            let counted = self
                .debts
                .paths(now)
                .count(&key(limit.rule), limit.rate, now);
            let quota = counted.map_err(|exceeded| {
                if let Some(rate) = rate {
                    let applications = self.debts.applications(now);
                    applications.give_back(&key(APPLICATION_RULE), rate);
                }
                rejection(Policy::Path, exceeded)
            })?;
            quotas.0[1] = Some((Policy::Path, quota));
        }
        Ok(quotas)
    }

    /// The application's own rate, or the configured one.
    fn rate_of(&self, app: &App) -> Option<Rate> {
        match app.rate_limit {
            Some(OwnRate::Limited(rate)) => Some(rate),
            Some(OwnRate::Unlimited) => None,
            None => self.limits.application,
        }
    }
}

/// The first limit that counts a request.
fn first<'l>(limits: &'l [PathLimit], method: Method, path: &str) -> Option<&'l PathLimit> {
    limits.iter().find(|limit| limit.applies(method, path))
}

fn rejection(policy: Policy, exceeded: QuotaExceeded) -> Rejection {
    Rejection::QuotaExceeded { policy, exceeded }
}

/// Whether a request counts: a GET without `sign` on a browser or callback path. A request with a signature is
/// verified; if it is invalid, it never reaches a backend.
#[must_use]
pub(crate) fn is_unsigned(method: &[u8], target: Target<'_>, config: &SignConfig) -> bool {
    let is_target = |path: &String| path == target.path;
    method == b"GET"
        && (config.callback_paths.iter().any(is_target)
            || config.browser_paths.iter().any(is_target))
        && !target.query.split('&').any(is_sign)
}

/// Whether a pair of a query is the parameter `sign`, by its decoded key. CONTRACT 3.
fn is_sign(pair: &str) -> bool {
    let params = Params::parse(pair.as_bytes(), b"", 1);
    params.is_ok_and(|params| params.iter().any(|param| param.is_named(SIGN.as_bytes())))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        config::tests::{MINIMAL, load, sign_config},
        directory::apps::directory::AppDirectory,
    };

    fn limits(toml: &str) -> RateLimits {
        load(&format!("{MINIMAL}{toml}")).unwrap().rate_limits
    }

    fn limiter(toml: &str, now: Instant) -> RequestLimiter {
        RequestLimiter::new(limits(toml), None, now)
    }

    fn app(id: i64, own: Option<&str>) -> App {
        let AppDirectory::Single(app) = AppDirectory::single("k".repeat(32).parse().unwrap())
        else {
            unreachable!()
        };
        App {
            id: signpost_protocol::app::AppId::new(id),
            rate_limit: own.map(|own| own.parse().unwrap()),
            ..(*app).clone()
        }
    }

    /// Number of nine requests that are served.
    fn served<T>(mut count: impl FnMut() -> Result<T, Rejection>) -> usize {
        (0..9).filter(|_| count().is_ok()).count()
    }

    #[test]
    fn each_application_has_the_configured_rate_or_its_own() {
        let now = Instant::now();
        let limiter = limiter(
            "[rate_limits.application]\nper_second = 1\nburst = 3\n",
            now,
        );
        for (id, own, expected) in [(1, None, 3), (2, Some("1/5"), 5), (3, Some("unlimited"), 9)] {
            let app = app(id, own);
            assert!(limiter.counts(&app));
            assert_eq!(
                served(|| limiter.count_app(&app, Method::Get, "/", now)),
                expected
            );
        }
        let counted = limiter
            .count_app(&app(9, None), Method::Get, "/", now)
            .unwrap();
        let (policy, quota) = counted.0[0].unwrap();
        assert_eq!((policy, quota.remaining), (Policy::Application, 2));
        assert_eq!(counted.0[1], None);
    }

    #[test]
    fn without_limits_only_applications_with_their_own_are_counted() {
        let now = Instant::now();
        let limiter = limiter("", now);
        assert!(!limiter.counts_addresses());
        assert!(!limiter.counts(&app(1, None)));
        assert!(limiter.counts(&app(1, Some("1/2"))));
        let app = app(1, Some("1/2"));
        assert_eq!(served(|| limiter.count_app(&app, Method::Get, "/", now)), 2);
    }

    #[test]
    fn a_limit_on_a_path_counts_each_application_and_costs_it_nothing_elsewhere() {
        let now = Instant::now();
        let limiter = limiter(
            "[rate_limits.application]\nper_second = 1\nburst = 4\n\
             [[rate_limits.paths]]\nmethod = 'POST'\npath = '/a'\nper_second = 1\nburst = 2\n",
            now,
        );
        let (one, other) = (app(1, None), app(2, None));
        let count =
            |app: &App, method, path: &str| served(|| limiter.count_app(app, method, path, now));
        assert_eq!(count(&one, Method::Post, "/a"), 2);
        // What the path's limit rejected does not count for the application.
        assert_eq!(count(&one, Method::Get, "/a"), 2);
        assert_eq!(count(&other, Method::Post, "/a/"), 4);
        let error = limiter
            .count_app(&one, Method::Post, "/a", now)
            .unwrap_err();
        assert!(matches!(
            error,
            Rejection::QuotaExceeded {
                policy: Policy::Application,
                ..
            }
        ));
    }

    #[test]
    fn addresses_are_counted_in_all_and_on_paths() {
        let now = Instant::now();
        let limiter = limiter(
            "[rate_limits.address]\nper_second = 1\nburst = 4\n\
             [[rate_limits.paths]]\npath = '/a'\nby = 'address'\nper_second = 1\nburst = 2\n",
            now,
        );
        let (one, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let count = |client, method: &[u8], path: &str| {
            served(|| limiter.count_address(method, path, client, now))
        };
        assert_eq!(count(one, b"PUT", "/a"), 9);
        assert_eq!(count(one, b"GET", "/a"), 2);
        assert_eq!(count(one, b"POST", "/b"), 2);
        assert_eq!(count(other, b"GET", "/b"), 4);
    }

    #[test]
    fn debts_outlive_the_configuration() {
        let now = Instant::now();
        let slow = "[rate_limits.application]\nper_second = 1\nburst = 3\n";
        let old = limiter(slow, now);
        let app = app(1, None);
        assert_eq!(served(|| old.count_app(&app, Method::Get, "/", now)), 3);
        let off = RequestLimiter::new(limits(""), Some(&old), now);
        assert!(!off.counts(&app) && off.shared_debts().is_none());
        let on = RequestLimiter::new(limits(slow), Some(&off), now);
        assert_eq!(served(|| on.count_app(&app, Method::Get, "/", now)), 0);
        let later = now + Duration::from_secs(1);
        assert_eq!(served(|| on.count_app(&app, Method::Get, "/", later)), 1);
    }

    #[test]
    fn only_a_get_without_a_signature_on_a_browser_path_counts() {
        let config = sign_config("callback_paths = ['/back']\nbrowser_paths = ['/login']");
        let counts = |method: &str, target: &str| {
            is_unsigned(
                method.as_bytes(),
                Target::parse(target.as_bytes()).unwrap(),
                &config,
            )
        };
        for target in [
            "/login",
            "/login?provider=x",
            "/login?time=1&signs=2",
            "/back?state=a&code=b",
            "/login?%zz",
        ] {
            assert!(counts("GET", target), "{target}");
            assert!(!counts("POST", target), "{target}");
        }
        for target in [
            "/login?sign=",
            "/login?a=1&sign=0",
            "/login?a=1&s%69gn=0",
            "/user",
            "/check?state=a",
        ] {
            assert!(!counts("GET", target), "{target}");
        }
    }
}
