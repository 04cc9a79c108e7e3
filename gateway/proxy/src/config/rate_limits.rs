//! Rate limits of applications, client addresses and paths. CONTRACT 8.

use std::num::NonZeroU32;

use ring::digest;
use signpost_kit::{
    config::{Read, Section},
    limits::Rate,
};
use signpost_protocol::parse_digits;

use super::{
    limits::{MAX_BURST, MAX_PER_SECOND, rate},
    readers::{method, path},
};
use crate::request::Method;

/// Limit of `[[rate_limits.paths]]`: each request is compared with all of them.
const MAX_PATHS: usize = 64;

/// Default of `burst`, as a multiple of `per_second`.
const BURST_SECONDS: u32 = 2;

/// Number of the rule for applications, which no [`PathLimit`] has.
pub(crate) const APPLICATION_RULE: u64 = 0;
/// Number of the rule for client addresses.
pub(crate) const ADDRESS_RULE: u64 = 1;

/// Rate limits of applications, client addresses and paths. Without any, nothing is limited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Whether the gateways on one store count together.
    pub is_shared: bool,
    /// Limit of each application's signed requests.
    pub application: Option<Rate>,
    /// Limit of each client address' requests.
    pub address: Option<Rate>,
    /// Limits on paths by client address.
    pub paths_by_address: Vec<PathLimit>,
    /// Limits on paths by application.
    pub paths_by_application: Vec<PathLimit>,
    /// A description of each rule that no request reaches.
    unreachable: Vec<String>,
}

/// A rate limit on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathLimit {
    /// The method; `None`: either.
    pub method: Option<Method>,
    /// The path, in the form in which paths are compared.
    pub path: String,
    /// The limit of each application or client address.
    pub rate: Rate,
    /// Its number, which depends on method, path and kind alone: the same after a reload, and at each gateway.
    pub rule: u64,
}

/// Whom a limit on a path counts by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Application,
    Address,
}

const BY: [(&str, By); 2] = [("application", By::Application), ("address", By::Address)];

impl RateLimits {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let is_shared = section.flag("shared", false);
        let application = section.optional_section("application", read_rate);
        let address = section.optional_section("address", read_rate);
        let paths = section.tables("paths", MAX_PATHS, read_path);
        let mut limits = Self {
            is_shared: is_shared?,
            application: application?,
            address: address?,
            ..Self::default()
        };
        for (index, (_, (by, limit))) in paths?.into_iter().enumerate() {
            let earlier = match by {
                By::Application => &mut limits.paths_by_application,
                By::Address => &mut limits.paths_by_address,
            };
            if earlier.iter().any(|before| before.covers(&limit)) {
                limits.unreachable.push(format!(
                    "rate_limits.paths[{index}] has no effect: an earlier entry limits {} by the same key, and only the \
                     first one counts",
                    limit.path
                ));
            }
            earlier.push(limit);
        }
        Ok(limits)
    }

    /// Warnings about useless settings.
    pub(super) fn warnings(&self, has_store: bool) -> Vec<String> {
        let mut warnings = self.unreachable.clone();
        if self.is_shared && !has_store {
            warnings.push(
                "rate_limits.shared has no effect with [application]: only with [applications] does the gateway use \
                 the store, so each gateway counts by itself"
                    .to_owned(),
            );
        }
        let named = [("application", self.application), ("address", self.address)];
        let named = named
            .into_iter()
            .filter_map(|(name, rate)| Some((name.to_owned(), rate?)));
        let paths = [&self.paths_by_address, &self.paths_by_application];
        let paths = paths.into_iter().flatten();
        let paths = paths.map(|limit| (format!("paths of {}", limit.path), limit.rate));
        for (name, rate) in named.chain(paths) {
            // Clients send some requests at once, for example a browser that opens a page.
            if rate.burst.get() < rate.per_second.get().div_ceil(10) {
                warnings.push(format!(
                    "rate_limits.{name}: burst is less than what per_second allows in 100 ms, so clients that send several requests \
                     at once are rejected below their rate"
                ));
            }
        }
        warnings
    }
}

impl PathLimit {
    /// Whether a request counts.
    pub fn applies(&self, method: Method, path: &str) -> bool {
        self.method.is_none_or(|own| own == method) && self.path == path
    }

    /// Whether every request that the other limit counts counts here.
    fn covers(&self, other: &Self) -> bool {
        self.path == other.path && (self.method.is_none() || self.method == other.method)
    }
}

fn read_path(section: &mut Section<'_>) -> Read<(By, PathLimit)> {
    let method = method(section);
    let path = section.required_by("path", "a path, for example \"/login\"", path);
    let by = section.choice("by", &BY, By::Application);
    let rate = read_rate(section);
    let (method, path, by, rate) = (method?, path?, by?, rate?);
    let rule = rule_number(method, &path, by);
    Ok((
        by,
        PathLimit {
            method,
            path,
            rate,
            rule,
        },
    ))
}

/// Reads `per_second` and `burst`.
fn read_rate(section: &mut Section<'_>) -> Read<Rate> {
    let per_second = section.required_number("per_second", &(1..=MAX_PER_SECOND));
    let burst = section.optional_number("burst", &(1..=MAX_BURST))?;
    if burst.is_none() {
        section.set("burst", "twice per_second");
    }
    let per_second = per_second?;
    // No overflow: `MAX_PER_SECOND` is a million.
    let default = (per_second * BURST_SECONDS).min(MAX_BURST);
    rate(per_second, burst.unwrap_or(default))
}

fn rule_number(method: Option<Method>, path: &str, by: By) -> u64 {
    let method = method.map_or("", Method::as_str);
    let by = BY.iter().find(|(_, kind)| *kind == by);
    let by = by.map_or("", |(word, _)| word);
    // The text is a format: gateways that share counts, also of two releases, have to find the same number.
    let text = format!("{by} {method} {path}");
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    let first = digest.as_ref().first_chunk().copied().unwrap_or_default();
    u64::from_be_bytes(first)
}

/// An application's rate limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnRate {
    /// Its requests are not limited; limits on paths still apply.
    Unlimited,
    /// This rate replaces the rate of `[rate_limits.application]`.
    Limited(Rate),
}

impl OwnRate {
    /// Creates one from the columns of a record; both are 0 if it is unlimited. `None`: no release writes these.
    #[must_use]
    pub fn from_numbers(per_second: i64, burst: i64) -> Option<Self> {
        if (per_second, burst) == (0, 0) {
            return Some(Self::Unlimited);
        }
        let number = |number: i64, max| u32::try_from(number).ok().filter(|number| *number <= max);
        Rate::new(
            number(per_second, MAX_PER_SECOND)?,
            number(burst, MAX_BURST)?,
        )
        .map(Self::Limited)
    }

    /// The columns of a record.
    #[must_use]
    pub fn numbers(self) -> [i64; 2] {
        let number = |number: NonZeroU32| i64::from(number.get());
        match self {
            Self::Unlimited => [0, 0],
            Self::Limited(rate) => [number(rate.per_second), number(rate.burst)],
        }
    }
}

impl std::fmt::Display for OwnRate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unlimited => formatter.write_str("unlimited"),
            Self::Limited(rate) => write!(formatter, "{}/{}", rate.per_second, rate.burst),
        }
    }
}

impl std::str::FromStr for OwnRate {
    type Err = ParseOwnRateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        let (per_second, burst) = text.split_once('/').ok_or(ParseOwnRateError)?;
        let number = |text: &str| parse_digits(text).ok_or(ParseOwnRateError);
        match Self::from_numbers(number(per_second)?, number(burst)?) {
            Some(limited @ Self::Limited(_)) => Ok(limited),
            _ => Err(ParseOwnRateError),
        }
    }
}

impl serde::Serialize for OwnRate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The text is not an application's rate limit.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "requests per second (1 to {MAX_PER_SECOND}) and at once (1 to {MAX_BURST}), for example \"100/200\"; or \"unlimited\""
)]
pub struct ParseOwnRateError;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{MINIMAL, load, problems};

    fn read(toml: &str) -> RateLimits {
        load(&format!("{MINIMAL}{toml}")).unwrap().rate_limits
    }

    #[test]
    fn nothing_is_limited_by_default() {
        for toml in ["", "[rate_limits]", "[rate_limits]\npaths = []"] {
            assert_eq!(read(toml), RateLimits::default());
        }
    }

    #[test]
    fn each_limit_is_read_with_its_default_burst() {
        let limits = read(
            "[rate_limits]\nshared = true\n[rate_limits.application]\nper_second = 100\n\
             [rate_limits.address]\nper_second = 50\nburst = 7\n\
             [[rate_limits.paths]]\nmethod = 'POST'\npath = '/login'\nby = 'address'\nper_second = 5\n\
             [[rate_limits.paths]]\npath = '/user'\nper_second = 6\n",
        );
        assert!(limits.is_shared);
        assert_eq!(limits.application, Rate::new(100, 200));
        assert_eq!(limits.address, Rate::new(50, 7));
        let [login] = &limits.paths_by_address[..] else {
            panic!("{limits:?}")
        };
        assert_eq!(Some(login.rate), Rate::new(5, 10));
        assert!(login.applies(Method::Post, "/login"));
        assert!(!login.applies(Method::Get, "/login") && !login.applies(Method::Post, "/login/"));
        let [user] = &limits.paths_by_application[..] else {
            panic!("{limits:?}")
        };
        assert!(user.applies(Method::Get, "/user") && user.applies(Method::Post, "/user"));
        assert_ne!(login.rule, user.rule);
    }

    #[test]
    fn a_rules_number_depends_on_neither_its_place_nor_its_rate() {
        let rule = |toml: &str| read(toml).paths_by_application.pop().unwrap().rule;
        let one = "[[rate_limits.paths]]\npath = '/a'\nper_second = 1\n";
        let other = "[[rate_limits.paths]]\npath = '/b'\nper_second = 1\n";
        let changed = "[[rate_limits.paths]]\npath = '/a'\nper_second = 9\n";
        assert_eq!(rule(one), rule(&format!("{other}{changed}")));
        assert_ne!(rule(one), rule(other));
        // The number is part of what gateways of several releases share.
        assert_eq!(rule(one), 0x6168_078b_09aa_abb8);
    }

    #[test]
    fn every_problem_is_reported() {
        let report = problems(&format!(
            "{MINIMAL}[rate_limits.application]\nburst = 0\n[rate_limits.address]\nper_second = 1000001\n\
             [[rate_limits.paths]]\nmethod = 'TRACE'\nby = 'country'\nper_second = 1\n\
             [[rate_limits.paths]]\npath = 'login'\nper_minute = 1\n"
        ));
        for expected in [
            "rate_limits.application.per_second: missing; allowed: a whole number from 1 to 1000000",
            "rate_limits.application.burst: found 0; allowed: a whole number from 1 to 10000000",
            "rate_limits.address.per_second: found 1000001",
            "rate_limits.paths[0].method: found 'TRACE'; allowed: \"GET\", \"HEAD\", \"POST\", \"PUT\", \"PATCH\", \"DELETE\"",
            "rate_limits.paths[0].path: missing",
            "rate_limits.paths[0].by: found 'country'; allowed: \"application\", \"address\"",
            "rate_limits.paths[1].path: found 'login'",
            "rate_limits.paths[1].per_minute: unknown key",
        ] {
            assert!(report.contains(expected), "{expected}\n{report}");
        }
        let many = "[[rate_limits.paths]]\npath = '/a'\nper_second = 1\n".repeat(65);
        let report = problems(&format!("{MINIMAL}{many}"));
        assert!(
            report.contains("rate_limits.paths: found 65 tables; allowed: at most 64"),
            "{report}"
        );
    }

    #[test]
    fn useless_settings_are_warned_of() {
        let warnings = |toml: &str| {
            load(&format!("{MINIMAL}{toml}"))
                .unwrap()
                .warnings()
                .join("\n")
        };
        let path = "[[rate_limits.paths]]\npath = '/a'\nper_second = 1\n";
        let get = "[[rate_limits.paths]]\nmethod = 'GET'\npath = '/a'\nper_second = 1\n";
        let by_address = "[[rate_limits.paths]]\npath = '/a'\nby = 'address'\nper_second = 1\n";
        let twice = "rate_limits.paths[1] has no effect";
        assert!(warnings(&format!("{path}{path}")).contains(twice));
        assert!(warnings(&format!("{path}{get}")).contains(twice));
        for fine in [format!("{get}{path}"), format!("{path}{by_address}")] {
            assert!(!warnings(&fine).contains("rate_limits"), "{fine}");
        }
        assert!(
            warnings("[rate_limits]\nshared = true").contains("rate_limits.shared has no effect")
        );
        let small = "[rate_limits.address]\nper_second = 100\nburst = ";
        assert!(warnings(&format!("{small}9")).contains("rate_limits.address: burst"));
        assert!(!warnings(&format!("{small}10")).contains("rate_limits.address"));
    }

    #[test]
    fn an_own_rate_is_parsed_and_shown() {
        for text in ["100/200", "1/1", "unlimited"] {
            let own: OwnRate = text.parse().unwrap();
            assert_eq!(own.to_string(), text);
            let [per_second, burst] = own.numbers();
            assert_eq!(OwnRate::from_numbers(per_second, burst), Some(own));
        }
        for text in [
            "",
            "100",
            "0/0",
            "0/1",
            "1/0",
            "1/2/3",
            "-1/2",
            "+1/2",
            "1000001/1",
            "Unlimited",
        ] {
            assert!(text.parse::<OwnRate>().is_err(), "{text}");
        }
        assert_eq!(OwnRate::from_numbers(0, 1), None);
    }
}
