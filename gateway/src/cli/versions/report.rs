//! `signpost versions report`: who uses each version, and what retiring it would break.

use std::{cmp::Reverse, collections::BTreeSet, ops::Range, process::ExitCode};

use serde_json::json;
use signpost_management::{
    operations::versions::{ReportInput, report},
    reports::{
        coverage::{number_of, shown},
        paths::PathUsage,
        usage::{AppKind, AppUsage, Summary, VersionSummary},
        versions::ListedEndpoint,
    },
};
use signpost_protocol::version::VersionSource;
use signpost_proxy::{Config, OTHER_PATHS, program::raise_statement_timeout, rfc3339};

use crate::cli::{
    operation::{Told, on_many},
    print_line,
    table::table_lines,
};

/// Limit of the applications that a sentence names.
const MAX_NAMED: usize = 10;

pub(super) async fn run(Told { input, common }: Told<ReportInput>) -> anyhow::Result<ExitCode> {
    let mut config = Config::load(&common.config)?;
    raise_statement_timeout(&mut config.store);
    let because = "the gateway then has no store, and counts no requests. With [applications] instead of [application] it does";
    let context = on_many(&config, &common.config, because).await?;
    let summary = report(&context, &config.versions, input).await?;
    if common.json {
        print_line(&json!(summary).to_string());
    } else {
        for line in lines(&summary) {
            print_line(&line);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The report as text, for people.
fn lines(summary: &Summary) -> Vec<String> {
    let mut lines = vec![format!(
        "Requests from {} to {} ({} days, UTC)",
        summary.first_day, summary.last_day, summary.days
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
        if let Some(paths) = version.paths.as_ref().filter(|paths| !paths.is_empty()) {
            lines.push(String::new());
            lines.extend(path_lines(paths));
        }
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
    let (name, all) = (&version.version, &version.requests);
    let role = match (version.is_default, version.is_configured) {
        (true, _) => ", the default version",
        (false, true) => "",
        (false, false) => ", no longer configured",
    };
    let retired = if version.is_retired { ", retired" } else { "" };
    match all.requests {
        0 => format!("{name}{role}{retired}: no requests"),
        requests => format!(
            "{name}{role}{retired}: {} of {}, {} of them signed",
            number_of(requests, "request"),
            number_of(applications(version), "application"),
            share(all.signed, requests)
        ),
    }
}

/// The number of applications with requests.
fn applications(version: &VersionSummary) -> u64 {
    let applications = version.applications.iter();
    let applications = applications.filter(|app| app.kind == AppKind::Application);
    applications.count() as u64
}

/// The columns.
const HEADS: [&str; 11] = [
    "APPLICATION",
    "NAME",
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
const NUMBERS: Range<usize> = 3..9;

fn table(version: &VersionSummary) -> impl Iterator<Item = String> {
    let lines = table_lines(HEADS, version.applications.iter().map(row), NUMBERS);
    lines.into_iter().map(|line| format!("  {line}"))
}

fn row(app: &AppUsage) -> [String; HEADS.len()] {
    let ident = ident_of(app.kind, app.ident.as_deref());
    let all = &app.requests;
    let of_all = |part| share(part, all.requests);
    let client = app.client.as_ref().map(|client| {
        let claimed = if client.is_signed { "" } else { " (unsigned)" };
        let agent = client.user_agent.as_ref();
        let agent = agent.map(|agent| format!(", {agent}"));
        format!("{}{claimed}{}", client.address, agent.unwrap_or_default())
    });
    [
        ident,
        app.name.clone().unwrap_or_default(),
        app.state.clone().unwrap_or_default(),
        all.requests.to_string(),
        of_all(all.signed),
        of_all(all.named()),
        of_all(all.of(VersionSource::App)),
        of_all(all.of(VersionSource::Default)),
        of_all(all.of(VersionSource::Unknown)),
        all.last_seen.map(rfc3339).unwrap_or_default(),
        client.unwrap_or_default(),
    ]
}

/// The columns of paths.
const PATH_HEADS: [&str; 9] = [
    "PATH",
    "REQUESTS",
    "4XX",
    "5XX",
    "BRIDGED",
    "APPLICATIONS",
    "LAST SEEN",
    "ENDS",
    "CALLED BY",
];

/// The paths, and who called them; of a path with few applications, all.
fn path_lines(paths: &[PathUsage]) -> Vec<String> {
    let lines = table_lines(PATH_HEADS, paths.iter().map(path_row), 1..6);
    let mut lines: Vec<_> = lines.into_iter().map(|line| format!("  {line}")).collect();
    if paths.iter().any(|path| path.path == OTHER_PATHS) {
        lines.push(format!(
            "  {OTHER_PATHS}: further paths: a gateway tells no more of them apart on a day."
        ));
    }
    lines
}

fn path_row(path: &PathUsage) -> [String; PATH_HEADS.len()] {
    let mut users: Vec<_> = path.users.iter().take(MAX_NAMED).collect();
    users.sort_by_key(|user| Reverse(user.requests));
    let users = users.into_iter().map(|user| {
        let ident = ident_of(user.kind, user.ident.as_deref());
        format!("{ident} {}", user.requests)
    });
    let mut users = users.collect::<Vec<_>>().join(", ");
    if path.applications > MAX_NAMED as u64 {
        users += ", …";
    }
    let number = |number: u64| match number {
        0 => String::new(),
        number => number.to_string(),
    };
    [
        format!("{} {}", path.method, path.path),
        path.requests.to_string(),
        number(path.client_errors),
        number(path.server_errors),
        number(path.bridged),
        path.applications.to_string(),
        rfc3339(path.last_seen),
        path.ends.first().map(ends).unwrap_or_default(),
        users,
    ]
}

/// When an endpoint ends: its sunset, or its stage without one.
fn ends(ListedEndpoint { dates, .. }: &ListedEndpoint) -> String {
    let stage = || dates.stage.to_owned();
    dates.sunset.clone().unwrap_or_else(stage)
}

fn ident_of(kind: AppKind, ident: Option<&str>) -> String {
    match (kind, ident) {
        (AppKind::Application, Some(ident)) => ident.to_owned(),
        (AppKind::Application, None) => "(unknown)".to_owned(),
        (AppKind::Callbacks, _) => "(callbacks)".to_owned(),
        (AppKind::Others, _) => "(others)".to_owned(),
    }
}

/// What retiring a version would break, in sentences.
fn retiring(version: &VersionSummary, summary: &Summary) -> impl Iterator<Item = String> {
    let unused = (version.requests.requests == 0).then(|| unused(version, summary));
    let used = [
        unused,
        named(version, summary),
        pinned(version, summary),
        by_default(version, summary),
        extended(version),
    ];
    used.into_iter().chain(remarks(version)).flatten()
}

fn named(version: &VersionSummary, summary: &Summary) -> Option<String> {
    let names = names(&version.retiring.named_by)?;
    let rest = rest(version, summary);
    let removed = if summary.rejects_unknown {
        "400 version_unknown"
    } else {
        &rest
    };
    let what = if version.is_configured {
        let gone = gone(version);
        format!("they {gone}, and {removed} once it is removed")
    } else {
        format!("they get {removed} now")
    };
    Some(format!("Named in the version header by {names}: {what}."))
}

fn pinned(version: &VersionSummary, summary: &Summary) -> Option<String> {
    let names = names(&version.retiring.pinned)?;
    let (name, rest) = (&version.version, rest(version, summary));
    let what = if version.is_configured {
        let gone = gone(version);
        format!("their requests that name no version {gone}, and go to {rest} once it is removed")
    } else {
        format!("their requests that name no version go to {rest} now")
    };
    Some(format!(
        "Pinned to {name}: {names}; {what}. To change that: signpost app update IDENT --default-version NAME."
    ))
}

/// What happens to requests of a version that is retired, or would be.
fn gone(version: &VersionSummary) -> String {
    if version.is_retired {
        return "get 410 version_retired now".to_owned();
    }
    format!(
        "would get 410 version_retired if {} is retired with after_sunset = \"gone\"",
        version.version
    )
}

fn by_default(version: &VersionSummary, summary: &Summary) -> Option<String> {
    match (version.is_default, names(&version.retiring.by_default)) {
        (true, clients) if version.is_retired => Some(format!(
            "It is the default version: requests that name none get 410 version_retired until default_version names another \
             one, which then serves {}.",
            clients.unwrap_or_else(|| "them".to_owned())
        )),
        (true, None) => Some(
            "It is the default version: let default_version name another one first, otherwise requests that name none get \
             410 version_retired. No application was seen that uses it by default."
                .to_owned(),
        ),
        (true, Some(clients)) => Some(format!(
            "It is the default version: let default_version name another one first, which then serves {clients}. Otherwise they \
             get 410 version_retired.",
        )),
        (false, None) => None,
        (false, Some(clients)) => Some(format!(
            "While it was the default version it served {clients}: they get {} now.",
            rest(version, summary)
        )),
    }
}

fn extended(version: &VersionSummary) -> Option<String> {
    let all = &version.retiring.extended;
    let shown: Vec<_> = all.iter().take(MAX_NAMED).collect();
    let shown: Vec<_> = shown
        .into_iter()
        .map(|(ident, until)| format!("{ident} until {until}"))
        .collect();
    let more = match all.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!shown.is_empty()).then(|| format!("Extended for {}{more}.", shown.join(", ")))
}

/// What else a reader of the numbers should know.
fn remarks(version: &VersionSummary) -> [Option<String>; 4] {
    let name = &version.version;
    let of = &version.retiring;
    let unknown = names(&of.by_unknown)
        .map(|names| format!("Served instead of a version that does not exist: {names}."));
    let callbacks = match version.requests.of(VersionSource::State) {
        0 => None,
        count if version.is_retired => Some(format!(
            "{count} requests were callbacks: logins that were begun on {name} fail."
        )),
        count => Some(format!(
            "{count} requests were callbacks: if {name} is retired, its logins in progress fail."
        )),
    };
    let claimed = names(&of.only_unsigned).map(|names| {
        format!("Seen this way in unsigned requests only, which anyone can send: {names}.")
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

fn unused(version: &VersionSummary, summary: &Summary) -> String {
    let name = &version.version;
    let period = match summary.counted_since {
        None => {
            return format!("Nothing was counted yet, so this says nothing about who uses {name}.");
        }
        Some(since) if !summary.is_complete => {
            format!("since counting began at {}", rfc3339(since))
        }
        Some(_) => format!("in the last {} days", summary.days),
    };
    let hence = match version.is_retired {
        true => "",
        false => ": retiring it breaks no client that was seen",
    };
    format!("No request used {name} {period}{hence}.")
}

/// The version that requests get which lose this one.
fn rest(version: &VersionSummary, summary: &Summary) -> String {
    if version.is_default {
        "the new default version".to_owned()
    } else {
        format!("the default version {}", summary.default_version)
    }
}

/// How many applications, and the first ones; `None` without any.
fn names(idents: &BTreeSet<String>) -> Option<String> {
    let number = number_of(idents.len() as u64, "application");
    (!idents.is_empty()).then(|| format!("{number} ({})", shown(idents.iter(), MAX_NAMED)))
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

#[cfg(test)]
mod tests;
