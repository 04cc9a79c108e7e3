//! Wrong requests, made by chance, each with one mistake: Sign Doctor names it, or says that it does not know if no rule explains
//! the signature.

use std::fmt::Write as _;

use md5::{Digest, Md5};
use signpost_kit::clock::Timestamp;
use signpost_protocol::sign::AppKey;
use signpost_proxy::{
    Config,
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
async fn findings(config: &Config, pasted: &Pasted) -> Findings {
    let names = Arc::new(config.headers.clone());
    let key: AppKey = KEY.parse().unwrap();
    let rules = Rules {
        admission: &AdmissionRules::new(config, &names),
        verifier: &Verifier::new(config.sign.clone()),
        limits: &config.limits,
        apps: &AppDirectory::single(key),
        versions: &config.versions,
        public_url: &config.public_url,
        now: Timestamp::from_millis(NOW),
        language: Language::En,
    };
    let patient = Patient {
        rules: &rules,
        pasted,
        own: None,
        may_sign: &|_| true,
    };
    patient.examine().await.0
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
            "POST /e HTTP/1.1\nContent-Type: application/x-www-form-urlencoded\n\n{sent}&sign={sign}"
        );
        let found = findings(&config, &request.parse().unwrap()).await;
        let step = found.steps.last().unwrap();
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
        let found = findings(&config, &right.parse().unwrap()).await;
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
        ("/login", "?state=v1.abc&code=x", "callback", None),
        ("/%6Cogin", "?state=v1.abc&code=x", "callback", None),
        ("/signed/5", "", "sign", Some("sign_missing")),
        ("/%73igned/5", "", "sign", Some("sign_missing")),
        ("/%53igned/5", "", "sign", None),
    ] {
        let method = if query.is_empty() { "POST" } else { "GET" };
        let request = format!("{method} {path}{query} HTTP/1.1\n\n");
        let found = findings(&config, &request.parse().unwrap()).await;
        let last = json!(found.steps.last().unwrap());
        let problem = last["problem"]["code"].as_str();
        assert_eq!((&last["step"], problem), (&json!(step), code), "{path}");
        assert_eq!(found.path, path);
    }
}
