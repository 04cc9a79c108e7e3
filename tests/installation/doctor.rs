//! `signpost doctor`: a request as a client developer has it, examined by the rules of a configuration, of a store, or of a key.

use std::{
    fs,
    process::{Command, Output},
};

use end_to_end::{
    clock::now_ms,
    documents::root,
    program::{Program, output_text},
    recording_backend::RecordingBackend,
    signer::md5_hex,
    stack::{APP_KEY, Stack},
};
use serde_json::Value;

/// Runs `doctor` for what a file has.
fn examine(stack: &Stack, pasted: &str, arguments: &[&str]) -> Output {
    let file = stack.folder().join("pasted");
    fs::write(&file, pasted).unwrap();
    let mut whole = vec!["doctor", file.to_str().unwrap()];
    whole.extend(arguments);
    Program::Gateway.run(stack.folder(), &whole)
}

/// A curl command whose pairs were signed in the order in which they are sent.
fn unsorted(key: &str, headers: &str) -> String {
    let pairs = format!("b=it%27s&a=1&time={}", now_ms());
    let sign = md5_hex(&format!("{pairs}{key}"));
    format!("curl -s 'https://api.example/user/login' {headers} \\\n  -d '{pairs}&sign={sign}'\n")
}

fn assert_has(output: &Output, parts: &[&str]) -> String {
    let text = output_text(output);
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
    text
}

#[tokio::test]
async fn a_request_is_examined_by_a_configuration() {
    let (stack, _backend) = Stack::recording().await;
    let config = stack.config(Program::Gateway);
    let config = ["--config", config.to_str().unwrap()];
    let wrong = examine(&stack, &unsorted(APP_KEY, ""), &config);
    assert_eq!(wrong.status.code(), Some(1), "{}", output_text(&wrong));
    let text = assert_has(
        &wrong,
        &[
            "POST /user/login\n  ok     request\n  ok     app\n  ok     params\n  ok     time\n",
            "WRONG  sign: 403 sign_mismatch (hint_unsorted)",
            "a=1&b=it%27s&time=",
            "•••",
            "curl -g https://api.example/user/login --data-raw 'b=it%27s&a=1&time=",
            "note   Not checked: whether the request is a repetition",
            r#"client.call("POST", "/user/login", [("b", "it's"), ("a", "1")])"#,
            r#"await client.call("POST", "/user/login", [["b", "it's"], ["a", "1"]])"#,
            r#"client.Call(context.Background(), "POST", "/user/login", signpost.Pairs{{"b", "it's"}, {"a", "1"}})"#,
            r#"client.call("POST", "/user/login", List.of(Signpost.pair("b", "it's"), Signpost.pair("a", "1")))"#,
            r#"$client->call("POST", "/user/login", [["b", "it's"], ["a", "1"]])"#,
            r#"client.Call("POST", "/user/login", SignpostClient.Pair("b", "it's"), SignpostClient.Pair("a", "1"))"#,
            r"signpost_call POST /user/login 'b=it'\''s' 'a=1'",
        ],
    );
    assert!(!text.contains(APP_KEY), "{text}");
    // In another language, for one client.
    let further = ["--language", "zh-CN", "--in", "go"];
    let output = examine(
        &stack,
        &unsorted(APP_KEY, ""),
        &[&config[..], &further].concat(),
    );
    let text = assert_has(&output, &["签名", "signpost.Pairs"]);
    assert!(
        !text.contains("$client") && !text.contains("curl -g"),
        "{text}"
    );
    // What it says is right is.
    let json = examine(
        &stack,
        &unsorted(APP_KEY, ""),
        &[&config[..], &["--json"]].concat(),
    );
    let found: Value = serde_json::from_slice(&json.stdout).unwrap();
    let form = found["signed"]["form"].as_str().unwrap();
    let right = format!(
        "POST /user/login HTTP/1.1\nHost: a\nContent-Type: application/x-www-form-urlencoded\n\n{form}"
    );
    let right = examine(&stack, &right, &config);
    assert!(right.status.success(), "{}", output_text(&right));
    // What is no request.
    let none = examine(&stack, "hello\n", &config);
    assert_eq!(none.status.code(), Some(1));
    assert_has(&none, &["a curl command", "a HAR", "a URL"]);
}

#[tokio::test]
async fn the_clients_own_string_is_compared_byte_by_byte() {
    let (stack, _backend) = Stack::recording().await;
    let config = stack.config(Program::Gateway);
    let config = ["--config", config.to_str().unwrap()];
    let own = stack.folder().join("own");
    fs::write(&own, format!("a=1&b=it's&time=1{APP_KEY}\n")).unwrap();
    let arguments = ["--canonical", own.to_str().unwrap()];
    let output = examine(
        &stack,
        &unsorted(APP_KEY, ""),
        &[&config[..], &arguments].concat(),
    );
    let text = assert_has(
        &output,
        &[
            "Your string differs after 8 bytes:",
            "it has     a=1&b=it's&time=1•••",
        ],
    );
    assert!(!text.contains(APP_KEY), "{text}");
    // A provider's redirect.
    let callback = examine(&stack, "/login?state=v1.x&code=y", &config);
    assert_has(
        &callback,
        &["ok     request\n  ok     callback\n  ok     route\n"],
    );
    assert!(callback.status.success());
    // Only the string and the signature are known.
    let time = now_ms();
    for (string, hashed, hint) in [
        ("b=%20&a=1", "b=%20&a=1", "hint_unsorted"),
        ("a=1&b=%20", "a=1&b=+", "hint_space_as_plus"),
        ("a=1&b=%20", "a=1&b=%20", ""),
    ] {
        let string = format!("{string}&time={time}{APP_KEY}");
        let sign = md5_hex(&format!("{hashed}&time={time}{APP_KEY}"));
        let output = examine(&stack, &string, &[&config[..], &["--sign", &sign]].concat());
        let text = assert_has(&output, &[hint]);
        assert_eq!(output.status.success(), hint.is_empty(), "{text}");
        assert!(
            !text.contains("curl"),
            "the string does not determine the request: {text}"
        );
        assert!(!text.contains(APP_KEY), "{text}");
    }
}

#[tokio::test]
async fn another_key_in_the_clients_string_is_noticed() {
    let (stack, _backend) = Stack::recording().await;
    let config = stack.config(Program::Gateway);
    let string = format!("a=1&time={}00112233445566778899aabbccddeeff", now_ms());
    let sign = md5_hex(&string);
    let arguments = ["--config", config.to_str().unwrap(), "--sign", &sign];
    let output = examine(&stack, &string, &arguments);
    assert_eq!(output.status.code(), Some(1));
    assert_has(&output, &["the string has not this application's key"]);
}

/// What an attacker puts into a request is no code in the samples, and no command for a terminal.
#[tokio::test]
async fn a_hostile_request_is_shown_as_text() {
    let (stack, _backend) = Stack::recording().await;
    let config = stack.config(Program::Gateway);
    let config = ["--config", config.to_str().unwrap()];
    let header = "?><?php system('id'); //\u{2028}x()//";
    let request = format!(
        "GET /x?a=[1-50]%1b[2J&time=1&sign=0 HTTP/1.1\nHost: a\nAcme-X-Version: {header}\nAcme-X-App: {header}\n\n"
    );
    for further in [&["--json"][..], &[]] {
        let text = output_text(&examine(&stack, &request, &[&config[..], further].concat()));
        assert!(!text.contains(['\u{1b}', '\u{2028}']), "{text}");
    }
    let output = examine(&stack, &request, &[&config[..], &["--json"]].concat());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    for sample in found["signed"]["code"].as_array().unwrap() {
        let code = sample["code"].as_str().unwrap();
        assert!(!code.contains("system('id')"), "{code}");
    }
}

#[tokio::test]
async fn an_application_of_the_store_is_examined_by_its_own_profile_and_audited() {
    let stack = Stack::builder().multi().start().await;
    let app = stack.create_application("shop", &["--preset", "wechat"]);
    let config = stack.config(Program::Gateway);
    let config = config.to_str().unwrap();
    let named = format!("-H 'Acme-X-App: {}' -H 'Acme-X-Version: v2'", app.ident);
    let output = examine(&stack, &unsorted(&app.key, &named), &["--config", config]);
    let text = assert_has(
        &output,
        &[
            "WRONG  sign",
            "&key=•••",
            &app.ident,
            r#"version="v2", profile={"empty":"drop","layout":"pairs-key","values":"decoded"})"#,
        ],
    );
    assert!(!text.contains(&app.key), "{text}");
    // The call that it shows is right.
    let pairs = format!("provider=bitbucket&q=it%27s&time={}&sign=0", now_ms());
    let gateway = stack.url("");
    let begun = format!("curl '{gateway}/login' {named} -d '{pairs}'");
    let shown = output_text(&examine(
        &stack,
        &begun,
        &["--config", config, "--in", "python"],
    ));
    let (_, code) = shown.split_once("\nPython:\n").unwrap();
    let data = stack.folder().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("app.key"), &app.key).unwrap();
    let mut python = Command::new("python3");
    let python = python.args(["-B", "-c", code]).current_dir(stack.folder());
    let python = python.env("PYTHONPATH", root().join("gateway/clients/python"));
    let called = python.output().unwrap();
    assert_has(&called, &["200", "user_code"]);
    let audit = stack.command(&["audit"]);
    assert_has(&audit, &["sign", &app.ident]);
    // By option; and none.
    // The option does not replace the missing header, but the later steps use it.
    let by_option = ["--config", config, "--app", &app.ident];
    let output = examine(&stack, &unsorted(&app.key, ""), &by_option);
    assert_has(&output, &["WRONG  app: 400 app_missing", "WRONG  sign"]);
    let address = format!("/user?a=1&time={}&sign=0", now_ms());
    let output = examine(&stack, &address, &by_option);
    assert_has(&output, &["ok     app", "WRONG  sign"]);
    let output = examine(&stack, &unsorted(&app.key, ""), &["--config", config]);
    assert_has(&output, &["WRONG  app: 400 app_missing"]);
}

#[tokio::test]
async fn a_developer_who_has_only_the_key_needs_no_configuration() {
    let (stack, _backend) = Stack::recording().await;
    let key = stack.folder().join("own.key");
    fs::write(&key, APP_KEY).unwrap();
    let source = format!("file:{}", key.display());
    let output = examine(&stack, &unsorted(APP_KEY, ""), &["--key", &source]);
    assert_has(&output, &["(hint_unsorted)"]);
    let output = examine(
        &stack,
        &unsorted(APP_KEY, ""),
        &["--key", &source, "--preset", "top"],
    );
    assert_has(&output, &["•••a1bit'stime"]);
    let output = examine(&stack, &unsorted(APP_KEY, ""), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_has(&output, &["neither --config nor --key is given"]);
}

#[tokio::test]
async fn a_request_with_json_is_shown_as_a_call_of_each_library() {
    let backend = RecordingBackend::start().await;
    let rules =
        "[sign]\ncarrier = 'headers'\n[versions.v1]\nmethods = ['GET', 'PUT']\nbodies = 'any'";
    let stack = Stack::builder().in_front_of(&backend).gateway(rules);
    let stack = stack.start().await;
    let config = stack.config(Program::Gateway);
    let config = ["--config", config.to_str().unwrap()];
    let put = |kind: &str, body: &str| {
        let headers = format!("-H 'Acme-X-Time: {}' -H 'Acme-X-Sign: 0'", now_ms());
        let url = "'https://api.example/orders/5?p=q'";
        format!("curl -X PUT {url} {headers} -H 'Content-Type: {kind}' --data-raw '{body}'")
    };
    let json = examine(&stack, &put("application/json", r#"{"n":1}"#), &config);
    assert_has(
        &json,
        &[
            "WRONG  sign",
            r#"profile={"carrier":"headers"}"#,
            r#"client.call("PUT", "/orders/5", [("p", "q")], json={"n": 1})"#,
            r#"signpost_call --json '{"n":1}' PUT /orders/5 'p=q'"#,
        ],
    );
    let other = examine(&stack, &put("text/csv", "a,b"), &config);
    let text = assert_has(&other, &["Right, at this time"]);
    assert!(!text.contains("client.call"), "{text}");
}
