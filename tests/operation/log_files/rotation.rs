//! Rotation: SIGUSR1 makes each program reopen its files, and no line is lost or doubled.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use end_to_end::{
    documents::root,
    program::{Program, Running, whole_lines},
    signed_client::SignedClient,
    stack::Stack,
    waiting::until,
};
use tokio::task::JoinSet;

use super::{file, gateway_with_file, in_file, read_with};

const ROTATIONS: usize = 60;
const CLIENTS: usize = 4;
/// Group and others must not write, others not read, nobody execute.
const FORBIDDEN_MODE: u32 = 0o137;

/// Clients that call until they are stopped, and note the ids of their requests.
struct Load {
    is_stopping: Arc<AtomicBool>,
    clients: JoinSet<Vec<String>>,
}

impl Load {
    fn start(client: &SignedClient) -> Self {
        let is_stopping = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            let (client, is_stopping) = (client.clone(), Arc::clone(&is_stopping));
            clients.spawn(async move {
                let mut ids = Vec::new();
                while !is_stopping.load(Ordering::Relaxed) {
                    let response = client.get("/loaded").send().await;
                    ids.push(response.header("x-request-id").unwrap().to_owned());
                }
                ids
            });
        }
        Self {
            is_stopping,
            clients,
        }
    }

    async fn stop(self) -> Vec<String> {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.clients.join_all().await.concat()
    }
}

/// How often each request id is in the lines of these files about `/loaded`.
fn logged(files: &[PathBuf]) -> HashMap<String, usize> {
    let mut logged = HashMap::new();
    for file in files {
        let text = whole_lines(fs::read_to_string(file).unwrap_or_default());
        for line in text.lines().filter(|line| line.contains("/loaded")) {
            let id = line.split("request.id=").nth(1).unwrap();
            let id = id.split(' ').next().unwrap().to_owned();
            *logged.entry(id).or_default() += 1;
        }
    }
    logged
}

async fn assert_each_is_logged_once(ids: &[String], files: &[PathBuf]) {
    let logged = until("a line for each request", || async {
        let logged = logged(files);
        (logged.len() >= ids.len()).then_some(logged)
    })
    .await;
    assert_eq!(logged.len(), ids.len());
    for id in ids {
        assert_eq!(logged.get(id), Some(&1), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_line_is_lost_or_doubled_by_rotations_under_load() {
    let (mut stack, _backend) = gateway_with_file("").await;
    let access = file(stack.folder(), Program::Gateway);
    let load = Load::start(&stack.client());
    let mut files = vec![access.clone()];
    for number in 0..ROTATIONS {
        // So that every file gets some lines.
        read_with(&access, "/loaded").await;
        let rotated = access.with_extension(format!("lines.{number}"));
        fs::rename(&access, &rotated).unwrap();
        files.push(rotated);
        stack.running(Program::Gateway).reopen_logs();
        until("the new file", || async { access.exists().then_some(()) }).await;
    }
    let mode = fs::metadata(&access).unwrap().permissions().mode();
    assert_eq!(mode & FORBIDDEN_MODE, 0, "{mode:o}");
    let ids = load.stop().await;
    assert_each_is_logged_once(&ids, &files).await;
}

#[tokio::test]
async fn every_program_of_the_login_service_reopens_its_files() {
    let builder = Stack::builder();
    let builder = builder.program(Program::V1, &in_file(Program::V1));
    let both = builder
        .program(Program::V2, &in_file(Program::V2))
        .start()
        .await;
    let builder = Stack::builder().internal_forwarding();
    let all = builder
        .program(Program::All, &in_file(Program::All))
        .start()
        .await;
    for (mut stack, programs) in [
        (both, &[Program::V1, Program::V2][..]),
        (all, &[Program::All]),
    ] {
        let folder = stack.folder().to_owned();
        for &program in programs {
            let version = if program == Program::V2 { "v2" } else { "v1" };
            let path = file(&folder, program);
            fs::rename(&path, path.with_extension("old")).unwrap();
            stack.running(program).reopen_logs();
            until("the new file", || async { path.exists().then_some(()) }).await;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & FORBIDDEN_MODE, 0, "{mode:o}");
            let response = stack.client().get("/user").version(version).send().await;
            response.problem(401, "authorization_missing");
            read_with(&path, "http.path=/user").await;
        }
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_reopened_stays_in_use() {
    let (mut stack, _backend) = gateway_with_file("").await;
    let access = file(stack.folder(), Program::Gateway);
    let old = access.with_extension("old");
    fs::rename(&access, &old).unwrap();
    fs::create_dir(&access).unwrap();
    stack.running(Program::Gateway).reopen_logs();
    let error = read_with(&old, "cannot be reopened, the old one stays in use").await;
    assert!(error.contains(&access.display().to_string()), "{error}");
    stack.client().get("/served").send().await.ok();
    read_with(&old, "http.path=/served").await;
    fs::remove_dir(&access).unwrap();
    stack.running(Program::Gateway).reopen_logs();
    until("the new file", || async { access.is_file().then_some(()) }).await;
    stack.client().get("/later").send().await.ok();
    read_with(&access, "http.path=/later").await;
}

/// Whether the process handles SIGUSR1 (`SigCgt`, proc(5)): its tenth signal on Linux.
fn handles_usr1(id: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & (1 << 9) != 0)
}

#[tokio::test]
async fn the_signal_does_nothing_without_files_also_early_in_the_start() {
    let mut stack = Stack::builder().start().await;
    for program in [Program::Gateway, Program::V1] {
        // The line of the first start: a kill could lose it.
        stack.log_with(program, "is listening").await;
        stack.restart_without_waiting(program);
        let running = stack.running(program);
        // Before that, the program has done nothing yet.
        until("a handler", || {
            let handles = handles_usr1(running.id());
            async move { handles.then_some(()) }
        })
        .await;
        until("the start", || {
            running.reopen_logs();
            assert_eq!(running.exit_status(), None, "{}", running.log());
            let is_started = running.log().matches("is listening").count() == 2;
            async move { is_started.then_some(()) }
        })
        .await;
        running.reopen_logs();
        assert!(!running.log().contains("reopen"));
    }
    let ready = || async {
        let response = stack.client().get("/user").try_send().await.ok()?;
        (response.status == 401).then_some(())
    };
    until("both programs to serve", ready).await;
}

/// The project's file for logrotate, with the folder and `systemctl` of the test. Returns the file, and the folder of the
/// commands.
fn logrotate_files(folder: &Path, running: &Running) -> (PathBuf, PathBuf) {
    let example = fs::read_to_string(root().join("conf/observe/logrotate")).unwrap();
    let logs = "/var/log/signpost/*/*.log {";
    assert!(example.contains(logs), "{example}");
    let own = example.replace(logs, &format!("{}/*.lines {{", folder.display()));
    let config = folder.join("logrotate.conf");
    // `create` is Debian's default.
    fs::write(&config, format!("create\n{own}")).unwrap();
    fs::set_permissions(&config, fs::Permissions::from_mode(0o644)).unwrap();
    let commands = folder.join("commands");
    fs::create_dir(&commands).unwrap();
    let systemctl = commands.join("systemctl");
    let script = format!(
        "#!/bin/sh\n[ \"$*\" = 'kill --signal=USR1 signpost.service login@*.service login-*.service' ] && kill -USR1 {}\n",
        running.id()
    );
    fs::write(&systemctl, script).unwrap();
    fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).unwrap();
    (config, commands)
}

/// The project's file for logrotate names the units in `conf/systemd`, and those that `scripts/deploy` makes.
#[test]
fn logrotate_signals_every_unit() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let example = read("conf/observe/logrotate");
    let command = example.lines().find(|line| line.contains("systemctl kill"));
    let patterns: Vec<_> = command.unwrap().split_whitespace().skip(3).collect();
    let patterns: Vec<_> = patterns.iter().map(|one| one.trim_matches('\'')).collect();
    let deploy = read("scripts/deploy");
    let named = deploy.lines().find_map(|line| line.strip_prefix("name="));
    // name=$program-${tag#v}.service
    let deployed = named.unwrap();
    let deployed = deployed
        .replace("$program", "login-v2")
        .replace("${tag#v}", "0.9.1");
    assert_eq!(deployed, "login-v2-0.9.1.service");
    let systemd = fs::read_dir(root().join("conf/systemd")).unwrap();
    let units = systemd.map(|file| file.unwrap().file_name().into_string().unwrap());
    let units = units.filter(|name| name.ends_with(".service"));
    let instances: Vec<_> = units.map(|name| name.replace('@', "@v1")).collect();
    assert!(instances.len() > 1, "{instances:?}");
    for unit in instances.iter().chain([&deployed]) {
        let is_signalled = patterns
            .iter()
            .any(|pattern| match pattern.split_once('*') {
                Some((start, end)) => unit.starts_with(start) && unit.ends_with(end),
                None => pattern == unit,
            });
        assert!(is_signalled, "{unit}: {patterns:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logrotate_loses_no_line_with_the_projects_file() {
    let (mut stack, _backend) = gateway_with_file("").await;
    let folder = stack.folder().to_owned();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let access = file(&folder, Program::Gateway);
    let (config, commands) = logrotate_files(&folder, stack.running(Program::Gateway));
    let load = Load::start(&stack.client());
    for _ in 0..5 {
        read_with(&access, "/loaded").await;
        let path = std::env::var("PATH").unwrap();
        // Debian has it in /usr/sbin, which not every user has in PATH.
        let mut logrotate = Command::new("/usr/sbin/logrotate");
        logrotate.env("PATH", format!("{}:{path}", commands.display()));
        logrotate
            .arg("--force")
            .arg("--state")
            .arg(folder.join("state"));
        let output = logrotate.arg(&config).stdin(Stdio::null()).output();
        let output = output.expect("scripts/prerequisites test installs logrotate");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}");
        until("the new file", || async { access.exists().then_some(()) }).await;
    }
    let ids = load.stop().await;
    for number in 2..=5 {
        let compressed = folder.join(format!("signpost.lines.{number}.gz"));
        let unpacked = Command::new("gzip").arg("-d").arg(&compressed).status();
        assert!(unpacked.unwrap().success());
    }
    let rotated = (1..=5).map(|number| folder.join(format!("signpost.lines.{number}")));
    let files: Vec<_> = rotated.chain([access]).collect();
    assert_each_is_logged_once(&ids, &files).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reloads_and_rotations_at_the_same_time_lose_no_line() {
    let (mut stack, _backend) = gateway_with_file("").await;
    let folder = stack.folder().to_owned();
    let load = Load::start(&stack.client());
    let mut files = vec![file(&folder, Program::Gateway)];
    for number in 0..10 {
        let next = folder.join(format!("log-{number}"));
        stack.configure(Program::Gateway, &format!("[log]\noutput = {next:?}"));
        stack.running(Program::Gateway).reopen_logs();
        assert!(stack.reload(Program::Gateway).status.success());
        stack.running(Program::Gateway).reopen_logs();
        read_with(&next, "/loaded").await;
        files.push(next);
    }
    let ids = load.stop().await;
    assert_each_is_logged_once(&ids, &files).await;
}
