//! Whether a version can be retired, stage by stage: `signpost versions retire`.

use std::time::Duration;

use serde::Serialize;
use signpost_kit::clock::Timestamp;
use signpost_proxy::{
    AfterSunset, Day, KEEP_SHADOW_DAYS, ServedVersion, Versions, as_rfc3339, rfc3339,
};
use signpost_store::{
    Store, StoreError,
    tables::usage::{OfPaths, count_users},
};

use super::{
    coverage::Coverage,
    paths::PathUsage,
    shadows::{Diff, Wanted},
    usage::{Summary, VersionSummary},
    versions::{ListedBrownout, stage_name},
};

/// Days of the report.
const DAYS: u16 = 30;
/// Days in which requests count as present use.
const LATELY: u16 = 7;
/// Limit of the requests that a point names.
const MAX_NAMED: usize = 10;

/// Whether a version can be retired.
#[derive(Debug, Serialize)]
pub struct Retirement {
    /// Its name.
    pub version: String,
    /// `current`, `deprecated`, `brownout`, `past_sunset` or `retired`.
    pub stage: &'static str,
    /// When it shall be retired: as asked, or its sunset.
    #[serde(serialize_with = "as_rfc3339")]
    pub at: Option<Timestamp>,
    /// Days of the numbers.
    pub days: u16,
    /// Who used it.
    pub used: VersionSummary,
    /// Applications with requests in the last 7 days.
    pub users_lately: u64,
    /// What they used.
    pub paths: Vec<PathUsage>,
    /// The comparison with its shadow, if it has one.
    pub compared: Option<Diff>,
    /// What is proven of it, if it has a shadow with changes, or a bridge.
    pub coverage: Option<Coverage>,
    /// The version whose backends serve its requests, if it has a bridge.
    pub bridge: Option<String>,
    /// Brown-outs that are over.
    pub brownouts_passed: usize,
    /// Those that are not.
    pub brownouts_ahead: Vec<ListedBrownout>,
    /// What happens to its requests then.
    pub then: String,
    /// What is to be done before.
    pub open: Vec<String>,
}

impl Retirement {
    /// Reads and checks all stages of a configured version.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub async fn read(
        store: &Store,
        versions: &Versions,
        version: &ServedVersion,
        at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let name = version.name().as_str();
        let mut summary = Summary::read(store, DAYS, now, versions, None).await?;
        // A configured version is always in the report.
        let place = summary.versions.iter().position(|one| one.version == name);
        let used = summary.versions.swap_remove(place.unwrap_or_default());
        let today = Day::at(now);
        let of = OfPaths {
            day: today.minus(DAYS - 1).number(),
            version: Some(name),
            ..OfPaths::default()
        };
        let paths = PathUsage::read(store, &of).await?.remove(name);
        let lately = today.minus(LATELY - 1).number();
        let (mut compared, coverage) = proof(store, version, now).await?;
        let life_cycle = version.life_cycle();
        let brownouts = life_cycle.map_or(&[][..], |life| &life.brownouts);
        let passed = brownouts.iter().filter(|one| one.end <= now).count();
        let ahead = brownouts.iter().filter(|one| one.end > now);
        let coverage = coverage.or_else(|| compared.as_mut()?.coverage.take());
        let mut retirement = Self {
            version: name.to_owned(),
            stage: stage_name(version.stage(now)),
            at: at.or(life_cycle.and_then(|life| life.sunset)),
            days: DAYS,
            used,
            users_lately: count_users(store, name, lately).await?,
            paths: paths.unwrap_or_default(),
            compared,
            coverage,
            bridge: version.bridge().map(|bridge| bridge.to.to_string()),
            brownouts_passed: passed,
            brownouts_ahead: ahead.map(ListedBrownout::new).collect(),
            then: String::new(),
            open: Vec::new(),
        };
        retirement.then = retirement.what_happens(version);
        retirement.open.extend(retirement.open_proof());
        retirement.open.extend(retirement.open_dates(version, now));
        retirement.open.extend(retirement.open_users(version));
        Ok(retirement)
    }

    /// Whether nothing is to be done before.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.open.is_empty()
    }

    fn what_happens(&self, version: &ServedVersion) -> String {
        let sunset = version
            .life_cycle()
            .and_then(|life| Some((life.sunset?, life.after_sunset)));
        let served = match &self.bridge {
            Some(to) => format!("{to}'s backend serves its requests by the bridge"),
            None => "its own backend serves its requests".to_owned(),
        };
        match sunset {
            Some((sunset, AfterSunset::Gone)) => format!(
                "from {} on its requests get 410 version_retired; until then {served}",
                rfc3339(sunset)
            ),
            Some((_, AfterSunset::Serve)) => format!("{served}, also after the sunset"),
            None => format!("{served}: it has no sunset"),
        }
    }

    /// Comparison and bridge.
    fn open_proof(&self) -> Vec<String> {
        let (name, mut open) = (&self.version, Vec::new());
        let is_used = self.used.requests.requests > 0;
        match (&self.compared, &self.coverage) {
            (Some(diff), _) if !diff.is_proof() => {
                let command = match diff.is_bridged {
                    true => format!("bridge check {name}"),
                    false => format!("versions diff {name} {}", diff.to),
                };
                let what = match (diff.pairs, diff.differing_paths) {
                    (0, _) => "nothing was compared".to_owned(),
                    (_, 0) => "the comparison is no proof".to_owned(),
                    (_, paths) => format!("{paths} paths differ"),
                };
                open.push(format!("{what}: signpost {command}"));
            }
            (None, None) if is_used => {
                open.push("it is used, and has neither a shadow nor a bridge".to_owned());
            }
            _ => {}
        }
        let uncovered = self
            .coverage
            .iter()
            .flat_map(|coverage| &coverage.uncovered);
        let mut uncovered: Vec<_> = uncovered.map(ToString::to_string).collect();
        if !uncovered.is_empty() {
            let more = uncovered.len().saturating_sub(MAX_NAMED);
            uncovered.truncate(MAX_NAMED);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            open.push(format!(
                "requests without a proof: {}{more}",
                uncovered.join(", ")
            ));
        }
        if is_used
            && self.bridge.is_none()
            && self.compared.as_ref().is_some_and(|diff| diff.is_bridged)
        {
            open.push("it has still its own backend: bridge replaces it".to_owned());
        }
        open
    }

    /// The life cycle.
    fn open_dates(&self, version: &ServedVersion, now: Timestamp) -> Vec<String> {
        let Some(life) = version.life_cycle() else {
            return vec![
                "its clients were told no dates: deprecated and sunset are not set".to_owned(),
            ];
        };
        let mut open = Vec::new();
        if life.deprecated.is_none_or(|deprecated| deprecated > now) {
            open.push("it is not deprecated yet".to_owned());
        }
        match (life.sunset, self.at) {
            (None, _) => open.push("it has no sunset".to_owned()),
            (Some(sunset), Some(at)) if sunset != at => open.push(format!(
                "its sunset is {}, not {}",
                rfc3339(sunset),
                rfc3339(at)
            )),
            _ => {}
        }
        if life.after_sunset == AfterSunset::Gone && self.brownouts_passed == 0 {
            open.push("no brown-out has passed".to_owned());
        }
        open
    }

    /// Who would notice.
    fn open_users(&self, version: &ServedVersion) -> Vec<String> {
        let mut open = Vec::new();
        let life = version.life_cycle();
        let is_gone = life.is_some_and(|life| life.after_sunset == AfterSunset::Gone);
        if is_gone && self.users_lately > 0 {
            open.push(format!(
                "{} applications sent requests in the last {LATELY} days: they would get 410",
                self.users_lately
            ));
        }
        if is_gone && self.used.is_default {
            open.push("it is the default version".to_owned());
        }
        let pinned = self.used.retiring.pinned.len();
        if is_gone && pinned > 0 {
            open.push(format!(
                "it is the default version of {pinned} applications"
            ));
        }
        open
    }
}

/// What is proven: by the shadow while the version has its backend, or by what was compared before the bridge.
async fn proof(
    store: &Store,
    version: &ServedVersion,
    now: Timestamp,
) -> Result<(Option<Diff>, Option<Coverage>), StoreError> {
    let since = now.minus(Duration::from_secs(u64::from(KEEP_SHADOW_DAYS) * 86_400));
    if let Some(bridge) = version.bridge() {
        let coverage = Coverage::read(store, version, &bridge.to, (since, since)).await?;
        return Ok((None, Some(coverage)));
    }
    let Some(shadow) = version.shadow() else {
        return Ok((None, None));
    };
    let wanted = Wanted {
        version,
        to: &shadow.to,
        changes: version.changes().map(|changes| &**changes),
        since,
    };
    Ok((Some(Diff::read(store, &wanted).await?), None))
}
