//! The developer's card: `signpost app create` and `signpost app show` print an application's rules, and a first call that
//! the gateway accepts. Issue 27, row 8.

use std::{
    fs,
    process::{Command, Output},
};

use end_to_end::{
    program::output_text,
    stack::{APP_KEY, Stack},
};
use serde_json::{Value, json};

const HINT: &str = "has the key:\n\n";

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", output_text(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Pastes a card's lines into bash, in a folder with the key, and returns the response's body and status.
fn paste(stack: &Stack, lines: &str, key: &str) -> String {
    fs::write(stack.folder().join("app.key"), format!("{key}\n")).unwrap();
    let curl = "curl() { command curl --silent --write-out '%{http_code}' \"$@\"; }";
    let mut bash = Command::new("bash");
    bash.current_dir(stack.folder());
    bash.args(["-c", &format!("set -eu\n{curl}\n{lines}")]);
    text(&bash.output().unwrap())
}

fn assert_accepted(stack: &Stack, card: &str, key: &str, rules: &[&str]) {
    let (_, lines) = card.split_once(HINT).unwrap();
    assert_eq!(lines.lines().count(), 6, "{lines}");
    let response = paste(stack, lines, key);
    assert!(
        response.contains("\"token\":\"v1.") && response.ends_with("200"),
        "{rules:?}: {response}\n{lines}"
    );
}

#[tokio::test]
async fn the_first_call_of_each_profile_is_accepted() {
    let stack = Stack::builder().multi().start().await;
    for rules in [
        &["--preset", "plain"][..],
        &["--preset", "decoded"],
        &["--preset", "bilibili"],
        &["--preset", "alipay"],
        &["--preset", "wechat"],
        &["--preset", "top"],
        &["--algorithm", "hmac-sha256"],
        &["--cover", "request", "--replay", "reject"],
        &["--preset", "wechat", "--algorithm", "hmac-sha256"],
        &["--preset", "top", "--cover", "request"],
        &[
            "--preset",
            "top",
            "--cover",
            "request",
            "--algorithm",
            "hmac-sha256",
        ],
        &[],
    ] {
        let arguments = [&["app", "create", "First"], rules].concat();
        let created = text(&stack.command(&arguments));
        let value = |name: &str| {
            let mut lines = created.lines();
            let value = lines.find_map(|line| line.strip_prefix(name)).unwrap();
            value.trim().to_owned()
        };
        let (ident, key) = (value("APP_IDENT"), value("APP_KEY"));
        assert_eq!(created.matches(&*key).count(), 1, "{created}");
        assert_accepted(&stack, &created, &key, rules);
        let shown = text(&stack.command(&["app", "show", &ident]));
        assert!(!shown.contains(&key), "{shown}");
        let (_, card) = created.split_once("\n\n").unwrap();
        assert!(shown.ends_with(card), "{shown}\n{card}");
        let wrong = paste(&stack, card.split_once(HINT).unwrap().1, APP_KEY);
        assert!(wrong.ends_with("403"), "{wrong}");
    }
}

#[tokio::test]
async fn a_single_application_has_a_card_without_an_ident() {
    let toml = "[sign]\npreset = 'wechat'\nalgorithm = 'hmac-sha256'\ncover = 'request'";
    let stack = Stack::builder().gateway(toml).start().await;
    let card = text(&stack.command(&["app", "show"]));
    assert!(
        !card.contains(APP_KEY) && !card.contains("Acme-X-App"),
        "{card}"
    );
    assert_accepted(&stack, &card, APP_KEY, &[toml]);
    let refused = output_text(&stack.command(&["app", "show", "one"]));
    assert!(refused.contains("serves a single application"), "{refused}");
}

#[tokio::test]
async fn values_of_the_configuration_are_single_words_for_a_shell() {
    let stack = Stack::builder().start().await;
    let address = "http://a';id;'b";
    let card = text(&stack.command(&["app", "show", "--address", address]));
    let (_, lines) = card.split_once(HINT).unwrap();
    fs::write(stack.folder().join("app.key"), APP_KEY).unwrap();
    let printed = format!("set -eu\ncurl() {{ printf '%s\\n' \"$@\"; }}\n{lines}");
    let mut bash = Command::new("bash");
    let bash = bash.current_dir(stack.folder()).args(["-c", &printed]);
    let words = text(&bash.output().unwrap());
    let url = format!("{address}/login");
    assert!(words.lines().any(|word| word == url), "{words}");
}

#[tokio::test]
async fn a_card_has_the_applications_rules() {
    let toml = "prefix = 'Shop'\npublic_url = 'https://api.example.com'\n\
                [headers]\napp = 'Client-Id'\n\
                [sign]\nwindow_seconds = 30\n\
                [cors]\norigins = ['https://*.example.org', 'https://a.example']\n\
                [versions.v0]\nbackend = '$V1'\nsunset = '2020-01-01T00:00:00Z'\nafter_sunset = 'gone'";
    let stack = Stack::builder().gateway(toml).multi().start().await;
    let back = "https://shop.example";
    let own = [
        "--preset",
        "alipay",
        "--default-version",
        "v2",
        "--return-to",
        back,
    ];
    let app = stack.create_application("First", &own);
    let show = |further: &[&str]| {
        let arguments = [&["app", "show", &app.ident], further].concat();
        text(&stack.command(&arguments))
    };
    let shown: Value = serde_json::from_str(&show(&["--json"])).unwrap();
    let card = &shown["card"];
    for (member, expected) in [
        ("address", json!("https://api.example.com")),
        (
            "headers",
            json!([
                "Client-Id",
                "Shop-X-Version",
                "Shop-X-Language",
                "Shop-X-Authorization"
            ]),
        ),
        (
            "versions",
            json!([
                { "version": "v0", "is_default": false, "is_retired": true },
                { "version": "v1", "is_default": false, "is_retired": false },
                { "version": "v2", "is_default": true, "is_retired": false },
            ]),
        ),
        ("presets", json!(["alipay"])),
        ("sign_profile", shown["sign_profile"].clone()),
        ("window_seconds", json!(30)),
        ("return_to", json!([back])),
        (
            "cors_origins",
            json!(["https://*.example.org", "https://a.example"]),
        ),
    ] {
        assert_eq!(card[member], expected, "{member}: {card}");
    }
    assert_eq!(card["first_call"].as_array().unwrap().len(), 6, "{card}");
    let shown = show(&["--address", "https://other.example:8443"]);
    let values = shown.lines().filter_map(|line| line.split_once("  "));
    let values: Vec<_> = values.map(|(name, value)| (name, value.trim())).collect();
    for expected in [
        ("address", "https://other.example:8443"),
        (
            "headers",
            "Client-Id, Shop-X-Version, Shop-X-Language, Shop-X-Authorization",
        ),
        ("versions", "v0 (retired), v1, v2 (default)"),
        ("preset", "alipay"),
        ("empty", "drop"),
        ("leave_out", "sign_type"),
        ("time", "UTC milliseconds, within 30 s"),
        ("sign", "32 hex digits"),
        ("return_to", back),
        ("cors_origins", "https://*.example.org, https://a.example"),
    ] {
        assert!(values.contains(&expected), "{expected:?}\n{shown}");
    }
    let call = format!(
        "-H 'Client-Id: {}' -H 'Shop-X-Version: v2' 'https://other.example:8443/login'\n",
        app.ident
    );
    assert!(shown.ends_with(&call), "{shown}");
    let missing = output_text(&stack.command(&["app", "show"]));
    assert!(missing.contains("IDENT is missing"), "{missing}");
}
