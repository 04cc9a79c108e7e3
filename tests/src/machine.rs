//! A systemd of a test's own, process 1 of its namespaces, on a copy of a machine's files. Only root may start one.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use crate::{
    folder::Folder,
    program::{output_text, programs_folder},
    waiting::until,
};

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
mount -t overlay -o lowerdir="$LOWER",upperdir=upper,workdir=work none root
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

/// A systemd. Dropping this ends it and all that it has started.
#[derive(Debug)]
pub struct Machine {
    process: Child,
    id: String,
    _folder: Folder,
}

impl Machine {
    /// Starts it on the files below `lower`, which stay as they are; `add` writes others into a folder above them.
    /// The programs of this build are in `/opt/built`.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub async fn start(lower: &Path, add: impl FnOnce(&Path)) -> Self {
        let folder = Folder::create();
        let upper = folder.path().join("upper");
        let write = |path: &str, text: &str| {
            let path = upper.join(path);
            fs::create_dir_all(path.parent().expect("it has one"))
                .expect("a folder can be created");
            fs::write(&path, text).expect("a file can be written");
        };
        let target = "[Unit]\nDefaultDependencies=no\n";
        write("etc/systemd/system/test.target", target);
        let log = "[Service]\nStandardOutput=append:/run/%n.log\n";
        write("etc/systemd/system/service.d/log.conf", log);
        fs::create_dir_all(upper.join("opt/built")).expect("a folder can be created");
        add(&upper);
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("the folder is its own");
        let mut process = Command::new("unshare")
            .args(["--mount", "bash", "-euc", MACHINE])
            .envs([
                ("BOOT", BOOT.as_ref()),
                ("FOLDER", folder.path().as_os_str()),
            ])
            .envs([("LOWER", lower), ("PROGRAMS", &programs_folder())])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("util-linux has it");
        let mut id = String::new();
        let printed = process.stdout.take().expect("it is piped");
        let read = BufReader::new(printed).read_line(&mut id);
        read.expect("its output can be read");
        let machine = Self {
            process,
            id: id.trim().to_owned(),
            _folder: folder,
        };
        assert!(!machine.id.is_empty(), "the namespaces are not set up");
        until("systemd", || async {
            let state = output_text(&machine.try_run("/", "systemctl is-system-running"));
            state.starts_with("running").then_some(())
        })
        .await;
        machine
    }

    /// Runs lines of bash as root, in a folder.
    ///
    /// # Panics
    ///
    /// When no shell can be started.
    #[must_use]
    pub fn try_run(&self, folder: &str, script: &str) -> Output {
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
        let mut input = shell.stdin.take().expect("it is piped");
        let written = write!(input, "umask 022\ncd '{folder}'\n{script}\n");
        written.expect("the shell reads");
        drop(input);
        shell.wait_with_output().expect("it can be waited for")
    }

    /// Runs lines of bash, which must succeed, and returns what they print.
    ///
    /// # Panics
    ///
    /// When they fail.
    #[expect(clippy::must_use_candidate, reason = "it is run for its effects")]
    pub fn run(&self, folder: &str, script: &str) -> String {
        let output = self.try_run(folder, script);
        let printed = output_text(&output);
        assert!(output.status.success(), "{script}: {printed}");
        printed
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // Fails only if it was waited for already.
        let _ = self.process.wait();
    }
}
