//! A version from its creation to its second release.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use end_to_end::{
    browser::{Browser, Decision},
    logins::{PollingLogin, confirm_polling, credential},
    port::free_address,
    program::{Program, Running, output_text},
    project_copy::ProjectCopy,
    signed_client::SignedClient,
    stack::Stack,
    versions::versions,
    waiting::until,
};
use serde_json::Value;

use super::{
    commands::{OF_A_NEW_VERSION, document},
    session::Session,
};

/// A deployed release that runs.
struct Release {
    address: SocketAddr,
    running: Running,
}

#[tokio::test]
async fn a_version_of_the_documents_is_tagged_deployed_and_replaced_without_downtime() {
    let stack = Stack::start().await;
    let session = Session::in_a_copy("releases");
    session.run(&document(OF_A_NEW_VERSION));
    let (copy, version) = (session.copy(), next_version());
    copy.commit("Add a version");
    copy.share_built_crates();

    let first = release(copy, &stack, &version, "1.0.0").await;
    route(&stack, &version, &[first.address]);
    let client = stack.client();
    let login = log_in(&client, &version).await;
    let user = user(&client, &version, credential(&login)).await;
    assert!(user["registered_at"].is_u64(), "{user}");

    let views = copy.path().join(format!("backends/{version}/src/views.rs"));
    let text = fs::read_to_string(&views).unwrap();
    fs::write(&views, text.replace("registered_at", "since")).unwrap();
    copy.commit("Rename a field");
    let mut second = release(copy, &stack, &version, "1.1.0").await;

    // New address, reload, old address out, reload, old program out: no request fails.
    let load = Load::start(&client, &version, credential(&login));
    load.more().await;
    route(&stack, &version, &[first.address, second.address]);
    load.more().await;
    route(&stack, &version, &[second.address]);
    load.more().await;
    let Release { mut running, .. } = first;
    running.terminate();
    until("the first release to end", || {
        let status = running.exit_status();
        async move { status }
    })
    .await;
    load.more().await;
    assert_eq!(load.finish().await, 0, "requests failed");
    let user = self::user(&client, &version, credential(&login)).await;
    assert!(user["since"].is_u64(), "{user}");
    assert!(second.running.exit_status().is_none());
}

/// A version that does not exist yet.
fn next_version() -> String {
    format!("v{}", versions().last().unwrap().number + 1)
}

/// Tags the copy's last commit and deploys it, with the store and provider of the stack. Starts the release by what its
/// unit says.
async fn release(copy: &ProjectCopy, stack: &Stack, version: &str, number: &str) -> Release {
    let tag = format!("{version}/{number}");
    // `cargo test --package` builds all crates with other features; the commands of backends/README.md run it. Here it
    // only has to be called.
    let bin = copy.around().join("bin");
    let called = "#!/bin/sh\necho \"called: cargo $*\"\n";
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("cargo"), called).unwrap();
    fs::set_permissions(bin.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut tag_version = copy.command("scripts/tag-version");
    let tagged = tag_version
        .args([version, number])
        .env("PATH", path)
        .output();
    let printed = output_text(&tagged.unwrap());
    let test = format!("called: cargo test --locked --package login-{version}\n");
    assert!(printed.contains(&test), "{printed}");
    assert_eq!(
        copy.printed("git", &["cat-file", "-t", &tag]).trim(),
        "tag",
        "it is annotated"
    );
    let address = free_address();
    let folder = stack.folder().join(format!("{version}-{number}"));
    let printed = copy.printed(
        "scripts/deploy",
        &[
            &tag,
            folder.to_str().unwrap(),
            "--listen",
            &address.to_string(),
            "--config",
            stack.config(Program::V2).to_str().unwrap(),
            "--profile",
            "dev",
        ],
    );
    assert!(printed.contains(&address.to_string()), "{printed}");
    assert_complete(&folder, version, number);
    let trees = copy.printed("git", &["worktree", "list"]);
    assert_eq!(trees.lines().count(), 1, "{trees}");
    // A second time, the folder is in the way.
    let again = copy.run("scripts/deploy", &[&tag, folder.to_str().unwrap()]);
    assert!(output_text(&again).contains("exists already"));

    let command = started_by_unit(&folder, version, number);
    let program = Program::Further(format!("login-{version}").leak());
    let instance = program.number(usize::from(number != "1.0.0"));
    let start = Program::command_at(&command[0], stack.folder());
    let arguments: Vec<_> = command[1..]
        .iter()
        .map(|one| one.display().to_string())
        .collect();
    let running = Running::start_as(instance, start, stack.folder(), &arguments);
    until("the release to be ready", || async {
        let health = Command::new(&command[0])
            .arg("health")
            .args(&arguments)
            .output();
        health.unwrap().status.success().then_some(())
    })
    .await;
    Release { address, running }
}

/// Checks the files of a release.
fn assert_complete(folder: &Path, version: &str, number: &str) {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let unit = format!("login-{version}-{number}.service");
    let expected = [
        "RELEASE".to_owned(),
        format!("login-{version}"),
        unit.clone(),
        format!("{version}.toml"),
    ];
    assert_eq!(names, expected);
    let release = fs::read_to_string(folder.join("RELEASE")).unwrap();
    assert!(
        release.starts_with(&format!("{version}/{number}\n")),
        "{release}"
    );
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--recursive-errors=no"])
        .arg(folder.join(&unit))
        .output();
    assert_eq!(output_text(&verified.unwrap()), "", "{unit}");
    let text = fs::read_to_string(folder.join(&unit)).unwrap();
    assert!(
        !text.contains("%i")
            && !text.contains("/usr/local/bin")
            && !text.contains("/etc/signpost/v"),
        "{text}"
    );
}

/// The command of a release's unit.
fn started_by_unit(folder: &Path, version: &str, number: &str) -> Vec<PathBuf> {
    let unit = folder.join(format!("login-{version}-{number}.service"));
    let unit = fs::read_to_string(unit).unwrap();
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    start.unwrap().split(' ').map(PathBuf::from).collect()
}

/// Makes these addresses the backends of a version, by a reload.
fn route(stack: &Stack, version: &str, addresses: &[SocketAddr]) {
    let backends: Vec<_> = addresses.iter().map(|one| format!("'{one}'")).collect();
    let toml = format!("[versions.{version}]\nbackends = [{}]", backends.join(", "));
    stack.configure(Program::Gateway, &toml);
    let reloaded = stack.reload(Program::Gateway);
    assert!(reloaded.status.success(), "{}", output_text(&reloaded));
}

/// Logs in by polling at one version.
async fn log_in(client: &SignedClient, version: &str) -> Value {
    let begun = client.post("/login").version(version).signed().send().await;
    assert_eq!(begun.header("acme-x-version"), Some(version));
    let begun = PollingLogin::from_response(&begun.ok());
    assert!(
        begun.token.starts_with(&format!("{version}.")),
        "{}",
        begun.token
    );
    let mut browser = Browser::default();
    let provider = confirm_polling(&mut browser, &begun).await;
    let done = browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    assert_eq!(done.response.status, 200, "{}", done.text());
    let check = client.post("/check").version(version);
    let checked = check.param("token", &begun.token).send().await.ok();
    assert_eq!(checked["status"], "complete", "{checked}");
    checked["login"].clone()
}

async fn user(client: &SignedClient, version: &str, credential: &str) -> Value {
    let call = client.get("/user").version(version);
    call.authorization(credential).send().await.ok()
}

/// A client that asks for its user without pause.
struct Load {
    task: tokio::task::JoinHandle<usize>,
    count: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Load {
    fn start(client: &SignedClient, version: &str, credential: &str) -> Self {
        let (count, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (client, version, credential) =
            (client.clone(), version.to_owned(), credential.to_owned());
        let (counted, over) = (Arc::clone(&count), Arc::clone(&is_over));
        let task = tokio::spawn(async move {
            let mut failed = 0;
            while !over.load(Ordering::Relaxed) {
                let call = client.get("/user").version(&version);
                let response = call.authorization(&credential).try_send().await;
                failed += usize::from(!response.is_ok_and(|response| response.status == 200));
                counted.fetch_add(1, Ordering::Relaxed);
            }
            failed
        });
        Self {
            task,
            count,
            is_over,
        }
    }

    /// Waits until a hundred more requests have been answered.
    async fn more(&self) {
        let enough = self.count.load(Ordering::Relaxed) + 100;
        until("more responses", || async {
            (self.count.load(Ordering::Relaxed) > enough).then_some(())
        })
        .await;
    }

    /// Ends the load, and returns how many requests failed.
    async fn finish(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.await.unwrap()
    }
}
