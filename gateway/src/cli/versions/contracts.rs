//! `signpost versions diff --openapi`: what differs between the OpenAPI documents of two versions.

use std::{
    collections::BTreeSet,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::json;
use signpost_management::reports::{
    coverage::{number_of, shown},
    paths::PathUsage,
};
use signpost_openapi::{Document, Finding, Known, Report, compare, document::MAX_BYTES};
use signpost_protocol::version::Version;
use signpost_proxy::{Changes, Method, PathPattern};

use crate::cli::{
    print_error, print_line,
    table::{count, printable, printable_json, table_lines},
};

/// Limit of the operations without a change that a text names.
const MAX_NAMED: usize = 50;

/// Compares the documents of two versions. After an error, which is printed, the exit code is 2.
pub(in crate::cli) fn compare_files(
    files: &[PathBuf],
    versions: [&str; 2],
) -> Result<Report, ExitCode> {
    let documents = files.iter().map(|file| {
        read(file).map_err(|error| {
            print_error(&printable(&format!("{}: {error}", file.display())));
            ExitCode::from(2)
        })
    });
    match &*documents.collect::<Result<Vec<_>, _>>()? {
        [old, new] => Ok(compare(old, new, versions)),
        _ => Err(ExitCode::from(2)),
    }
}

fn read(file: &Path) -> Result<Document, String> {
    let mut bytes = Vec::new();
    // One byte more than it may have: it is then too large.
    let limit = MAX_BYTES as u64 + 1;
    let opened = File::open(file).and_then(|file| file.take(limit).read_to_end(&mut bytes));
    opened.map_err(|error| error.to_string())?;
    Document::read(&bytes).map_err(|error| error.to_string())
}

/// Prints a report: with the changes that make up for differences, and the paths that clients used, if these are wanted.
pub(super) fn print(
    report: &Report,
    [version, to]: [&Version; 2],
    (changes, used): (Option<Option<&Changes>>, Option<&[PathUsage]>),
    as_json: bool,
) -> ExitCode {
    let uncovered = changes.map(|changes| uncovered(report, changes));
    if as_json {
        let value = json!({
            "version": version.as_str(),
            "to": to.as_str(),
            "breaking": report.breaking(),
            "is_complete": report.is_complete,
            "findings": report.findings,
            "uncovered": uncovered,
            "used": used.map(|used| {
                let broken = report.broken().into_iter();
                let broken = broken.filter_map(|findings| report.known(&findings[0].operation));
                let use_of = |known: &Known| {
                    let (requests, applications) = use_of(known, used);
                    json!({ "operation": known.name, "requests": requests, "applications": applications })
                };
                broken.map(use_of).collect::<Vec<_>>()
            }),
        });
        print_line(&printable_json(&value.to_string()));
    } else {
        for line in lines(report, uncovered.as_deref(), used) {
            print_line(&printable(&line));
        }
    }
    match uncovered {
        _ if !report.is_complete => ExitCode::FAILURE,
        Some(uncovered) if uncovered.is_empty() => ExitCode::SUCCESS,
        Some(_) => ExitCode::from(3),
        None => ExitCode::from(u8::from(report.breaking() > 0)),
    }
}

/// The operations that break clients, and that no change takes.
fn uncovered<'r>(report: &'r Report, changes: Option<&Changes>) -> Vec<&'r str> {
    let is_covered = |operation: &str| {
        let known = report.known(operation);
        let method = known.and_then(|known| Method::from_bytes(known.method.as_bytes()));
        let pair = known.zip(method).zip(changes);
        pair.is_some_and(|((known, method), changes)| {
            changes.of(method, &known.sample()).next().is_some()
        })
    };
    let operations = report.findings.iter().filter(|finding| finding.is_breaking);
    let mut operations: Vec<_> = operations.map(|finding| &*finding.operation).collect();
    operations.dedup();
    operations.retain(|operation| !is_covered(operation));
    operations
}

/// The requests of an operation, and the applications that sent most of them.
fn use_of<'u>(known: &Known, used: &'u [PathUsage]) -> (u64, BTreeSet<&'u str>) {
    let (counted, sample) = (known.counted(), known.sample());
    let is_of = |path: &&PathUsage| {
        let pattern = path.path.parse::<PathPattern>();
        let takes = pattern.is_ok_and(|pattern| pattern.takes(&sample));
        path.method == known.method && (takes || path.path == counted)
    };
    let paths: Vec<_> = used.iter().filter(is_of).collect();
    let users = paths.iter().flat_map(|path| &path.users);
    (
        paths.iter().map(|path| path.requests).sum(),
        users.filter_map(|user| user.ident.as_deref()).collect(),
    )
}

fn lines(report: &Report, uncovered: Option<&[&str]>, used: Option<&[PathUsage]>) -> Vec<String> {
    let mut lines = Vec::new();
    let (operations, breaking) = (report.broken(), report.breaking());
    for findings in &operations {
        let operation = &findings[0].operation;
        let known = report.known(operation).zip(used);
        let by = known.map_or_else(String::new, |(known, used)| {
            let (requests, users) = use_of(known, used);
            let users = shown(users.iter(), MAX_NAMED);
            format!(": {} {users}", number_of(requests, "request"))
        });
        lines.push(format!("{operation}{by}").trim_end().to_owned());
        let row = |finding: &&Finding| [finding.place.clone(), finding.text.clone()];
        let rows = table_lines(["PLACE", "CHANGE"], findings.iter().map(row), 0..0);
        lines.extend(rows.into_iter().map(|line| format!("  {line}")));
        lines.push(String::new());
    }
    let harmless = report.findings.len() - breaking;
    let harmless = match harmless {
        0 => String::new(),
        harmless => format!(
            "; {} nothing, --json has all",
            count(harmless as u64, "change breaks", "changes break")
        ),
    };
    lines.push(match operations.len() {
        0 => format!("nothing breaks clients{harmless}"),
        number => format!(
            "{} in {} {} clients{harmless}",
            count(breaking as u64, "change", "changes"),
            count(number as u64, "operation", "operations"),
            if breaking == 1 { "breaks" } else { "break" }
        ),
    });
    if !report.is_complete {
        lines.push(
            "the documents differ in more than that: the comparison ended at its limit".to_owned(),
        );
    }
    match uncovered {
        None => {}
        Some([]) => lines.push("each of them has a change in the configuration".to_owned()),
        Some(uncovered) => lines.push(format!(
            "without a change in the configuration: {}",
            shown(uncovered.iter(), MAX_NAMED)
        )),
    }
    lines
}
