//! conf/guides/deploy.md under a systemd of the test's own, which is process 1 of its namespaces, on a copy of this
//! machine's files. Only root may do that. Issue 44, row 17.

use std::{
    fs::{self, Permissions},
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use end_to_end::{
    folder::Folder,
    namespaces,
    program::{output_text, programs_folder},
    store::StoreKind,
    versions::versions,
    waiting::until,
};

use super::{output, project, read};

/// Prints the id of the namespaces' process 1. Ends all of them with its input, also if the test is killed.
const MACHINE: &str = r#"
cd "$FOLDER"
mkdir -p cgroup work root
mount -t cgroup2 none cgroup
own=cgroup$(sed -n s/^0:://p /proc/self/cgroup)/signpost-test-$$
mkdir "$own"
(echo "$BASHPID" >"$own/cgroup.procs"; exec unshare --mount --cgroup --pid --fork --uts --ipc --net --kill-child bash -euc "$BOOT") &
machine=$!
disown
read -r || true
kill -9 $machine
for _ in $(seq 100); do grep -q "populated 0" "$own/cgroup.events" && break; sleep 0.05; done
find "$own" -depth -type d -exec rmdir {} \; || true
"#;

// Its /dev/shm is its own: where a unit has RemoveIPC, systemd deletes what the unit's user or group has there, and the
// copy may be in this machine's.
const BOOT: &str = r#"
mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work none root
read -r id _ </proc/self/stat
mount --bind "$PROGRAMS" root/opt/built
mount --rbind /dev root/dev
mount -t tmpfs none root/dev/shm
mount --rbind /sys root/sys
mount -t cgroup2 none root/sys/fs/cgroup
mount -t proc none root/proc
mount -t tmpfs none root/run
mount -t tmpfs none root/tmp
echo "$id"
cd root
pivot_root . .
umount -l .
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=test.target
"#;

/// Where the project is in the copy.
const PROJECT: &str = "srv/signpost";

/// A systemd. Dropping this ends it and all that it has started.
struct Machine {
    process: Child,
    id: String,
    _folder: Folder,
}

impl Machine {
    fn start() -> Self {
        let folder = Folder::create();
        let upper = folder.path().join("upper");
        let write = |path: &str, text: &str, mode| {
            let path = upper.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        };
        write(
            "etc/systemd/system/test.target",
            "[Unit]\nDefaultDependencies=no\n",
            0o644,
        );
        let log = "[Service]\nStandardOutput=append:/run/%n.log\n";
        write("etc/systemd/system/service.d/log.conf", log, 0o644);
        // What scripts/dist builds: small programs, which run the big ones that were built for the tests.
        write(&format!("{PROJECT}/scripts/dist"), "#!/bin/sh\n", 0o755);
        let programs = versions()
            .into_iter()
            .map(|one| format!("login-{}", one.name));
        for program in programs.chain(["signpost".to_owned()]) {
            let path = format!("{PROJECT}/target/programs/{program}");
            write(
                &path,
                &format!("#!/bin/sh\nexec /opt/built/{program} \"$@\"\n"),
                0o755,
            );
        }
        fs::create_dir_all(upper.join("opt/built")).unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        output(
            Command::new("cp")
                .arg("-r")
                .arg(project("conf"))
                .arg(upper.join(PROJECT)),
        );
        let mut process = Command::new("unshare")
            .args(["--mount", "bash", "-euc", MACHINE])
            .envs([("BOOT", BOOT), ("FOLDER", folder.path().to_str().unwrap())])
            .env("PROGRAMS", programs_folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("util-linux has it");
        let mut id = String::new();
        let printed = process.stdout.take().unwrap();
        BufReader::new(printed).read_line(&mut id).unwrap();
        let machine = Self {
            process,
            id: id.trim().to_owned(),
            _folder: folder,
        };
        assert!(!machine.id.is_empty(), "the namespaces are not set up");
        machine
    }

    /// Runs lines of bash as root, in a folder.
    fn try_run(&self, folder: &str, script: &str) -> Output {
        let mut shell = Command::new("nsenter")
            .args([
                "--target", &self.id, "--mount", "--pid", "--uts", "--ipc", "--net", "--root",
            ])
            .args([
                "--wd",
                "env",
                "-i",
                "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            ])
            .args(["bash", "-euo", "pipefail"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("util-linux has it");
        let mut input = shell.stdin.take().unwrap();
        write!(input, "umask 022\ncd '{folder}'\n{script}\n").unwrap();
        drop(input);
        shell.wait_with_output().unwrap()
    }

    fn run(&self, folder: &str, script: &str) -> String {
        let output = self.try_run(folder, script);
        let printed = output_text(&output);
        assert!(output.status.success(), "{script}: {printed}");
        printed
    }

    /// What the checks print of files that others may read, as each program's user and as root.
    fn warnings(&self) -> String {
        let mut checks = "signpost signpost gateway".to_owned();
        for version in versions() {
            let name = version.name;
            checks += &format!("\nsignpost-{name} login-{name} {name}");
        }
        let script = format!(
            "while read -r user program file; do for as in $user root; do \
             runuser -u $as -- $program check --config /etc/signpost/$file.toml; done; done <<'END'\n{checks}\nEND"
        );
        let printed = self.run("/var/lib/signpost", &script);
        let warnings = printed.lines().filter(|line| line.contains("other users"));
        warnings.collect::<Vec<_>>().join("\n")
    }

    /// Begins a login, which the login service writes to the database.
    async fn logs_in(&self) {
        let call =
            "runuser -u signpost -- signpost call --config /etc/signpost/gateway.toml POST /login";
        until("a login to begin", || async {
            let called = output_text(&self.try_run("/var/lib/signpost", call));
            called.contains("\"authorize_url\"").then_some(())
        })
        .await;
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // Fails only if it was waited for already.
        let _ = self.process.wait();
    }
}

/// The commands of the section about systemd, and the one that starts the units.
fn commands(guide: &str) -> (&str, &str) {
    let section = guide.split_once("\n## systemd\n").unwrap().1;
    let block = section.split_once("```sh\n").unwrap().1;
    let block = block.split_once("```").unwrap().0.trim_end();
    block.rsplit_once('\n').unwrap()
}

#[tokio::test]
async fn the_guide_makes_an_installation_that_serves_without_a_warning() {
    if !StoreKind::Sqlite.is_chosen("the guide's file of SQLite")
        || !namespaces::may_be_created(&["--mount"])
    {
        return;
    }
    let machine = Machine::start();
    until("systemd", || async {
        let state = output_text(&machine.try_run("/", "systemctl is-system-running"));
        state.starts_with("running").then_some(())
    })
    .await;
    let guide = read("conf/guides/deploy.md");
    let (install, start) = commands(&guide);
    let project = format!("/{PROJECT}");
    machine.run(&project, install);
    assert_eq!(machine.warnings(), "");
    machine.run(&project, start);
    machine.logs_in().await;
    // Now there is a database, of one of the programs' users.
    assert_eq!(machine.warnings(), "");
    machine.run("/", "systemctl reload signpost login@v1 login@v2");
    let logs = machine.run("/run", "cat *.log");
    assert!(logs.contains("configuration reloaded"), "{logs}");
    assert!(!logs.contains("other users"), "{logs}");

    // The master key, by the table.
    let row = guide
        .lines()
        .find(|line| line.starts_with("| master key |"))
        .unwrap();
    let command = row
        .split('`')
        .find(|code| code.starts_with("openssl "))
        .unwrap();
    machine.run("/", &command.replace("\\|", "|"));
    let modes = machine.run("/etc/signpost/secrets", "stat --format '%n %a %U:%G' *");
    assert_eq!(
        modes,
        "app.key 440 root:signpost\nmaster_key 440 root:signpost\n"
    );

    // What a warning says to do ends it, and stops no program.
    machine.run("/var/lib/signpost", "chmod 664 signpost.db*");
    let warnings = machine.warnings();
    let (_, remedy) = warnings
        .lines()
        .next()
        .unwrap()
        .rsplit_once(" run ")
        .unwrap();
    assert_eq!(remedy, "chmod 660 signpost.db*");
    machine.run("/var/lib/signpost", remedy);
    assert_eq!(machine.warnings(), "");
    machine.run("/", "systemctl restart signpost login@v1 login@v2");
    machine.logs_in().await;
}

/// A file that a shell's `>` creates may be read by others until its mode is changed.
#[test]
fn every_document_creates_secrets_with_their_mode() {
    let files = output(
        Command::new("git")
            .args([
                "grep",
                "--files-with-matches",
                "openssl rand",
                "--",
                "*.md",
                "*.toml",
                "scripts",
            ])
            .current_dir(project("")),
    );
    let mut commands = 0;
    for file in files
        .lines()
        .filter(|file| Path::new(file) != Path::new("CHANGELOG.md"))
    {
        let text = read(file);
        for (at, _) in text.match_indices("openssl rand") {
            let rest = text[at..].split(['\n', '`']).next().unwrap();
            if rest.contains('>') {
                commands += 1;
                let before = &text[at.saturating_sub(200)..at];
                assert!(before.contains("umask 077"), "{file}: {rest}");
            }
        }
    }
    assert!(commands > 3, "{commands}");
}
