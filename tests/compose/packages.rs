//! The files of a release, as scripts/package makes them with the programs of this build: installed, upgraded and removed on a
//! clean Debian, unpacked where there is no compiler, loaded into a container engine.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use end_to_end::{
    documents::root,
    folder::Folder,
    machine::Machine,
    namespaces,
    program::{output_text, programs_folder},
    project_copy::ProjectCopy,
    waiting::until,
};
use serde_json::Value;

const NUMBER: &str = env!("CARGO_PKG_VERSION");
const NEXT: &str = "999.0.0";

/// Where the machine has the files of a release.
const FILES: &str = "srv/release";

/// What another number's packages change in each file of configuration.
const NEWS: &str = "# This line is new.";

/// Both releases, each in a folder.
fn releases(folder: &Path) -> [PathBuf; 2] {
    let copy = ProjectCopy::prepare(env!("CARGO_TARGET_TMPDIR"), "packages");
    copy.copy();
    copy.commit_first();
    // As the profile `dist` does; it saves half the time.
    let strip = format!(
        "mkdir {to}; for program in signpost login-all sandbox-provider $(scripts/versions | sed s/^/login-/); do \
         strip -o {to}/$program {from}/$program; done",
        from = programs_folder().display(),
        to = folder.join("programs").display(),
    );
    copy.succeed("bash", &["-ec", &strip]);
    let [first, again] = thread::scope(|scope| {
        let packing = ["first", "again"].map(|name| scope.spawn(|| pack(&copy, folder, name)));
        packing.map(|packing| packing.join().unwrap())
    });
    let sums = |release: &Path| fs::read_to_string(release.join("SHA256SUMS")).unwrap();
    assert_eq!(sums(&first), sums(&again), "they differ");
    let change = format!(
        "sed -i '0,/^version = .*/s//version = \"{NEXT}\"/' Cargo.toml; cargo update --workspace --quiet --offline; \
         echo '{NEWS}' | tee -a conf/gateway.toml >>conf/v1.toml"
    );
    copy.succeed("bash", &["-ec", &change]);
    copy.commit("Raise the number");
    [first, pack(&copy, folder, "next")]
}

/// Calls the script in a copy, with the programs of this build.
fn pack(copy: &ProjectCopy, folder: &Path, name: &str) -> PathBuf {
    let target = folder.join(name);
    let mut package = copy.command("scripts/package");
    let package = package.arg("--programs").arg(folder.join("programs"));
    let package = package.env("CARGO_TARGET_DIR", &target).env("QUICK", "1");
    let output = package.output().unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    target.join("packages")
}

/// A Debian of its essential packages, with those that the releases' packages depend on.
fn debian(folder: &Path) -> PathBuf {
    let (archive, clean) = (folder.join("debian.tar"), folder.join("debian"));
    fs::create_dir(&clean).unwrap();
    let mut make = Command::new(root().join("scripts/debian-root"));
    run(make.arg(&archive).args(["systemd", "ca-certificates"]));
    let mut unpack = Command::new("tar");
    run(unpack.arg("-xf").arg(archive).arg("-C").arg(&clean));
    // Without the users of this machine.
    for file in ["passwd", "group"] {
        let own = format!("usr/share/base-passwd/{file}.master");
        fs::copy(clean.join(own), clean.join("etc").join(file)).unwrap();
    }
    clean
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let printed = output_text(&output);
    assert!(output.status.success(), "{command:?}: {printed}");
    printed
}

/// Waits until the gateway and a version answer `/readyz`.
async fn are_ready(machine: &Machine) {
    let ask = "for port in 8081 7001; do exec 3<>/dev/tcp/127.0.0.1/$port; \
         printf 'GET /readyz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3; head -n 1 <&3; done";
    until("both programs to be ready", || async {
        let printed = output_text(&machine.try_run("/", ask));
        (printed.matches(" 200 ").count() == 2).then_some(())
    })
    .await;
}

/// The process ids of the gateway and of version 1.
fn processes(machine: &Machine) -> Vec<u32> {
    let printed = machine.run("/", "systemctl show --value -p MainPID signpost login@v1");
    let ids = printed.split_whitespace().map(|id| id.parse().unwrap());
    ids.collect()
}

#[tokio::test]
async fn a_release_is_installed_upgraded_removed_and_loaded() {
    if !namespaces::may_be_created(&["--mount"]) {
        return;
    }
    let folder = Folder::create();
    let [first, next] = releases(folder.path());
    let machine = Machine::start(&debian(folder.path()), |upper| {
        for (release, name) in [(&first, "first"), (&next, "next")] {
            fs::create_dir_all(upper.join(FILES)).unwrap();
            let mut copy = Command::new("cp");
            run(copy
                .arg("-r")
                .arg(release)
                .arg(upper.join(FILES).join(name)));
        }
        // It would wait for a network that is not there.
        let unit = "etc/systemd/system/systemd-networkd-wait-online.service";
        symlink("/dev/null", upper.join(unit)).unwrap();
    })
    .await;
    the_sums_are_right_and_the_archive_runs_without_a_compiler(&machine);
    packages_are_installed(&machine).await;
    packages_are_upgraded(&machine).await;
    packages_are_removed(&machine);
    images_are_loaded(&first);
}

fn the_sums_are_right_and_the_archive_runs_without_a_compiler(machine: &Machine) {
    let start = format!(
        "(cd /{FILES}/first; sha256sum --check SHA256SUMS); [ -z \"$(command -v cc cargo git)\" ]; \
         tar -xf /{FILES}/first/signpost-{NUMBER}-linux-*.tar.gz; cd signpost-*; \
         scripts/run --port 9000 >printed 2>&1 & run=$!; \
         until grep 'Ctrl-C stops everything' printed; do kill -0 $run; sleep 0.1; done; \
         bin/signpost login --user ada --config data/conf/gateway.toml --output data/credential; \
         kill $run; wait $run || true"
    );
    machine.run("/root", &start);
}

async fn packages_are_installed(machine: &Machine) {
    let install = "dpkg --install ./*.deb; cd /usr/share; ls man/man1/signpost.1.gz bash-completion/completions/login-v1";
    machine.run(&format!("/{FILES}/first"), install);
    let shown = machine.run(
        "/",
        "id -nG signpost; id -nG signpost-v1; stat -c '%a %U:%G' /var/lib/signpost /etc/signpost/secrets/app.key; \
         systemctl is-active signpost || true; grep -v '^#' /etc/signpost/gateway.toml | grep 'sqlite\\|file:'",
    );
    let expected = "signpost signpost-shared\nsignpost-v1 signpost-shared\n2770 root:signpost-shared\n\
         440 root:signpost\ninactive\nstore = \"sqlite:signpost.db\"\nkey = \"file:/etc/signpost/secrets/app.key\"\n";
    assert_eq!(shown, expected);
    let change = "sed -i 's/^# listen = \"127.0.0.1:8081\"/listen = \"127.0.0.1:8081\"/' gateway.toml; \
         systemctl enable --now signpost login@v1";
    machine.run("/etc/signpost", change);
    are_ready(machine).await;
}

async fn packages_are_upgraded(machine: &Machine) {
    let before = processes(machine);
    let install = "dpkg --install --force-confdef --force-confold ./*.deb";
    let printed = machine.run(&format!("/{FILES}/next"), install);
    let query = "dpkg-query --show -f '${Version} ' signpost signpost-login";
    assert_eq!(machine.run("/", query), format!("{NEXT} {NEXT} "));
    assert!(printed.contains(" serves, signpost "), "{printed}");
    // The gateway has handed over, the version was restarted: other processes, the same units.
    until("other processes", || async {
        let after = processes(machine);
        let differ = before.iter().zip(&after).all(|(one, other)| one != other);
        differ.then_some(())
    })
    .await;
    are_ready(machine).await;
    let read = |file: &str| machine.run("/etc/signpost", &format!("cat {file}"));
    let (kept, replaced) = (read("gateway.toml"), read("v1.toml"));
    assert!(kept.contains("\nlisten = \"127.0.0.1:8081\"") && !kept.contains(NEWS));
    assert!(read("gateway.toml.dpkg-dist").contains(NEWS) && replaced.contains(NEWS));
}

fn packages_are_removed(machine: &Machine) {
    let rest = "ls -d /usr/bin/signpost /usr/bin/login-v1 /etc/signpost/gateway.toml /etc/signpost/secrets/app.key \
         /etc/systemd/system/multi-user.target.wants/{signpost,login}* /var/lib/signpost/signpost.db 2>/dev/null || true; \
         systemctl is-active signpost login@v1 || true";
    machine.run("/", "dpkg --remove signpost signpost-login");
    let left = "/etc/signpost/gateway.toml\n/etc/signpost/secrets/app.key\n/var/lib/signpost/signpost.db\ninactive\ninactive\n";
    assert_eq!(machine.run("/", rest), left);
    machine.run("/", "dpkg --purge signpost signpost-login");
    // The store stays, and its users.
    let left = "/var/lib/signpost/signpost.db\ninactive\ninactive\n";
    assert_eq!(machine.run("/", rest), left);
    machine.run("/", "id signpost; [ ! -e /etc/signpost ]");
}

/// The archive is started as the image that scripts/Dockerfile makes, which the stack runs.
fn images_are_loaded(release: &Path) {
    let docker = |arguments: &[&str]| run(Command::new("docker").args(arguments));
    let images = env::var("SIGNPOST_IMAGES").expect("scripts/compose-test runs this");
    for (program, service) in [("signpost", "gateway"), ("login-v1", "login-v1")] {
        let name = format!("signpost-{service}:{NUMBER}");
        let archive = release.join(format!("signpost-{service}-{NUMBER}.oci.tar"));
        docker(&["load", "--input", archive.to_str().unwrap()]);
        let version = docker(&["run", "--rm", &name, "--version"]);
        let expected = format!("{program} {NUMBER}");
        assert!(version.starts_with(&expected), "{version}");
        let described = |image: &str| {
            let printed = docker(&["image", "inspect", "--format", "{{json .Config}}", image]);
            let config: Value = serde_json::from_str(&printed).unwrap();
            ["User", "Entrypoint", "Cmd", "Healthcheck", "StopSignal"]
                .map(|key| config[key].clone())
        };
        assert_eq!(described(&name), described(&format!("{images}-{service}")));
        docker(&["image", "rm", &name]);
    }
}
