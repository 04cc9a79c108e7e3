//! conf/guides/deploy.md under a systemd of the test's own, which is process 1 of its namespaces, on a copy of this
//! machine's files. Only root may do that. Issue 44, row 17.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};

use end_to_end::{
    machine::Machine, namespaces, program::output_text, store::StoreKind, versions::versions,
    waiting::until,
};

use super::{output, project, read};

/// Where the project is in the copy.
const PROJECT: &str = "srv/signpost";

/// A copy of this machine's files, with the project.
async fn start() -> Machine {
    Machine::start(Path::new("/"), |upper| {
        let write = |path: &str, text: &str| {
            let path = upper.join(PROJECT).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        };
        // What scripts/dist builds: small programs, which run the big ones that were built for the tests.
        write("scripts/dist", "#!/bin/sh\n");
        let programs = versions()
            .into_iter()
            .map(|one| format!("login-{}", one.name));
        for program in programs.chain(["signpost".to_owned()]) {
            let text = format!("#!/bin/sh\nexec /opt/built/{program} \"$@\"\n");
            write(&format!("target/programs/{program}"), &text);
        }
        output(
            Command::new("cp")
                .arg("-r")
                .arg(project("conf"))
                .arg(upper.join(PROJECT)),
        );
    })
    .await
}

/// What the checks print of files that others may read, as each program's user and as root.
fn warnings(machine: &Machine) -> String {
    let mut checks = "signpost signpost gateway".to_owned();
    for version in versions() {
        let name = version.name;
        checks += &format!("\nsignpost-{name} login-{name} {name}");
    }
    let script = format!(
        "while read -r user program file; do for as in $user root; do \
         runuser -u $as -- $program check --config /etc/signpost/$file.toml; done; done <<'END'\n{checks}\nEND"
    );
    let printed = machine.run("/var/lib/signpost", &script);
    let warnings = printed.lines().filter(|line| line.contains("other users"));
    warnings.collect::<Vec<_>>().join("\n")
}

/// Begins a login, which the login service writes to the database.
async fn logs_in(machine: &Machine) {
    let call =
        "runuser -u signpost -- signpost call --config /etc/signpost/gateway.toml POST /login";
    until("a login to begin", || async {
        let called = output_text(&machine.try_run("/var/lib/signpost", call));
        called.contains("\"authorize_url\"").then_some(())
    })
    .await;
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
    let machine = start().await;
    let guide = read("conf/guides/deploy.md");
    let (install, start) = commands(&guide);
    let project = format!("/{PROJECT}");
    machine.run(&project, install);
    assert_eq!(warnings(&machine), "");
    machine.run(&project, start);
    logs_in(&machine).await;
    // Now there is a database, of one of the programs' users.
    assert_eq!(warnings(&machine), "");
    machine.run("/", "systemctl reload signpost login@v1 login@v2");
    let logs = until("a reload in the logs", || async {
        let logs = machine.run("/run", "cat *.log");
        logs.contains("configuration reloaded").then_some(logs)
    })
    .await;
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
    let printed = warnings(&machine);
    let (_, remedy) = printed
        .lines()
        .next()
        .unwrap()
        .rsplit_once(" run ")
        .unwrap();
    assert_eq!(remedy, "chmod 660 signpost.db*");
    machine.run("/var/lib/signpost", remedy);
    assert_eq!(warnings(&machine), "");
    machine.run("/", "systemctl restart signpost login@v1 login@v2");
    logs_in(&machine).await;
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
