//! Moving an installation from SQLite to Postgres: `signpost store copy`.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use end_to_end::{
    browser::Decision,
    folder::Folder,
    logins::{begin_polling, check, confirm_polling, credential, log_in_by_polling},
    postgres::shared_server,
    program::Program,
    signed_client::SignedClient,
    stack::Stack,
    store::{PostgresStore, Store},
};
use rusqlite::Connection;
use serde_json::Value;
use url::Url;

/// The programs that have a store.
const PROGRAMS: [Program; 3] = [Program::Gateway, Program::V1, Program::V2];
const TABLES: [&str; 5] = [
    "applications",
    "accounts",
    "logins",
    "credentials",
    "events",
];
const FILE: &str = "small.db";

/// An installation on SQLite, whichever store this run uses, and the Postgres database that it moves to.
struct Moving {
    stack: Stack,
    target: PostgresStore,
}

impl Moving {
    async fn start() -> Self {
        let store = format!("store = \"sqlite:$FOLDER/{FILE}\"");
        let stack = Stack::builder()
            .multi()
            .gateway(&store)
            .backends(&store)
            .start()
            .await;
        Self {
            stack,
            target: PostgresStore::create(&shared_server()),
        }
    }

    fn file(&self) -> PathBuf {
        self.stack.folder().join(FILE)
    }

    fn stop(&mut self) {
        for program in PROGRAMS {
            self.stack.kill(program);
        }
    }

    /// Puts the new store into the same configuration files, and starts the programs on it.
    async fn start_on_target(&mut self) {
        let old = format!("sqlite:{}", self.file().display());
        let address = self.stack.folder().join("store.address");
        fs::write(&address, self.target.address()).unwrap();
        for program in PROGRAMS {
            let config = self.stack.folder().join(format!("{program}.toml"));
            let text = fs::read_to_string(&config).unwrap();
            assert!(text.contains(&old), "{text}");
            fs::write(&config, text.replace(&old, "file:store.address")).unwrap();
            self.stack.restart(program).await;
        }
    }

    fn copy(&self) -> Output {
        copy(self.stack.folder(), &self.file(), &self.target)
    }
}

/// Runs the command; password and address are in files of their own, as an operator would have them.
fn copy(folder: &Path, file: &Path, target: &PostgresStore) -> Output {
    let output = Program::Gateway.run(folder, &refs(&arguments(folder, file, target)));
    let printed = [&*output.stdout, &*output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    assert!(!printed.contains(target.password().unwrap()), "{printed}");
    output
}

fn arguments(folder: &Path, file: &Path, target: &PostgresStore) -> [String; 8] {
    let mut address: Url = target.address().parse().unwrap();
    address.set_password(None).unwrap();
    fs::write(folder.join("copy.address"), address.as_str()).unwrap();
    fs::write(folder.join("copy.password"), target.password().unwrap()).unwrap();
    [
        "store",
        "copy",
        "--from",
        &format!("sqlite:{}", file.display()),
        "--to",
        "file:copy.address",
        "--to-password",
        "file:copy.password",
    ]
    .map(str::to_owned)
}

fn refs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

fn stdout_and_stderr(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn counts(target: &PostgresStore) -> [i64; 5] {
    TABLES.map(|table| {
        let count = format!("SELECT count(*) FROM {table}");
        target.query(&count).number()
    })
}

async fn user(client: &SignedClient, credential: &str) -> Value {
    client
        .get("/user")
        .authorization(credential)
        .send()
        .await
        .ok()
}

#[tokio::test]
async fn an_installation_moves_with_its_logins_in_progress() {
    let mut moving = Moving::start().await;
    let application = moving.stack.create_application("one", &[]);
    let disabled = moving.stack.create_application("two", &[]);
    let disable = moving.stack.command(&["app", "disable", &disabled.ident]);
    assert!(disable.status.success());
    let client = moving.stack.client_of(&application);
    let ada = log_in_by_polling(&client, "ada").await;
    let before = user(&client, credential(&ada)).await;
    // One login is not opened yet, one waits at the provider, and one is done and not fetched.
    let (unopened, at_provider, done) = (
        begin_polling(&client).await,
        begin_polling(&client).await,
        begin_polling(&client).await,
    );
    let mut grace = moving.stack.browser();
    let provider = confirm_polling(&mut grace, &at_provider).await;
    let mut other = moving.stack.browser();
    let page = confirm_polling(&mut other, &done).await;
    other.decide_and_follow(&page, "ada", Decision::Allow).await;

    moving.stop();
    let (out, complaints) = stdout_and_stderr(&moving.copy());
    assert_eq!(complaints, "", "{out}");
    assert_eq!(counts(&moving.target), [2, 1, 4, 1, 0], "{out}");
    for words in [
        "applications             2",
        "logins                   4",
        "file:copy.address",
        "small.key",
    ] {
        assert!(out.contains(words), "{words} in {out}");
    }
    moving.start_on_target().await;

    assert_eq!(user(&client, credential(&ada)).await, before);
    let refused = moving.stack.client_of(&disabled).get("/user").send().await;
    refused.problem(403, "app_disabled");
    assert_eq!(
        check(&client, &done.token).await["login"]["account"],
        ada["account"]
    );
    assert_eq!(
        check(&client, &at_provider.token).await["status"],
        "pending"
    );
    grace
        .decide_and_follow(&provider, "grace", Decision::Allow)
        .await;
    let login = &check(&client, &at_provider.token).await["login"];
    assert_eq!(user(&client, credential(login)).await, login["account"]);
    assert_ne!(login["account"], ada["account"]);
    let mut third = moving.stack.browser();
    let page = confirm_polling(&mut third, &unopened).await;
    third.decide_and_follow(&page, "ada", Decision::Allow).await;
    assert_eq!(
        check(&client, &unopened.token).await["login"]["account"],
        ada["account"]
    );
    assert_eq!(
        counts(&moving.target)[1],
        2,
        "ada keeps her account, grace's is new"
    );
    moving.stack.create_application("three", &[]);
}

#[tokio::test]
async fn a_target_that_is_not_empty_is_rejected() {
    let mut moving = Moving::start().await;
    moving.stack.create_application("one", &[]);
    moving.stop();
    assert!(moving.copy().status.success());
    let again = moving.copy();
    let (_, complaint) = stdout_and_stderr(&again);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        complaint.contains("not empty: it has rows in applications, audit."),
        "{complaint}"
    );
    assert_eq!(counts(&moving.target), [1, 0, 0, 0, 0]);
}

#[tokio::test]
async fn programs_still_running_on_the_source_are_reported() {
    let mut moving = Moving::start().await;
    let output = moving.copy();
    let (_, warning) = stdout_and_stderr(&output);
    let ids = PROGRAMS.map(|program| format!("process {} has", moving.stack.running(program).id()));
    assert!(ids.iter().any(|id| warning.contains(id)), "{warning}");
    assert!(output.status.success(), "{warning}");
}

#[test]
fn a_copy_that_is_killed_leaves_nothing_and_can_be_run_again() {
    const MANY: i64 = 1000;
    /// The copy of the events takes ten seconds at least.
    const SLOW_EVENTS: &str = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN PERFORM pg_sleep(0.005); RETURN NEW; END'; \
        CREATE TRIGGER slow BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION slow()";
    let folder = Folder::create();
    let target = PostgresStore::create(&shared_server());
    let file = folder.path().join(FILE);
    fill(&folder, &file, 0);
    let empty = copy(folder.path(), &file, &target);
    assert!(empty.status.success(), "{:?}", stdout_and_stderr(&empty));
    fill(&folder, &file, MANY);
    target.query(SLOW_EVENTS);
    let mut child = Program::Gateway
        .command(folder.path())
        .args(arguments(folder.path(), &file, &target))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let accounts = lines
        .map(Result::unwrap)
        .find(|line| line.starts_with("accounts"));
    // The accounts are copied by now, and the copy of the events has begun.
    assert!(accounts.unwrap().ends_with(&format!(" {MANY}")));
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "it ended by itself");
    assert_eq!(counts(&target), [0; 5]);
    // This waits until the server has rolled back.
    target.query("DROP TRIGGER slow ON events");
    let again = copy(folder.path(), &file, &target);
    assert!(again.status.success(), "{:?}", stdout_and_stderr(&again));
    assert_eq!(counts(&target), [0, MANY, 0, 0, 2 * MANY]);
}

/// Creates a store with `accounts` accounts, and twice as many events.
fn fill(folder: &Folder, file: &Path, accounts: i64) {
    let config = format!(
        "prefix = \"Acme\"\nstore = \"sqlite:{}\"\n[applications]\n[versions.v1]\nbackend = \"127.0.0.1:1\"\n",
        file.display()
    );
    folder.write("signpost.toml", &config);
    let created =
        Program::Gateway.run(folder.path(), &["app", "list", "--config", "signpost.toml"]);
    assert!(
        created.status.success(),
        "{:?}",
        stdout_and_stderr(&created)
    );
    let rows = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {accounts}) \
         INSERT INTO accounts (provider, username, created_at) SELECT 'p', 'user' || n, n FROM numbers \
         WHERE n <= {accounts}; \
         INSERT INTO events (account_id, application_id, event, data, received_at) \
         SELECT id, 1, 'seen', 'some data', created_at FROM accounts; \
         INSERT INTO events (account_id, application_id, event, data, received_at) \
         SELECT account_id, 2, event, data, received_at FROM events"
    );
    Connection::open(file)
        .unwrap()
        .execute_batch(&rows)
        .unwrap();
}

#[test]
fn only_a_copy_from_sqlite_to_postgres_is_supported() {
    let folder = Folder::create();
    for (from, to, complaint) in [
        (
            "sqlite:a.db",
            "sqlite:b.db",
            "from sqlite:a.db to sqlite:b.db: only sqlite:",
        ),
        (
            "postgres://u:hush@h/d",
            "postgres://u:hush@g/d",
            "from postgres://h:5432/d to postgres://g:5432/d: only sqlite:",
        ),
        (
            "postgres://u:hush@h/d",
            "sqlite:b.db",
            "from postgres://h:5432/d to sqlite:b.db: only",
        ),
        (
            "sqlite:a.db",
            "postgres://u:hush@h",
            "--to: found an invalid postgres address; allowed: ",
        ),
        (
            "sqlite:a.db",
            "postgres://u:P@hush@h/d",
            "--to: found an invalid postgres address; allowed: one \"@\", behind user and password. ",
        ),
        (
            "sqlite://a.db",
            "postgres://u@h/d",
            "--from: found \"sqlite:\" without a path, or with one that is ambiguous; allowed: ",
        ),
        (
            "sqlite:a.db",
            "env:SIGNPOST_NO_SUCH_VARIABLE",
            "--to: env:SIGNPOST_NO_SUCH_VARIABLE, but",
        ),
        (
            "sqlite:a.db",
            "postgres://u:hush@127.0.0.1:1/d",
            "database a.db not found",
        ),
    ] {
        let arguments = ["store", "copy", "--from", from, "--to", to];
        let output = Program::Gateway.run(folder.path(), &arguments);
        let (stdout, stderr) = stdout_and_stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(
            stderr.contains(complaint) && !(stderr + &stdout).contains("hush"),
            "{complaint}: {stdout}"
        );
    }
    let literal = [
        "store",
        "copy",
        "--from",
        "sqlite:a.db",
        "--to",
        "postgres://u@h/d",
        "--to-password",
        "hush",
    ];
    let (_, complaint) = stdout_and_stderr(&Program::Gateway.run(folder.path(), &literal));
    assert!(
        complaint.contains("never the password itself") && !complaint.contains("hush"),
        "{complaint}"
    );
}
