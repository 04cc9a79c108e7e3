//! The command line: `sign`, `call`, `login` and `app`; and what the log contains.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, pipe},
    net::SocketAddr,
    os::{fd::OwnedFd, unix::fs::PermissionsExt as _},
    process::{Command, Output, Stdio},
};

use end_to_end::{
    browser::{Browser, Decision},
    certificates::Authority,
    documents::root,
    folder::Folder,
    logins::log_in_by_redirect,
    port::free_address,
    program::{Program, output_text, programs_folder},
    raw_connection::request,
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    response::Response,
    scripted_backend::{Ending, Pace, Script, ScriptedBackend, Start},
    signed_client::fetch,
    signer::{Profile, Request, sign},
    stack::{APP_KEY, Stack},
};
use serde_json::Value;

fn text(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test]
async fn sign_prints_parameters_that_the_gateway_accepts() {
    let (stack, _backend) = Stack::recording().await;
    let key = format!("file:{}/key", stack.folder().display());
    std::fs::write(stack.folder().join("key"), APP_KEY).unwrap();
    let arguments = ["sign", "--key", &key, "b=2", "a=张 三", "empty="];
    let query = text(&Program::Gateway.run(stack.folder(), &arguments));
    assert!(
        query.contains("time=") && query.contains("sign="),
        "{query}"
    );
    let (unsigned, given) = query.split_once("&sign=").unwrap();
    let request = Request {
        method: "GET",
        path: "/x",
        query: unsigned,
        body: "",
    };
    assert_eq!(given, sign(&Profile::default(), APP_KEY, request));
    let response = fetch(&stack.url(&format!("/x?{query}"))).await;
    response.ok();
}

#[tokio::test]
async fn call_signs_sends_and_prints() {
    let stack = Stack::start().await;
    let url = stack.origin();
    std::fs::write(stack.folder().join("key"), APP_KEY).unwrap();
    let key = format!("file:{}/key", stack.folder().display());
    let call = |further: &[&str]| {
        let mut arguments = vec!["call", "--url", &url, "--key", &key];
        arguments.extend(further);
        Program::Gateway.run(stack.folder(), &arguments)
    };
    let begun = text(&call(&["POST", "/login"]));
    let begun: Value = serde_json::from_str(&begun).unwrap();
    let token = format!("token={}", begun["token"].as_str().unwrap());
    let checked = text(&call(&["POST", "/check", &token]));
    assert!(checked.contains("pending"), "{checked}");
    let from_v2 = text(&call(&["POST", "/login", "--version", "v2"]));
    assert!(from_v2.contains("\"v2."), "{from_v2}");
    // A problem is printed, too, and the exit code is not 0.
    let rejected = call(&["GET", "/user", "--language", "ja"]);
    let printed = String::from_utf8_lossy(&rejected.stdout);
    assert!(printed.contains("authorization_missing"), "{printed}");
    assert!(!rejected.status.success());
    // Nothing answers there: the signature would be valid.
    let nowhere = format!("http://{}", free_address());
    let unsent = ["call", "--url", &nowhere, "--key", &key, "GET", "/x", "a=1"];
    let unsent = Program::Gateway.run(stack.folder(), &unsent);
    let said = output_text(&unsent);
    assert!(said.contains("cannot call the gateway"), "{said}");
    for secret in ["sign=", "time=", "a=1"] {
        assert!(!said.contains(secret), "{said}");
    }
}

#[tokio::test]
async fn applications_are_listed_for_people_and_for_programs() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend).multi().start().await;
    let one = stack.create_application("First", &[]);
    let own = ["--default-version", "v2", "--rate-limit", "7/9"];
    let two = stack.create_application("Second", &own);
    let table = text(&stack.command(&["app", "list"]));
    let rows: Vec<Vec<_>> = table.lines().map(|row| row.split("  ").collect()).collect();
    let cells = |row: usize| {
        let cells = rows[row].iter().map(|cell| cell.trim());
        cells.filter(|cell| !cell.is_empty()).collect::<Vec<_>>()
    };
    let heads = [
        "IDENT",
        "STATE",
        "DEFAULT VERSION",
        "PROFILE",
        "RATE",
        "NAME",
    ];
    assert_eq!(cells(0), heads);
    let gateways = "the gateway's";
    assert_eq!(
        cells(1),
        [&*one.ident, "active", gateways, gateways, gateways, "First"]
    );
    assert_eq!(
        cells(2),
        [&*two.ident, "active", "v2", gateways, "7/9", "Second"]
    );
    let json: Value =
        serde_json::from_str(&text(&stack.command(&["app", "list", "--json"]))).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 2, "{json}");
    let shown = text(&stack.command(&["app", "show", &one.ident]));
    assert!(
        shown.contains("First") && !shown.contains(&one.key),
        "{shown}"
    );
    assert!(text(&stack.command(&["app", "rotate", &one.ident])).contains("APP_KEY"));
    let shown = text(&stack.command(&["app", "show", &one.ident]));
    let json = text(&stack.command(&["app", "show", &one.ident, "--json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    for name in ["created_at", "previous_key_until"] {
        let time = json[name].as_str().unwrap();
        let (date, of_day) = time.split_once('T').unwrap();
        assert!(date.len() == 10 && date.starts_with("20"), "{time}");
        assert!(of_day.ends_with('Z'), "{time}");
        let line = shown.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.ends_with(time), "{line}");
    }
    let unknown = stack.command(&["app", "show", &"x".repeat(24)]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(!String::from_utf8_lossy(&unknown.stderr).contains("panicked"));
}

#[tokio::test]
async fn each_request_is_logged_in_one_line_without_secrets() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway("[log]\nformat = \"json\"");
    let stack = stack.start().await;
    let client = stack.client();
    let passed = client
        .get("/x")
        .param("private", "value-of-it")
        .authorization("credential-of-it");
    let passed = passed.version("v2").send().await;
    passed.ok();
    let rejected = client
        .get("/y")
        .param("private", "value-of-it")
        .without_time()
        .send()
        .await;
    rejected.problem(403, "time_missing");
    let line = async |response: &Response| {
        let request_id = response.header("x-request-id").unwrap().to_owned();
        let log = stack.log_with(Program::Gateway, &request_id).await;
        let lines: Vec<_> = log
            .lines()
            .filter(|line| line.contains(&request_id))
            .collect();
        assert_eq!(lines.len(), 1, "{log}");
        serde_json::from_str::<Value>(lines[0]).unwrap()
    };
    let fields = line(&passed).await.to_string();
    for word in [
        "http.method",
        "http.path",
        "http.status_code",
        "duration_ms",
        "\"v2\"",
        "backend.addr",
    ] {
        assert!(fields.contains(word), "{word}: {fields}");
    }
    assert!(line(&rejected).await.to_string().contains("time_missing"));
    let log = stack.log(Program::Gateway);
    for secret in ["value-of-it", "credential-of-it", APP_KEY, "sign="] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

#[tokio::test]
async fn a_log_that_is_not_a_terminal_has_no_colours() {
    let stack = Stack::start().await;
    let client = stack.client();
    for version in ["v1", "v2"] {
        let response = client.get("/user").version(version).send().await;
        response.problem(401, "authorization_missing");
    }
    for program in [Program::Gateway, Program::V1, Program::V2] {
        let log = stack.log_with(program, "/user").await;
        assert!(!log.contains('\u{1b}'), "{program}: {log:?}");
    }
}

#[tokio::test]
async fn no_log_filter_reveals_secrets() {
    let stack = Stack::builder()
        .gateway("[log]\nfilter = \"trace\"")
        .start()
        .await;
    let client = stack.client();
    let response = client
        .post("/check")
        .param("token", "v1.token-of-it")
        .authorization("credential-of-it")
        .send()
        .await;
    response.problem(404, "login_unknown");
    client
        .get("/login?state=v1.state-of-it&code=code-of-it")
        .send()
        .await;
    let log = stack.log_with(Program::Gateway, "http.path=/login").await;
    for secret in [
        "token-of-it",
        "credential-of-it",
        "state-of-it",
        "code-of-it",
        "sign=",
        APP_KEY,
    ] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

/// Two builds differ in commit or profile; `tests/releases` has releases.
#[test]
fn each_program_shows_its_commit_and_profile() {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(root())
            .output();
        output.is_ok_and(|output| output.status.success())
    };
    let folder = programs_folder();
    let profile = folder.file_name().unwrap().to_str().unwrap();
    for program in [Program::Gateway, Program::V1, Program::V2, Program::All] {
        let release = program.release();
        let shown = release.strip_prefix(concat!(env!("CARGO_PKG_VERSION"), " ("));
        let shown = shown.and_then(|shown| shown.strip_suffix(&format!("{profile})")));
        let commit = shown.unwrap_or_else(|| panic!("{program}: {release}"));
        if git(&["ls-files", "--error-unmatch", "Cargo.toml"]) {
            let commit = commit.strip_suffix(", ").unwrap();
            let commit = commit.strip_suffix(" or later").unwrap_or(commit);
            assert_eq!(commit.len(), 12, "{release}");
            assert!(git(&["cat-file", "-e", commit]), "{release}");
        } else {
            assert_eq!(commit, "", "{release}");
        }
    }
}

/// `login`, at the stack's gateway and version 2.
fn login(stack: &Stack) -> Command {
    let mut command = Program::Gateway.command(stack.folder());
    command.env("XDG_STATE_HOME", stack.folder());
    command.args(["login", "--version", "v2", "--config"]);
    command.arg(stack.config(Program::Gateway));
    command
}

#[tokio::test]
async fn login_as_a_user_of_the_sandbox_gives_call_its_credential() {
    let stack = Stack::start().await;
    let file = stack.folder().join("ada.credential");
    std::fs::write(&file, "an older one, which others could read").unwrap();
    let output = login(&stack)
        .args(["--user", "ada", "--output"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(text(&output), "");
    // A path that cannot be written costs no login: nothing is printed to open.
    let wrong = stack.folder().join("none/x");
    let refused = login(&stack).arg("--output").arg(&wrong).output().unwrap();
    let expected = format!("cannot write {}", wrong.display());
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains(&expected) && !printed.contains("Open "),
        "{printed}"
    );
    // A device stays as it is.
    let mut piped = login(&stack);
    let piped = piped.args(["--user", "ada", "--output", "/dev/stdout"]);
    assert!(!text(&piped.output().unwrap()).is_empty());
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let called = Program::Gateway
        .command(stack.folder())
        .args(["call", "--version", "v2", "GET", "/user", "--authorization"])
        .arg(format!("file:{}", file.display()))
        .arg("--config")
        .arg(stack.config(Program::Gateway))
        .output()
        .unwrap();
    let user: Value = serde_json::from_str(&text(&called)).unwrap();
    let client = stack.client();
    let ada = log_in_by_redirect(&client, "ada").await["account"]["username"].clone();
    assert_eq!(user["username"], ada);

    // On standard output there is nothing but the credential.
    let mut zoe = login(&stack);
    let printed = text(&zoe.args(["--print", "--user", "any:Zoë"]).output().unwrap());
    let call = client.get("/user").version("v2");
    let user = call.authorization(&printed).send().await.ok();
    assert_ne!(user["username"], ada);

    let unknown = login(&stack).args(["--user", "nobody"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&unknown.stderr);
    assert_eq!(unknown.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("no such user"), "{stderr}");
}

#[tokio::test]
async fn login_waits_for_a_browser() {
    let stack = Stack::start().await;
    let mut waiting = login(&stack)
        .arg("--print")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let opens = lines.next().unwrap().unwrap();
    let code = lines.next().unwrap().unwrap();
    let mut browser = Browser::default();
    let page = browser.open(opens.strip_prefix("Open ").unwrap()).await;
    let code = code.strip_prefix("and compare the code: ").unwrap();
    assert!(page.text().contains(code), "{code}");
    let provider = browser.confirm(&page).await;
    let done = browser
        .decide_and_follow(&provider, "grace", Decision::Allow)
        .await;
    assert_eq!(done.response.status, 200);
    let printed = text(&waiting.wait_with_output().unwrap());
    let client = stack.client();
    let call = client.get("/user").version("v2");
    let user = call.authorization(&printed).send().await.ok();
    let grace = log_in_by_redirect(&client, "grace").await;
    assert_eq!(user["username"], grace["account"]["username"]);

    // A login that is denied has no credential.
    let mut waiting = login(&stack).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let opens = lines.next().unwrap().unwrap();
    let page = browser.open(opens.strip_prefix("Open ").unwrap()).await;
    let provider = browser.confirm(&page).await;
    browser
        .decide_and_follow(&provider, "grace", Decision::Deny)
        .await;
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert_eq!(waiting.wait().unwrap().code(), Some(1));
    assert!(
        rest.contains(&"the login is failed: access_denied".to_owned()),
        "{rest:?}"
    );
}

/// A gateway that answers `pending` at once, one that is overloaded, and one that commands the terminal.
#[tokio::test(flavor = "multi_thread")]
async fn login_waits_between_answers_and_ends_by_itself() {
    let script = |bytes: &str| Script {
        bytes: bytes.as_bytes().to_vec(),
        pace: Pace::AtOnce,
        start: Start::AfterRequest,
        ending: Ending::Open,
    };
    let json = |status: &str, body: &str| {
        let length = body.len();
        script(&format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
    };
    let folder = Folder::create();
    let log_in = async |address: SocketAddr| {
        let mut command = Program::Gateway.command(folder.path());
        command.args(["login", "--print", "--url", &format!("http://{address}")]);
        command.env("SIGNPOST_APP_KEY", APP_KEY);
        tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap()
    };
    let begun = r#"{"token":"v1.t","authorize_url":"http://127.0.0.1:1/login?state=x","user_code":"\u001b]0;x\u0007","expires_in":10,"interval":1}"#;
    for (status, body) in [
        ("200 OK", r#"{"status":"pending","expires_in":10}"#),
        ("503 Service Unavailable", "{}"),
    ] {
        let gateway = ScriptedBackend::start().await;
        gateway.script("/login", json("200 OK", begun));
        gateway.script("/check", json(status, body));
        let output = log_in(gateway.address()).await;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.contains("not confirmed in time") && !text.contains('\u{1b}'),
            "{text}"
        );
        let asked = gateway.arrivals().len();
        assert!((3..=13).contains(&asked), "{status}: {asked} calls");
    }
    let gateway = ScriptedBackend::start().await;
    gateway.script("/login", json("400 Bad Request", "\u{1b}[2J"));
    let output = log_in(gateway.address()).await;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.contains("400 Bad Request") && !text.contains('\u{1b}'),
        "{text}"
    );
}

/// Nothing of a user goes to a real provider, also if it has an address of this machine.
#[tokio::test(flavor = "multi_thread")]
async fn login_as_a_user_refuses_all_but_the_sandbox() {
    let other = RecordingBackend::start().await;
    let address = other.address();
    for provider in [
        format!("http://{address}"),
        "https://provider.example".into(),
    ] {
        let toml = format!("[providers.bitbucket]\nurl = '{provider}'\nclient_secret = 'x'\n");
        let stack = Stack::builder().program(Program::V2, &toml).start().await;
        let output = login(&stack).args(["--user", "ada"]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        let reason = format!("{provider} is not the sandbox provider");
        assert!(stderr.contains(&reason), "{stderr}");
        // Its query would have the state.
        assert!(!stderr.contains("state="), "{stderr}");
    }
    let targets: Vec<_> = other.requests().into_iter().map(|one| one.target).collect();
    assert_eq!(targets, ["/_sandbox/counts"]);
}

/// As curl's options of these names: an authority of one's own, and a name that is not in DNS yet.
#[tokio::test(flavor = "multi_thread")]
async fn call_connects_and_trusts_as_told() {
    let authority = Authority::new("Test authority");
    let api = authority.issue(&["api.example.com"]);
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .gateway(
            "[[listen]]\naddress = '$LISTEN'\n\
             tls.certificates = [{ certificate = '$FOLDER/api.pem', key = '$FOLDER/api.key' }]",
        )
        .file("api.pem", &api.certificate)
        .file("api.key", &api.key)
        .file("ca.pem", authority.pem())
        .file("empty.pem", "")
        .in_front_of(&backend)
        .start()
        .await;
    let gateway = stack.addresses().gateway;
    let url = format!("https://api.example.com:{}", gateway.port());
    let resolve = format!("api.example.com:{}:{}", gateway.port(), gateway.ip());
    let call = |further: &[&str]| {
        let mut arguments = vec!["call", "--url", &url, "GET", "/x"];
        arguments.extend(further);
        Program::Gateway.run(stack.folder(), &arguments)
    };
    text(&call(&["--ca", "ca.pem", "--resolve", &resolve]));
    assert_eq!(backend.requests().len(), 1);
    let elsewhere = format!("api.example.com:443:{}", gateway.ip());
    for (further, reason) in [
        (&["--resolve", &resolve][..], "cannot call the gateway"),
        (
            &["--ca", "ca.pem", "--resolve", &elsewhere],
            "no HOST:PORT is that of",
        ),
        (&["--ca", "missing.pem"], "--ca missing.pem"),
        (&["--ca", "empty.pem"], "has no certificate"),
        (
            &["--resolve", "api.example.com:443"],
            "allowed: a host name",
        ),
    ] {
        let rejected = call(further);
        let stderr = String::from_utf8_lossy(&rejected.stderr);
        assert!(!rejected.status.success(), "{further:?}");
        assert!(stderr.contains(reason), "{further:?}: {stderr}");
    }
    assert_eq!(backend.requests().len(), 1);
}

#[tokio::test]
async fn call_sends_to_the_gateway_only() {
    let elsewhere = RecordingBackend::start().await;
    let folder = Folder::create();
    std::fs::write(folder.path().join("credential"), "credential-of-it").unwrap();
    let credential = format!("file:{}/credential", folder.path().display());
    for path in [
        format!("//{}/stolen", elsewhere.address()),
        "/x?a=1".to_owned(),
        "x".to_owned(),
    ] {
        let rejected = Program::Gateway.run(
            folder.path(),
            &[
                "call",
                "GET",
                &path,
                "--url",
                "http://127.0.0.1:9",
                "--authorization",
                &credential,
            ],
        );
        assert!(!rejected.status.success(), "{path}");
    }
    assert_eq!(elsewhere.connections(), 0);
    let literal = [
        "call",
        "GET",
        "/user",
        "--authorization",
        "credential-of-it",
    ];
    let rejected = Program::Gateway.run(folder.path(), &literal);
    let stderr = String::from_utf8_lossy(&rejected.stderr).into_owned();
    assert!(
        stderr.contains("env:NAME or file:PATH") && !stderr.contains("credential-of-it"),
        "{stderr}"
    );
}

#[tokio::test]
async fn every_access_line_is_written_before_the_gateway_exits() {
    const REQUESTS: usize = 300;
    let mut written = Vec::new();
    // A stop waits for the log for half a second, which can be too short on a busy machine.
    while !written.contains(&REQUESTS) {
        assert!(written.len() < 3, "{written:?}");
        let (mut stack, _backend) = Stack::recording().await;
        let mut connection = stack.raw().await;
        connection
            .send(&request("GET", "/recorded", &[], b"").repeat(REQUESTS))
            .await;
        for _ in 0..REQUESTS {
            assert_eq!(connection.response().await.unwrap().status, 200);
        }
        stack.running(Program::Gateway).terminate();
        stack.wait_for_exit(Program::Gateway).await;
        let log = stack.log(Program::Gateway);
        let lines = log.lines().filter(|line| {
            line.contains("http.status_code=200") && line.contains("http.path=/recorded")
        });
        written.push(lines.count());
    }
}

#[tokio::test]
async fn a_failure_is_logged_even_without_an_access_log() {
    let backend = RecordingBackend::start().await;
    backend.behave(Behaviour::responding(Delivery::HangUp));
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway("[log]\naccess_sample = 0");
    let stack = stack.start().await;
    let response = stack.client().get("/x").send().await;
    response.problem(502, "backend_unreachable");
    let log = stack.log_with(Program::Gateway, "requests failed").await;
    assert!(log.contains("http.method=GET http.path=/x "), "{log}");
    assert!(!log.contains("answered"), "{log}");
}

#[test]
fn a_misplaced_store_address_is_not_quoted() {
    let folder = Folder::create();
    let address = "postgres://someone:password-of-it@127.0.0.1/signpost";
    for arguments in [
        &["store", "copy", address][..],
        &["store", "copy", "--from", "sqlite:x", address],
        &["store", address],
        &["run", address],
    ] {
        let rejected = Program::Gateway.run(folder.path(), arguments);
        let stderr = String::from_utf8_lossy(&rejected.stderr).into_owned();
        assert_eq!(rejected.status.code(), Some(2), "{stderr}");
        assert!(
            stderr.contains('…') && stderr.contains("--help"),
            "{stderr}"
        );
        assert!(!stderr.contains("password-of-it"), "{stderr}");
    }
    let help = text(&Program::Gateway.run(folder.path(), &["store", "copy", "--help"]));
    assert!(
        help.contains("env:NAME") && help.contains("password"),
        "{help}"
    );
    let mistyped = Program::Gateway.run(folder.path(), &["rnu"]);
    assert!(String::from_utf8_lossy(&mistyped.stderr).contains("'rnu'"));
}

#[test]
fn a_closed_pipe_ends_a_command_quietly_and_a_full_disk_is_reported() {
    let folder = Folder::create();
    let key = folder.write("key", APP_KEY);
    let key = format!("file:{}", key.display());
    let sign = |stdout: File| {
        let mut command = Program::Gateway.command(folder.path());
        let command = command.args(["sign", "--key", &key, "a=1"]).stdout(stdout);
        let output = command.stderr(Stdio::piped()).spawn().unwrap();
        output.wait_with_output().unwrap()
    };
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let closed = sign(File::from(OwnedFd::from(writer)));
    assert_eq!(closed.status.code(), Some(0), "{closed:?}");
    assert_eq!(String::from_utf8_lossy(&closed.stderr), "");
    let full = sign(File::options().write(true).open("/dev/full").unwrap());
    assert_eq!(full.status.code(), Some(1), "{full:?}");
    let error = String::from_utf8_lossy(&full.stderr);
    assert!(
        error.starts_with("cannot write to standard output: "),
        "{error}"
    );
}

#[test]
fn metrics_explains_every_metric_for_people_and_for_programs() {
    let folder = Folder::create();
    let run = |program: Program, arguments: &[&str]| {
        program.run(folder.path(), &[&["metrics"], arguments].concat())
    };
    let printed = text(&run(Program::Gateway, &["limited", "http2"]));
    let expected = "signpost_http2_streams  gauge\n    Open HTTP/2 streams.\n\
                    signpost_rate_limited_total  counter, by limit\n    Requests rejected by a rate limit: \
                    unsigned, address, app, path, replay_memory.";
    assert_eq!(printed, expected);
    for program in [Program::Gateway, Program::V1, Program::V2, Program::All] {
        let printed = text(&run(program, &["--json", "signpost_build"]));
        let metrics: Value = serde_json::from_str(&printed).unwrap();
        let build = serde_json::json!([{
            "name": "signpost_build_info",
            "type": "info",
            "labels": ["program", "version"],
            "meaning": "The program. version has its release, commit and profile, as --version prints them.",
        }]);
        assert_eq!(metrics, build, "{program:?}");
        let unknown = run(program, &["no_metric"]);
        assert_eq!(unknown.status.code(), Some(1));
        let error = String::from_utf8_lossy(&unknown.stderr);
        let expected = "no metric contains \"no_metric\"; without TEXT, every metric is printed";
        assert_eq!(error.trim(), expected);
        assert!(unknown.stdout.is_empty());
    }
}

#[test]
fn keys_explains_every_key_for_people_and_for_programs() {
    let folder = Folder::create();
    let run = |program: Program, arguments: &[&str]| {
        program.run(folder.path(), &[&["keys"], arguments].concat())
    };
    let printed = text(&run(Program::Gateway, &["per_address"]));
    let head = "connections.per_address  a whole number from 1 to 1000000, default 1000. A reload applies it.\n    Open from";
    assert!(printed.starts_with(head), "{printed}");
    assert!(
        printed.lines().all(|line| line.chars().count() <= 100),
        "{printed}"
    );
    // A name as a file has it.
    let printed = text(&run(
        Program::Gateway,
        &["listen[0].address", "versions.v1.backend"],
    ));
    let keys: Vec<_> = printed
        .lines()
        .filter(|line| !line.starts_with(' '))
        .collect();
    assert!(
        keys.len() == 2 && keys[0].starts_with("listen[].address  an IP address"),
        "{keys:?}"
    );
    assert!(printed.contains("; http:// is the"), "{printed}");
    for program in [Program::Gateway, Program::V1, Program::V2, Program::All] {
        let printed = text(&run(program, &["--json"]));
        let keys: Value = serde_json::from_str(&printed).unwrap();
        let keys = keys.as_array().unwrap();
        assert!(keys.len() > 60, "{program:?}: {}", keys.len());
        for key in keys {
            let is_text = |name: &str| key[name].as_str().is_some_and(|text| !text.is_empty());
            assert!(
                is_text("key") && is_text("meaning") && is_text("allowed"),
                "{key}"
            );
            let is_null = |name: &str| key[name].is_null();
            assert!(is_null("unit") || is_text("unit"), "{key}");
            assert!(is_null("default") || is_text("default"), "{key}");
            assert!(key["reload"].is_boolean(), "{key}");
        }
        let grace = keys
            .iter()
            .find(|key| key["key"] == "shutdown.grace_seconds")
            .unwrap();
        assert_eq!(
            (&grace["unit"], &grace["default"]),
            (&"seconds".into(), &"65".into())
        );
        let secret = keys
            .iter()
            .find(|key| key["key"] == "gateway_secret")
            .unwrap();
        assert_eq!(
            secret["allowed"],
            "\"env:NAME\", \"file:PATH\", or the secret itself"
        );
        assert!(secret["default"].is_null() && !printed.contains("sandbox-only-secret"));
        let unknown = run(program, &["per_adress"]);
        assert_eq!(unknown.status.code(), Some(1));
        let error = String::from_utf8_lossy(&unknown.stderr);
        assert!(error.contains("no key contains \"per_adress\""), "{error}");
        assert!(unknown.stdout.is_empty());
    }
}
