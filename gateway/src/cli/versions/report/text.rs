//! The report as text, for people.

use std::{collections::BTreeSet, ops::Range};

use super::summary::{AppKind, AppUsage, Requests, Summary, VersionSummary};
use crate::{cli::table::table_lines, config::rfc3339};

/// Limit of the applications that a sentence names.
const MAX_NAMED: usize = 10;

/// The report, line by line.
pub(super) fn lines(summary: &Summary) -> Vec<String> {
    let Summary {
        days,
        first_day,
        last_day,
        ..
    } = summary;
    let mut lines = vec![format!(
        "Requests from {first_day} to {last_day} ({days} days, UTC)"
    )];
    lines.extend(gap(summary));
    for version in &summary.versions {
        lines.push(String::new());
        lines.push(heading(version));
        if !version.applications.is_empty() {
            lines.push(String::new());
            lines.extend(table(version));
            lines.push(String::new());
        }
        lines.extend(retiring(version, summary).map(|line| format!("  {line}")));
    }
    lines
}

/// What the report does not cover.
fn gap(summary: &Summary) -> Option<String> {
    match summary.counted_since {
        None => Some("No gateway has counted requests in this store yet.".to_owned()),
        Some(since) if !summary.is_complete => Some(format!(
            "Counting began at {}: earlier requests are not in this report.",
            rfc3339(since)
        )),
        Some(_) => None,
    }
}

fn heading(version: &VersionSummary) -> String {
    let VersionSummary {
        version: name,
        requests: Requests {
            requests, signed, ..
        },
        ..
    } = version;
    let role = match (version.is_default, version.is_configured) {
        (true, _) => ", the default version",
        (false, true) => "",
        (false, false) => ", no longer configured",
    };
    match requests {
        0 => format!("{name}{role}: no requests"),
        _ => format!(
            "{name}{role}: {requests} requests, {} of them signed",
            share(*signed, *requests)
        ),
    }
}

/// The columns.
const HEADS: [&str; 10] = [
    "APPLICATION",
    "STATE",
    "REQUESTS",
    "SIGNED",
    "NAMED",
    "PINNED",
    "DEFAULT",
    "UNKNOWN",
    "LAST SEEN",
    "LAST CLIENT",
];

/// The columns of [`HEADS`] with numbers, which are aligned to the right.
const NUMBERS: Range<usize> = 2..8;

fn table(version: &VersionSummary) -> Vec<String> {
    let heads = HEADS.map(str::to_owned);
    let rows = version.applications.iter().map(row);
    let rows: Vec<_> = std::iter::once(heads).chain(rows).collect();
    let lines = table_lines(&rows, NUMBERS);
    lines.into_iter().map(|line| format!("  {line}")).collect()
}

fn row(app: &AppUsage) -> [String; HEADS.len()] {
    let name = match (app.kind, &app.ident) {
        (AppKind::Application, Some(ident)) => ident.clone(),
        (AppKind::Application, None) => "(unknown)".to_owned(),
        (AppKind::Callbacks, _) => "(callbacks)".to_owned(),
        (AppKind::Others, _) => "(others)".to_owned(),
    };
    let Requests {
        requests,
        signed,
        sources,
        last_seen,
        ..
    } = &app.requests;
    let of_all = |part| share(part, *requests);
    let client = app.client.as_ref().map(|client| {
        let claimed = if client.is_signed { "" } else { " (unsigned)" };
        let agent = client.user_agent.as_ref();
        let agent = agent.map(|agent| format!(", {agent}"));
        format!("{}{claimed}{}", client.address, agent.unwrap_or_default())
    });
    [
        name,
        app.state.clone().unwrap_or_default(),
        requests.to_string(),
        of_all(*signed),
        of_all(sources.header),
        of_all(sources.app),
        of_all(sources.default),
        of_all(sources.unknown),
        last_seen.map(rfc3339).unwrap_or_default(),
        client.unwrap_or_default(),
    ]
}

/// What retiring a version would break, in sentences.
fn retiring(version: &VersionSummary, summary: &Summary) -> impl Iterator<Item = String> {
    let unused = (version.requests.requests == 0).then(|| unused(&version.version, summary));
    let named = (!version.retiring.named_by.is_empty()).then(|| named(version, summary));
    let pinned = (!version.retiring.pinned.is_empty()).then(|| pinned(version, summary));
    let used = [unused, named, pinned, by_default(version, summary)];
    used.into_iter().chain(remarks(version)).flatten()
}

fn named(version: &VersionSummary, summary: &Summary) -> String {
    let (name, rest) = (&version.version, rest(version, summary));
    let removed = if summary.rejects_unknown {
        "400 version_unknown"
    } else {
        &rest
    };
    let what = if version.is_configured {
        format!(
            "they would get 410 version_retired if {name} is retired with after_sunset = \"gone\", and {removed} once it \
             is removed"
        )
    } else {
        format!("they get {removed} now")
    };
    let names = names(&version.retiring.named_by);
    format!("Named in the version header by {names}: {what}.")
}

fn pinned(version: &VersionSummary, summary: &Summary) -> String {
    let (name, rest) = (&version.version, rest(version, summary));
    let names = names(&version.retiring.pinned);
    let what = if version.is_configured {
        format!(
            "their requests that name no version would get 410 version_retired if {name} is retired with after_sunset = \
             \"gone\", and go to {rest} once it is removed"
        )
    } else {
        format!("their requests that name no version go to {rest} now")
    };
    format!(
        "Pinned to {name}: {names}; {what}. To change that: signpost app update IDENT --default-version NAME."
    )
}

fn by_default(version: &VersionSummary, summary: &Summary) -> Option<String> {
    let clients = &version.retiring.by_default;
    match (version.is_default, clients.is_empty()) {
        (true, true) => Some(
            "It is the default version: let default_version name another one first, otherwise requests that name none get \
             410 version_retired. No application was seen that uses it by default."
                .to_owned(),
        ),
        (true, false) => Some(format!(
            "It is the default version: let default_version name another one first, which then serves {}. Otherwise they \
             get 410 version_retired.",
            names(clients)
        )),
        (false, true) => None,
        (false, false) => Some(format!(
            "While it was the default version it served {}: they get {} now.",
            names(clients),
            rest(version, summary)
        )),
    }
}

/// What else a reader of the numbers should know.
fn remarks(version: &VersionSummary) -> [Option<String>; 4] {
    let name = &version.version;
    let of = &version.retiring;
    let unknown = (!of.by_unknown.is_empty()).then(|| {
        format!(
            "Served instead of a version that does not exist: {}.",
            names(&of.by_unknown)
        )
    });
    let callbacks = match version.requests.sources.state {
        0 => None,
        count => Some(format!(
            "{count} requests were callbacks: if {name} is retired, its logins in progress fail."
        )),
    };
    let claimed = (!of.only_unsigned.is_empty()).then(|| {
        format!(
            "Seen this way in unsigned requests only, which anyone can send: {}.",
            names(&of.only_unsigned)
        )
    });
    let mut others = version.applications.iter();
    let others = others.find(|app| app.kind == AppKind::Others);
    let others = others.map(|app| {
        format!(
            "{} requests are of further applications: a gateway told no more of them apart at a time.",
            app.requests.requests
        )
    });
    [unknown, callbacks, claimed, others]
}

fn unused(name: &str, summary: &Summary) -> String {
    let days = summary.days;
    match summary.counted_since {
        None => format!("Nothing was counted yet, so this says nothing about who uses {name}."),
        Some(since) if !summary.is_complete => format!(
            "No request used {name} since counting began at {}: retiring it breaks no client that was seen.",
            rfc3339(since)
        ),
        Some(_) => format!(
            "No request used {name} in the last {days} days: retiring it breaks no client that was seen."
        ),
    }
}

/// The version that requests get which lose this one.
fn rest(version: &VersionSummary, summary: &Summary) -> String {
    if version.is_default {
        "the new default version".to_owned()
    } else {
        format!("the default version {}", summary.default_version)
    }
}

fn names(idents: &BTreeSet<String>) -> String {
    let shown: Vec<_> = idents.iter().take(MAX_NAMED).map(String::as_str).collect();
    let count = match idents.len() {
        1 => "1 application".to_owned(),
        count => format!("{count} applications"),
    };
    let more = match idents.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{count} ({}{more})", shown.join(", "))
}

/// A part in percent. What is not 0 is not shown as 0, and what is not all not as 100.
fn share(part: u64, whole: u64) -> String {
    match part {
        0 => "0%".to_owned(),
        part if part == whole => "100%".to_owned(),
        part => {
            let percent = u128::from(part) * 100 / u128::from(whole.max(1));
            format!("{}%", percent.clamp(1, 99))
        }
    }
}
