//! `scripts/new-version`, `tag-version` and `deploy`: what they reject, and what a failure leaves behind; the ports of
//! `scripts/run`. Nothing is built.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use end_to_end::{
    port::free_address,
    program::{Program, output_text, programs_folder},
    project_copy::ProjectCopy,
    versions::versions,
    waiting::{until, until_within},
};

/// The present number's tag.
const TAG: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// A copy with a first commit.
fn repository(name: &str) -> ProjectCopy {
    let copy = ProjectCopy::prepare(env!("CARGO_TARGET_TMPDIR"), name);
    copy.copy();
    copy.commit_first();
    copy
}

/// Checks that a command fails, says why, and leaves a clean tree.
fn assert_rejected(copy: &ProjectCopy, command: &[&str], reason: &str) {
    let output = copy.run(command[0], &command[1..]);
    let printed = output_text(&output);
    assert!(!output.status.success(), "{command:?}");
    assert!(
        printed.contains(reason),
        "{command:?}: {reason} not in: {printed}"
    );
    assert_eq!(
        copy.printed("git", &["status", "--porcelain"]),
        "",
        "{command:?}"
    );
}

/// Makes a script of the copy's own, which takes the place of a program.
fn write_program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn wrong_arguments_change_nothing() {
    let copy = repository("wrong-arguments");
    copy.succeed("git", &["tag", "v999.10.0"]);
    copy.succeed("git", &["tag", "vx"]);
    let usage = "usage: scripts/";
    let deploy = |arguments: &[&'static str]| [&["scripts/deploy"], arguments].concat();
    for (command, reason) in [
        (vec!["scripts/new-version"], usage),
        (vec!["scripts/new-version", "3"], usage),
        (vec!["scripts/new-version", "v03"], usage),
        (vec!["scripts/new-version", "V3"], usage),
        (vec!["scripts/new-version", "v3;id"], usage),
        (vec!["scripts/new-version", "v3", "v4"], usage),
        (
            vec!["scripts/new-version", "v1"],
            "backends/v1 exists already",
        ),
        (vec!["scripts/new-version", "v0"], "v0 is not newer than v"),
        (vec!["scripts/dist", "login-v99"], usage),
        (vec!["scripts/package", "x"], usage),
        (vec!["scripts/tag-version", "0.9.1"], usage),
        (
            vec!["scripts/tag-version"],
            "lower than the last tag, v999.10.0",
        ),
        (deploy(&[]), usage),
        (deploy(&["v999.10.0", "login-v2"]), usage),
        (deploy(&["v2/1.3.0", "login-v2", "x"]), "not a tag such as"),
        (
            deploy(&["v999.10.0", "login", "x"]),
            "not a program such as",
        ),
        (deploy(&["v999.10.0", "login-v2", "x", "--listen"]), usage),
        (
            deploy(&["v999.10.0", "login-v2", "x", "--management", "7032"]),
            "7032 is not an IP address and a port",
        ),
        (
            deploy(&["v999.10.0", "login-v2", "x", "--listen", "7012"]),
            "not an IP address and a port",
        ),
        (deploy(&["v999.10.0", "login-v2", "x", "--other"]), usage),
        (
            deploy(&["v999.10.0", "login-v2", "a b"]),
            "a unit cannot name",
        ),
        (
            deploy(&["v999.10.0", "login-v2", "conf"]),
            "conf exists already",
        ),
        (
            deploy(&["v999.10.0", "login-v2", "x", "--config", "none"]),
            "none cannot be read",
        ),
        (
            deploy(&["v999.10.0", "login-v99", "x"]),
            "v999.10.0 has no conf/v99.toml",
        ),
        (
            deploy(&["v998.0.0", "signpost", "x"]),
            "there is no tag v998.0.0",
        ),
    ] {
        assert_rejected(&copy, &command, reason);
    }
    copy.succeed("git", &["tag", TAG]);
    assert_rejected(
        &copy,
        &["scripts/tag-version"],
        &format!("{TAG} exists already"),
    );
    assert_eq!(
        copy.printed("git", &["tag"]).lines().count(),
        3,
        "no tag was added"
    );
}

#[test]
fn a_changed_tree_is_rejected() {
    let copy = repository("changed-tree");
    fs::write(copy.path().join("notes.txt"), "not committed").unwrap();
    for command in [
        &["scripts/new-version", "v900"][..],
        &["scripts/tag-version"],
        &["scripts/package"],
    ] {
        let output = copy.run(command[0], &command[1..]);
        let printed = output_text(&output);
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(
            printed.contains("not clean") && printed.contains("notes.txt"),
            "{printed}"
        );
    }
    assert!(!copy.path().join("backends/v900").exists());
}

#[test]
fn versions_are_ordered_by_number_and_a_failure_leaves_a_clean_tree() {
    let copy = repository("ordered-versions");
    copy.succeed("scripts/new-version", &["v99"]);
    copy.commit("Add v99");
    copy.succeed("scripts/new-version", &["v100"]);
    // 7100 is the sandbox provider's.
    let listen = fs::read_to_string(copy.path().join("conf/v100.toml")).unwrap();
    assert!(
        listen.contains("\nlisten = \"127.0.0.1:7101\"\n"),
        "{listen}"
    );
    let management = "\n[management]\n";
    let (_, management) = listen.split_once(management).expect("it has the table");
    assert!(
        management.contains("\n# listen = \"127.0.0.1:7120\"\n"),
        "{management}"
    );
    // Only version 1's file has every key.
    let compose = fs::read_to_string(copy.path().join("conf/compose/v100.toml")).unwrap();
    assert!(compose.contains("conf/v1.toml explains"), "{compose}");
    copy.commit("Add v100");
    let printed = copy.printed("scripts/versions", &[]);
    assert!(printed.ends_with("v99\nv100\n"), "{printed}");
    assert_rejected(
        &copy,
        &["scripts/new-version", "v98"],
        "v98 is not newer than v100",
    );
    // Other scripts have the new ones.
    assert_rejected(&copy, &["scripts/image"], "|login-v99|login-v100");
    // A file has another form than the script expects, after others were changed.
    let compose = copy.path().join("docker-compose.yml");
    let text = fs::read_to_string(&compose).unwrap();
    fs::write(&compose, text.replace("  v100-b: *v100\n", "")).unwrap();
    copy.commit("Have one container");
    assert_rejected(
        &copy,
        &["scripts/new-version", "v101"],
        "docker-compose.yml",
    );
    assert!(!copy.path().join("conf/v101.toml").exists());
}

#[tokio::test]
async fn an_interrupted_or_failed_build_leaves_nothing() {
    let copy = repository("interrupted-build");
    copy.succeed("git", &["tag", "v0.1.0"]);
    let release = copy.around().join("release");
    let release = release.to_str().unwrap();
    let path = |folder: &str| {
        let present = std::env::var("PATH").unwrap();
        format!("{}:{present}", copy.around().join(folder).display())
    };
    // Stand-ins for cargo: one builds for ever, one fails.
    let started = copy.around().join("started");
    let text = format!("#!/bin/sh\ntouch {}\nexec sleep 600\n", started.display());
    let _ = fs::remove_file(&started);
    write_program(&copy.around().join("endless/cargo"), &text);
    write_program(
        &copy.around().join("failing/cargo"),
        "#!/bin/sh\nexit 101\n",
    );

    let mut deploy = copy.command("scripts/deploy");
    let deploy = deploy
        .args(["v0.1.0", "login-v2", release])
        .env("PATH", path("endless"));
    let mut running = deploy.stderr(Stdio::piped()).spawn().unwrap();
    until("the build to begin", || async {
        started.exists().then_some(())
    })
    .await;
    copy.succeed("kill", &["-TERM", &running.id().to_string()]);
    assert_eq!(running.wait().unwrap().code(), Some(143));
    assert_nothing_left(&copy);

    let mut deploy = copy.command("scripts/deploy");
    let deploy = deploy
        .args(["v0.1.0", "login-v2", release])
        .env("PATH", path("failing"));
    assert_eq!(deploy.status().unwrap().code(), Some(101));
    assert_nothing_left(&copy);

    // Without passing tests there is no tag.
    let mut tag = copy.command("scripts/tag-version");
    assert_eq!(
        tag.env("PATH", path("failing")).status().unwrap().code(),
        Some(1)
    );
    assert_eq!(copy.printed("git", &["tag"]).trim(), "v0.1.0");
}

/// Neither a release nor a part of one, and no further work tree.
fn assert_nothing_left(copy: &ProjectCopy) {
    let names: Vec<_> = fs::read_dir(copy.around())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".deploy") || name == "release")
        .collect();
    assert!(names.is_empty(), "{names:?}");
    let trees = copy.printed("git", &["worktree", "list"]);
    assert_eq!(trees.lines().count(), 1, "{trees}");
}

/// What `scripts/deploy` lays out, with a stand-in for cargo whose programs print the release that they were built as.
#[test]
fn a_release_has_its_program_configuration_and_unit() {
    let copy = repository("deployed-release");
    let bin = copy.around().join("building");
    write_program(
        &bin.join("cargo"),
        "#!/bin/sh\n[ \"$1\" = build ] || exit 0\nwhile [ $# -gt 1 ]; do\n    case $1 in --target) host=$2 ;; --bin) bin=$2 ;; esac\n    \
         shift\ndone\nmkdir -p \"$CARGO_TARGET_DIR/$host/dist\"\nprintf '#!/bin/sh\\necho \"%s\"\\n' \"$SIGNPOST_RELEASE\" \
         >\"$CARGO_TARGET_DIR/$host/dist/$bin\"\n",
    );
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let addresses = [
        "--listen",
        "127.0.0.1:7500",
        "--management",
        "127.0.0.1:7501",
    ];
    let mut tag_version = copy.command("scripts/tag-version");
    assert!(tag_version.env("PATH", &path).status().unwrap().success());
    let commit = copy.printed("git", &["rev-parse", "--short=12", "HEAD"]);
    let shown = format!("{} ({})", &TAG[1..], commit.trim());
    assert_eq!(copy.printed("scripts/release", &[]).trim(), shown);
    for (name, program) in [("v2", "login-v2"), ("gateway", "signpost")] {
        let folder = copy.around().join(format!("release-of-{name}"));
        let _ = fs::remove_dir_all(&folder);
        let mut deploy = copy.command("scripts/deploy");
        let deploy = deploy.args([TAG, program]).arg(&folder).args(addresses);
        let output = deploy.env("PATH", &path).output().unwrap();
        assert!(output.status.success(), "{}", output_text(&output));
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
        assert!(read(program).contains(&shown), "{}", read(program));
        assert!(read("RELEASE").starts_with(TAG));
        let configuration = read(&format!("{name}.toml"));
        for address in ["7500", "7501"] {
            let line = format!("\nlisten = \"127.0.0.1:{address}\"\n");
            assert!(configuration.contains(&line), "{configuration}");
        }
        let unit = format!("{program}-{}.service", &TAG[1..]);
        let path = folder.join(&unit).display().to_string();
        let verified = ["verify", "--recursive-errors=no", &path];
        assert_eq!(copy.printed("systemd-analyze", &verified), "", "{path}");
        // The unit names this version only, and its own paths.
        let unit = read(&unit);
        let file = folder.join(format!("{name}.toml"));
        assert!(unit.contains(&format!("{} ", folder.join(program).display())));
        assert!(unit.contains(&format!("--config {}\n", file.display())));
        for other in ["v1", "%i", "/usr/local/bin", "/etc/signpost/"] {
            assert!(!unit.contains(other), "{other}: {unit}");
        }
    }
    // The key is replaced, not a comment with it.
    let own = copy.around().join("own.toml");
    let folder = copy.around().join("release-of-own");
    let _ = fs::remove_dir_all(&folder);
    let deploy = |text: &str| {
        fs::write(&own, text).unwrap();
        let mut deploy = copy.command("scripts/deploy");
        let deploy = deploy.args([TAG, "login-v2"]).arg(&folder);
        let deploy = deploy.args(&addresses[..2]);
        let deploy = deploy.arg("--config").arg(&own).env("PATH", &path);
        deploy.output().unwrap()
    };
    let twice = deploy("listen=\"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"\n");
    assert!(!twice.status.success() && !folder.exists(), "{twice:?}");
    let text = "# listen = \"127.0.0.1:1\"\nlisten=\"127.0.0.1:2\"\n[log]\n";
    let printed = output_text(&deploy(text));
    let changed = fs::read_to_string(folder.join("v2.toml")).unwrap();
    let expected = text.replace("listen=\"127.0.0.1:2\"", "listen = \"127.0.0.1:7500\"");
    assert_eq!(changed, expected, "{printed}");
    let next = "signpost versions shift v2 127.0.0.1:7500 --config";
    assert!(printed.contains(next), "{printed}");
    // Two gateways on one machine cannot have the default address of management both.
    assert_rejected(
        &copy,
        &[
            "scripts/deploy",
            TAG,
            "signpost",
            "x",
            "--listen",
            "127.0.0.1:7500",
        ],
        "needs --management",
    );
    // A changed tree is no release.
    fs::write(copy.path().join("CHANGELOG.md"), "changed").unwrap();
    assert_eq!(copy.printed("scripts/release", &[]), "");
}

/// `scripts/run` in a copy; it ends with this.
struct Run {
    copy: ProjectCopy,
    script: Child,
    port: u16,
}

impl Run {
    async fn start(name: &str) -> Self {
        let copy = ProjectCopy::prepare(env!("CARGO_TARGET_TMPDIR"), name);
        copy.copy();
        let port = first_free_port();
        let printed = copy.around().join("printed");
        let output = File::create(&printed).unwrap();
        let mut script = command(&copy, port);
        let script = script.stdout(output.try_clone().unwrap()).stderr(output);
        let mut run = Self {
            script: script.spawn().unwrap(),
            copy,
            port,
        };
        // A whole installation starts, beside other tests.
        let whole = Duration::from_secs(120);
        until_within(whole, "scripts/run to start everything", || {
            let text = fs::read_to_string(&printed).unwrap();
            assert!(run.script.try_wait().unwrap().is_none(), "{text}");
            async move { text.contains("Ctrl-C stops everything").then_some(()) }
        })
        .await;
        run
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let id = self.script.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let _ = self.script.wait();
    }
}

fn command(copy: &ProjectCopy, port: u16) -> Command {
    let mut command = copy.command("scripts/run");
    command.args(["--port", &port.to_string(), "--programs"]);
    command.arg(programs_folder());
    command
}

/// The first of as many free ports as `scripts/run` uses.
fn first_free_port() -> u16 {
    let further = 2 + 2 * u16::try_from(versions().len()).unwrap();
    loop {
        let first = free_address().port();
        let is_free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if (first + 1..=first + further).all(is_free) {
            return first;
        }
    }
}

#[tokio::test]
async fn two_copies_run_side_by_side_with_the_files_that_they_name() {
    let mut runs = [Run::start("run-one").await, Run::start("run-two").await];
    for run in &mut runs {
        // If a program has ended, the script says which, and ends, too.
        let printed = fs::read_to_string(run.copy.around().join("printed")).unwrap();
        assert!(run.script.try_wait().unwrap().is_none(), "{printed}");
    }
    let signpost = Program::Gateway.path().display().to_string();
    for Run { copy, port, .. } in &runs {
        let command = |arguments: &[&str]| {
            let config = ["--config", "data/conf/gateway.toml"];
            copy.printed(&signpost, &[arguments, &config].concat())
        };
        let begun = command(&["call", "POST", "/login"]);
        let address = format!("\"http://127.0.0.1:{port}/login?");
        assert!(begun.contains(&address), "{begun}");
        // The whole way, by the sandbox provider and either version.
        for version in ["v1", "v2"] {
            let login = ["login", "--user", "ada", "--version", version];
            command(&[&login[..], &["--output", "data/credential"]].concat());
        }
        assert!(command(&["health"]).contains("ready"));
        let listed = command(&["versions", "list"]);
        assert!(
            listed.contains(&format!("127.0.0.1:{}", port + 3)),
            "{listed}"
        );
        // Its own files may be checked and reloaded, with the paths that they show.
        assert!(command(&["reload"]).contains("data/conf/gateway.toml"));
        let shown = fs::read_to_string(copy.path().join("data/conf/gateway.toml")).unwrap();
        assert!(shown.contains("check --config data/conf/gateway.toml"));
        let again = self::command(copy, *port).output().unwrap();
        let printed = output_text(&again);
        assert!(
            printed.contains("scripts/run runs here already"),
            "{printed}"
        );
    }
    let [one, mut two] = runs;
    // The process that an upgrade has started belongs to it, too.
    let upgrade = ["upgrade", "--config", "data/conf/gateway.toml"];
    let upgraded = two.copy.printed(&signpost, &upgrade);
    assert!(upgraded.contains("serves"), "{upgraded}");
    let health = ["health", "--config", "data/conf/gateway.toml"];
    until("the new process to be ready", || async {
        let status = two.copy.run(&signpost, &health).status;
        status.success().then_some(())
    })
    .await;
    assert!(two.script.try_wait().unwrap().is_none());
    let port = two.port;
    drop(two);
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    assert!(bound.is_ok(), "a gateway still runs");
    let copy = ProjectCopy::prepare(env!("CARGO_TARGET_TMPDIR"), "run-two");
    copy.copy();
    let refused = output_text(&command(&copy, one.port).output().unwrap());
    let expected = format!("Port {} is in use by another program", one.port);
    assert!(
        refused.contains(&expected) && refused.contains("--port"),
        "{refused}"
    );
    assert!(!refused.contains("conf/"), "{refused}");
    let usage = output_text(&copy.run("scripts/run", &["--port", "x"]));
    assert!(usage.contains("usage: scripts/run"), "{usage}");
    let help = copy.printed("scripts/run", &["--help"]);
    assert!(help.contains("N + 1"), "{help}");
}
