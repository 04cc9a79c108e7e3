//! What the programs print for reference: problem codes, completions of shells, manual pages.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
};

use end_to_end::{
    folder::Folder,
    program::{Program, output_text, programs_folder},
    signed_client::fetch,
    stack::Stack,
};
use serde_json::Value;

const ALL: [Program; 4] = [Program::Gateway, Program::V1, Program::V2, Program::All];

fn run(program: Program, arguments: &[&str]) -> Output {
    program.run(Path::new("/"), arguments)
}

fn printed(program: Program, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    assert!(output.status.success(), "{output:?}");
    output_text(&output).trim_end().to_owned()
}

#[tokio::test]
async fn problems_prints_what_the_pages_of_the_gateway_say() {
    let json = printed(Program::Gateway, &["problems", "--json"]);
    let problems: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert!(problems.len() > 50, "{}", problems.len());
    let stack = Stack::start().await;
    for problem in &problems {
        let page = fetch(&stack.url(problem["type"].as_str().unwrap())).await;
        assert_eq!(page.ok(), *problem);
    }
    let expected = "login_used  409, retry: new_login. This login was already used\n    \
                    This login already has an outcome, which remains. Start a new login if you need one.";
    assert_eq!(
        printed(Program::Gateway, &["problems", "login_used"]),
        expected
    );
    let arguments = ["problems", "app_", "--language", "zh-CN"];
    let printed = printed(Program::Gateway, &arguments);
    assert!(
        printed.contains("app_missing  400, retry: no. 未指明应用\n"),
        "{printed}"
    );
    assert!(printed.contains("app_disabled  403"), "{printed}");
    let unknown = run(Program::Gateway, &["problems", "app_mising"]);
    assert_eq!(unknown.status.code(), Some(1));
    let error = String::from_utf8_lossy(&unknown.stderr);
    assert!(
        error.starts_with("no problem code contains \"app_mising\""),
        "{error}"
    );
}

/// In a real, interactive bash at a terminal: `script` makes one, and the tab key is typed.
#[test]
fn bash_completes_commands_options_and_values() {
    let folder = Folder::create();
    let mut typed = format!("PATH={}:$PATH\n", programs_folder().display());
    for program in ALL {
        let completion = printed(program, &["completions", "bash"]);
        let path = folder.write(program.name(), &completion);
        typed += &format!("source {}\n", path.display());
    }
    typed += "signpost probl\tapp_miss --js\t\nsignpost problems --language zh-T\tlogin_us\n\
              login-v1 metr\tchecks\nlogin-all ke\tretention --js\t\nexit\n";
    let mut bash = Command::new("script")
        .args(["-qec", "bash --norc --noprofile -i", "/dev/null"])
        .current_dir(folder.path())
        .env("TERM", "dumb")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Debian has it");
    bash.stdin
        .take()
        .unwrap()
        .write_all(typed.as_bytes())
        .unwrap();
    let output = output_text(&bash.wait_with_output().unwrap());
    for expected in [
        "\"type\": \"/problems/app_missing\"",
        "login_used  409, retry: new_login. 此登入已被使用",
        "signpost_checks_waiting  gauge",
        "\"key\": \"events.retention_days\"",
    ] {
        assert!(output.contains(expected), "{expected}: {output}");
    }
}

#[test]
fn other_shells_have_completions_too() {
    for program in ALL {
        let name = program.name();
        let zsh = printed(program, &["completions", "zsh"]);
        assert!(zsh.starts_with(&format!("#compdef {name}\n")), "{zsh}");
        let fish = printed(program, &["completions", "fish"]);
        assert!(fish.contains(&format!("complete -c {name} ")), "{fish}");
    }
    let unknown = run(Program::Gateway, &["completions", "cmd"]);
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn man_reads_each_page_without_a_warning() {
    let folder = Folder::create();
    for program in ALL {
        let printed = printed(program, &["man", &folder.path().display().to_string()]);
        assert_eq!(printed, "");
    }
    let pages: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert!(pages.len() > 70, "{pages:?}");
    let man = |page: &Path, options: &[&str]| {
        let mut man = Command::new("man");
        man.args(options).args(["-E", "UTF-8", "-l"]).arg(page);
        let output = man.env("MANWIDTH", "100").output();
        output.expect("scripts/prerequisites test installs it")
    };
    for page in pages {
        let output = man(&page.unwrap().path(), &["--warnings", "-Tutf8", "-Z"]);
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
    }
    for (page, expected) in [
        ("signpost.1", "signpost-problems(1)"),
        ("signpost-problems.1", "The language of the texts"),
        ("login-v1-check.1", "--online"),
        ("login-all.1", "login-all-metrics(1)"),
    ] {
        let shown = output_text(&man(&folder.path().join(page), &[]));
        assert!(shown.contains(expected), "{page}: {shown}");
    }
    let missing = run(Program::V1, &["man", "/missing"]);
    assert_eq!(missing.status.code(), Some(1));
    let error = String::from_utf8_lossy(&missing.stderr);
    assert!(error.starts_with("cannot write to /missing: "), "{error}");
}
