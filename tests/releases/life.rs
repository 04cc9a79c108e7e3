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
    postgres::{PostgresServer, shared_server},
    program::{Program, Running, is_port_taken, output_text},
    project_copy::ProjectCopy,
    signed_client::SignedClient,
    stack::Stack,
    store::{PostgresStore, Store as _, StoreKind},
    versions::versions,
    waiting::until,
};
use serde_json::Value;

use super::{
    commands::{OF_A_NEW_VERSION, document},
    session::Session,
};

/// An installation of this release, on one kind of store, and the releases of the new version that run in it.
struct Place {
    stack: Stack,
    first: Release,
}

/// A release that runs.
struct Release {
    address: SocketAddr,
    running: Running,
}

/// The numbers of both releases.
const NUMBER: &str = env!("CARGO_PKG_VERSION");
const NEXT: &str = "999.0.0";

/// What the second release adds: a column to a shared table.
const MIGRATION: &str = "ALTER TABLE accounts ADD COLUMN motto TEXT;\n";

#[tokio::test]
async fn a_version_of_the_documents_is_released_beside_older_programs_and_taken_back() {
    let server = PostgresServer::start();
    let stacks = [
        Stack::start().await,
        Stack::builder().on_server(&server).start().await,
    ];
    let session = Session::in_a_copy("releases");
    session.run(&document(OF_A_NEW_VERSION));
    let (copy, version) = (session.copy(), next_version());
    for file in ["gateway.toml", "gateway-multi.toml", "compose/gateway.toml"] {
        let text = fs::read_to_string(copy.path().join("conf").join(file)).unwrap();
        let table = text
            .split_once(&format!("[versions.{version}]\n"))
            .unwrap()
            .1;
        let (table, _) = table.split_once("\n\n").unwrap();
        assert!(
            table.ends_with("\nunsigned = \"reject\""),
            "{file}: {table}"
        );
    }
    copy.commit("Add a version");

    let folder = release(copy, &stacks[0], &version, NUMBER);
    let mut places = Vec::new();
    for stack in stacks {
        let first = start(&stack, &folder, &version, NUMBER).await;
        places.push(Place { stack, first });
    }

    let views = copy.path().join(format!("backends/{version}/src/views.rs"));
    replace(&views, "registered_at", "since");
    for dialect in ["sqlite", "postgres"] {
        let file = format!("gateway/store/migrations/{dialect}/V2__motto.sql");
        fs::write(copy.path().join(file), MIGRATION).unwrap();
    }
    let schema = copy.path().join("gateway/store/src/schema.rs");
    replace(
        &schema,
        r#"["V1__schema"]"#,
        r#"["V1__schema", "V2__motto"]"#,
    );
    let own = copy.path().join(format!("backends/{version}"));
    for dialect in ["sqlite", "postgres"] {
        let file = own.join(format!("migrations/{dialect}/V2__tags.sql"));
        let tags = format!("ALTER TABLE {version}_notes ADD COLUMN tag TEXT;\n");
        fs::write(file, tags).unwrap();
    }
    let list = own.join("src/lib.rs");
    replace(&list, r#"["V1__notes"]"#, r#"["V1__notes", "V2__tags"]"#);
    let workspace = copy.path().join("Cargo.toml");
    replace(
        &workspace,
        &format!("\nversion = \"{NUMBER}\"\n"),
        &format!("\nversion = \"{NEXT}\"\n"),
    );
    copy.succeed("cargo", &["update", "--workspace", "--quiet", "--offline"]);
    copy.commit("Rename a field, and add columns");
    let second = release(copy, &places[0].stack, &version, NEXT);
    for place in places {
        let place = replace_and_take_back(place, &second, &folder, &version).await;
        if place.stack.store().kind() == StoreKind::Sqlite {
            move_to_postgres(place, &folder, &version).await;
        }
    }
}

/// Under load, the second release takes over, and then the first one again. Meanwhile gateway and version 1 go on as they
/// are, although the second release migrates their tables. No request fails.
async fn replace_and_take_back(
    place: Place,
    second: &Path,
    first_folder: &Path,
    version: &str,
) -> Place {
    let Place { stack, first } = place;
    route(&stack, version, &[first.address]);
    let client = stack.client();
    let login = log_in(&client, version).await;
    let credential = credential(&login);
    let field = async |name: &str| {
        let user = user(&client, version, credential).await;
        assert!(user[name].is_u64(), "{user}");
    };
    field("registered_at").await;

    let loads = [version, "v1"].map(|version| Load::start(&client, version, credential));
    let more = async || {
        for load in &loads {
            load.more().await;
        }
    };
    more().await;
    let motto = "SELECT count(motto) FROM accounts";
    let second = start(&stack, second, version, NEXT).await;
    assert_eq!(stack.store().query(motto).number(), 0, "it has migrated");
    more().await;
    route(&stack, version, &[first.address, second.address]);
    more().await;
    route(&stack, version, &[second.address]);
    more().await;
    field("since").await;
    first.stop().await;

    // The way back: the older program starts on the tables that the newer one has migrated.
    let first = start(&stack, first_folder, version, NUMBER).await;
    route(&stack, version, &[second.address, first.address]);
    more().await;
    route(&stack, version, &[first.address]);
    more().await;
    second.stop().await;
    more().await;
    for load in loads {
        assert_eq!(load.finish().await, 0, "requests failed");
    }
    field("registered_at").await;
    Place { stack, first }
}

/// Copies a SQLite store to Postgres, where the first release, which knows less of its table than was copied, finds what
/// it has stored.
async fn move_to_postgres(place: Place, folder: &Path, version: &str) {
    const NOTE: &str = "call Grace";
    let Place { mut stack, first } = place;
    let client = stack.client();
    let login = log_in(&client, version).await;
    let call = client.post("/notes").version(version).signed();
    let call = call.authorization(credential(&login));
    assert_eq!(call.param("text", NOTE).send().await.ok()["text"], NOTE);
    first.stop().await;
    for program in [Program::V1, Program::V2] {
        stack.kill(program);
    }
    let target = PostgresStore::create(&shared_server());
    fs::write(stack.folder().join("target"), target.address()).unwrap();
    let from = stack.store().address();
    let copy = ["store", "copy", "--from", &from, "--to", "file:target"];
    let printed = output_text(&Program::Gateway.run(stack.folder(), &copy));
    assert!(printed.contains("all row counts match"), "{printed}");
    let notes = format!("{version}_notes");
    let is_copied = |line: &str| line.split_whitespace().eq([&notes, "1"]);
    assert!(printed.lines().any(is_copied), "{printed}");

    let store = Some("file:target");
    let moved = start_on(&stack, folder, version, NUMBER, store).await;
    route(&stack, version, &[moved.address]);
    let call = client.get("/notes").version(version);
    let notes = call.authorization(credential(&login)).send().await.ok();
    assert_eq!(notes[0]["text"], NOTE, "{notes}");
}

impl Release {
    /// Stops it as systemd does.
    async fn stop(mut self) {
        self.running.terminate();
        until("the release to end", || {
            let status = self.running.exit_status();
            async move { status }
        })
        .await;
    }
}

/// Replaces a text that a file has.
fn replace(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{} has no {from}", file.display());
    fs::write(file, text.replace(from, to)).unwrap();
}

/// A version that does not exist yet.
fn next_version() -> String {
    format!("v{}", versions().last().unwrap().number + 1)
}

/// Tags the copy's last commit, which may raise the number, and deploys the version, with the store and provider of the
/// stack. Returns its folder.
fn release(copy: &ProjectCopy, stack: &Stack, version: &str, number: &str) -> PathBuf {
    let tag = format!("v{number}");
    let program = format!("login-{version}");
    // `cargo test --package` builds all crates with other features; the commands of backends/README.md run it. Here it
    // only has to be called.
    let bin = copy.around().join("bin");
    let called = "#!/bin/sh\necho \"called: cargo $*\"\n";
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("cargo"), called).unwrap();
    fs::set_permissions(bin.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut tag_version = copy.command("scripts/tag-version");
    let printed = output_text(&tag_version.env("PATH", path).output().unwrap());
    let test =
        "called: cargo test --locked --package gateway --package login-all --package=login-v1";
    assert!(
        printed.contains(test) && printed.contains(&format!("={program}\n")),
        "{printed}"
    );
    assert_eq!(
        copy.printed("git", &["cat-file", "-t", &tag]).trim(),
        "tag",
        "it is annotated"
    );
    let address = free_address();
    // It outlives the stack, and is left of an earlier run.
    let folder = copy.around().join(format!("{version}-{number}"));
    let _ = fs::remove_dir_all(&folder);
    let printed = copy.printed(
        "scripts/deploy",
        &[
            &tag,
            &program,
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
    let again = copy.run(
        "scripts/deploy",
        &[&tag, &program, folder.to_str().unwrap()],
    );
    assert!(output_text(&again).contains("exists already"));

    folder
}

/// Starts a release by what its unit says, with the store and provider of the stack, on an address of its own.
async fn start(stack: &Stack, folder: &Path, version: &str, number: &str) -> Release {
    start_on(stack, folder, version, number, None).await
}

/// As [`start`], on another store.
async fn start_on(
    stack: &Stack,
    folder: &Path,
    version: &str,
    number: &str,
    store: Option<&str>,
) -> Release {
    let command = started_by_unit(folder, version, number);
    let deployed = folder.join(format!("{version}.toml"));
    assert_eq!(command.last(), Some(&deployed));
    let config = fs::read_to_string(stack.config(Program::V2)).unwrap();
    let mut config: toml::Table = config.parse().unwrap();
    config.remove("management");
    if let Some(store) = store {
        config.insert("store".to_owned(), store.into());
    }
    let program = Program::Further(format!("login-{version}").leak());
    let instance = program.number(usize::from(number != NUMBER));
    // Another process can bind a port in the meantime: then another one is tried.
    for _ in 0..3 {
        let address = free_address();
        config.insert("listen".to_owned(), address.to_string().into());
        let file = stack.folder().join(format!("{version}-{number}.toml"));
        fs::write(&file, config.to_string()).unwrap();
        let start = Program::command_at(&command[0], stack.folder());
        let arguments = ["--config".to_owned(), file.display().to_string()];
        let mut running = Running::start_as(instance, start, stack.folder(), &arguments);
        let is_ready = until("the release to be ready, or to end", || {
            let mut health = Command::new(&command[0]);
            let health = health.arg("health").args(&arguments).output().unwrap();
            let is_ready = health.status.success();
            let has_ended = running.exit_status().is_some();
            async move { (is_ready || has_ended).then_some(is_ready) }
        });
        if is_ready.await {
            return Release { address, running };
        }
        let log = running.log();
        assert!(is_port_taken(&log), "it exited at its start:\n{log}");
    }
    panic!("a port was in use three times in a row");
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
    assert!(release.starts_with(&format!("v{number}\n")), "{release}");
    // The program says so, too.
    let commit = release.lines().nth(1).unwrap().get(..12).unwrap();
    let program = format!("login-{version}");
    let shown = Command::new(folder.join(&program))
        .arg("--version")
        .output();
    assert_eq!(
        output_text(&shown.unwrap()).trim(),
        format!("{program} {number} ({commit}, debug)")
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
    let toml = format!(
        "[versions.{version}]\nbackends = [{}]\nhealth.timeout_seconds = 30",
        backends.join(", ")
    );
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
