//! Settings of signatures: profile, window, and paths with special rules. CONTRACT 3.

use signpost_protocol::sign::{
    ReplayPolicy, SignAlgorithm, SignCarrier, SignCover, SignEmpty, SignLayout, SignProfile,
    SignValues, TIME, Window,
};

use signpost_kit::{
    config::{Invalid, Read, Section},
    read_all,
};

use super::{path_pattern::PathPattern, readers::path};
use crate::request::Method;

/// Default of `replay_entries`: 500 requests per second for two minutes.
const DEFAULT_REPLAY_ENTRIES: usize = 60_000;

/// Settings of signatures.
#[derive(Clone, Debug)]
pub struct SignConfig {
    /// The profile of applications without one of their own.
    pub profile: SignProfile,
    /// The accepted deviation of `time`, either way.
    pub window: Window,
    /// Whether requests without parameters must be signed, unless their version or route has a rule of its own.
    pub unsigned: Unsigned,
    /// Requests that must be signed even without parameters, wherever they go.
    pub(crate) always_signed: Vec<AlwaysSigned>,
    /// Paths of callbacks (unsigned provider redirects).
    pub(crate) callback_paths: Vec<String>,
    /// Paths on which the parameter `app` replaces an absent application header.
    pub browser_paths: Vec<String>,
    /// Whether keys under 128 bits are accepted.
    pub allows_weak_keys: bool,
    /// Whether a client whose signature does not match sees the canonical string.
    pub(crate) shows_canonical: bool,
    /// Live signatures stored per application under `replay = "reject"`.
    pub(crate) replay_entries: usize,
    /// Whether all gateways of a store remember signatures together.
    pub(crate) shares_replays: bool,
    /// Whether each gateway remembers by itself while that store is unavailable, instead of a 503.
    pub(crate) has_replay_fallback: bool,
}

impl SignConfig {
    /// Whether providers may call back: without it, there is no login service behind the gateway.
    #[must_use]
    pub const fn has_callbacks(&self) -> bool {
        !self.callback_paths.is_empty()
    }

    /// What an outage of the store does to signed requests, beside what it does to applications and accounts; `None`:
    /// nothing, since gateways do not remember signatures together.
    #[must_use]
    pub fn replay_outage(&self) -> Option<&'static str> {
        self.shares_replays
            .then_some(match self.has_replay_fallback {
                false => "requests whose signatures are valid once are rejected",
                true => "this gateway remembers signatures by itself",
            })
    }
}

/// Default of `always_signed`.
const ALWAYS_SIGNED: &str = "POST /login";

/// Requests that must be signed even without parameters, for example `POST /login`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AlwaysSigned {
    /// Their method.
    pub method: Method,
    /// Their paths.
    pub path: PathPattern,
}

/// How requests without parameters are handled that have no signature. CONTRACT 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unsigned {
    /// No key says it: they are forwarded, and `check` warns.
    Unset,
    /// They are forwarded on purpose: the application that they name is only a claim.
    Accept,
    /// They are 403 `sign_missing`.
    Reject,
}

impl Unsigned {
    const KEY: &str = "unsigned";
    const CHOICES: [(&str, Self); 2] = [("accept", Self::Accept), ("reject", Self::Reject)];

    /// Reads `unsigned`. [`Self::Unset`] is shown as what it does, but no file can write it.
    pub(super) fn read(section: &mut Section<'_>, default: Self) -> Read<Self> {
        if let Some(rule) = Self::read_optional(section)? {
            return Ok(rule);
        }
        let shown = match default {
            Self::Unset | Self::Accept => "\"accept\"",
            Self::Reject => "\"reject\"",
        };
        section.set(Self::KEY, shown);
        Ok(default)
    }

    /// Reads `unsigned`, if the table has it.
    pub(super) fn read_optional(section: &mut Section<'_>) -> Read<Option<Self>> {
        section.optional_by(Self::KEY, "\"accept\", \"reject\"", |text| {
            let mut choices = Self::CHOICES.into_iter();
            choices.find_map(|(word, rule)| (word == text).then_some(rule))
        })
    }

    /// The rule of routes without one of their own: at least as strict as the version and the gateway. Their backends are
    /// others, so an accept is not meant for them.
    pub(super) fn of_routes(self, gateway: Self) -> Self {
        // The variants are ordered by strictness.
        if self.max(gateway) == Self::Reject {
            Self::Reject
        } else {
            Self::Unset
        }
    }
}

impl SignConfig {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let window = |seconds| Window::from_seconds(seconds).map_err(|_| Invalid);
        let requests = format!("methods, each with {}", PathPattern::ALLOWED);
        let paths = "paths, for example \"/login\"";
        read_all!(Self {
            profile: profile(section),
            window: section
                .number("window_seconds", 1..=300, 60)
                .and_then(window),
            unsigned: Unsigned::read(section, Unsigned::Unset),
            always_signed: section.list(
                "always_signed",
                &[ALWAYS_SIGNED],
                &requests,
                always_signed
            ),
            callback_paths: section.list("callback_paths", &["/login"], paths, path),
            browser_paths: section.list("browser_paths", &["/login"], paths, path),
            allows_weak_keys: section.flag("allow_weak_key", false),
            shows_canonical: section.flag("show_canonical", true),
            replay_entries: section.number(
                "replay_entries",
                100..=10_000_000,
                DEFAULT_REPLAY_ENTRIES
            ),
            shares_replays: section.choice(
                "replay_scope",
                &[("gateway", false), ("all", true)],
                false
            ),
            has_replay_fallback: section.choice(
                "replay_fallback",
                &[("reject", false), ("gateway", true)],
                false
            ),
        })
    }

    /// Whether `always_signed` has more than the default.
    pub(super) fn always_signs(&self) -> bool {
        let default = always_signed(ALWAYS_SIGNED);
        let mut rules = self.always_signed.iter();
        rules.any(|rule| default.as_ref() != Some(rule))
    }

    /// Whether a request must be signed even without parameters.
    #[must_use]
    pub(crate) fn is_always_signed(&self, method: Method, path: &str) -> bool {
        let mut rules = self.always_signed.iter();
        rules.any(|rule| rule.method == method && rule.path.takes(path))
    }

    /// Whether each POST to one of these paths must be signed.
    pub(super) fn signs_posts(&self, paths: &PathPattern) -> bool {
        let mut rules = self.always_signed.iter();
        rules.any(|rule| rule.method == Method::Post && rule.path.includes(paths))
    }

    /// A warning for each weak setting.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<_> = weaknesses(&self.profile)
            .map(|weakness| format!("sign.{weakness}"))
            .collect();
        if self.allows_weak_keys {
            warnings.push(
                "sign.allow_weak_key is true: keys under 128 bits can be guessed from one signed request"
                    .to_owned(),
            );
        }
        warnings
    }
}

/// A description of each weak setting of a profile. CONTRACT 3.
pub fn weaknesses(profile: &SignProfile) -> impl Iterator<Item = &'static str> + use<> {
    let is_concat = matches!(profile.layout, SignLayout::Concat | SignLayout::ConcatBoth);
    [
        (
            profile.algorithm == SignAlgorithm::Md5,
            "algorithm is md5: a weak hash, kept for existing clients; prefer hmac-sha256",
        ),
        (
            profile.values == SignValues::Decoded,
            "values is decoded: two parameter lists can share one signature (a value may hold '&' or '='); prefer wire",
        ),
        (
            is_concat,
            "layout is concat: two parameter lists can share one signature ('a=bc' and 'ab=c'); prefer pairs",
        ),
        (
            profile.empty == SignEmpty::Drop,
            "empty is drop: pairs without a value are not signed and can be added or removed in transit; prefer keep",
        ),
        (
            !profile.leave_out.is_empty(),
            "leave_out names keys that are not signed: their values can be changed in transit; leave out none",
        ),
        (
            profile.replay == ReplayPolicy::Allow,
            "replay is allow: an intercepted request can be sent again within the window; prefer reject",
        ),
    ]
    .into_iter()
    .filter_map(|(applies, weakness)| applies.then_some(weakness))
}

/// The preset, overridden by single settings.
fn profile(section: &mut Section<'_>) -> Read<SignProfile> {
    let presets = SignProfile::PRESETS
        .map(|name| format!("\"{name}\""))
        .join(", ");
    let preset = section.parsed_by("preset", "plain", &presets, SignProfile::preset);
    let is_known = preset.is_ok();
    // If the preset is unknown, the single settings are checked nevertheless.
    let preset = preset.unwrap_or_default();
    let values = [("wire", SignValues::Wire), ("decoded", SignValues::Decoded)];
    let layouts = [
        ("pairs", SignLayout::Pairs),
        ("pairs-key", SignLayout::PairsKey),
        ("concat", SignLayout::Concat),
        ("concat-both", SignLayout::ConcatBoth),
    ];
    let empties = [("keep", SignEmpty::Keep), ("drop", SignEmpty::Drop)];
    let covers = [
        ("parameters", SignCover::Parameters),
        ("request", SignCover::Request),
    ];
    let algorithms = [
        ("md5", SignAlgorithm::Md5),
        ("hmac-sha256", SignAlgorithm::HmacSha256),
    ];
    let replays = [
        ("allow", ReplayPolicy::Allow),
        ("reject", ReplayPolicy::Reject),
    ];
    let carrier = section.choice("carrier", &SignCarrier::ALL, preset.carrier);
    // A convention of its own, which has no clients that are bound to the weak hash.
    let algorithm = match carrier {
        Ok(SignCarrier::Headers) => SignAlgorithm::HmacSha256,
        _ => preset.algorithm,
    };
    let preset_keys: Vec<_> = preset.leave_out.iter().map(String::as_str).collect();
    let profile = read_all!(SignProfile {
        values: section.choice("values", &values, preset.values),
        layout: section.choice("layout", &layouts, preset.layout),
        empty: section.choice("empty", &empties, preset.empty),
        cover: section.choice("cover", &covers, preset.cover),
        algorithm: section.choice("algorithm", &algorithms, algorithm),
        carrier,
        replay: section.choice("replay", &replays, preset.replay),
        leave_out: section.list("leave_out", &preset_keys, "keys", |key| {
            // If `time` were left out, an old request could be moved into the window.
            (!key.is_empty() && key != TIME).then(|| key.to_owned())
        }),
    });
    profile.and_then(|profile| is_known.then_some(profile).ok_or(Invalid))
}

fn always_signed(text: &str) -> Option<AlwaysSigned> {
    let (method, path) = text.split_once(' ')?;
    Some(AlwaysSigned {
        method: Method::from_bytes(method.as_bytes())?,
        path: path.parse().ok()?,
    })
}
