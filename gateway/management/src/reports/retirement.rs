//! Whether a version can be retired, stage by stage: `signpost versions retire`.

use std::time::Duration;

use serde::Serialize;
use signpost_kit::clock::Timestamp;
use signpost_proxy::{Day, KEEP_SHADOW_DAYS, ServedVersion, Versions, as_rfc3339, rfc3339};
use signpost_store::{
    Store, StoreError,
    tables::usage::{OfPaths, count_users, read_paths},
};

use super::{
    coverage::{Coverage, MAX_SHOWN, number_of, shown, told},
    paths::PathUsage,
    shadows::{Diff, Wanted},
    usage::{Summary, VersionSummary},
};

/// Days of the numbers.
const DAYS: u16 = 30;
/// Days in which requests count as present use.
const LATELY: u16 = 7;

/// Whether a version can be retired.
#[derive(Debug, Serialize)]
pub struct Retirement {
    /// Its name.
    pub version: String,
    /// When it shall be retired: as asked, or its sunset.
    #[serde(serialize_with = "as_rfc3339")]
    pub at: Option<Timestamp>,
    /// Whether nothing is open.
    pub is_ready: bool,
    /// `used`, `paths`, `compared`, `proven`, `bridged`, `brownouts`, `then`.
    pub stages: Vec<CheckedStage>,
}

/// A stage.
#[derive(Debug, Serialize)]
pub struct CheckedStage {
    /// Its name.
    pub stage: &'static str,
    /// What is known of it.
    pub says: String,
    /// What is to be done.
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
        let (name, today) = (version.name().as_str(), Day::at(now));
        let summary = Summary::read(store, DAYS, now, versions, None).await?;
        let lately = count_users(store, name, today.minus(LATELY - 1).number()).await?;
        let of = OfPaths {
            day: today.minus(DAYS - 1).number(),
            version: Some(name),
            ..OfPaths::default()
        };
        let paths = read_paths(store, &of).await?;
        let (diff, coverage) = proof(store, version, now).await?;
        let used = summary.versions.iter().find(|one| one.version == name);
        let sunset = version.life_cycle().and_then(|life| life.sunset);
        let at = at.or(sunset);
        let stages: Vec<_> = [
            used.map(|used| of_users(used, lately, is_gone(version))),
            Some(of_paths(&paths)),
            diff.map(|diff| of_pairs(&diff)),
            Some(of_proof(coverage, !paths.is_empty())),
            Some(of_bridge(version, &paths)),
            Some(of_brownouts(version, now)),
            Some(of_end(version, at, now)),
        ]
        .into_iter()
        .flatten()
        .collect();
        Ok(Self {
            version: name.to_owned(),
            at,
            is_ready: stages.iter().all(|stage| stage.open.is_empty()),
            stages,
        })
    }
}

/// Whether its requests get 410 after its sunset.
fn is_gone(version: &ServedVersion) -> bool {
    let life = version.life_cycle();
    life.is_some_and(|life| life.gone.is_some())
}

/// A stage with the points whose conditions hold.
fn checked<const N: usize>(
    stage: &'static str,
    says: String,
    open: [(bool, String); N],
) -> CheckedStage {
    let open = open.into_iter().filter(|(is_open, _)| *is_open);
    CheckedStage {
        stage,
        says,
        open: open.map(|(_, text)| text).collect(),
    }
}

fn of_users(used: &VersionSummary, lately: u64, is_gone: bool) -> CheckedStage {
    let idents = used
        .applications
        .iter()
        .filter_map(|app| app.ident.as_ref());
    let idents: Vec<_> = idents.collect();
    let last = used
        .requests
        .last_seen
        .map(|last| format!(", the last at {}", rfc3339(last)));
    let says = format!(
        "{} in {DAYS} days{}; by {}",
        number_of(used.requests.requests, "request"),
        last.unwrap_or_default(),
        match &idents[..] {
            [] => "no application".to_owned(),
            idents => format!(
                "{}: {}",
                number_of(idents.len() as u64, "application"),
                shown(idents.iter(), MAX_SHOWN)
            ),
        }
    );
    let lately_used = format!(
        "{} sent requests in the last {LATELY} days, and would get 410",
        number_of(lately, "application")
    );
    let pinned = number_of(used.retiring.pinned.len() as u64, "application");
    let open = [
        (is_gone && lately > 0, lately_used),
        (
            is_gone && used.is_default,
            "it is the default version".to_owned(),
        ),
        (
            is_gone && !used.retiring.pinned.is_empty(),
            format!("it is the default version of {pinned}"),
        ),
    ];
    checked("used", says, open)
}

fn of_paths(paths: &[PathUsage]) -> CheckedStage {
    let mut paths: Vec<_> = paths.iter().collect();
    paths.sort_by_key(|path| std::cmp::Reverse(path.requests));
    let texts = paths.into_iter().map(told);
    let says = format!("{}: {}", texts.len(), shown(texts, MAX_SHOWN));
    checked("paths", says, [])
}

fn of_pairs(diff: &Diff) -> CheckedStage {
    let (pairs, differing, to) = (diff.pairs, diff.differing_paths, &diff.to);
    let says = format!(
        "{} with {to}; {differing} of {} paths differ",
        number_of(pairs, "pair"),
        diff.paths
    );
    let command = match diff.is_bridged {
        true => format!("bridge check {}", diff.version),
        false => format!("versions diff {} {to}", diff.version),
    };
    let open = format!("that is no proof: signpost {command}");
    checked("compared", says, [(!diff.is_proof(), open)])
}

fn of_proof(coverage: Option<Coverage>, is_used: bool) -> CheckedStage {
    let Some(coverage) = coverage else {
        let open = "it is used, and has neither a bridge nor a shadow with changes".to_owned();
        return checked("proven", "nothing".to_owned(), [(is_used, open)]);
    };
    let mut lines = coverage.lines();
    let says = lines.remove(0);
    let named = lines.split_off(lines.len() - coverage.unproven.len());
    let says = [says]
        .into_iter()
        .chain(named)
        .collect::<Vec<_>>()
        .join("; ");
    CheckedStage {
        open: lines,
        ..checked("proven", says, [])
    }
}

fn of_bridge(version: &ServedVersion, paths: &[PathUsage]) -> CheckedStage {
    let bridged = number_of(paths.iter().map(|path| path.bridged).sum(), "request");
    let says = version
        .bridge()
        .map(|bridge| format!("to {}, {bridged}", bridge.to));
    let open = "its own backend still serves it: bridge replaces that".to_owned();
    let is_open = says.is_none() && version.changes().is_some();
    checked(
        "bridged",
        says.unwrap_or_else(|| "no".to_owned()),
        [(is_open, open)],
    )
}

fn of_brownouts(version: &ServedVersion, now: Timestamp) -> CheckedStage {
    let all = version.life_cycle().map_or(&[][..], |life| &life.brownouts);
    let ahead = all.iter().filter(|one| one.end > now);
    let ahead: Vec<_> = ahead.map(|one| rfc3339(one.start)).collect();
    let passed = all.len() - ahead.len();
    let shown = shown(ahead.iter(), MAX_SHOWN);
    let says = format!("{passed} passed, {} ahead: {shown}", ahead.len());
    let open = "no brown-out has passed".to_owned();
    checked("brownouts", says, [(is_gone(version) && passed == 0, open)])
}

/// What happens at its end, and what its clients were told.
fn of_end(version: &ServedVersion, at: Option<Timestamp>, now: Timestamp) -> CheckedStage {
    let life = version.life_cycle();
    let sunset = life.and_then(|life| life.sunset);
    let deprecated = life.and_then(|life| life.deprecated);
    let served = match version.bridge() {
        Some(bridge) => format!("{}'s backend serves its requests by the bridge", bridge.to),
        None => "its own backend serves its requests".to_owned(),
    };
    let says = match sunset.filter(|_| is_gone(version)) {
        Some(sunset) => format!(
            "until {} {served}, then they get 410 version_retired",
            rfc3339(sunset)
        ),
        None => format!("{served}, without an end"),
    };
    let told = sunset.map(rfc3339).unwrap_or_default();
    let open = [
        (sunset.is_none(), "it has no sunset".to_owned()),
        (
            sunset.is_some() && sunset != at,
            format!("its sunset is {told}: clients know no other date"),
        ),
        (
            deprecated.is_none_or(|since| since > now),
            "it is not deprecated yet".to_owned(),
        ),
    ];
    checked("then", says, open)
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
    let mut diff = Diff::read(store, &wanted).await?;
    let coverage = diff.coverage.take();
    // The coverage is a stage of its own.
    Ok((Some(diff), coverage))
}
