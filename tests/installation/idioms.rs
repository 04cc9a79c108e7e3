//! What SIGNING.md shows for each language signs and sends the same bytes. CONTRACT 3.

use std::{collections::BTreeSet, env, fs, process::Command};

use end_to_end::{
    clock::now_ms,
    documents::root,
    folder::Folder,
    recording_backend::RecordingBackend,
    signed_client::send_form,
    signer::md5_hex,
    stack::{APP_KEY, Stack},
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

/// The code of a language; if `is_hmac`, with the line for HMAC instead of the one above it.
fn code(language: &str, is_hmac: bool) -> String {
    let document = fs::read_to_string(root().join("gateway/protocol/SIGNING.md")).unwrap();
    let (_, rest) = document.split_once(&format!("```{language}\n")).unwrap();
    let (code, _) = rest.split_once("```").unwrap();
    if !is_hmac {
        return code.to_owned();
    }
    let mut lines: Vec<&str> = code.lines().collect();
    let of_hmac = |line: &&str| line.contains(" hmac-sha256: ");
    let index = lines.iter().position(of_hmac).expect(code);
    let (_, line) = lines[index].split_once(" hmac-sha256: ").unwrap();
    let indent = lines[index - 1].find(|letter| letter != ' ').unwrap();
    let line = format!("{}{line}", &lines[index - 1][..indent]);
    lines.splice(index - 1..=index, [&*line]);
    lines.join("\n")
}

/// Runs `program` for the gateway's address and the language's code, and compares what reaches the backend by POST and by
/// GET with `sent`.
async fn assert_signs(
    language: &str,
    sent: &[(&str, &str)],
    program: impl Fn(&str, &str) -> Command,
) {
    for algorithm in ["md5", "hmac-sha256"] {
        let backend = RecordingBackend::start().await;
        let config = format!("[sign]\nalgorithm = \"{algorithm}\"");
        let builder = Stack::builder().in_front_of(&backend).gateway(&config);
        let stack = builder.start().await;
        let code = code(language, algorithm == "hmac-sha256");
        let mut command = program(&stack.origin(), &code);
        let run = tokio::task::spawn_blocking(move || command.output());
        let output = run.await.unwrap().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{language} {algorithm}: {error}");
        let requests = backend.requests();
        assert_eq!(requests.len(), 2, "{language} {algorithm}: {error}");
        for request in requests {
            let (_, query) = request.target.split_once('?').unwrap_or_default();
            let received = [query.as_bytes(), &request.body].concat();
            let pairs = form_urlencoded::parse(&received).into_owned();
            let pairs: Vec<(String, String)> = pairs.collect();
            let names: BTreeSet<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
            assert!(
                names.contains("time") && names.contains("sign"),
                "{pairs:?}"
            );
            let given: Vec<_> = sent
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect();
            for (name, _) in sent {
                let of = |pairs: &[(String, String)]| {
                    let of_name = pairs.iter().filter(|(other, _)| other == name);
                    of_name.map(|(_, value)| value.clone()).collect::<Vec<_>>()
                };
                assert_eq!(of(&pairs), of(&given), "{language}: {name}");
            }
        }
    }
}

#[tokio::test]
async fn the_code_for_python_signs_what_it_sends() {
    assert_signs("python", &PAIRS, |url, code| {
        let pairs = json!(PAIRS);
        let definitions = format!(
            "url, key = '{url}', '{APP_KEY}'
pairs = [tuple(pair) for pair in {pairs}]"
        );
        let mut command = Command::new("python3");
        command.args(["-c", &format!("{definitions}\n{code}")]);
        command
    })
    .await;
}

#[tokio::test]
async fn the_code_for_javascript_signs_what_it_sends() {
    // `scripts/test` has reported that Node cannot be installed here.
    if env::var_os("SIGNPOST_TEST_WITHOUT_FRAMEWORKS").is_some() {
        return;
    }
    assert_signs("js", &PAIRS, |url, code| {
        let pairs = json!(PAIRS);
        let definitions = format!("const [url, key, pairs] = ['{url}', '{APP_KEY}', {pairs}];");
        let mut command = Command::new("node");
        command.args(["--input-type=module", "-e"]);
        command.arg(format!("{definitions}\n{code}"));
        command
    })
    .await;
}

/// What stands around the code for Java: `import` lines, and requests as the document has them.
const JAVA: &str = r#"
import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.stream.Collectors.joining;

import java.math.BigInteger;
import java.net.*;
import java.net.http.*;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.*;
import java.util.*;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

class Client {
    public static void main(String[] arguments) throws Exception {
        String url = arguments[0], key = arguments[1];
        var pairs = new HashMap<String, String>();
        for (int index = 2; index < arguments.length; index += 2) {
            pairs.put(arguments[index], arguments[index + 1]);
        }
        var form = HttpRequest.newBuilder(URI.create(url + "/login"))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .POST(BodyPublishers.ofString(signed(pairs, key))).build();
        var query = HttpRequest.newBuilder(URI.create(url + "/check?" + signed(pairs, key))).build();
        var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        for (var request : List.of(form, query)) {
            var response = client.send(request, BodyHandlers.ofString());
            if (response.statusCode() != 200) throw new Exception(response.body());
        }
    }
"#;

#[tokio::test]
async fn the_code_for_java_signs_what_it_sends() {
    // Only a JDK has the compiler; `scripts/test` reports if there is none.
    if Command::new("javac").arg("-version").output().is_err() {
        return;
    }
    // `signed` takes a map.
    let pairs = &PAIRS[1..];
    let folder = Folder::create();
    assert_signs("java", pairs, |url, code| {
        let file = folder.write("Client.java", &format!("{JAVA}{code}}}\n"));
        let mut command = Command::new("java");
        // Java 17 reads its arguments in the locale's charset.
        command.env("LC_ALL", "C.UTF-8");
        // Starts in half the time.
        command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]);
        command.arg(file);
        command.args([url, APP_KEY]);
        command.args(pairs.iter().flat_map(|(name, value)| [name, value]));
        command
    })
    .await;
}

/// What the functions of the languages that no test runs write for the value of `q`. Go and PHP: recorded by a run. C#:
/// documented, `Uri.EscapeDataString` keeps the unreserved characters of RFC 3986 alone.
const RECORDED: [(&str, &str); 3] = [
    ("go", "it%27s+a%2Fb%2Bc~%2A%28%29%21"),
    ("php", "it%27s+a%2Fb%2Bc%7E%2A%28%29%21"),
    ("csharp", "it%27s%20a%2Fb%2Bc~%2A%28%29%21"),
];

#[tokio::test]
async fn what_other_languages_encode_is_accepted() {
    let (stack, backend) = Stack::recording().await;
    for (number, (language, q)) in RECORDED.iter().enumerate() {
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
