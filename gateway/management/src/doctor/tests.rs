//! Wrong requests, made by chance, each with one mistake: Sign Doctor names it, or says that it does not know if no rule explains
//! the signature.

use std::{fmt::Write as _, time::Instant};

use md5::{Digest, Md5};
use signpost_kit::{
    clock::{Clock, Timestamp},
    server::descriptors::Descriptors,
};
use signpost_proxy::{
    AppDirectory, Config,
    program::State,
    testing::{MINIMAL, load},
};

use super::*;

const KEY: &str = "4283fefc63f0cd0e873a0000c6d07ef77b7e90d3593ad699fc1f7cd5bb2e35cb";
const NOW: i64 = 1_732_104_000_000;

/// No mistake explains the signature.
const UNKNOWN: &str = "hint_key_or_value";

/// Repeatable chance (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn text(&mut self) -> String {
        const PARTS: [&str; 12] = [
            "a",
            "Z",
            "7",
            " ",
            "=",
            "&",
            "/",
            "it's",
            "~",
            "张",
            "\u{1f600}",
            "+",
        ];
        (0..self.below(6))
            .map(|_| PARTS[self.below(PARTS.len())])
            .collect()
    }
}

/// By RFC 3986.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            byte => write!(encoded, "%{byte:02X}").unwrap(),
        }
    }
    encoded
}

type Pairs = Vec<(String, String)>;

fn joined(pairs: &[(String, String)], written: impl Fn(&str) -> String) -> String {
    let pairs = pairs.iter();
    let pairs = pairs.map(|(name, value)| format!("{}={}", written(name), written(value)));
    pairs.collect::<Vec<_>>().join("&")
}

fn sorted(pairs: &Pairs) -> Pairs {
    let mut sorted = pairs.clone();
    sorted.sort_by(|one, other| one.0.cmp(&other.0));
    sorted
}

/// A mistake: its name, and the string that is hashed.
type Mistake = (&'static str, fn(&Pairs) -> String);

const MISTAKES: [Mistake; 15] = [
    ("hint_unsorted", |pairs| joined(pairs, encoded) + KEY),
    ("hint_trailing_newline", |pairs| {
        joined(&sorted(pairs), encoded) + KEY + "\n"
    }),
    ("hint_time_not_signed", |pairs| {
        let mut others = sorted(pairs);
        others.retain(|(name, _)| name != "time");
        joined(&others, encoded) + KEY
    }),
    ("hint_key_missing", |pairs| joined(&sorted(pairs), encoded)),
    ("hint_key_in_front", |pairs| {
        KEY.to_owned() + &joined(&sorted(pairs), encoded)
    }),
    ("hint_key_labelled", |pairs| {
        joined(&sorted(pairs), encoded) + "&key=" + KEY
    }),
    ("hint_space_as_plus", |pairs| {
        joined(&sorted(pairs), |text| encoded(text).replace("%20", "+")) + KEY
    }),
    ("hint_escape_case", |pairs| {
        let lower = |text: &str| {
            let text = encoded(text);
            let mut parts = text.split('%');
            let first = parts.next().unwrap().to_owned();
            parts.fold(first, |all, part| {
                all + "%" + &part[..2].to_lowercase() + &part[2..]
            })
        };
        joined(&sorted(pairs), lower) + KEY
    }),
    ("hint_decoded", |pairs| {
        joined(&sorted(pairs), str::to_owned) + KEY
    }),
    ("hint_empty_dropped", |pairs| {
        let mut others = sorted(pairs);
        others.retain(|(_, value)| !value.is_empty());
        joined(&others, encoded) + KEY
    }),
    ("hint_key_form", |pairs| {
        joined(&sorted(pairs), encoded) + &KEY.to_uppercase()
    }),
    ("hint_stray_separator", |pairs| {
        joined(&sorted(pairs), encoded) + "&" + KEY
    }),
    ("hint_json", |pairs| {
        let members = sorted(pairs).into_iter();
        let members = members.map(|(name, value)| (name, json!(value)));
        json!(members.collect::<serde_json::Map<_, _>>()).to_string() + KEY
    }),
    (UNKNOWN, |pairs| {
        joined(&sorted(pairs), encoded) + "00112233445566778899aabbccddeeff"
    }),
    (UNKNOWN, |pairs| {
        let mut changed = sorted(pairs);
        changed[0].1 += "changed";
        joined(&changed, encoded) + KEY
    }),
];

/// What is found of a request with this signature.
async fn findings(config: &Config, text: &str) -> Findings {
    findings_with(config, text, None).await
}

async fn findings_with(config: &Config, text: &str, app: Option<&str>) -> Findings {
    let apps = AppDirectory::single(KEY.parse().unwrap());
    let mut state = State::new(&apps, Descriptors::raise_limit());
    state.clock = Arc::new(At);
    let patient = Patient {
        gateway: &Gateway::new(config.clone(), apps, state).unwrap(),
        language: Language::En,
        pasted: text.parse().unwrap(),
        app,
        own: None,
        may_sign: &|_| true,
    };
    patient.examine().await.0
}

/// A clock that stands.
struct At;

impl Clock for At {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(NOW)
    }

    fn instant(&self) -> Instant {
        Instant::now()
    }
}

#[tokio::test]
async fn of_many_wrong_requests_the_named_cause_is_the_right_one() {
    let config = load(MINIMAL).unwrap();
    let mut dice = Dice(0x5eed);
    let mut made = 0;
    for number in 0.. {
        if made == 300 {
            break;
        }
        let (expected, mistake) = MISTAKES[number % MISTAKES.len()];
        let names = ["b", "a", "note", "q", "time_zone"];
        let mut pairs: Pairs = names
            .iter()
            .take(2 + dice.below(4))
            .map(|name| ((*name).to_owned(), dice.text()))
            .collect();
        pairs.insert(
            dice.below(pairs.len()),
            ("time".to_owned(), NOW.to_string()),
        );
        let wrong = mistake(&pairs);
        if wrong == joined(&sorted(&pairs), encoded) + KEY {
            continue;
        }
        made += 1;
        let sent = joined(&pairs, encoded);
        let sign = hex::encode(Md5::digest(&wrong));
        let request = format!(
            "POST /e HTTP/1.1\nHost: a\nContent-Type: application/x-www-form-urlencoded\n\n{sent}&sign={sign}"
        );
        let found = findings(&config, &request).await;
        let mut steps = found.steps.iter();
        let step = steps.find(|step| step.state == StepState::Wrong).unwrap();
        let hint = step.hint.as_deref().unwrap();
        let hint = hint.strip_suffix("+hint_charset").unwrap_or(hint);
        // Of few encoded characters, it names these.
        let hint = match (expected, hint) {
            ("hint_decoded", "hint_encoded_differently") => expected,
            _ => hint,
        };
        assert_eq!(hint, expected, "{wrong}");
        // What it says is right is.
        let signed = found.signed.unwrap();
        let right = request.replace(
            &format!("{sent}&sign={sign}"),
            signed.form.as_deref().unwrap(),
        );
        let found = findings(&config, &right).await;
        assert!(
            found.steps.iter().all(|step| step.problem.is_none()),
            "{right}"
        );
    }
}

#[tokio::test]
async fn a_path_is_compared_as_what_it_means() {
    let toml = format!("{MINIMAL}[sign]\nalways_signed = ['POST /signed/**']\n");
    let config = load(&toml).unwrap();
    for (path, query, step, code) in [
        ("/login", "?state=v1.abc&code=x", "route", None),
        ("/%6Cogin", "?state=v1.abc&code=x", "route", None),
        ("/signed/5", "", "sign", Some("sign_missing")),
        ("/%73igned/5", "", "sign", Some("sign_missing")),
        ("/%53igned/5", "", "route", None),
    ] {
        let method = if query.is_empty() { "POST" } else { "GET" };
        let request = format!("{method} {path}{query} HTTP/1.1\nHost: a\n\n");
        let found = findings(&config, &request).await;
        let last = json!(found.steps.last().unwrap());
        let problem = last["problem"]["code"].as_str();
        assert_eq!((&last["step"], problem), (&json!(step), code), "{path}");
        assert_eq!(found.path, path);
    }
}

/// The right form of a time, in pairs.
fn signed_at(time: i64) -> String {
    let pairs = format!("a=1&time={time}");
    let sign = hex::encode(Md5::digest(format!("{pairs}{KEY}")));
    format!("{pairs}&sign={sign}")
}

fn codes(findings: &Findings) -> Vec<&'static str> {
    findings.remarks.iter().map(|remark| remark.code).collect()
}

/// The state of each step, with the problem's code.
fn states(findings: &Findings) -> String {
    let steps = findings.steps.iter().map(|step| {
        let code = step
            .problem
            .as_ref()
            .map_or("", |problem| problem.code.as_str());
        let step_name = json!(step.step);
        format!("{} {:?} {code}", step_name.as_str().unwrap(), step.state)
    });
    steps.collect::<Vec<_>>().join(", ").replace(" ,", ",")
}

#[tokio::test]
async fn a_requests_age_is_no_fault_and_a_time_to_come_is_one() {
    let config = load(MINIMAL).unwrap();
    for (ago, state, says) in [
        (0, StepState::Ok, None),
        (60_000, StepState::Ok, None),
        (71_000, StepState::Old, Some("71 s")),
        (180_000, StepState::Old, Some("3 min")),
        (5 * 3_600_000, StepState::Old, Some("5 h")),
        (9 * 86_400_000, StepState::Old, Some("9 d")),
        (-71_000, StepState::Wrong, None),
    ] {
        let request = format!(
            "GET /e?{} HTTP/1.1\r\nHost: a\r\n\r\n",
            signed_at(NOW - ago)
        );
        let found = findings(&config, &request).await;
        let time = found
            .steps
            .iter()
            .find(|step| step.step == StepName::Time)
            .unwrap();
        assert_eq!(time.state, state, "{ago}");
        assert_eq!(time.problem.is_some(), state != StepState::Ok, "{ago}");
        assert_eq!(found.has(StepState::Wrong), ago < 0, "{}", states(&found));
        // The later steps are examined although the time is wrong.
        assert_eq!(found.steps.last().unwrap().step, StepName::Route, "{ago}");
        let old = found.remarks.iter().find(|remark| remark.code == "old");
        let says = says.map(|age| format!("The request is {age} old."));
        assert_eq!(old.is_some(), says.is_some(), "{ago}");
        assert!(
            old.is_none_or(|old| old.text.starts_with(&says.unwrap())),
            "{ago}"
        );
    }
}

#[tokio::test]
async fn what_was_not_checked_is_listed() {
    let config = load(MINIMAL).unwrap();
    let bare = "GET /user HTTP/1.1\r\nHost: a\r\n";
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    for (request, app, expected) in [
        (format!("{bare}\r\n"), None, vec![]),
        (format!("{bare}\r\n"), Some("shop"), vec![]),
        (
            format!("{bare}Acme-X-App: a\r\n\r\n"),
            Some("shop"),
            vec!["other_app"],
        ),
        (
            format!("{bare}Acme-X-App: shop\r\n\r\n"),
            Some("shop"),
            vec![],
        ),
        (format!("{bare}\r\n\r\n\n"), None, vec![]),
        (format!("{bare}\r\na=1"), None, vec!["left"]),
        ("/user".to_owned(), None, vec!["host"]),
        (bare.replace("\r\n", "\n"), None, vec!["completed"]),
        (
            "PUT / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            None,
            vec!["unreached"],
        ),
        (
            "GET /user HTTP/1.1\r\nHost : a\r\n\r\n".to_owned(),
            None,
            vec!["not_http", "unreached"],
        ),
        (
            format!("POST /e HTTP/1.1\r\nHost: a\r\n{form}Content-Length: 5\r\n\r\na=1"),
            None,
            vec!["unreached"],
        ),
        (
            format!("> POST /e HTTP/1.1\n> Host: a\n> {form}> Content-Length: 5\n>\n"),
            None,
            vec!["body"],
        ),
        (
            "> GET /user HTTP/2\n> host: a\n>\n< HTTP/2 200".to_owned(),
            None,
            vec!["http2"],
        ),
    ] {
        let found = findings_with(&config, &request, app).await;
        let expected = [&expected[..], &["unchecked"]].concat();
        assert_eq!(codes(&found), expected, "{request}: {}", states(&found));
        assert!(found.remarks.iter().all(|remark| remark.text.contains(' ')));
    }
}

#[tokio::test]
async fn a_request_is_examined_to_its_route_and_account() {
    let strict = load(&format!("unknown = 'reject'\n{MINIMAL}")).unwrap();
    let plain = load(MINIMAL).unwrap();
    let get =
        |target: &str, headers: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n{headers}\r\n");
    let ok = "request Ok, app Ok, params Ok, sign Ok, route Ok ";
    for (config, request, expected) in [
        (&plain, get("/user", "Acme-X-Version: v9\r\n"), ok),
        (&strict, get("/user", "Acme-X-Version: v1\r\n"), ok),
        (
            &strict,
            get("/user", "Acme-X-Version: v9\r\n"),
            "request Ok, app Ok, params Ok, sign Ok, route Wrong version_unknown",
        ),
        (
            &plain,
            get("/a//b", ""),
            "request Ok, app Ok, params Ok, sign Ok, route Wrong target_ambiguous",
        ),
        (&plain, get("/problems/app_missing", ""), "request Ok "),
        (
            &plain,
            get("http://a/user", ""),
            "request Wrong target_invalid",
        ),
        (
            &plain,
            get("/user", "Host: b\r\n"),
            "request Wrong target_invalid",
        ),
        (
            &plain,
            get("/user", "Content-Length: 1, 2\r\n"),
            "request Wrong ",
        ),
    ] {
        assert_eq!(
            states(&findings(config, &request).await),
            expected,
            "{request}"
        );
    }
}

#[tokio::test]
async fn the_right_call_goes_to_the_address_of_the_request() {
    let config = load(MINIMAL).unwrap();
    let public_url = config.public_url.to_string();
    let raw = |host: &str| format!("GET /e?a=1&time=1&sign=2 HTTP/1.1\r\nHost: {host}\r\n\r\n");
    for (request, address) in [
        (
            "curl https://api.example:8443/e?a=1".to_owned(),
            "https://api.example:8443",
        ),
        ("fetch(\"http://[::1]:81/e\")".to_owned(), "http://[::1]:81"),
        ("/e?a=1".to_owned(), &*public_url),
        (raw("other.example:81"), "http://other.example:81"),
        // What could be code in a sample is no address.
        (raw("a'$(id)"), &*public_url),
    ] {
        let signed = findings(&config, &request).await.signed.unwrap();
        assert!(
            signed.curl.starts_with(&format!("curl -g '{address}/e?")),
            "{}",
            signed.curl
        );
        for sample in signed.code {
            assert!(sample.code.contains(address), "{}", sample.code);
        }
    }
}
