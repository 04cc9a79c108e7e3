//! Valid life cycles with the borders of their dates, and every problem of invalid ones.

use super::*;
use crate::{
    config::tests::{MINIMAL, load, problems, versions},
    request::Method,
};

/// 2025-01-01T00:00:00Z.
const NEW_YEAR: i64 = 1_735_689_600;

const ALL_KEYS: &str = "deprecated = '2025-01-01'\nsunset = '2026-01-01T00:00:00Z'\nafter_sunset = 'gone'\n\
    link = 'https://acme.example/docs?to=v2'\nbrownouts = ['2025-06-01T10:00:00Z/PT1H', '2025-05-01T10:00:00Z/P1D']\n";

fn version(keys: &str) -> std::sync::Arc<crate::config::ServedVersion> {
    let table = format!("[versions.v1]\nbackend = '127.0.0.1:1'\n{keys}\n");
    std::sync::Arc::clone(versions(&table).default())
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn shown(version: &crate::config::ServedVersion) -> Vec<String> {
    let fields = version
        .life_cycle()
        .into_iter()
        .flat_map(|life| life.fields());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let shown = fields.map(|(name, value)| format!("{}: {}", text(name), text(value)));
    shown.collect()
}

fn with(keys: &str) -> String {
    format!("{MINIMAL}{keys}\n")
}

#[test]
fn every_key_is_read() {
    let version = version(ALL_KEYS);
    let life_cycle = version.life_cycle().unwrap();
    assert_eq!(life_cycle.deprecated, Some(at(NEW_YEAR)));
    assert_eq!(life_cycle.sunset, Some(at(1_767_225_600)));
    assert_eq!(life_cycle.gone, life_cycle.sunset);
    let times: Vec<_> = life_cycle
        .brownouts
        .iter()
        .map(|one| (rfc3339(one.start), rfc3339(one.end)))
        .collect();
    let expected = [
        ("2025-05-01T10:00:00Z", "2025-05-02T10:00:00Z"),
        ("2025-06-01T10:00:00Z", "2025-06-01T11:00:00Z"),
    ];
    let expected = expected.map(|(start, end)| (start.to_owned(), end.to_owned()));
    assert_eq!(times, expected);
}

#[test]
fn the_fields_are_those_of_the_rfcs() {
    let link = "<https://acme.example/docs?to=v2>";
    let both = format!(
        "link: {link}; rel=\"deprecation\"; type=\"text/html\", {link}; rel=\"sunset\"; type=\"text/html\""
    );
    let expected = [
        "deprecation: @1735689600".to_owned(),
        "sunset: Thu, 01 Jan 2026 00:00:00 GMT".to_owned(),
        both,
    ];
    assert_eq!(shown(&version(ALL_KEYS)), expected);
    assert!(shown(&version("")).is_empty());
    assert_eq!(
        shown(&version("deprecated = '2025-01-01'")),
        ["deprecation: @1735689600"]
    );
    let link = "link = 'https://acme.example/docs?to=v2'";
    for (keys, relation) in [
        ("deprecated = '2025-01-01'", "deprecation"),
        ("sunset = '2025-01-01'", "sunset"),
        ("brownouts = ['2025-01-01/PT1S']", "deprecation"),
    ] {
        let fields = shown(&version(&format!("{keys}\n{link}")));
        let expected = format!(
            "link: <https://acme.example/docs?to=v2>; rel=\"{relation}\"; type=\"text/html\""
        );
        assert_eq!(fields.last(), Some(&expected));
    }
}

#[test]
fn a_backends_own_dates_are_replaced_and_its_links_stay() {
    let version = version(ALL_KEYS);
    let replaces = |name: &str| version.life_cycle().unwrap().replaces(name.as_bytes());
    assert!(replaces("Deprecation") && replaces("SUNSET"));
    assert!(!replaces("Link") && !replaces("Date"));
    let version = self::version("sunset = '2025-01-01'");
    assert!(!version.life_cycle().unwrap().replaces(b"deprecation"));
}

#[test]
fn times_of_toml_are_read_too() {
    let version = version(
        "deprecated = 2025-01-01\nsunset = 2025-06-01T12:00:00+02:00\nlink = 'http://[::1]/'",
    );
    let life_cycle = version.life_cycle().unwrap();
    assert_eq!(life_cycle.deprecated, Some(at(NEW_YEAR)));
    let sunset = life_cycle.sunset.map(rfc3339);
    assert_eq!(sunset.as_deref(), Some("2025-06-01T10:00:00Z"));
}

#[test]
fn each_stage_begins_at_its_second() {
    let keys = "deprecated = '2025-01-01T00:00:10Z'\nsunset = '2025-01-01T00:00:40Z'\n\
                brownouts = ['2025-01-01T00:00:20Z/PT5S', '2025-01-01T00:00:30Z/PT5S', '2025-01-01T00:00:35Z/PT3S']";
    let off = |seconds| Stage::Brownout {
        ends_in: Duration::from_secs(seconds),
    };
    for (after, ended) in [("serve", Stage::PastSunset), ("gone", Stage::Retired)] {
        let version = version(&format!("{keys}\nafter_sunset = '{after}'"));
        for (second, stage) in [
            (9, Stage::Current),
            (10, Stage::Deprecated),
            (11, Stage::Deprecated),
            (19, Stage::Deprecated),
            (20, off(5)),
            (24, off(1)),
            (25, Stage::Deprecated),
            (29, Stage::Deprecated),
            // The next brown-out begins when this one ends.
            (30, off(8)),
            (34, off(4)),
            (35, off(3)),
            (37, off(1)),
            (38, Stage::Deprecated),
            (39, Stage::Deprecated),
            (40, ended),
            (41, ended),
        ] {
            assert_eq!(version.stage(at(NEW_YEAR + second)), stage, "{second}");
        }
        let almost = Timestamp::from_millis((NEW_YEAR + 40) * 1000 - 1);
        assert_eq!(version.stage(almost), Stage::Deprecated);
        let fields = shown(&version);
        assert_eq!(fields.len(), 2, "{fields:?}");
    }
    assert_eq!(version("").stage(at(NEW_YEAR)), Stage::Current);
}

#[test]
fn every_problem_is_reported() {
    let long = format!("link = 'https://acme.example/{}'", "x".repeat(1024));
    let many = format!(
        "brownouts = [{}]",
        "'2025-01-01T00:00:00Z/PT1H',".repeat(65)
    );
    for (keys, key, found) in [
        ("deprecated = 'soon'", "deprecated", "'soon'"),
        ("deprecated = 1735689600", "deprecated", "a whole number"),
        (
            "deprecated = 2025-01-01T00:00:00",
            "deprecated",
            "2025-01-01T00:00:00",
        ),
        ("deprecated = 00:00:00", "deprecated", "00:00:00"),
        ("sunset = true", "sunset", "true or false"),
        ("sunset = '2025-02-30'", "sunset", "'2025-02-30'"),
        (
            "deprecated = '2025-01-01T00:00:01Z'\nsunset = '2025-01-01'",
            "sunset",
            "2025-01-01T00:00:00Z, which is before deprecated; allowed: 2025-01-01T00:00:01Z or later",
        ),
        (
            "after_sunset = 'gone'",
            "after_sunset",
            "\"gone\" without sunset; allowed: \"gone\" with sunset",
        ),
        (
            "sunset = '2025-01-01'\nafter_sunset = 'never'",
            "after_sunset",
            "'never'; allowed: \"serve\", \"gone\"",
        ),
        ("link = 'acme.example'", "link", "'acme.example'"),
        ("link = 'ftp://acme.example/'", "link", "'ftp://…"),
        ("link = 'https:///'", "link", "'https://…"),
        (
            "link = 'https://u:hush@acme.example/'",
            "link",
            "'https://…",
        ),
        (
            "link = 'javascript:alert(1)'",
            "link",
            "'javascript:alert(1)'",
        ),
        (&long, "link", "'https://…"),
        ("brownouts = '2025-01-01/PT1H'", "brownouts", "a string"),
        ("brownouts = [7]", "brownouts[0]", "a whole number"),
        ("brownouts = ['2025-01-01']", "brownouts[0]", "'2025-01-01'"),
        (
            "brownouts = ['2025-01-01/PT1H', '2025-01-01/1h']",
            "brownouts[1]",
            "'2025-01-01/1h'",
        ),
        (
            "brownouts = ['2025-01-01/PT0S']",
            "brownouts[0]",
            "'2025-01-01/PT0S'",
        ),
        (
            "brownouts = ['2025-01-01/P7DT1S']",
            "brownouts[0]",
            "'2025-01-01/P7DT1S'",
        ),
        (
            "brownouts = ['9999-12-31/P2D']",
            "brownouts[0]",
            "'9999-12-31/P2D'",
        ),
        (&many, "brownouts", "a list of 65"),
        (
            "brownouts = ['2025-01-01T10:00:00Z/PT1H', '2025-01-01T09:00:00Z/PT1H', '2025-01-01T10:59:59Z/PT1S']",
            "brownouts[2]",
            "one that overlaps brownouts[0]",
        ),
        (
            "sunset = '2025-01-01T10:00:00Z'\nbrownouts = ['2025-01-01T09:00:01Z/PT1H']",
            "brownouts[0]",
            "one that ends at 2025-01-01T10:00:01Z; allowed: an end at the sunset, 2025-01-01T10:00:00Z, or before",
        ),
    ] {
        let report = problems(&with(keys));
        let expected = format!("versions.v1.{key}: found {found}");
        assert!(report.contains(&expected), "{expected} in:\n{report}");
        assert!(!report.contains("hush"), "{report}");
        assert_eq!(report.lines().count(), 1, "{report}");
    }
}

#[test]
fn the_borders_of_the_limits_are_allowed() {
    let prefix = "https://acme.example/";
    let link = format!("{prefix}{}", "x".repeat(1024 - prefix.len()));
    for keys in [
        "deprecated = '2025-01-01'\nsunset = '2025-01-01'".to_owned(),
        format!("sunset = '2025-01-01'\nlink = '{link}'"),
        "sunset = '2025-01-08'\nbrownouts = ['2025-01-01/P7D']".to_owned(),
        "brownouts = ['2025-01-01/PT1S', '2025-01-01T00:00:01Z/PT1S']".to_owned(),
    ] {
        load(&with(&keys)).unwrap();
    }
}

#[test]
fn a_link_cannot_leave_its_brackets() {
    let version = version("sunset = '2025-01-01'\nlink = 'https://acme.example/a b>\"<;\\ä'");
    let fields = shown(&version);
    let expected =
        "link: <https://acme.example/a%20b%3E%22%3C;/%C3%A4>; rel=\"sunset\"; type=\"text/html\"";
    assert_eq!(fields[1], expected);
}

#[test]
fn keys_without_effect_are_warned_of() {
    for (keys, word) in [
        (
            "link = 'https://acme.example/'",
            "versions.v1.link has no effect",
        ),
        (
            "after_sunset = 'serve'",
            "versions.v1.after_sunset has no effect",
        ),
    ] {
        let config = load(&with(keys)).unwrap();
        let warnings = config.warnings().join("\n");
        assert!(warnings.contains(word), "{warnings}");
        assert!(config.versions.default().life_cycle().is_none());
    }
}

#[test]
fn stages_are_warned_of() {
    let keys = "deprecated = '2025-01-01T00:00:10Z'\nsunset = '2025-01-01T00:00:30Z'\n\
                brownouts = ['2025-01-01T00:00:20Z/PT5S']";
    for (after, second, words) in [
        ("serve", 9, &[][..]),
        ("serve", 10, &["v1 is deprecated"]),
        ("gone", 24, &["v1 has a brown-out now"]),
        (
            "gone",
            25,
            &["v1 is deprecated", "versions.v1.brownouts: over"],
        ),
        (
            "serve",
            30,
            &[
                "v1 is past its sunset",
                "versions.v1.sunset: 2025-01-01T00:00:30Z has passed",
                "versions.v1.brownouts: over, and without effect: 2025-01-01T00:00:20Z",
            ],
        ),
        (
            "gone",
            30,
            &[
                "v1 is retired: requests that name no version",
                "versions.v1.brownouts: over",
            ],
        ),
    ] {
        let versions = versions(&format!(
            "[versions.v1]\nbackend = '127.0.0.1:1'\n{keys}\nafter_sunset = '{after}'\n"
        ));
        let warnings = versions.life_cycle_warnings(at(NEW_YEAR + second));
        assert_eq!(warnings.len(), words.len(), "{warnings:?}");
        for (warning, word) in warnings.iter().zip(words) {
            assert!(warning.contains(word), "{warning}");
        }
    }
}

#[test]
fn retired_versions_are_not_in_service() {
    let versions = versions(&format!(
        "[versions.v1]\nbackend = '127.0.0.1:1'\n{ALL_KEYS}[versions.v2]\nbackend = '127.0.0.1:2'\n"
    ));
    let names = |seconds| {
        let names = versions.names_in_service(at(seconds));
        names.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(names(1_767_225_599), ["v1", "v2"]);
    assert_eq!(names(1_767_225_600), ["v2"]);
    let fields = versions.life_cycle_fields();
    assert_eq!(fields, ["deprecation", "link", "sunset"]);
}

/// The dates that hold for a request.
fn of_request(version: &crate::config::ServedVersion, method: Method, path: &str) -> [String; 4] {
    let life_cycle = version.life_cycle_of(method, path);
    let shown = |time: Option<Timestamp>| {
        time.map(rfc3339).unwrap_or_default()[..]
            .chars()
            .take(10)
            .collect()
    };
    let dates = life_cycle.map(|life| {
        let brownouts = life.brownouts.iter().map(|one| {
            let [start, end] = [one.start, one.end].map(rfc3339);
            format!("{}/{}", &start[5..13], &end[5..13])
        });
        let brownouts = brownouts.collect::<Vec<_>>().join(" ");
        [
            shown(life.deprecated),
            shown(life.sunset),
            shown(life.gone),
            brownouts,
        ]
    });
    dates.unwrap_or_default()
}

/// The longest path holds, and of each date the earlier one.
#[test]
fn an_endpoint_has_the_earlier_dates_and_the_brownouts_of_both() {
    let version = version(
        "deprecated = '2025-01-01'\nsunset = '2026-06-01'\nafter_sunset = 'gone'\nlink = 'https://a.example/v'\n\
         brownouts = ['2025-05-01T10:00:00Z/PT2H']\n\
         [[versions.v1.endpoints]]\npaths = ['/orders/**', '/carts']\nmethods = ['GET', 'POST']\n\
         sunset = '2026-01-01'\nbrownouts = ['2025-05-01T11:00:00Z/PT2H', '2025-04-01/PT1H']\n\
         [[versions.v1.endpoints]]\npaths = ['/orders/old']\ndeprecated = '2024-02-01'\nsunset = '2027-01-01'\n\
         [[versions.v1.endpoints]]\npaths = ['/gone']\nsunset = '2024-01-01'\nafter_sunset = 'gone'\n\
         link = 'https://a.example/gone'\n",
    );
    let whole = [
        "2025-01-01",
        "2026-06-01",
        "2026-06-01",
        "05-01T10/05-01T12",
    ];
    // Both brown-outs of May overlap.
    let orders = [
        "2025-01-01",
        "2026-01-01",
        "2026-06-01",
        "04-01T00/04-01T01 05-01T10/05-01T13",
    ];
    let old = [
        "2024-02-01",
        "2026-06-01",
        "2026-06-01",
        "05-01T10/05-01T12",
    ];
    let gone = [
        "2024-01-01",
        "2024-01-01",
        "2024-01-01",
        "05-01T10/05-01T12",
    ];
    for (method, path, expected) in [
        (Method::Get, "/", whole),
        (Method::Get, "/orders/1", orders),
        // A HEAD has the head of a GET.
        (Method::Head, "/carts", orders),
        (Method::Put, "/carts", whole),
        (Method::Post, "/carts/1", whole),
        (Method::Delete, "/orders/old", old),
        (Method::Get, "/gone", gone),
    ] {
        assert_eq!(
            of_request(&version, method, path),
            expected,
            "{method:?} {path}"
        );
    }
    let link = |path| {
        version
            .life_cycle_of(Method::Get, path)
            .unwrap()
            .link
            .as_deref()
    };
    assert_eq!(link("/gone"), Some("https://a.example/gone"));
    assert_eq!(link("/carts"), Some("https://a.example/v"));
    // What no change and no shadow tells apart is counted by the endpoint.
    let counted = |path| version.pattern(Method::Get, path).map(ToString::to_string);
    assert_eq!(counted("/orders/1").as_deref(), Some("/orders/**"));
    assert_eq!(counted("/"), None);
    let covers = |index: usize, method, path| version.endpoints()[index].covers(method, path);
    assert!(covers(0, "PUT", "/orders/old") && covers(1, "HEAD", "/orders/*/lines"));
    assert!(!covers(1, "PUT", "/orders/*") && !covers(1, "GET", "other"));
}

#[test]
fn endpoints_alone_leave_the_rest_of_the_version_as_it_is() {
    let version = version("[[versions.v1.endpoints]]\npaths = ['/old']\nsunset = '2026-01-01'\n");
    assert!(version.life_cycle().is_none());
    assert_eq!(of_request(&version, Method::Get, "/"), [""; 4]);
    assert_eq!(
        of_request(&version, Method::Get, "/old"),
        ["", "2026-01-01", "", ""]
    );
}

#[test]
fn every_problem_of_an_endpoint_is_reported() {
    let endpoint = |keys: &str| with(&format!("[[versions.v1.endpoints]]\n{keys}"));
    for (keys, expected) in [
        ("sunset = '2026-01-01'", "versions.v1.endpoints[0].paths"),
        (
            "paths = []\nsunset = '2026-01-01'",
            "versions.v1.endpoints[0].paths",
        ),
        (
            "paths = ['/a*']\nsunset = '2026-01-01'",
            "versions.v1.endpoints[0].paths",
        ),
        (
            "paths = ['/a']",
            "at least one of deprecated, sunset and brownouts",
        ),
        (
            "paths = ['/a']\nmethods = ['TRACE']\nsunset = '2026-01-01'",
            "versions.v1.endpoints[0].methods",
        ),
        (
            "paths = ['/a']\nafter_sunset = 'gone'",
            "\"gone\" without sunset",
        ),
        (
            "paths = ['/a', '/a']\nsunset = '2026-01-01'",
            "\"/a\" twice",
        ),
        (
            "path = '/a'\npaths = ['/a']\nsunset = '2026-01-01'",
            "versions.v1.endpoints[0].path",
        ),
    ] {
        let problems = problems(&endpoint(keys));
        assert!(problems.contains(expected), "{keys}: {problems}");
    }
}

#[test]
fn an_extension_moves_the_sunset_and_what_of_brownouts_comes_before() {
    let version = version(
        "deprecated = '2025-01-01'\nsunset = '2025-09-01'\nafter_sunset = 'gone'\n\
         brownouts = ['2025-05-01/PT2H', '2025-06-01/P1D', '2025-07-01/P1D']\n",
    );
    let life_cycle = version.life_cycle().unwrap();
    let date = |text: &str| parse_since(text, at(NEW_YEAR)).unwrap();
    let until = |text: &str| life_cycle.extended(date(text));
    let extended = until("2026-03-01");
    assert_eq!(extended.sunset, Some(date("2026-03-01")));
    assert!(extended.brownouts.is_empty());
    let sunset = extended
        .fields()
        .find(|(name, _)| name.eq_ignore_ascii_case(b"sunset"));
    assert_eq!(sunset.unwrap().1, b"Sun, 01 Mar 2026 00:00:00 GMT");
    assert_eq!(extended.stage(date("2026-02-28")), Stage::Deprecated);
    assert_eq!(extended.stage(date("2026-03-01")), Stage::Retired);
    // It never makes an end earlier, and a brown-out that it ends in begins then.
    let shorter = until("2025-06-01T12:00:00Z");
    assert_eq!(
        (shorter.sunset, shorter.gone),
        (life_cycle.sunset, life_cycle.gone)
    );
    assert_eq!(
        shorter.stage(date("2025-06-01T11:59:59Z")),
        Stage::Deprecated
    );
    let stage = shorter.stage(date("2025-06-01T12:00:00Z"));
    assert!(matches!(stage, Stage::Brownout { .. }));
    assert_eq!(shorter.brownouts.len(), 2);
}

#[test]
fn an_extension_is_written_as_it_is_read() {
    for (text, written) in [
        ("v1=2027-03-01", "v1=2027-03-01T00:00:00Z"),
        (" V2 = 2027-03-01T10:00:00Z", "v2=2027-03-01T10:00:00Z"),
    ] {
        let extension: Extension = text.parse().unwrap();
        assert!(
            extension.to_string().eq_ignore_ascii_case(written),
            "{extension}"
        );
        let json = serde_json::to_string(&extension).unwrap();
        assert_eq!(serde_json::from_str::<Extension>(&json).unwrap(), extension);
    }
    for text in [
        "",
        "v1",
        "v1=",
        "=2027-03-01",
        "v1=soon",
        "v1=2027-13-01",
        "v 1=2027-03-01",
    ] {
        assert!(text.parse::<Extension>().is_err(), "{text}");
    }
}
