//! Decides which requests count against which rate limit. CONTRACT 3, 7 and 8.
//!
//! Client addresses are counted before a request is verified, applications after that: nobody can use up what an
//! application may send. The limit of unsigned requests never counts a signed one, so a flood of unsigned requests cannot
//! get signed ones rejected.

use std::{net::IpAddr, sync::Arc, time::Instant};

use signpost_kit::limits::{Key, Rate, Subject};
use signpost_protocol::sign::SIGN;

use crate::{
    config::{ADDRESS_RULE, APPLICATION_RULE, OwnRate, PathLimit, RateLimits, SignConfig},
    directory::apps::App,
    limits::RateTables,
    phases::callback::{has_any, is_callback},
    request::{
        Method, Target,
        quotas::{Quotas, RequestLimit},
        rejection::Rejection,
    },
};

/// The number of the only rule of unsigned requests.
const UNSIGNED_RULE: u64 = 0;

/// Counts requests by the rate limits of one configuration. Used tokens outlive it.
#[derive(Debug)]
pub struct RequestLimiter {
    limits: RateLimits,
    /// The rate of unsigned requests.
    unsigned: Option<Rate>,
    tables: Arc<RateTables>,
}

impl RequestLimiter {
    /// A limiter that continues with the tables of its predecessor.
    #[must_use]
    pub fn new(
        limits: RateLimits,
        unsigned: Option<Rate>,
        before: Option<&Self>,
        now: Instant,
    ) -> Self {
        let tables = before.map_or_else(Arc::default, |before| Arc::clone(&before.tables));
        let was_shared = before.is_some_and(|before| before.limits.is_shared);
        if limits.is_shared && !was_shared {
            for table in tables.shared(now) {
                table.begin_sharing();
            }
        }
        Self {
            limits,
            unsigned,
            tables,
        }
    }

    /// The tables, if gateways share them.
    #[must_use]
    pub fn shared(&self) -> Option<&RateTables> {
        self.limits.is_shared.then_some(&*self.tables)
    }

    /// The number of keys that have used tokens.
    #[must_use]
    pub(crate) fn keys_in_use(&self, limit: RequestLimit, now: Instant) -> usize {
        self.tables.keys_in_use(limit, now)
    }

    /// Whether unsigned requests are counted.
    #[must_use]
    pub(crate) const fn counts_unsigned(&self) -> bool {
        self.unsigned.is_some()
    }

    /// Counts an unsigned request for its client's network, if that has a limit.
    ///
    /// # Errors
    ///
    /// The limit is exceeded.
    pub fn count_unsigned(&self, client: IpAddr, now: Instant) -> Result<(), Rejection> {
        let limit = RequestLimit::Unsigned;
        let counted = self.unsigned.map(|rate| {
            let table = self.tables.table(limit, now);
            table.count_client(UNSIGNED_RULE, client, rate, now)
        });
        let counted = counted.transpose().map(drop);
        counted.map_err(|exceeded| Rejection::rate_limited(limit, exceeded))
    }

    /// Whether requests are counted by client address.
    #[must_use]
    pub(crate) const fn counts_addresses(&self) -> bool {
        self.limits.address.is_some() || !self.limits.paths_by_address.is_empty()
    }

    /// Counts a request, signed or not, for its client's address, and for that address on its path.
    ///
    /// # Errors
    ///
    /// A limit is exceeded. Then none counts the request.
    pub(crate) fn count_address(
        &self,
        method: Method,
        path: &str,
        client: IpAddr,
        now: Instant,
    ) -> Result<(), Rejection> {
        // The limit of all paths before the one of this path, as CONTRACT 7 lists them.
        if let Some(rate) = self.limits.address {
            let limit = RequestLimit::Address;
            let table = self.tables.table(limit, now);
            let counted = table.count_client(ADDRESS_RULE, client, rate, now);
            counted.map_err(|exceeded| Rejection::rate_limited(limit, exceeded))?;
        }
        let Some(limit) = first(&self.limits.paths_by_address, method, path) else {
            return Ok(());
        };
        let paths = self.tables.table(RequestLimit::Path, now);
        let counted = paths.count_client(limit.rule, client, limit.rate, now);
        counted.map(drop).map_err(|exceeded| {
            // A rejected request counts nowhere: one limit must not use up another.
            if let Some(rate) = self.limits.address {
                let addresses = self.tables.table(RequestLimit::Address, now);
                addresses.give_back_client(ADDRESS_RULE, client, rate);
            }
            Rejection::rate_limited(RequestLimit::Path, exceeded)
        })
    }

    /// Whether requests of this application are counted.
    #[must_use]
    pub fn counts(&self, app: &App) -> bool {
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
        let count = |limit, rule, rate| {
            let key = app_key(app, rule);
            let counted = self.tables.table(limit, now).count(&key, rate, now);
            counted.map(|quota| (limit, quota))
        };
        let rejected = Rejection::rate_limited;
        let mut quotas = Quotas::default();
        let rate = self.rate_of(app);
        if let Some(rate) = rate {
            let limit = RequestLimit::Application;
            let counted = count(limit, APPLICATION_RULE, rate);
            quotas.0[0] = Some(counted.map_err(|exceeded| rejected(limit, exceeded))?);
        }
        if let Some(PathLimit {
            rule,
            rate: of_path,
            ..
        }) = first(&self.limits.paths_by_application, method, path)
        {
            let counted = count(RequestLimit::Path, *rule, *of_path);
            quotas.0[1] = Some(counted.map_err(|exceeded| {
                // As above: what one limit rejects, no other counts.
                if let Some(rate) = rate {
                    let applications = self.tables.table(RequestLimit::Application, now);
                    applications.give_back(&app_key(app, APPLICATION_RULE), rate);
                }
                rejected(RequestLimit::Path, exceeded)
            })?);
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

fn app_key(app: &App, rule: u64) -> Key {
    let subject = Subject::Application(app.id.get());
    Key { rule, subject }
}

/// Whether a request counts: a callback, and a GET without `sign` on a browser or callback path. Any other request with a
/// signature is verified; if it is invalid, it never reaches a backend.
#[must_use]
pub(crate) fn is_unsigned(method: &[u8], target: Target<'_>, config: &SignConfig) -> bool {
    let is_on = |paths: &[String]| paths.iter().any(|path| path == target.compared());
    if method != b"GET" {
        return false;
    }
    // A callback counts whatever else it has: `sign` does not make it a signed request. CONTRACT 3.
    let is_on_callback_path = is_on(&config.callback_paths);
    (is_on_callback_path && is_callback(target.query))
        || ((is_on_callback_path || is_on(&config.browser_paths))
            && !has_any(target.query, &[SIGN]))
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
        RequestLimiter::new(limits(toml), None, None, now)
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
        let (limit, quota) = counted.0[0].unwrap();
        assert_eq!((limit, quota.remaining), (RequestLimit::Application, 2));
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
            Rejection::RateLimited {
                limit: RequestLimit::Application,
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
        let count = |client, method, path: &str| {
            served(|| limiter.count_address(method, path, client, now))
        };
        assert_eq!(count(one, Method::Get, "/a"), 2);
        assert_eq!(count(one, Method::Post, "/b"), 2);
        assert_eq!(count(other, Method::Get, "/b"), 4);
    }

    #[test]
    fn used_tokens_outlive_the_configuration() {
        let now = Instant::now();
        let slow = "[rate_limits.application]\nper_second = 1\nburst = 3\n";
        let old = limiter(slow, now);
        let app = app(1, None);
        assert_eq!(served(|| old.count_app(&app, Method::Get, "/", now)), 3);
        let off = RequestLimiter::new(limits(""), None, Some(&old), now);
        assert!(!off.counts(&app) && off.shared().is_none());
        let on = RequestLimiter::new(limits(slow), None, Some(&off), now);
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
            "/back?state=a&code=b&sign=c",
            "/back?state=a&error=b&time=1&sign=c",
        ] {
            assert!(counts("GET", target), "{target}");
            assert!(!counts("POST", target), "{target}");
        }
        for target in [
            "/login?sign=",
            "/login?a=1&sign=0",
            "/login?a=1&s%69gn=0",
            "/back?state=a&sign=0",
            "/login?state=a&code=b&sign=0",
            "/user",
            "/check?state=a",
        ] {
            assert!(!counts("GET", target), "{target}");
        }
    }
}
