//! The report of what a store knows, as data and as text.

use signpost_kit::clock::Timestamp;
use signpost_management::reports::usage::Summary;
use signpost_proxy::{NO_APPLICATION, OTHER_APPLICATIONS, rfc3339, testing::versions};
use signpost_store::tables::usage::{StoredApp, StoredClient, StoredCount, StoredUsage};

use super::*;

/// 2026-11-22.
const TODAY: Timestamp = Timestamp::from_millis(1_795_375_509_000);

/// v1, the default version, and v2.
fn summary(usage: &StoredUsage, unknown: &str) -> Summary {
    let configured = versions(&format!(
        "unknown = '{unknown}'\n[versions.v1]\nbackend = '127.0.0.1:1'\n[versions.v2]\nbackend = '127.0.0.1:2'\n"
    ));
    Summary::new(usage, 30, TODAY, &configured)
}

fn count(
    version: &str,
    application: i64,
    is_signed: bool,
    source: &str,
    requests: u64,
) -> StoredCount {
    StoredCount {
        version: version.to_owned(),
        application,
        is_signed,
        source: source.to_owned(),
        requests,
    }
}

fn client(
    version: &str,
    application: i64,
    is_signed: bool,
    ident: &str,
    address: &str,
) -> StoredClient {
    StoredClient {
        version: version.to_owned(),
        application,
        is_signed,
        ident: (!ident.is_empty()).then(|| ident.to_owned()),
        last_seen: TODAY,
        address: (!address.is_empty()).then(|| address.to_owned()),
        user_agent: Some("app/1.0 \u{1b}[2J\u{202e}".to_owned()),
    }
}

fn app(id: i64, ident: &str, state: &str, default_version: Option<&str>) -> StoredApp {
    StoredApp {
        id,
        ident: ident.to_owned(),
        name: format!("Name of {ident}"),
        state: state.to_owned(),
        default_version: default_version.map(str::to_owned),
        extensions: None,
    }
}

fn usage() -> StoredUsage {
    StoredUsage {
        began_at: Some(Timestamp::from_millis(0)),
        counts: vec![
            count("v1", 1, true, "default", 90),
            count("v1", 1, false, "header", 10),
            count("v1", 2, false, "unknown", 7),
            count("v1", 4, true, "header", 3),
            count("v1", NO_APPLICATION, false, "state", 2),
            count("v0", 1, true, "header", 1),
            count("v2", 3, true, "app", 5),
            count("v2", OTHER_APPLICATIONS, true, "header", 6),
        ],
        clients: vec![
            client("v1", 1, false, "shop", "192.0.2.66"),
            client("v1", 1, true, "shop", "192.0.2.1"),
            client("v1", 2, false, "till", "192.0.2.2"),
            client("v1", 4, true, "gone", "192.0.2.4"),
            client("v1", 0, false, "", ""),
            client("v0", 1, true, "shop", "192.0.2.1"),
            client("v2", 3, true, "pin", "192.0.2.3"),
        ],
        applications: vec![
            app(1, "shop", "active", None),
            app(2, "till", "disabled", None),
            app(3, "pin", "active", Some("v2")),
            app(5, "quiet", "active", Some("v2")),
        ],
    }
}

fn text(summary: &Summary) -> String {
    lines(summary).join("\n")
}

#[test]
fn numbers_are_summed_by_version_and_application() {
    let summary = summary(&usage(), "default");
    let value = json!(summary);
    assert_eq!(value["first_day"], "2026-10-24");
    assert_eq!(value["last_day"], "2026-11-22");
    assert_eq!(value["is_complete"], true);
    let names: Vec<_> = summary.versions.iter().map(|one| &*one.version).collect();
    assert_eq!(names, ["v0", "v1", "v2"]);
    let v1 = &value["versions"][1];
    assert_eq!((&v1["requests"], &v1["signed"]), (&json!(112), &json!(93)));
    let sources = json!({"header": 13, "host": 0, "prefix": 0, "app": 0, "default": 90, "unknown": 7, "state": 2});
    assert_eq!(v1["sources"], sources);
    let shop = json!({
        "kind": "application", "ident": "shop", "name": "Name of shop", "state": "active", "requests": 100, "signed": 90,
        "sources": {"header": 10, "host": 0, "prefix": 0, "app": 0, "default": 90, "unknown": 0, "state": 0},
        "last_seen": rfc3339(TODAY),
        "client": {"address": "192.0.2.1", "user_agent": "app/1.0 ?[2J?", "is_signed": true},
    });
    assert_eq!(v1["applications"][0], shop);
    let deleted = &v1["applications"][2];
    assert_eq!(
        (&deleted["ident"], &deleted["state"]),
        (&json!("gone"), &json!("deleted"))
    );
    let callbacks = &v1["applications"][3];
    assert_eq!(
        (&callbacks["kind"], &callbacks["client"]),
        (&json!("callbacks"), &json!(null))
    );
    let retiring = json!({
        "named_by": ["shop"], "pinned": [], "by_default": ["shop"], "by_unknown": ["till"], "extended": {},
        "only_unsigned": ["shop", "till"],
    });
    assert_eq!(v1["retiring"], retiring);
    assert_eq!(
        value["versions"][2]["retiring"]["pinned"],
        json!(["pin", "quiet"])
    );
    assert_eq!(value["versions"][2]["applications"][0]["kind"], "others");
}

#[test]
fn the_text_says_what_retiring_a_version_breaks() {
    let text = text(&summary(&usage(), "reject"));
    for part in [
        "Requests from 2026-10-24 to 2026-11-22 (30 days, UTC)",
        "v0, no longer configured: 1 request of 1 application, 100% of them signed",
        "Named in the version header by 1 application (shop): they get 400 version_unknown now.",
        "v1, the default version: 112 requests of 3 applications, 83% of them signed",
        "shop         Name of shop  active         100     90%    10%      0%      90%       0%  2026-11-22T19:25:09Z  192.0.2.1, app/1.0 ?[2J?",
        "till         Name of till  disabled         7      0%     0%      0%       0%     100%  2026-11-22T19:25:09Z  192.0.2.2 (unsigned), app/1.0",
        "gone                       deleted",
        "(callbacks)",
        "It is the default version: let default_version name another one first, which then serves 1 application (shop). Otherwise",
        "Served instead of a version that does not exist: 1 application (till).",
        "2 requests were callbacks",
        "Seen this way in unsigned requests only, which anyone can send: 2 applications (shop, till).",
        "Pinned to v2: 2 applications (pin, quiet); their requests that name no version would get 410 version_retired if v2 is",
        "gone\", and go to the default version v1 once it is removed.",
        "6 requests are of further applications",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(
        text.bytes()
            .all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte))
    );
}

/// Also of an application without requests.
#[test]
fn extensions_are_reported_with_their_version() {
    let mut usage = usage();
    usage.applications[3].extensions =
        Some("[\"v2=2027-03-01T00:00:00Z\",\"v3=2028-01-01T00:00:00Z\"]".to_owned());
    let summary = summary(&usage, "default");
    let extended = |index: usize| json!(summary.versions[index].retiring.extended);
    assert_eq!(extended(1), json!({}));
    assert_eq!(extended(2), json!({ "quiet": "2027-03-01T00:00:00Z" }));
    let text = text(&summary);
    assert!(
        text.contains("Extended for quiet until 2027-03-01T00:00:00Z."),
        "{text}"
    );
}

#[test]
fn a_source_without_signed_requests_is_reported_as_such() {
    let mut usage = StoredUsage {
        began_at: Some(Timestamp::from_millis(0)),
        counts: vec![
            count("v1", 1, true, "default", 100),
            count("v1", 1, false, "header", 1),
        ],
        clients: vec![client("v1", 1, true, "shop", "192.0.2.1")],
        applications: vec![StoredApp {
            id: 1,
            ident: "shop".to_owned(),
            name: "Shop".to_owned(),
            state: "active".to_owned(),
            default_version: None,
            extensions: None,
        }],
    };
    let unsigned = |usage: &StoredUsage| {
        let summary = summary(usage, "default");
        summary.versions[0].retiring.only_unsigned.len()
    };
    assert_eq!(unsigned(&usage), 1);
    usage.counts.push(count("v1", 1, true, "header", 1));
    assert_eq!(unsigned(&usage), 0);
}

#[test]
fn a_version_without_requests_can_be_retired_as_far_as_was_counted() {
    let mut usage = StoredUsage {
        began_at: Some(Timestamp::from_millis(0)),
        ..StoredUsage::default()
    };
    let report = |usage: &StoredUsage| text(&summary(usage, "default"));
    let unused =
        "No request used v2 in the last 30 days: retiring it breaks no client that was seen.";
    assert!(report(&usage).contains(unused), "{}", report(&usage));
    usage.began_at = Some(TODAY);
    let partly = report(&usage);
    for part in [
        "Counting began at 2026-11-22T19:25:09Z: earlier requests are not in this report.",
        "No request used v2 since counting began at 2026-11-22T19:25:09Z: retiring it breaks no client that was seen.",
    ] {
        assert!(partly.contains(part), "{partly}");
    }
    usage.began_at = None;
    let not = report(&usage);
    assert!(
        not.contains("No gateway has counted requests in this store yet."),
        "{not}"
    );
    assert!(!not.contains("breaks no client"), "{not}");
}

#[test]
fn requests_of_a_retired_version_get_410_now() {
    let retired = "sunset = '2026-11-01'\nafter_sunset = 'gone'\n";
    let report = |default: &str| {
        let configured = versions(&format!(
            "default_version = '{default}'\n[versions.v1]\nbackend = '127.0.0.1:1'\n{retired}\
             [versions.v2]\nbackend = '127.0.0.1:2'\n{retired}[versions.v3]\nbackend = '127.0.0.1:3'\n{retired}"
        ));
        text(&Summary::new(&usage(), 30, TODAY, &configured))
    };
    let text = report("v1");
    for part in [
        "v1, the default version, retired: 112 requests",
        "Named in the version header by 1 application (shop): they get 410 version_retired now, and the new default version once it is removed.",
        "It is the default version: requests that name none get 410 version_retired until default_version names another one, which then serves 1 application (shop).",
        "2 requests were callbacks: logins that were begun on v1 fail.",
        "Pinned to v2: 2 applications (pin, quiet); their requests that name no version get 410 version_retired now, and go to",
        "v3, retired: no requests",
        "No request used v3 in the last 30 days.",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!text.contains("would"), "{text}");
    let other = report("v3");
    let unused = "another one, which then serves them.";
    assert!(other.contains(unused), "{other}");
}

#[test]
fn a_sentence_names_ten_applications() {
    let mut usage = usage();
    for id in 10..40 {
        usage
            .applications
            .push(app(id, &format!("app-{id}"), "active", Some("v2")));
    }
    let text = text(&summary(&usage, "default"));
    let line = text
        .lines()
        .find(|line| line.contains("Pinned to v2"))
        .unwrap();
    assert!(
        line.contains("32 applications (app-10,") && line.contains("app-19 and 22 more)"),
        "{line}"
    );
}
