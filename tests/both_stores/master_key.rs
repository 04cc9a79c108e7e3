//! `signpost master-key rotate`: a new master key while gateways serve. CONTRACT 4.

use std::{
    fs::{self, Permissions},
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
    path::Path,
    process::{Output, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

use end_to_end::{
    program::{Instance, Program, output_text},
    recording_backend::RecordingBackend,
    signed_client::fetch,
    stack::{Application, Stack},
    waiting::until,
};
use tokio::task::{JoinSet, spawn_blocking};

/// Each request finds its application in the store, unless it is the one before.
const SMALL_CACHE: &str = "[applications]\ncache_entries = 1";

/// Both master keys: the new one seals, the one before opens, too.
const BOTH: &str =
    "[applications]\nmaster_key = 'file:new.key'\nprevious_master_key = 'file:master.key'";

/// The master keys in the places of each other.
const BACK: &str =
    "[applications]\nmaster_key = 'file:master.key'\nprevious_master_key = 'file:new.key'";

struct Scene {
    stack: Stack,
    applications: Vec<Application>,
    _backend: RecordingBackend,
}

impl Scene {
    /// This number of gateways and of applications, and a file with a new master key.
    async fn start(gateways: usize, applications: usize, gateway: &str) -> Self {
        let backend = RecordingBackend::start().await;
        let stack = Stack::builder()
            .multi()
            .several(Program::Gateway, gateways)
            .in_front_of(&backend)
            .several(Program::Gateway, gateways)
            .gateway(gateway)
            .start()
            .await;
        let scene = Self {
            applications: import(&stack, applications),
            stack,
            _backend: backend,
        };
        write_secret(&scene.stack.folder().join("new.key"), &"cd".repeat(32));
        scene
    }

    /// Runs `signpost master-key rotate` with the first gateway's file.
    async fn rotate(&self, further: &[&str]) -> (Option<i32>, String) {
        let config = self.stack.config(Program::Gateway).display().to_string();
        let folder = self.stack.folder().to_owned();
        let arguments = [&["master-key", "rotate", "--config", &config], further].concat();
        let arguments: Vec<_> = arguments.into_iter().map(str::to_owned).collect();
        let run = spawn_blocking(move || {
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            Program::Gateway.run(&folder, &arguments)
        });
        read(&run.await.unwrap())
    }

    /// Writes every gateway's file anew, and replaces its process.
    async fn upgrade_all(&mut self, file: impl Fn(&Stack, Instance) -> String) {
        for number in 0..self.stack.gateways() {
            let gateway = Program::Gateway.number(number);
            fs::write(self.stack.config(gateway), file(&self.stack, gateway)).unwrap();
            let (code, text) = read(&self.stack.upgrade_of(gateway).await);
            assert_eq!(code, Some(0), "{text}");
            // The process before serves its open connections with the keys that it knows.
            until("the process before to end", || async {
                (self.stack.gateway_processes_of(gateway).len() == 1).then_some(())
            })
            .await;
        }
    }

    /// The status of a signed call of this application.
    async fn call(&self, gateway: usize, application: usize) -> u16 {
        let application = &self.applications[application];
        let client = self.stack.client_of_at(application, gateway);
        client
            .get("/x")
            .param("a", "1")
            .send()
            .await
            .status
            .as_u16()
    }

    async fn assert_all_sign(&self) {
        let mut calls = JoinSet::new();
        for application in &self.applications {
            let client = self.stack.client_of(application);
            calls.spawn(async move { client.get("/x").send().await.status.as_u16() });
            if calls.len() >= 16 {
                assert_eq!(calls.join_next().await.unwrap().unwrap(), 200);
            }
        }
        assert!(calls.join_all().await.iter().all(|status| *status == 200));
    }
}

fn read(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), output_text(output))
}

fn write_secret(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// Imports applications with different keys.
fn import(stack: &Stack, count: usize) -> Vec<Application> {
    let applications: Vec<_> = (0..count)
        .map(|number| Application {
            ident: format!("team-{number}"),
            key: format!("{number:064x}").replace("00000000", "89abcdef"),
        })
        .collect();
    let lines = applications
        .iter()
        .map(|one| format!("{},{},A team\n", one.ident, one.key));
    let file = format!("ident,key,name\n{}", lines.collect::<String>());
    let path = stack.folder().join("applications.csv");
    fs::write(&path, file).unwrap();
    let imported = stack.command(&["app", "import", &path.display().to_string()]);
    assert!(imported.status.success(), "{}", output_text(&imported));
    applications
}

/// Signed requests without a pause, of two clients for each gateway.
struct Load {
    is_stopping: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
    failures: Arc<Mutex<Vec<String>>>,
    clients: JoinSet<()>,
}

impl Load {
    fn start(scene: &Scene) -> Self {
        let mut load = Self {
            is_stopping: Arc::default(),
            served: Arc::default(),
            failures: Arc::default(),
            clients: JoinSet::new(),
        };
        for client in 0..2 * scene.stack.gateways() {
            let clients: Vec<_> = scene.applications.iter().skip(client).step_by(97).collect();
            let of = |one: &&Application| scene.stack.client_of_at(one, client / 2);
            let clients: Vec<_> = clients.iter().take(20).map(of).collect();
            let (is_stopping, served) = (Arc::clone(&load.is_stopping), Arc::clone(&load.served));
            let failures = Arc::clone(&load.failures);
            load.clients.spawn(async move {
                for client in clients.iter().cycle() {
                    if is_stopping.load(Ordering::SeqCst) {
                        break;
                    }
                    let response = client.get("/x").param("a", "1").send().await;
                    served.fetch_add(1, Ordering::SeqCst);
                    if response.status != 200 {
                        failures.lock().unwrap().push(response.text());
                    }
                }
            });
        }
        load
    }

    async fn until_served(&self, further: usize) {
        let before = self.served.load(Ordering::SeqCst);
        until("requests to be served", || async {
            (self.served.load(Ordering::SeqCst) >= before + further).then_some(())
        })
        .await;
    }

    async fn finish(self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.clients.join_all().await;
        assert_eq!(*self.failures.lock().unwrap(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_master_key_is_replaced_and_no_signed_request_is_rejected() {
    let mut scene = Scene::start(2, 5000, SMALL_CACHE).await;
    let load = Load::start(&scene);
    load.until_served(20).await;
    scene
        .upgrade_all(|stack, one| stack.config_with(one, BOTH))
        .await;
    load.until_served(20).await;
    let (code, text) = scene.rotate(&["--check"]).await;
    assert!(code == Some(1) && text.contains("5000 of 5000"), "{text}");
    let (code, text) = scene.rotate(&[]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("all keys of 5000 applications") && text.contains("can be removed"));
    let (code, text) = scene.rotate(&["--check", "--json"]).await;
    assert!(
        code == Some(0) && text.contains("\"remaining\":0"),
        "{text}"
    );
    load.until_served(20).await;
    scene
        .upgrade_all(|stack, one| {
            let file = stack.config_with(one, "");
            let kept = file
                .lines()
                .filter(|line| !line.starts_with("previous_master_key"));
            kept.map(|line| format!("{line}\n")).collect()
        })
        .await;
    fs::remove_file(scene.stack.folder().join("master.key")).unwrap();
    load.until_served(20).await;
    load.finish().await;
    scene.assert_all_sign().await;
    // What is created now is under the new master key.
    let created = scene.stack.create_application("one", &[]);
    scene.applications.push(created);
    assert_eq!(scene.call(1, 5000).await, 200);
}

/// Two configurations that rotate in opposite directions, so that each run has work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_that_is_killed_at_any_moment_loses_nothing_and_is_completed_by_another_run() {
    const KILLS: u32 = 30;
    let mut scene = Scene::start(1, 1500, SMALL_CACHE).await;
    let configs = [("to-new.toml", BOTH), ("to-old.toml", BACK)].map(|(name, keys)| {
        let path = scene.stack.folder().join(name);
        write_secret(&path, &scene.stack.config_with(Program::Gateway, keys));
        path.display().to_string()
    });
    scene
        .upgrade_all(|stack, one| stack.config_with(one, BOTH))
        .await;
    let begun = Instant::now();
    let (code, text) = scene.rotate(&[]).await;
    let mut whole = begun.elapsed();
    assert_eq!(code, Some(0), "{text}");
    let (mut runs, mut kills, mut completed) = (0, 0, 0);
    while kills < KILLS {
        assert!(runs < 3 * KILLS, "{kills} kills, {completed} completed");
        // The new key is in force now, so the first direction is back.
        let config = &configs[(completed + 1) % 2];
        let mut command = Program::Gateway.command(scene.stack.folder());
        command.args(["master-key", "rotate", "--config", config]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // Moments that are spread over the whole run: multiples of the golden ratio.
        let part = (f64::from(runs) * 0.618_034).fract();
        runs += 1;
        let moment = whole.mul_f64(part);
        tokio::time::sleep(moment).await;
        child.kill().unwrap();
        let status = child.wait().unwrap();
        // Other tests make runs longer and shorter: the moments follow.
        if status.signal() == Some(9) {
            kills += 1;
            whole = whole.mul_f64(1.02);
        } else {
            assert!(status.success(), "{status}");
            completed += 1;
            whole = moment;
        }
        if kills % 10 == 0 {
            assert_eq!(
                scene.call(0, usize::try_from(kills).unwrap() * 14).await,
                200
            );
        }
    }
    scene.assert_all_sign().await;
    let (code, text) = scene.rotate(&[]).await;
    assert!(
        code == Some(0) && text.contains("all keys of 1500 applications"),
        "{text}"
    );
    scene.assert_all_sign().await;
}

#[tokio::test]
async fn a_rotation_in_the_wrong_order_is_refused_or_named_and_what_is_cached_is_served() {
    let mut scene = Scene::start(1, 2, "").await;
    // No change of before reaches it, so what it caches now stays.
    scene.stack.restart(Program::Gateway).await;
    let both_are_served = async || (scene.call(0, 0).await, scene.call(0, 1).await) == (200, 200);
    assert!(both_are_served().await);
    // Without the key before.
    let (code, text) = scene.rotate(&[]).await;
    assert!(
        code == Some(1) && text.contains("previous_master_key is missing"),
        "{text}"
    );
    // The file has both, but the running gateway has only the old one.
    let old = fs::read_to_string(scene.stack.config(Program::Gateway)).unwrap();
    scene.stack.configure(
        Program::Gateway,
        "[applications]\nmaster_key = 'file:new.key'",
    );
    let (code, text) = scene.rotate(&["--check"]).await;
    assert!(
        code == Some(1) && text.contains("wrong master key"),
        "{text}"
    );
    scene.stack.configure(Program::Gateway, BOTH);
    let (code, text) = scene.rotate(&[]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(both_are_served().await);
    // A change of one is the only thing that the running gateway cannot follow.
    let updated = scene
        .stack
        .command(&["app", "update", "team-0", "--name", "Other"]);
    assert!(updated.status.success(), "{}", output_text(&updated));
    until("the change", || async {
        (scene.call(0, 0).await == 503).then_some(())
    })
    .await;
    assert_eq!(scene.call(0, 1).await, 200);
    let named = "which is neither master_key nor previous_master_key";
    let log = scene.stack.log_with(Program::Gateway, named).await;
    assert!(log.contains("cannot be decrypted here"), "{log}");
    // It would not start again.
    fs::write(scene.stack.config(Program::Gateway), old).unwrap();
    let (code, text) = read(&scene.stack.check(Program::Gateway, &[]));
    assert!(
        code == Some(1) && text.contains("wrong master key") && text.contains(named),
        "{text}"
    );
    let ready = fetch(&format!(
        "http://{}/readyz",
        scene.stack.addresses().management
    ))
    .await;
    assert_eq!(ready.status, 200);
}
