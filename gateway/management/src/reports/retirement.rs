//! Whether a version can be retired, stage by stage: `signpost versions retire`.

use std::{fmt::Display, time::Duration};

use serde::Serialize;
use signpost_kit::clock::Timestamp;
use signpost_protocol::{language::Language, text::text};
use signpost_proxy::{Day, KEEP_SHADOW_DAYS, ServedVersion, Versions, as_rfc3339, rfc3339};
use signpost_store::{
    Store, StoreError,
    tables::usage::{OfPaths, count_users, read_paths},
};
use utoipa::ToSchema;

use super::{
    coverage::{Coverage, MAX_SHOWN, told},
    paths::PathUsage,
    shadows::{Diff, Wanted},
    usage::{Summary, VersionSummary},
};

/// Days of the numbers.
const DAYS: u16 = 30;
/// Days in which requests count as present use.
const LATELY: u16 = 7;

/// Whether a version can be retired.
#[derive(Debug, Serialize, ToSchema)]
pub struct Retirement {
    /// Its name.
    pub version: String,
    /// When it shall be retired: as asked, or its sunset.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Timestamp>,
    /// Whether nothing is open.
    pub is_ready: bool,
    /// `used`, `paths`, `compared`, `proven`, `bridged`, `brownouts`, `then`.
    pub stages: Vec<CheckedStage>,
}

/// A stage. Its texts are for people, and can change.
#[derive(Debug, Serialize, ToSchema)]
pub struct CheckedStage {
    /// Its name.
    pub stage: &'static str,
    /// What is known of it.
    pub says: String,
    /// What is to be done.
    pub open: Vec<String>,
}

/// Writes in a language.
#[derive(Clone, Copy)]
struct Writer(Language);

impl Retirement {
    /// Reads and checks all stages of a configured version, and writes of them in a language.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub async fn read(
        store: &Store,
        versions: &Versions,
        version: &ServedVersion,
        at: Option<Timestamp>,
        (now, language): (Timestamp, Language),
    ) -> Result<Self, StoreError> {
        let (name, today, to) = (version.name().as_str(), Day::at(now), Writer(language));
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
            used.map(|used| to.write_users(used, lately, is_gone(version))),
            Some(to.write_paths(version, &paths)),
            diff.map(|diff| to.write_pairs(&diff)),
            Some(to.write_proof(coverage, !paths.is_empty())),
            Some(to.write_bridge(version, &paths)),
            Some(to.write_brownouts(version, now)),
            Some(to.write_end(version, at, now)),
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
    says: impl IntoIterator<Item = String>,
    open: [(bool, String); N],
) -> CheckedStage {
    let says: Vec<_> = says.into_iter().collect();
    let open = open.into_iter().filter(|(is_open, _)| *is_open);
    CheckedStage {
        stage,
        says: says.join("; "),
        open: open.map(|(_, text)| text).collect(),
    }
}

impl Writer {
    /// The text `retire_ID`.
    fn say(self, id: &str, args: &[(&str, &dyn Display)]) -> String {
        let args: Vec<_> = args
            .iter()
            .map(|(name, arg)| (*name, arg.to_string()))
            .collect();
        let args: Vec<_> = args.iter().map(|(name, arg)| (*name, &**arg)).collect();
        text(self.0, &format!("retire_{id}"), &args)
    }

    /// The first of the items, and how many there are more.
    fn list(self, items: &[String]) -> String {
        let (first, further) = items.split_at(items.len().min(MAX_SHOWN));
        let first = first.join(", ");
        match further.len() {
            0 => first,
            more => self.say("more", &[("list", &first), ("number", &more)]),
        }
    }

    /// The text about items, if there are any.
    fn items(self, id: &str, items: &[String]) -> Option<String> {
        let args: [(&str, &dyn Display); 2] =
            [("number", &items.len()), ("list", &self.list(items))];
        (!items.is_empty()).then(|| self.say(id, &args))
    }

    fn write_users(self, used: &VersionSummary, lately: u64, is_gone: bool) -> CheckedStage {
        let idents = used.applications.iter().filter_map(|app| app.ident.clone());
        let idents: Vec<_> = idents.collect();
        let last = used.requests.last_seen.map(rfc3339);
        let (extended, pinned) = (&used.retiring.extended, used.retiring.pinned.len());
        let until = extended.values().max();
        let extended =
            |until: &String| self.say("extended", &[("number", &extended.len()), ("at", until)]);
        let says = [
            Some(self.say(
                "used",
                &[("days", &DAYS), ("number", &used.requests.requests)],
            )),
            last.map(|last| self.say("last_used", &[("at", &last)])),
            self.items("users", &idents),
            until.map(extended),
        ];
        let used_lately = self.say("used_lately", &[("days", &LATELY), ("number", &lately)]);
        let open = [
            (is_gone && lately > 0, used_lately),
            (is_gone && used.is_default, self.say("default", &[])),
            (
                is_gone && pinned > 0,
                self.say("pinned", &[("number", &pinned)]),
            ),
        ];
        checked("used", says.into_iter().flatten(), open)
    }

    fn write_paths(self, version: &ServedVersion, paths: &[PathUsage]) -> CheckedStage {
        let mut paths: Vec<_> = paths.iter().collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.requests));
        let used: Vec<_> = paths.into_iter().map(told).collect();
        let ending = version.endpoints().iter().map(|endpoint| endpoint.shown());
        let ending: Vec<_> = ending.collect();
        let says = [
            self.items("paths", &used),
            self.items("ending_paths", &ending),
        ];
        checked("paths", says.into_iter().flatten(), [])
    }

    fn write_pairs(self, diff: &Diff) -> CheckedStage {
        let says = self.say(
            "compared",
            &[
                ("to", &diff.to),
                ("pairs", &diff.pairs),
                ("paths", &diff.paths),
                ("differing", &diff.differing_paths),
            ],
        );
        let command = match diff.is_bridged {
            true => format!("signpost bridge check {}", diff.version),
            false => format!("signpost versions diff {} {}", diff.version, diff.to),
        };
        let open = self.say("no_proof", &[("command", &command)]);
        checked("compared", [says], [(!diff.is_proof(), open)])
    }

    fn write_proof(self, coverage: Option<Coverage>, is_used: bool) -> CheckedStage {
        let Some(coverage) = coverage else {
            return checked("proven", [], [(is_used, self.say("unprovable", &[]))]);
        };
        let unproven = coverage.unproven.iter().map(|named| {
            let args: [(&str, &dyn Display); 3] = [
                ("request", &named.request),
                ("number", &named.requests),
                ("reason", &named.reason),
            ];
            self.say("unproven", &args)
        });
        let proven = self.say(
            "proven",
            &[("number", &coverage.used), ("proven", &coverage.proven)],
        );
        let says = std::iter::once(proven).chain(unproven);
        let open = [("unpaired", false), ("few_pairs", true)];
        let open = open.map(|(id, is_paired)| self.items(id, &coverage.uncovered(is_paired)));
        checked(
            "proven",
            says,
            open.map(|open| (open.is_some(), open.unwrap_or_default())),
        )
    }

    fn write_bridge(self, version: &ServedVersion, paths: &[PathUsage]) -> CheckedStage {
        let bridged: u64 = paths.iter().map(|path| path.bridged).sum();
        let bridge = version.bridge();
        let says = match bridge {
            Some(bridge) => self.say("bridged", &[("to", &bridge.to), ("number", &bridged)]),
            None => self.say("not_bridged", &[]),
        };
        let is_open = bridge.is_none() && version.changes().is_some();
        let open = self.say("own_backend", &[]);
        checked("bridged", [says], [(is_open, open)])
    }

    fn write_brownouts(self, version: &ServedVersion, now: Timestamp) -> CheckedStage {
        let all = version.life_cycle().map_or(&[][..], |life| &life.brownouts);
        let ahead = all.iter().filter(|one| one.end > now);
        let ahead: Vec<_> = ahead.map(|one| rfc3339(one.start)).collect();
        let passed = all.len() - ahead.len();
        let says = [
            Some(self.say("brownouts", &[("number", &passed)])),
            self.items("brownouts_ahead", &ahead),
        ];
        let open = (
            is_gone(version) && passed == 0,
            self.say("no_brownout", &[]),
        );
        checked("brownouts", says.into_iter().flatten(), [open])
    }

    /// What happens at its end, and what its clients were told.
    fn write_end(
        self,
        version: &ServedVersion,
        at: Option<Timestamp>,
        now: Timestamp,
    ) -> CheckedStage {
        let life = version.life_cycle();
        let sunset = life.and_then(|life| life.sunset);
        let deprecated = life.and_then(|life| life.deprecated);
        let told = sunset.map(rfc3339).unwrap_or_default();
        let served = match version.bridge() {
            Some(bridge) => self.say("served_by_bridge", &[("to", &bridge.to)]),
            None => self.say("served", &[]),
        };
        let then = match is_gone(version) {
            true => self.say("until", &[("at", &told)]),
            false => self.say("no_end", &[]),
        };
        let other = sunset.is_some() && sunset != at;
        let open = [
            (sunset.is_none(), self.say("no_sunset", &[])),
            (other, self.say("other_sunset", &[("at", &told)])),
            (
                deprecated.is_none_or(|since| since > now),
                self.say("not_deprecated", &[]),
            ),
        ];
        checked("then", [served, then], open)
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
    let mut diff = Diff::read(store, &wanted).await?;
    let coverage = diff.coverage.take();
    // The coverage is a stage of its own.
    Ok((Some(diff), coverage))
}
