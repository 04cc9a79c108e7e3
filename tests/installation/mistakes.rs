//! Typical mistakes of client programs, each with the response that it gets, and the cause that Sign Doctor names:
//! `vectors/mistakes.json`. CONTRACT 3 and 7.

use std::{collections::BTreeMap, sync::LazyLock};

use base64::{Engine, prelude::BASE64_STANDARD};
use end_to_end::{
    clock::{now_ms, rfc3339},
    logins::{credential, log_in_by_polling},
    program::Program,
    raw_connection::{RawResponse, request},
    signed_client::http_client,
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
    /// Whether Sign Doctor, which also reads the addresses of browsers and of curl, takes the request as these would send it.
    #[serde(default)]
    is_mended_by_paste: bool,
}

const TEXT: &str = include_str!("../vectors/mistakes.json");

static TABLE: LazyLock<Table> = LazyLock::new(|| serde_json::from_str(TEXT).unwrap());

/// Mistakes whose cause no response can name.
const HINT_OF_NO_CAUSE: &str = "hint_key_or_value";

#[test]
fn most_mistakes_have_a_response_that_names_the_cause() {
    let all = &TABLE.mistakes;
    assert!(all.len() >= 300, "{} mistakes", all.len());
    let named: Vec<_> = all.iter().filter(|row| row.expected.names_cause).collect();
    assert!(named.len() >= 270, "{} name the cause", named.len());
    for Mistake { name, expected, .. } in named {
        let is_told = !expected.says.is_empty() || expected.header.is_some();
        let has_cause = expected.hint.as_deref() != Some(HINT_OF_NO_CAUSE);
        assert!(is_told && has_cause, "{name}: nothing checks its cause");
    }
}

#[tokio::test]
async fn every_mistake_gets_its_response() {
    let stack = Stack::builder().multi();
    let stack = stack
        .gateway("[management.api]\n[management.console]")
        .start()
        .await;
    let token = stack.create_token("viewer");
    let console = Console::sign_in(&stack, &token).await;
    let applications = TABLE.applications.iter().map(|(name, arguments)| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        (name.as_str(), stack.create_application(name, &arguments))
    });
    let applications: BTreeMap<&str, Application> = applications.collect();
    let _ = stack.command(&["app", "disable", &applications["disabled"].ident]);
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
    for (index, mistake) in TABLE.mistakes.iter().enumerate() {
        let application = &applications[mistake.application.as_str()];
        values.insert("{app}", application.ident.clone());
        values.insert("{key}", application.key.clone());
        values.insert("{key/32}", application.key[..32].to_owned());
        values.insert("{key/16}", application.key[..16].to_owned());
        values.insert("{key-1}", application.key[..63].to_owned());
        values.insert("{KEY}", application.key.to_uppercase());
        let got = until("a search for the cause", || {
            response_to(&stack, mistake, &values)
        })
        .await;
        if let Some(fault) = fault(&got, &mistake.expected) {
            wrong.push(format!("{}: {fault}", mistake.name));
        }
        // The console has a page for it. One in ten suffices: it shows what the API returns.
        let console = (index % 10 == 0).then_some(&console);
        if let Err(fault) = examined_by_doctor(&stack, mistake, &values, &token, console).await {
            wrong.push(format!("{}: Sign Doctor {fault}", mistake.name));
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
        // Whether a request without them has the key is looked up within that limit, too.
        None => {
            let bounded = ["sign_mismatch", "time_missing", "sign_missing"];
            !bounded.contains(&response.code().as_deref().unwrap_or_default())
        }
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
    // The login service has hints of its own for this code only.
    if of_gateway.is_some() || response.code().as_deref() != Some("not_found") {
        return of_gateway;
    }
    hint(stack.log_with(Program::V1, &id).await)
}

/// Codes that only a backend gives, a login service for example: no step of Sign Doctor has them.
const OF_BACKENDS: [&str; 11] = [
    "not_found",
    "param_missing",
    "param_invalid",
    "login_unknown",
    "authorization_missing",
    "authorization_malformed",
    "authorization_invalid",
    "return_to_not_allowed",
    "method_not_allowed",
    "sign_missing",
    "request_replayed",
];

/// Compares what Sign Doctor finds: the code and the hint. A request that cannot be pasted is none for it.
async fn examined_by_doctor(
    stack: &Stack,
    mistake: &Mistake,
    values: &BTreeMap<&str, String>,
    token: &str,
    console: Option<&Console>,
) -> Result<(), String> {
    let expected = &mistake.expected;
    let Ok(pasted) = String::from_utf8(bytes_of(mistake, &filled(values))) else {
        return Ok(());
    };
    let body = serde_json::json!({ "request": pasted });
    let request = http_client()
        .post(stack.api_url(0, "doctor"))
        .bearer_auth(token);
    let found = request.json(&body).send().await.unwrap();
    if found.status() == 400 {
        return Ok(());
    }
    let found: Value = found.json().await.unwrap();
    let code = expected.code.as_deref().unwrap_or_default();
    let steps = found["steps"].as_array().unwrap();
    let mut failed = steps.iter().filter(|step| !step["problem"].is_null());
    let step = failed.rfind(|step| step["problem"]["code"] == code);
    let Some(step) = step else {
        let is_rejected =
            expected.status >= 400 && !expected.is_mended_by_paste && !OF_BACKENDS.contains(&code);
        return if is_rejected {
            Err(format!("finds no {code}: {found}"))
        } else {
            Ok(())
        };
    };
    if !is_same(step["hint"].as_str(), expected.hint.as_deref()) {
        return Err(format!("names {}", step["hint"]));
    }
    let (Some(console), Some(hint)) = (console, step["problem"]["hint"].as_str()) else {
        return Ok(());
    };
    let page = console.examine(&pasted).await;
    let is_shown = page.contains(
        &hint
            .replace('&', "&amp;")
            .replace('"', "&quot;")
            .replace('<', "&lt;")
            .replace('>', "&gt;"),
    );
    is_shown
        .then_some(())
        .ok_or_else(|| format!("shows no {hint:?} on its page"))
}

/// The console, for somebody who has signed in.
struct Console {
    http: reqwest::Client,
    address: String,
    cookie: String,
}

impl Console {
    async fn sign_in(stack: &Stack, token: &str) -> Self {
        let mut console = Self {
            http: http_client(),
            address: format!(
                "http://{}",
                stack.addresses().management_of(Program::Gateway.number(0))
            ),
            cookie: String::new(),
        };
        let shown = console.send("/sign-in", ("token", token)).await;
        let cookie = shown.headers()["set-cookie"].to_str().unwrap();
        console.cookie = cookie.split(';').next().unwrap().to_owned();
        console
    }

    /// What the page of Sign Doctor shows of a request.
    async fn examine(&self, pasted: &str) -> String {
        let shown = self.send("/doctor", ("request", pasted)).await;
        shown.text().await.unwrap()
    }

    async fn send(&self, path: &str, field: (&str, &str)) -> reqwest::Response {
        let request = self
            .http
            .post(format!("{}{path}", self.address))
            .form(&[field]);
        let response = request.header("cookie", &self.cookie).send().await;
        response.expect("the console responds")
    }
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
        ("{time+9h}", (now + 9 * HOUR_MS).to_string()),
        ("{time-8h}", (now - 8 * HOUR_MS).to_string()),
        ("{time+1h}", (now + HOUR_MS).to_string()),
        ("{time-24h}", (now - 24 * HOUR_MS).to_string()),
        ("{time+5:45h}", (now + 23 * HOUR_MS / 4).to_string()),
        ("{time+1ms}", (now + 1).to_string()),
        ("{time-3ms}", (now - 3).to_string()),
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

/// The bytes of a request. If its digest must have something to lose, a nonce gives it another one.
fn bytes_of(mistake: &Mistake, values: &[(String, String)]) -> Vec<u8> {
    let with = |nonce: u32| {
        let mut values = values.to_vec();
        values.push(("{nonce}".to_owned(), nonce.to_string()));
        try_bytes_of(mistake, &values)
    };
    (0..10_000).find_map(with).expect("a digest with a zero")
}

fn try_bytes_of(mistake: &Mistake, values: &[(String, String)]) -> Option<Vec<u8>> {
    let fill = |text: &str| {
        let put = |text: String, (name, value): &(String, String)| text.replace(name, value);
        values.iter().fold(text.to_owned(), put)
    };
    let sign = match mistake.sign.as_ref().map(|signing| {
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
    }) {
        Some(None) => return None,
        sign => sign.flatten(),
    };
    let fill = |text: &str| fill(text).replace("{sign}", sign.as_deref().unwrap_or_default());
    let body = mistake.body.as_deref().map(fill);
    let mut headers: Vec<String> = mistake.headers.iter().map(|line| fill(line)).collect();
    if let Some(body) = &body {
        headers.push(format!("Content-Length: {}", body.len()));
    }
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let body = body.unwrap_or_default();
    let target = fill(&mistake.target);
    Some(request(&mistake.method, &target, &headers, body.as_bytes()))
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

/// The digest as a program writes it; `None` if it loses nothing by that form, although the form loses zeros.
fn written(form: &str, digest: &[u8]) -> Option<String> {
    let (hex, base64) = (hex::encode(digest), BASE64_STANDARD.encode(digest));
    let bytes = |by: &str| {
        hex::encode_upper(digest)
            .as_bytes()
            .chunks(2)
            .map(text_of)
            .collect::<Vec<_>>()
            .join(by)
    };
    let escaped = |text: String| {
        text.replace('+', "%2B")
            .replace('=', "%3D")
            .replace(' ', "+")
    };
    let short = match form {
        "number" => hex.trim_start_matches('0').to_owned(),
        "bytes" => digest.iter().map(|byte| format!("{byte:x}")).collect(),
        _ => String::new(),
    };
    Some(match form {
        "" => hex,
        "HEX" => hex::encode_upper(digest),
        "base64" => escaped(base64),
        "base64 of hex" => escaped(BASE64_STANDARD.encode(hex)),
        "16 digits" => hex[8..24].to_owned(),
        "dashes" => bytes("-"),
        "colons" => bytes(":"),
        "md5sum" => escaped(format!("{hex}  -")),
        "openssl" => escaped(format!("MD5(stdin)= {hex}")),
        "quotes" => format!("%22{hex}%22"),
        "0x" => format!("0x{hex}"),
        "line" => format!("{hex}%0A"),
        "number" | "bytes" if short.len() == hex.len() => return None,
        "number" | "bytes" => short,
        other => panic!("the table has no {other}"),
    })
}

fn text_of(ascii: &[u8]) -> String {
    String::from_utf8_lossy(ascii).into_owned()
}
