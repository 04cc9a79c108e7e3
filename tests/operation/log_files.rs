//! Logs in files, in all programs: where lines go, what is sampled, and which files are refused.

mod failures;
mod json;
mod rotation;

use std::{
    fs,
    path::{Path, PathBuf},
};

use end_to_end::{
    program::{Program, output_text, whole_lines},
    recording_backend::{Behaviour, RecordingBackend},
    signed_client::fetch,
    stack::Stack,
    waiting::until,
};

/// `[log]` in a file, named after the program.
fn in_file(program: Program) -> String {
    format!("[log]\noutput = \"$FOLDER/{program}.lines\"")
}

fn file(folder: &Path, program: Program) -> PathBuf {
    folder.join(format!("{program}.lines"))
}

/// Only a gateway, with its log in a file.
async fn gateway_with_file(further: &str) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(&in_file(Program::Gateway))
        .gateway("[limits.unsigned]\nper_second = 0")
        .gateway(further);
    (stack.start().await, backend)
}

/// A file's text, once `is_complete`.
async fn read_until(path: &Path, what: &str, is_complete: impl Fn(&str) -> bool) -> String {
    until(&format!("{what} in {}", path.display()), || async {
        let text = whole_lines(fs::read_to_string(path).ok()?);
        is_complete(&text).then_some(text)
    })
    .await
}

async fn read_with(path: &Path, text: &str) -> String {
    read_until(path, text, |read| read.contains(text)).await
}

/// The gateway's count of dropped lines.
async fn dropped(stack: &Stack, log: &str) -> u64 {
    let metrics = fetch(&format!("http://{}/metrics", stack.addresses().management)).await;
    let name = format!("signpost_log_lines_dropped_total{{log=\"{log}\"}} ");
    let text = metrics.text();
    let value = text.lines().find_map(|line| line.strip_prefix(&name));
    value.unwrap().parse().unwrap()
}

#[tokio::test]
async fn lines_are_in_the_file_and_not_on_standard_output() {
    let mut stack = Stack::builder()
        .gateway(&in_file(Program::Gateway))
        .program(Program::V2, &in_file(Program::V2))
        .start()
        .await;
    let refused = stack.client().get("/user").version("v2").send().await;
    refused.problem(401, "authorization_missing");
    let folder = stack.folder().to_owned();
    for program in [Program::Gateway, Program::V2] {
        let log = read_with(&file(&folder, program), "http.path=/user").await;
        let is_access = |line: &&str| line.contains("http.path=/user");
        assert_eq!(log.lines().filter(is_access).count(), 1, "{log}");
        let access = log.lines().find(is_access).unwrap();
        assert!(access.contains("answered ") && access.contains("http.status_code=401"));
        assert!(access.contains("problem.code="), "{access}");
        assert!(log.contains("is listening"), "{log}");
        assert_eq!(stack.running(program).log(), "");
    }
    assert_eq!(
        [
            dropped(&stack, "access").await,
            dropped(&stack, "error").await
        ],
        [0, 0]
    );
}

#[tokio::test]
async fn a_filter_can_leave_out_access_lines() {
    let filter = "filter = \"info,signpost::access=off\"";
    let stack = Stack::builder()
        .gateway(&format!("{}\n{filter}", in_file(Program::Gateway)))
        .program(Program::V1, &format!("{}\n{filter}", in_file(Program::V1)))
        .start()
        .await;
    let refused = stack.client().get("/user").send().await;
    refused.problem(401, "authorization_missing");
    for program in [Program::Gateway, Program::V1] {
        stack.configure(program, "[log]\nfilter = \"info\"");
        assert!(stack.reload(program).status.success());
        let path = file(stack.folder(), program);
        let log = read_with(&path, "configuration reloaded").await;
        assert!(!log.contains("answered"), "{log}");
        let refused = stack.client().get("/user").send().await;
        refused.problem(401, "authorization_missing");
        read_with(&path, "answered").await;
    }
}

#[tokio::test]
async fn one_success_in_so_many_is_logged_and_each_failure() {
    let (stack, backend) =
        gateway_with_file("threads = 1\n[log]\naccess_sample = 10\nformat = \"json\"").await;
    let client = stack.client();
    for number in 0..200 {
        if number % 10 == 0 {
            client
                .get("/failed")
                .without_sign()
                .param("a", "1")
                .send()
                .await;
        }
        client.get("/served").send().await.ok();
    }
    backend.behave(Behaviour {
        head: "HTTP/1.1 404 Not Found\r\n".to_owned(),
        ..Behaviour::default()
    });
    assert_eq!(client.get("/last").send().await.status, 404);
    let access = file(stack.folder(), Program::Gateway);
    let access = read_with(&access, "/last").await;
    assert_eq!(access.matches("\"/served\"").count(), 20, "{access}");
    assert_eq!(access.matches("\"/failed\"").count(), 20, "{access}");
    // The rate changes with the next request.
    stack.configure(Program::Gateway, "[log]\naccess_sample = 1");
    assert!(stack.reload(Program::Gateway).status.success());
    backend.behave(Behaviour::default());
    for _ in 0..5 {
        client.get("/each").send().await.ok();
    }
    let path = file(stack.folder(), Program::Gateway);
    read_until(&path, "five lines", |read| {
        read.matches("\"/each\"").count() == 5
    })
    .await;
}

#[tokio::test]
async fn the_login_service_samples_its_successes_only() {
    let sampled = format!("{}\naccess_sample = 1000000", in_file(Program::V1));
    let stack = Stack::builder()
        .program(Program::V1, &sampled)
        .start()
        .await;
    let client = stack.client();
    for _ in 0..20 {
        client.post("/login").signed().send().await.ok();
    }
    for _ in 0..5 {
        client
            .get("/user")
            .send()
            .await
            .problem(401, "authorization_missing");
    }
    let access = file(stack.folder(), Program::V1);
    let failures = |read: &str| read.matches("answered GET /user with 401").count();
    let access = read_until(&access, "all failures", |read| failures(read) == 5).await;
    // Each thread logs its first success.
    let threads = std::thread::available_parallelism().unwrap().get();
    let successes = access.matches("answered POST /login with 200").count();
    assert!((1..=threads).contains(&successes), "{access}");
}

#[tokio::test]
async fn a_reload_moves_the_log_and_an_impossible_path_changes_nothing() {
    let builder = Stack::builder().program(Program::V1, &in_file(Program::V1));
    let stack = builder.gateway(&in_file(Program::Gateway)).start().await;
    for program in [Program::Gateway, Program::V1] {
        let other = stack.folder().join(format!("{program}.other"));
        let nowhere = stack.folder().join("nowhere/x.log");
        let refused = format!("[log]\nformat = \"json\"\noutput = {nowhere:?}");
        stack.configure(program, &refused);
        let config = stack.config(program).display().to_string();
        let diff = program.run(stack.folder(), &["check", "--diff", "--config", &config]);
        let printed = output_text(&diff);
        assert_eq!(diff.status.code(), Some(1), "{printed}");
        assert!(printed.contains("log.output: found "), "{printed}");
        let output = stack.reload(program);
        let printed = output_text(&output);
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(
            printed.contains("log.output") && printed.contains("nowhere/x.log"),
            "{printed}"
        );
        let before = file(stack.folder(), program);
        let before = read_with(&before, "configuration not reloaded").await;
        assert!(!before.contains("{\""), "the format has changed: {before}");
        let moved = format!("[log]\noutput = {other:?}");
        stack.configure(program, &moved);
        let output = stack.reload(program);
        assert!(output.status.success(), "{}", output_text(&output));
        read_with(&other, "configuration reloaded").await;
    }
    stack
        .client()
        .get("/user")
        .send()
        .await
        .problem(401, "authorization_missing");
    for program in [Program::Gateway, Program::V1] {
        let other = stack.folder().join(format!("{program}.other"));
        read_with(&other, "http.path\":\"/user\"").await;
        let before = fs::read_to_string(file(stack.folder(), program)).unwrap();
        assert!(!before.contains("/user"), "{before}");
    }
}

#[tokio::test]
async fn a_program_does_not_start_with_a_file_that_it_cannot_open() {
    for program in [Program::Gateway, Program::V1] {
        for (toml, path) in [
            ("[log]\noutput = \"$FOLDER\"", ""),
            ("[log]\noutput = \"$FOLDER/none/a.log\"", "/none/a.log"),
        ] {
            let files = Stack::builder().program(program, toml).write_files();
            let config = files.config(program);
            let arguments: &[&str] = match program {
                Program::Gateway => &["run", "--config", &config],
                _ => &["--config", &config],
            };
            let path = format!("{}{path}", files.path().display());
            let check = ["check", "--config", &config];
            // `check` rejects what a start and a reload reject, and creates nothing.
            for arguments in [arguments, &check] {
                let output = program.run(files.path(), arguments);
                let printed = output_text(&output);
                assert_eq!(output.status.code(), Some(1), "{printed}");
                for expected in [
                    "log.output",
                    &path,
                    "cannot be opened for writing",
                    "allowed",
                ] {
                    assert!(printed.contains(expected), "{expected}: {printed}");
                }
            }
            assert!(!files.path().join("none").exists());
        }
    }
}

#[test]
fn a_check_accepts_a_file_that_can_be_created_or_appended_to_and_changes_neither() {
    let toml = "[log]\noutput = \"$FOLDER/new.log\"";
    let files = Stack::builder().gateway(toml).backends(toml).write_files();
    let path = files.path().join("new.log");
    for exists in [false, true] {
        if exists {
            fs::write(&path, "kept").unwrap();
        }
        for program in [Program::Gateway, Program::V1] {
            let config = files.config(program);
            let output = program.run(files.path(), &["check", "--config", &config]);
            assert!(output.status.success(), "{}", output_text(&output));
        }
        assert_eq!(path.exists(), exists);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "kept");
}

#[test]
fn an_output_must_be_stdout_or_look_like_a_path() {
    let toml = "[log]\noutput = \"stdot\"\naccess_sample = -1";
    let files = Stack::builder().gateway(toml).backends(toml).write_files();
    for program in [Program::Gateway, Program::V1] {
        let config = files.config(program);
        let output = program.run(files.path(), &["check", "--config", &config]);
        let printed = output_text(&output);
        assert_eq!(output.status.code(), Some(1), "{printed}");
        for expected in [
            "log.output",
            "\"stdot\"",
            "log.access_sample",
            "0 to 1000000",
        ] {
            assert!(printed.contains(expected), "{expected}: {printed}");
        }
    }
}
