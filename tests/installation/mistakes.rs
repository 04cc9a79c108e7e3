//! Typical mistakes of client programs, each with the response that it gets, and the cause that Sign Doctor names:
//! `vectors/mistakes.json`. CONTRACT 3 and 7.

use std::{collections::BTreeMap, sync::LazyLock};

use base64::{Engine, prelude::BASE64_STANDARD};
use end_to_end::{
    clock::{now_ms, rfc3339},
    logins::{credential, log_in_by_polling},
    program::Program,
    raw_connection::{RawResponse, request},
    stack::{Application, Stack},
    waiting::until,
};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use serde::Deserialize;
use serde_json::Value;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// How to read the file, for people.
    #[serde(rename = "about")]
    _about: Vec<String>,
    /// Each application with its arguments of `signpost app create`.
    applications: BTreeMap<String, Vec<String>>,
    mistakes: Vec<Mistake>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mistake {
    name: String,
    #[serde(rename = "language")]
    _language: String,
    application: String,
    sign: Option<Signing>,
    #[serde(default)]
    is_sent_twice: bool,
    method: String,
    target: String,
    /// All of its headers but `Host` and `Content-Length`.
    headers: Vec<String>,
    body: Option<String>,
    expected: Expected,
}

/// How the program computes `sign`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Signing {
    text: String,
    by: String,
    #[serde(default)]
    key: String,
    /// How the digest is written.
    #[serde(default)]
    written: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    status: u16,
    /// Whether the response names the cause or the next step rightly: a judgement of who read it.
    names_cause: bool,
    code: Option<String>,
    /// The hint's name in the access log; several are joined by `+`.
    hint: Option<String>,
    /// What title, detail and hint must contain.
    #[serde(default)]
    says: Vec<String>,
    /// A line that the head must contain.
    header: Option<String>,
}

const TEXT: &str = include_str!("../vectors/mistakes.json");

static TABLE: LazyLock<Table> = LazyLock::new(|| serde_json::from_str(TEXT).unwrap());

/// Mistakes whose cause no response can name.
const HINT_OF_NO_CAUSE: &str = "hint_key_or_value";

#[test]
fn most_mistakes_have_a_response_that_names_the_cause() {
    let all = &TABLE.mistakes;
    assert!(all.len() >= 80, "{} mistakes", all.len());
    let named: Vec<_> = all.iter().filter(|row| row.expected.names_cause).collect();
    assert!(named.len() >= 70, "{} name the cause", named.len());
    for Mistake { name, expected, .. } in named {
        let is_told = !expected.says.is_empty() || expected.header.is_some();
        let has_cause = expected.hint.as_deref() != Some(HINT_OF_NO_CAUSE);
        assert!(is_told && has_cause, "{name}: nothing checks its cause");
    }
}

#[tokio::test]
async fn every_mistake_gets_its_response() {
    let stack = Stack::builder().multi().gateway("[management.api]");
    let stack = stack.start().await;
    let token = stack.create_token("viewer");
    let applications = TABLE.applications.iter().map(|(name, arguments)| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        (name.as_str(), stack.create_application(name, &arguments))
    });
    let applications: BTreeMap<&str, Application> = applications.collect();
    let mut values = BTreeMap::new();
    for (placeholder, of) in [("{credential}", "plain"), ("{other_credential}", "other")] {
        let client = stack.client_of(&applications[of]);
        let login = log_in_by_polling(&client, "ada").await;
        values.insert(placeholder, credential(&login).to_owned());
    }
    values.insert("{other_key}", applications["other"].key.clone());

    for (placeholder, _) in filled(&values) {
        assert!(TEXT.contains(&placeholder), "no row has {placeholder}");
    }

    let mut wrong = Vec::new();
    for mistake in &TABLE.mistakes {
        let application = &applications[mistake.application.as_str()];
        values.insert("{app}", application.ident.clone());
        values.insert("{key}", application.key.clone());
        let got = until("a search for the cause", || {
            response_to(&stack, mistake, &values)
        })
        .await;
        if let Some(fault) = fault(&got, &mistake.expected) {
            wrong.push(format!("{}: {fault}", mistake.name));
        }
        let named = named_by_doctor(&stack, mistake, &values, &token).await;
        if let Some(named) =
            named.filter(|named| !is_same(named.as_deref(), mistake.expected.hint.as_deref()))
        {
            wrong.push(format!("{}: Sign Doctor names {named:?}", mistake.name));
        }
    }
    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} differ:\n{}", wrong.join("\n"));
}

/// A response, and the hint's name.
struct Got {
    response: RawResponse,
    hint: Option<String>,
}

impl Got {
    fn text(&self) -> String {
        let body: Value = serde_json::from_slice(&self.response.body).unwrap_or_default();
        let members = ["title", "detail", "hint"].map(|name| body[name].as_str());
        members.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }
}

/// Sends the mistake. `None` if its cause was not searched because of the limit of searches in a second.
async fn response_to(
    stack: &Stack,
    mistake: &Mistake,
    values: &BTreeMap<&str, String>,
) -> Option<Got> {
    let bytes = bytes_of(mistake, &filled(values));
    let mut connection = stack.raw().await;
    if mistake.is_sent_twice {
        connection.send(&bytes).await;
        connection.response().await?;
    }
    connection.send(&bytes).await;
    let response = connection.response().await?;
    let hint = match response.header("x-request-id") {
        Some(id) => hint_in_log(stack, id, &response).await,
        None => None,
    };
    let wants_hint = mistake.expected.hint.is_some();
    let is_searched = match hint.as_deref() {
        Some("hint_not_searched") => false,
        Some(_) => true,
        None => response.code().as_deref() != Some("sign_mismatch"),
    };
    (is_searched || !wants_hint).then_some(Got { response, hint })
}

/// The name of the hint that the gateway or the login service gave to a request.
async fn hint_in_log(stack: &Stack, id: &str, response: &RawResponse) -> Option<String> {
    let id = format!("request.id={id}");
    let hint = |log: String| {
        let of_request = log.lines().filter(|line| line.contains(&id));
        let mut hints = of_request.filter_map(|line| line.split_once("problem.hint="));
        let (_, rest) = hints.next()?;
        let name = rest.split_whitespace().next()?.trim_matches('"');
        Some(name.to_owned())
    };
    let of_gateway = hint(stack.log_with(Program::Gateway, &id).await);
    if of_gateway.is_some() || response.header("acme-x-version").is_none() {
        return of_gateway;
    }
    hint(stack.log_with(Program::V1, &id).await)
}

/// The cause that Sign Doctor names in the steps that it examines; `None` if the mistake is no one of signing, or cannot be pasted.
async fn named_by_doctor(
    stack: &Stack,
    mistake: &Mistake,
    values: &BTreeMap<&str, String>,
    token: &str,
) -> Option<Option<String>> {
    let codes = ["sign_mismatch", "time_invalid", "time_out_of_window"];
    let expected = &mistake.expected;
    codes
        .into_iter()
        .find(|code| expected.code.as_deref() == Some(code))?;
    let pasted = String::from_utf8(bytes_of(mistake, &filled(values))).ok()?;
    let body = serde_json::json!({ "request": pasted });
    let found = stack.call_api(0, "doctor", token, Some(body)).await;
    let found: Value = found.json().await.unwrap();
    let steps = found["steps"].as_array().unwrap().iter();
    let failed =
        steps.filter(|step| step["problem"]["code"] == expected.code.as_deref().unwrap_or(""));
    let mut hints = failed.map(|step| step["hint"].as_str().map(str::to_owned));
    Some(hints.next_back().flatten())
}

/// Whether both name the same causes, in any order.
fn is_same(one: Option<&str>, other: Option<&str>) -> bool {
    let names = |hint: Option<&str>| {
        let mut names: Vec<String> = hint.unwrap_or("").split('+').map(str::to_owned).collect();
        names.sort();
        names
    };
    names(one) == names(other)
}

/// What differs from the expected response.
fn fault(got: &Got, expected: &Expected) -> Option<String> {
    let text = got.text();
    let said = text.to_lowercase();
    let head = got.response.head.to_lowercase();
    let is_right = got.response.status == expected.status
        && got.response.code() == expected.code
        && refers_to(expected.code.as_deref(), &got.response)
        && is_same(got.hint.as_deref(), expected.hint.as_deref())
        && expected
            .says
            .iter()
            .all(|word| said.contains(&word.to_lowercase()))
        && expected
            .header
            .iter()
            .all(|line| head.contains(&line.to_lowercase()));
    (!is_right).then(|| {
        let (status, code) = (got.response.status, got.response.code());
        format!(
            "expected {expected:?}, got {status} {code:?} {:?}: {text}",
            got.hint
        )
    })
}

/// Whether the problem's `type` is the page about its code.
fn refers_to(code: Option<&str>, response: &RawResponse) -> bool {
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    code.is_none_or(|code| body["type"] == format!("/problems/{code}"))
}

const HOUR_MS: i64 = 3_600_000;

/// The placeholders with their values, which depend on the time.
fn filled(values: &BTreeMap<&str, String>) -> Vec<(String, String)> {
    let now = now_ms();
    let mut all: Vec<(String, String)> = values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    let clocks = [
        ("{time}", now.to_string()),
        ("{time+8h}", (now + 8 * HOUR_MS).to_string()),
        ("{time+5:30h}", (now + 11 * HOUR_MS / 2).to_string()),
        ("{time-5h}", (now - 5 * HOUR_MS).to_string()),
        ("{time-5:30h}", (now - 11 * HOUR_MS / 2).to_string()),
        ("{time-30min}", (now - HOUR_MS / 2).to_string()),
        ("{time-71s}", (now - 71_000).to_string()),
        ("{seconds}", (now / 1000).to_string()),
        ("{microseconds}", format!("{now}000")),
        ("{nanoseconds}", format!("{now}000000")),
        ("{fraction}", format!("{}.{:03}", now / 1000, now % 1000)),
        ("{iso}", rfc3339(now / 1000)),
        ("{255 parameters}", "p=1&".repeat(255)),
        ("{9000 letters}", "x".repeat(9000)),
    ];
    all.extend(clocks.map(|(name, value)| (name.to_owned(), value)));
    all
}

fn bytes_of(mistake: &Mistake, values: &[(String, String)]) -> Vec<u8> {
    let fill = |text: &str| {
        let put = |text: String, (name, value): &(String, String)| text.replace(name, value);
        values.iter().fold(text.to_owned(), put)
    };
    let sign = mistake.sign.as_ref().map(|signing| {
        let key = fill(if signing.key.is_empty() {
            "{key}"
        } else {
            &signing.key
        });
        let key = match key.strip_prefix("hex:") {
            Some(digits) => hex::decode(digits).unwrap(),
            None => key.into_bytes(),
        };
        let text = fill(&signing.text);
        let text = match text.strip_prefix("hex-key:") {
            Some(text) => {
                let (text, digits) = text.split_once('|').unwrap();
                [text.as_bytes(), &hex::decode(digits).unwrap()].concat()
            }
            None => text.into_bytes(),
        };
        written(&signing.written, &digest(&signing.by, &key, &text))
    });
    let fill = |text: &str| fill(text).replace("{sign}", sign.as_deref().unwrap_or_default());
    let body = mistake.body.as_deref().map(fill);
    let mut headers: Vec<String> = mistake.headers.iter().map(|line| fill(line)).collect();
    if let Some(body) = &body {
        headers.push(format!("Content-Length: {}", body.len()));
    }
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let body = body.unwrap_or_default();
    request(
        &mistake.method,
        &fill(&mistake.target),
        &headers,
        body.as_bytes(),
    )
}

fn digest(by: &str, key: &[u8], text: &[u8]) -> Vec<u8> {
    match by {
        "md5" => Md5::digest(text).to_vec(),
        "md5 of md5" => Md5::digest(hex::encode(Md5::digest(text))).to_vec(),
        "sha1" => Sha1::digest(text).to_vec(),
        "sha256" => Sha256::digest(text).to_vec(),
        "hmac-md5" => mac::<Hmac<Md5>>(key, text),
        "hmac-sha1" => mac::<Hmac<Sha1>>(key, text),
        "hmac-sha256" => mac::<Hmac<Sha256>>(key, text),
        "hmac-sha512" => mac::<Hmac<Sha512>>(key, text),
        other => panic!("the table has no {other}"),
    }
}

fn mac<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).unwrap();
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn written(form: &str, digest: &[u8]) -> String {
    match form {
        "" => hex::encode(digest),
        "HEX" => hex::encode_upper(digest),
        "base64" => BASE64_STANDARD
            .encode(digest)
            .replace('+', "%2B")
            .replace('=', "%3D"),
        "16 digits" => hex::encode(digest)[8..24].to_owned(),
        other => panic!("the table has no {other}"),
    }
}
