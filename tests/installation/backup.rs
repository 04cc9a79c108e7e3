//! Backup and restore of a SQLite database: `signpost store backup` and `signpost store restore`, and what is no backup.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use end_to_end::{
    logins::{credential, log_in_by_polling},
    postgres::{PostgresServer, Session},
    program::{Program, output_text},
    stack::{Application, Stack},
    waiting::until,
};
use tokio::task::JoinSet;

/// The programs that have a store.
const PROGRAMS: [Program; 3] = [Program::Gateway, Program::V1, Program::V2];

/// An installation on SQLite, whichever store this run uses.
struct Scene {
    stack: Stack,
}

impl Scene {
    async fn start() -> Self {
        let store = "store = \"sqlite:$FOLDER/small.db\"";
        let builder = Stack::builder().multi().gateway(store).backends(store);
        let stack = builder.start().await;
        Self { stack }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.stack.folder().join(name)
    }

    /// The output of a command, and whether it succeeded.
    fn store(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.stack.command(&[&["store"], arguments].concat());
        (output.status.success(), output_text(&output))
    }

    fn kill(&mut self) {
        for program in PROGRAMS {
            self.stack.kill(program);
        }
    }

    async fn start_again(&mut self) {
        for program in PROGRAMS {
            self.stack.restart(program).await;
        }
    }

    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.file(name)).unwrap().permissions().mode() & 0o777
    }

    async fn is_known(&self, application: &Application) -> bool {
        let client = self.stack.client_of(application);
        let response = client.post("/login").signed().send().await;
        response.status == 200
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_is_restored_and_the_database_before_is_kept() {
    let mut scene = Scene::start().await;
    let one = scene.stack.create_application("one", &[]);
    let client = scene.stack.client_of(&one);
    let login = log_in_by_polling(&client, "ada").await;
    let (is_over, begun) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let mut load = JoinSet::new();
    for _ in 0..4 {
        let (client, is_over, begun) = (client.clone(), Arc::clone(&is_over), Arc::clone(&begun));
        load.spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                client.post("/login").signed().send().await.ok();
                begun.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    until("logins to begin", || async {
        (begun.load(Ordering::Relaxed) >= 4).then_some(())
    })
    .await;
    let (is_done, text) = scene.store(&["backup", "saved.db"]);
    assert!(is_done && text.contains("saved.db"), "{text}");
    is_over.store(true, Ordering::Relaxed);
    load.join_all().await;
    assert_eq!(scene.mode("saved.db"), 0o600);
    let (is_done, text) = scene.store(&["backup", "saved.db"]);
    assert!(!is_done && text.contains("exists"), "{text}");
    let two = scene.stack.create_application("two", &[]);
    assert!(scene.is_known(&two).await);
    let (is_done, text) = scene.store(&["restore", "saved.db"]);
    assert!(!is_done && text.contains("in use by process"), "{text}");
    // The login service alone uses it, too.
    scene.stack.kill(Program::Gateway);
    let (is_done, text) = scene.store(&["restore", "saved.db"]);
    assert!(!is_done && text.contains("in use by process"), "{text}");
    scene.kill();
    let log = fs::metadata(scene.file("small.db-wal")).unwrap();
    assert!(
        log.len() > 0,
        "killed programs leave a log, which must not win"
    );
    let (is_done, text) = scene.store(&["restore", "saved.db"]);
    assert!(is_done && text.contains("small.db.replaced-20"), "{text}");
    assert_eq!(scene.mode("small.db"), 0o600);
    scene.start_again().await;
    assert!(scene.is_known(&one).await && !scene.is_known(&two).await);
    let user = client.get("/user").authorization(credential(&login));
    user.send().await.ok();
    // The database before is one that can be restored, with all that was in its log.
    let kept = fs::read_dir(scene.stack.folder()).unwrap();
    let kept = kept.map(|one| one.unwrap().file_name().into_string().unwrap());
    let mut kept = kept.filter(|name| {
        name.starts_with("small.db.replaced") && !name.ends_with("-wal") && !name.ends_with("-shm")
    });
    let kept = kept.next().unwrap();
    scene.kill();
    let (is_done, text) = scene.store(&["restore", &kept]);
    assert!(is_done, "{text}");
    scene.start_again().await;
    assert!(scene.is_known(&two).await);
}

#[tokio::test]
async fn a_copy_of_the_file_alone_starts_nothing_and_others_that_may_read_it_are_warned_of() {
    let mut scene = Scene::start().await;
    scene.stack.create_application("one", &[]);
    let copy = fs::read(scene.file("small.db")).unwrap();
    let whole = scene.store(&["backup", "saved.db"]);
    assert!(whole.0, "{}", whole.1);
    scene.kill();
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(scene.file(&format!("small.db{suffix}"))).unwrap();
    }
    fs::write(scene.file("small.db"), copy).unwrap();
    for program in PROGRAMS {
        scene.stack.restart_without_waiting(program);
        assert!(!scene.stack.wait_for_exit(program).await.success());
        let log = scene.stack.log(program);
        let told = "is a copy of a database in use without its";
        assert!(
            log.contains(told) && log.contains("signpost store restore"),
            "{log}"
        );
    }
    let check = scene.stack.check(Program::Gateway, &[]);
    assert!(output_text(&check).contains("a copy of a database in use"));
    let (is_done, text) = scene.store(&["restore", "saved.db"]);
    assert!(is_done, "{text}");
    let open = fs::Permissions::from_mode(0o644);
    fs::set_permissions(scene.file("small.db"), open).unwrap();
    scene.start_again().await;
    for program in PROGRAMS {
        let warning = "store: other users may read";
        scene.stack.log_with(program, warning).await;
    }
}

#[tokio::test]
async fn a_restore_needs_a_backup_of_signpost_under_the_same_master_key() {
    let mut scene = Scene::start().await;
    let one = scene.stack.create_application("one", &[]);
    assert!(scene.store(&["backup", "saved.db"]).0);
    scene.kill();
    scene.start_again().await;
    scene.kill();
    fs::write(scene.file("nothing.db"), "no database at all").unwrap();
    for (file, expected) in [
        ("nothing.db", "cannot be read, or is damaged"),
        ("missing.db", "not found"),
    ] {
        let (is_done, text) = scene.store(&["restore", file]);
        assert!(!is_done && text.contains(expected), "{text}");
    }
    let key = fs::read(scene.file("master.key")).unwrap();
    fs::write(scene.file("master.key"), "cd".repeat(32)).unwrap();
    let (is_done, text) = scene.store(&["restore", "saved.db"]);
    assert!(
        !is_done && text.contains("does not fit the master key"),
        "{text}"
    );
    fs::write(scene.file("master.key"), key).unwrap();
    scene.start_again().await;
    assert!(scene.is_known(&one).await);
}

#[tokio::test]
async fn for_postgres_the_commands_name_its_own_tools() {
    let scene = Scene::start().await;
    let hush = "store = \"postgres://signpost:hush@db.example:6432/signpost\"";
    let hush = format!("{hush}\n[applications]\nmaster_key = \"file:master.key\"");
    scene.stack.configure(Program::Gateway, &hush);
    for (command, tool) in [("backup", "pg_dump"), ("restore", "pg_restore")] {
        let (is_done, text) = scene.store(&[command, "saved.dump"]);
        let address = "--dbname=postgres://db.example:6432/signpost --username=signpost";
        assert!(
            !is_done && text.contains(tool) && text.contains(address),
            "{text}"
        );
        assert!(!text.contains("hush"));
    }
}

/// By the steps of `conf/guides/operate.md`, and the commands that Signpost prints.
#[tokio::test]
async fn a_postgres_database_is_backed_up_and_restored() {
    let server = PostgresServer::start();
    let stack = Stack::builder().multi().on_server(&server).start().await;
    let mut scene = Scene { stack };
    let one = scene.stack.create_application("one", &[]);
    let client = scene.stack.client_of(&one);
    let login = log_in_by_polling(&client, "ada").await;
    let password = scene.stack.store().password().unwrap().to_owned();
    let run_printed = |scene: &Scene, command: &str, tool: &str| {
        let (_, text) = scene.store(&[command, "saved.dump"]);
        let line = text
            .lines()
            .map(str::trim)
            .find(|line| line.starts_with(tool));
        let line = line.unwrap_or_else(|| panic!("{text}"));
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", line])
            .current_dir(scene.stack.folder())
            .env("PGPASSWORD", &password);
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{line}: {}", output_text(&output));
    };
    run_printed(&scene, "backup", "pg_dump");
    let two = scene.stack.create_application("two", &[]);
    assert!(scene.is_known(&two).await);
    scene.kill();
    let address = scene.stack.store().address();
    let name = address
        .rsplit('/')
        .next()
        .unwrap()
        .split('?')
        .next()
        .unwrap()
        .to_owned();
    let administrator = Session::open(server.address());
    // Connections of killed programs end a moment later.
    until("the database to be unused", || async {
        let rename = format!("ALTER DATABASE {name} RENAME TO {name}_before");
        administrator.try_query(&rename).ok()
    })
    .await;
    let create = "ENCODING 'UTF8' TEMPLATE template0";
    administrator.query(&format!("CREATE DATABASE {name} OWNER {name} {create}"));
    run_printed(&scene, "restore", "pg_restore");
    let checked = scene.stack.command(&["check"]);
    assert!(checked.status.success(), "{}", output_text(&checked));
    scene.start_again().await;
    assert!(scene.is_known(&one).await && !scene.is_known(&two).await);
    let user = client
        .get("/user")
        .authorization(credential(&login))
        .send()
        .await;
    assert_eq!(user.status, 200);
    administrator.query(&format!("DROP DATABASE {name}_before"));
}
