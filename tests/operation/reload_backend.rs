//! A backend reloads its configuration while it runs: by SIGHUP, by `reload`, or by watching its files.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use end_to_end::{
    browser::{Browser, Decision},
    logins::{begin_polling, check, confirm_polling, credential, log_in_by_redirect},
    program::{Program, output_text},
    signed_client::SignedClient,
    stack::{Stack, StackBuilder},
    waiting::until,
};

const FIRST: &str = "the-first-secret-of-this-client";
const SECOND: &str = "the-second-secret-of-this-client";

/// A stack whose provider accepts the second secret only, and whose backends have the first one in a file.
async fn stack(builder: StackBuilder) -> (Stack, PathBuf) {
    let stack = builder
        .backends("[providers.bitbucket]\nclient_secret = \"sandbox-only-secret\"")
        .provider(&[&format!("--client-secret={SECOND}")])
        .start()
        .await;
    let secret = stack.folder().join("provider.secret");
    fs::write(&secret, FIRST).unwrap();
    let from_file = format!(
        "[providers.bitbucket]\nclient_secret = \"file:{}\"",
        secret.display()
    );
    for program in [Program::V1, Program::All] {
        stack.configure(program, &from_file);
    }
    (stack, secret)
}

/// Whether a login completes, for which the backend needs the client secret that the provider accepts.
async fn logs_in(client: &SignedClient) -> bool {
    let mut browser = Browser::for_data();
    let provider = browser.open(&client.login_url(&[])).await;
    let done = browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    match done.response.status.as_u16() {
        200 => true,
        502 => false,
        status => panic!("{status}: {}", done.text()),
    }
}

fn reload(stack: &Stack, program: Program) -> String {
    let output = stack.reload(program);
    let text = output_text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    text
}

#[tokio::test]
async fn the_command_waits_and_prints_what_changed() {
    for (builder, program) in [
        (Stack::builder(), Program::V1),
        (Stack::builder().internal_forwarding(), Program::All),
    ] {
        let (stack, secret) = stack(builder).await;
        reload(&stack, program);
        assert!(!logs_in(&stack.client()).await);
        fs::write(&secret, SECOND).unwrap();
        let printed = reload(&stack, program);
        assert!(
            printed.contains("reloaded")
                && printed.contains("providers.bitbucket.client_secret: changed"),
            "{printed}"
        );
        assert!(
            !printed.contains(FIRST) && !printed.contains(SECOND),
            "{printed}"
        );
        assert!(logs_in(&stack.client()).await);
        stack.configure(program, "[login]\ncredential_ttl_seconds = 77");
        let printed = reload(&stack, program);
        let change = "login.credential_ttl_seconds: 2592000 -> 77";
        assert!(printed.contains(change), "{printed}");
        let login = log_in_by_redirect(&stack.client(), "ada").await;
        assert_eq!(login["expires_in"], 77);
        let log = stack.log(program);
        assert!(!log.contains(FIRST) && !log.contains(SECOND), "{log}");
    }
}

/// In the line about a reload of the provider's secret.
const RELOADED_SECRET: &str = "changed=\"providers.bitbucket.client_secret";

#[tokio::test]
async fn sighup_reloads() {
    let (mut stack, secret) = stack(Stack::builder()).await;
    fs::write(&secret, SECOND).unwrap();
    assert!(!logs_in(&stack.client()).await);
    stack.running(Program::V1).reload_by_signal();
    let log = stack.log_with(Program::V1, RELOADED_SECRET).await;
    assert!(!log.contains("SIGHUP"), "{log}");
    assert!(logs_in(&stack.client()).await);
}

/// Waits for one more reload than `before` of the provider's secret, then checks whether a login succeeds.
///
/// It waits for the log line, and not for the login: repeated logins reach the limit on login starts first.
async fn logs_in_once_reloaded(stack: &Stack, before: usize) -> bool {
    until("the secret to be reloaded", || async {
        (secret_reloads(stack) > before).then_some(())
    })
    .await;
    logs_in(&stack.client()).await
}

/// How many reloads of the provider's secret are logged.
fn secret_reloads(stack: &Stack) -> usize {
    stack.log(Program::V1).matches(RELOADED_SECRET).count()
}

#[tokio::test]
async fn a_watched_file_is_reloaded_however_it_changes() {
    let (stack, secret) = stack(Stack::builder()).await;
    stack.configure(Program::V1, "watch = true");
    reload(&stack, Program::V1);
    assert!(!logs_in(&stack.client()).await);
    // In place.
    let before = secret_reloads(&stack);
    fs::write(&secret, SECOND).unwrap();
    assert!(logs_in_once_reloaded(&stack, before).await);
    // By a file that is renamed over it.
    let before = secret_reloads(&stack);
    rename_over(&secret, FIRST);
    assert!(!logs_in_once_reloaded(&stack, before).await);
    // As Kubernetes changes the files of a ConfigMap: a link is switched to another folder.
    let folder = stack.folder().join("secrets");
    for (name, content) in [("..1", FIRST), ("..2", SECOND)] {
        fs::create_dir_all(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("provider.secret"), content).unwrap();
    }
    symlink("..1", folder.join("..data")).unwrap();
    symlink("..data/provider.secret", folder.join("provider.secret")).unwrap();
    // The configuration file itself, by renaming.
    let linked = format!(
        "[providers.bitbucket]\nclient_secret = \"file:{}\"\n[login]\nlogin_ttl_seconds = 599",
        folder.join("provider.secret").display()
    );
    let config = stack.config_with(Program::V1, &linked);
    rename_over(&stack.config(Program::V1), &config);
    let line = "changed=\"login.login_ttl_seconds";
    stack.log_with(Program::V1, line).await;
    let before = secret_reloads(&stack);
    symlink("..2", folder.join("..new")).unwrap();
    fs::rename(folder.join("..new"), folder.join("..data")).unwrap();
    assert!(logs_in_once_reloaded(&stack, before).await);
}

fn rename_over(file: &Path, content: &str) {
    let new = file.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::rename(new, file).unwrap();
}

#[tokio::test]
async fn an_invalid_file_keeps_the_old_configuration_and_is_reported_as_by_check() {
    let (mut stack, secret) = stack(Stack::builder()).await;
    fs::write(&secret, SECOND).unwrap();
    reload(&stack, Program::V1);
    let wrong = "worker_threads = 2\n[login]\nlogin_ttl_seconds = 0\n[polling]\nconfrm = true";
    let good = fs::read_to_string(stack.config(Program::V1)).unwrap();
    stack.configure(Program::V1, wrong);
    let checked = stack.check(Program::V1, &[]);
    let checked = output_text(&checked);
    let refused = stack.reload(Program::V1);
    assert_eq!(refused.status.code(), Some(1));
    let printed = output_text(&refused);
    assert_eq!(
        printed.trim_end(),
        format!(
            "{}\nnot reloaded: the old configuration stays",
            checked.trim_end()
        )
    );
    for words in [
        "worker_threads: unknown key",
        "login.login_ttl_seconds: found 0; allowed: a whole number from 1 to 3600",
        "polling.confrm: unknown key; did you mean confirm?",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
        let line = format!(
            "configuration not reloaded file={}",
            stack.config(Program::V1).display()
        );
        // Each problem has a line of its own.
        let log = stack.log_with(Program::V1, words).await;
        assert!(log.contains(&line), "{words}: {log}");
    }
    stack.running(Program::V1).reload_by_signal();
    assert!(logs_in(&stack.client()).await);
    // If the secret's file is missing, the old secret stays, too.
    fs::write(stack.config(Program::V1), good).unwrap();
    fs::remove_file(&secret).unwrap();
    let refused = stack.reload(Program::V1);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        output_text(&refused).contains("client_secret"),
        "{}",
        output_text(&refused)
    );
    assert!(logs_in(&stack.client()).await);
}

#[tokio::test]
async fn keys_that_need_a_restart_are_reported_and_keep_their_values() {
    let (mut stack, _) = stack(Stack::builder()).await;
    reload(&stack, Program::V1);
    stack.configure(Program::V1, "threads = 3\n[login]\nlogin_ttl_seconds = 599");
    for is_new in [true, false] {
        let printed = reload(&stack, Program::V1);
        let (reloaded, restart) = printed.split_once("a restart applies these").unwrap();
        let change = "login.login_ttl_seconds: 600 -> 599";
        assert_eq!(reloaded.contains(change), is_new, "{printed}");
        assert!(restart.contains("threads: 0 -> 3"), "{printed}");
    }
    let line = "keys=\"threads\"";
    stack.log_with(Program::V1, line).await;
    stack.restart(Program::V1).await;
    let printed = reload(&stack, Program::V1);
    assert!(!printed.contains("restart"), "{printed}");
}

#[tokio::test]
async fn check_shows_what_a_reload_would_change_and_changes_nothing() {
    let (mut stack, _) = stack(Stack::builder()).await;
    reload(&stack, Program::V1);
    stack.configure(Program::V1, "[login]\ncredential_ttl_seconds = 77");
    for _ in 0..2 {
        let compared = stack.check(Program::V1, &["--diff"]);
        let printed = output_text(&compared);
        assert_eq!(compared.status.code(), Some(0), "{printed}");
        let change = "login.credential_ttl_seconds: 2592000 -> 77";
        assert!(printed.contains(change), "{printed}");
    }
    stack.kill(Program::V1);
    for output in [
        stack.check(Program::V1, &["--diff"]),
        stack.reload(Program::V1),
    ] {
        let printed = output_text(&output);
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(
            printed.contains("no running program was started with"),
            "{printed}"
        );
    }
    assert_eq!(stack.check(Program::V1, &[]).status.code(), Some(0));
}

#[tokio::test]
async fn the_log_changes_its_format_and_omits_requests() {
    let (stack, _) = stack(Stack::builder()).await;
    stack.configure(Program::V1, "[log]\nformat = \"json\"\naccess_sample = 0");
    reload(&stack, Program::V1);
    let line = "\"message\":\"configuration reloaded\"";
    let before = stack.log_with(Program::V1, line).await;
    // Issue 44, row 39: no request has an access line, as at the gateway; the provider's fault is logged.
    stack.client().get("/user").send().await;
    assert!(!logs_in(&stack.client()).await);
    let log = stack.log_with(Program::V1, "\"level\":\"WARN\"").await;
    let since = &log[before.len()..];
    assert!(!since.contains("http.status_code"), "{since}");
}

/// Reloads during logins and calls.
const RELOADS: u32 = 20;
const LINE: &str = "changed=\"login.credential_ttl_seconds";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reloads_under_load_fail_no_request() {
    let quiet = "[log]\naccess_sample = 0";
    let limits = "[limits]\ncallbacks_per_second = 100000\ncallbacks_burst = 1000000";
    let builder = Stack::builder().gateway(quiet).backends(quiet);
    let mut stack = builder.backends(limits).start().await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let is_stopping = Arc::new(AtomicBool::new(false));
    let served = Arc::new([const { AtomicUsize::new(0) }; 3]);
    let mut load = tokio::task::JoinSet::new();
    for kind in [0, 0, 1, 2] {
        let (client, is_stopping, served) = (
            client.clone(),
            Arc::clone(&is_stopping),
            Arc::clone(&served),
        );
        let (credential, account) = (credential(&login).to_owned(), login["account"].clone());
        load.spawn(async move {
            while !is_stopping.load(Ordering::Relaxed) {
                match kind {
                    0 => {
                        let call = client.get("/user").authorization(&credential);
                        assert_eq!(call.send().await.ok(), account);
                    }
                    1 => {
                        log_in_by_redirect(&client, "ada").await;
                    }
                    _ => {
                        let mut browser = Browser::default();
                        let begun = begin_polling(&client).await;
                        let provider = confirm_polling(&mut browser, &begun).await;
                        let decided =
                            browser.decide_and_follow(&provider, "grace", Decision::Allow);
                        assert_eq!(decided.await.response.status, 200);
                        let checked = check(&client, &begun.token).await;
                        assert_eq!(checked["status"], "complete", "{checked}");
                    }
                }
                served[kind].fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let count = |kind: usize| served[kind].load(Ordering::Relaxed);
    for round in 1..=RELOADS {
        assert!(load.try_join_next().is_none(), "a request failed");
        let before = [0, 1, 2].map(count);
        let more = format!(
            "[limits]\nprovider_calls = {}\nstarts_burst = {}\n[login]\ncredential_ttl_seconds = {}\n\
             [timeouts]\nidle_seconds = {}\nbody_seconds = {}",
            200 + round,
            1000 + round,
            3600 + round,
            120 + round,
            60 - round,
        );
        stack.configure(Program::V1, &more);
        if round % 2 == 0 {
            stack.running(Program::V1).reload_by_signal();
        } else {
            reload(&stack, Program::V1);
        }
        until("the reload, and requests of each kind after it", || async {
            let log = stack.log(Program::V1);
            let is_reloaded = log.matches(LINE).count() == round as usize;
            let is_served = |kind| count(kind) > before[kind] + 1;
            (is_reloaded && [0, 1, 2].into_iter().all(is_served)).then_some(())
        })
        .await;
    }
    is_stopping.store(true, Ordering::Relaxed);
    load.join_all().await;
}
