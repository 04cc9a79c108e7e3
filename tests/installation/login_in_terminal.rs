//! A login in a terminal: the QR code, the stored credential, and a call with it.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use end_to_end::{
    browser::{Browser, Decision},
    program::{Program, output_text},
    real_browser::RealBrowser,
    stack::Stack,
    waiting::until,
};
use tokio::task::spawn_blocking;

/// What stands around the QR code: black on white, by the palette's fixed colours.
const CODE: [&str; 2] = ["\u{1b}[38;5;16;48;5;231m", "\u{1b}[0m"];

/// A page that shows the screen as a terminal with these colours does.
fn page(screen: &str, background: &str, text: &str) -> String {
    let screen = screen.replace('&', "&amp;").replace('<', "&lt;");
    let screen = screen.replace(CODE[0], "<span style='color:#000;background:#fff'>");
    let screen = screen.replace(CODE[1], "</span>");
    format!(
        "<meta charset=utf-8><body style='background:{background};color:{text}'><pre style='font:16px monospace'>{screen}</pre>"
    )
}

#[tokio::test]
async fn a_person_scans_the_code_of_a_terminal_and_calls_with_the_stored_credential() {
    let stack = Stack::start().await;
    let folder = stack.folder();
    let config = stack.config(Program::Gateway);
    let log_in = format!(
        "{} login --config {}",
        Program::Gateway.path().display(),
        config.display()
    );
    let screen = folder.join("screen");
    // A program of util-linux, which runs the command in a terminal and keeps what it shows.
    let mut terminal = Command::new("script")
        .args(["--quiet", "--flush", "--return", "--command", &log_in])
        .arg(&screen)
        .env("XDG_STATE_HOME", folder.join("states"))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let shown = until("the code", || async {
        let shown = fs::read_to_string(&screen).ok()?;
        shown.contains("compare the code").then_some(shown)
    })
    .await;
    let (_, after) = shown.split_once("Open ").unwrap();
    let address = after.lines().next().unwrap().trim();
    let (start, end) = (shown.find(CODE[0]).unwrap(), shown.rfind(CODE[1]).unwrap());
    let code = &shown[start..end + CODE[1].len()];
    let browser = RealBrowser::start("en").await;
    for (background, text) in [("#000", "#ccc"), ("#fff", "#222"), ("#002b36", "#839496")] {
        let file = folder.join("screen.html");
        fs::write(&file, page(code, background, text)).unwrap();
        browser.open(&format!("file://{}", file.display())).await;
        let picture = folder.join("screen.png");
        fs::write(&picture, browser.picture().await).unwrap();
        let read = Command::new("zbarimg")
            .args(["--quiet", "--raw"])
            .arg(&picture)
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&read.stdout).trim(),
            address,
            "on {background}"
        );
    }
    let mut phone = Browser::default();
    let page = phone.open(address).await;
    let provider = phone.confirm(&page).await;
    phone
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    let exit = spawn_blocking(move || terminal.wait())
        .await
        .unwrap()
        .unwrap();
    assert!(exit.success(), "{}", fs::read_to_string(&screen).unwrap());
    let stored: Vec<_> = fs::read_dir(folder.join("states/signpost"))
        .unwrap()
        .collect();
    let file = stored.into_iter().next().unwrap().unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let credential = fs::read_to_string(file.path()).unwrap();
    let shown = fs::read_to_string(&screen).unwrap();
    assert!(!shown.contains(credential.trim()), "it is shown: {shown}");
    let call = |folder: &std::path::Path| {
        let mut call = Program::Gateway.command(folder);
        call.args(["call", "--login", "GET", "/user", "--config"])
            .arg(&config);
        call.env("XDG_STATE_HOME", folder.join("states"))
            .output()
            .unwrap()
    };
    let called = call(folder);
    assert!(
        called.status.success() && output_text(&called).contains("username"),
        "{}",
        output_text(&called)
    );
    fs::remove_file(file.path()).unwrap();
    let called = call(folder);
    assert!(
        output_text(&called).contains("signpost login stores one"),
        "{}",
        output_text(&called)
    );
}

#[tokio::test]
async fn without_a_terminal_there_is_no_code_and_print_prints() {
    let stack = Stack::start().await;
    let mut login = Program::Gateway.command(stack.folder());
    login.args(["login", "--print", "--user", "ada", "--config"]);
    let output = login.arg(stack.config(Program::Gateway)).output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim().len(), 43);
    assert!(
        !output_text(&output).contains('\u{1b}'),
        "{}",
        output_text(&output)
    );
}
