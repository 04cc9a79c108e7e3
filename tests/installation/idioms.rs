//! What SIGNING.md shows for each language signs and sends the same bytes. CONTRACT 3.

use std::{collections::BTreeSet, env, fs, process::Command};

use end_to_end::{
    clock::now_ms, documents::root, recording_backend::RecordingBackend, signed_client::send_form,
    signer::md5_hex, stack::APP_KEY, stack::Stack,
};
use serde_json::json;
use url::form_urlencoded;

/// Names and values that functions for encoding treat differently; a name appears twice.
const PAIRS: [(&str, &str); 6] = [
    ("tag", "b"),
    ("q", "it's a/b+c~*()!"),
    ("empty", ""),
    ("name", "张"),
    ("emoji", "😀"),
    ("tag", "a"),
];

/// The code of a language, with the line for HMAC if `is_hmac`.
fn code(language: &str, is_hmac: bool) -> String {
    let document = fs::read_to_string(root().join("gateway/protocol/SIGNING.md")).unwrap();
    let (_, rest) = document.split_once(&format!("```{language}\n")).unwrap();
    let (code, _) = rest.split_once("```").unwrap();
    if !is_hmac {
        return code.to_owned();
    }
    let marks = ["# hmac-sha256: ", "// hmac-sha256: "];
    assert!(marks.iter().any(|mark| code.contains(mark)), "{code}");
    let uncomment = |code: String, mark: &&str| code.replace(mark, "");
    marks.iter().fold(code.to_owned(), uncomment)
}

/// Runs a program with `url`, `key` and `pairs`, and compares what reaches the backend by POST and by GET.
async fn assert_signs(program: &[&str], definitions: impl Fn(&str) -> String, language: &str) {
    for algorithm in ["md5", "hmac-sha256"] {
        let backend = RecordingBackend::start().await;
        let config = format!("[sign]\nalgorithm = \"{algorithm}\"");
        let builder = Stack::builder().in_front_of(&backend).gateway(&config);
        let stack = builder.start().await;
        let code = code(language, algorithm == "hmac-sha256");
        let code = format!("{}\n{code}", definitions(&stack.origin()));
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(&code);
        let run = tokio::task::spawn_blocking(move || command.output());
        let output = run.await.unwrap().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{language} {algorithm}: {error}");
        let requests = backend.requests();
        assert_eq!(requests.len(), 2, "{language} {algorithm}: {error}");
        for request in requests {
            let (_, query) = request.target.split_once('?').unwrap_or_default();
            let sent = [query.as_bytes(), &request.body].concat();
            let pairs: Vec<(String, String)> = form_urlencoded::parse(&sent).into_owned().collect();
            let names: BTreeSet<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
            assert!(
                names.contains("time") && names.contains("sign"),
                "{pairs:?}"
            );
            for (name, _) in PAIRS {
                let of = |pairs: &[(String, String)]| {
                    let of_name = pairs.iter().filter(|(other, _)| other == name);
                    of_name.map(|(_, value)| value.clone()).collect::<Vec<_>>()
                };
                let given = PAIRS.map(|(name, value)| (name.to_owned(), value.to_owned()));
                assert_eq!(of(&pairs), of(&given), "{language}: {name}");
            }
        }
    }
}

#[tokio::test]
async fn the_code_for_python_signs_what_it_sends() {
    let definitions = |url: &str| {
        let pairs = json!(PAIRS);
        format!(
            "url, key = '{url}', '{APP_KEY}'
pairs = [tuple(pair) for pair in {pairs}]"
        )
    };
    assert_signs(&["python3", "-c"], definitions, "python").await;
}

#[tokio::test]
async fn the_code_for_javascript_signs_what_it_sends() {
    // `scripts/test` has reported that Node cannot be installed here.
    if env::var_os("SIGNPOST_TEST_WITHOUT_FRAMEWORKS").is_some() {
        return;
    }
    let definitions = |url: &str| {
        format!(
            "const [url, key, pairs] = ['{url}', '{APP_KEY}', {}];",
            json!(PAIRS)
        )
    };
    let node = ["node", "--input-type=module", "-e"];
    assert_signs(&node, definitions, "js").await;
}

/// What the other languages' code encoded for the same pairs, without the second `tag` and without `time`, recorded by a run of
/// each. The machine need not have the languages.
const RECORDED: [(&str, &str); 3] = [
    ("go", "it%27s+a%2Fb%2Bc~%2A%28%29%21"),
    ("java", "it%27s+a%2Fb%2Bc%7E*%28%29%21"),
    ("php", "it%27s+a%2Fb%2Bc%7E%2A%28%29%21"),
];

#[tokio::test]
async fn what_other_languages_encode_passes() {
    let (stack, backend) = Stack::recording().await;
    for (number, (language, q)) in RECORDED.iter().enumerate() {
        assert!(code(language, false).contains("md5") || code(language, false).contains("MD5"));
        let text = format!(
            "emoji=%F0%9F%98%80&empty=&name=%E5%BC%A0&q={q}&tag=b&time={}",
            now_ms()
        );
        let sign = md5_hex(&format!("{text}{APP_KEY}"));
        let url = stack.url("/login");
        let response = send_form(&url, &format!("{text}&sign={sign}")).await;
        response.ok();
        assert_eq!(backend.requests().len(), number + 1, "{language}");
    }
}
