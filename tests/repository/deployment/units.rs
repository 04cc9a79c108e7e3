//! The units, read by systemd's own tool, which needs no running systemd.

use std::process::Command;

use end_to_end::{folder::Folder, program::Program, versions::versions};

use super::{output, project, read};

/// Systemd's warnings about a unit whose programs are at their build paths.
fn verify(name: &str, content: &str, started_as: &str) -> String {
    let folder = Folder::create();
    let built = Program::Gateway.path();
    let built = built.parent().unwrap().display();
    let content = ["ExecStart=", "ExecReload="]
        .iter()
        .fold(content.to_owned(), |text, key| {
            text.replace(key, &format!("{key}{built}/"))
        });
    folder.write(name, &content);
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--recursive-errors=no"])
        .arg(folder.path().join(started_as))
        .output();
    let verified = verified.expect("scripts/prerequisites test installs systemd-analyze");
    String::from_utf8_lossy(&[verified.stdout, verified.stderr].concat()).into_owned()
}

/// Each unit with the name that it is started by.
fn units() -> Vec<(&'static str, String)> {
    let versions = versions().into_iter();
    let versions = versions.map(|one| ("login@.service", format!("login@{}.service", one.name)));
    let gateway = ("signpost.service", "signpost.service".to_owned());
    versions.chain([gateway]).collect()
}

#[test]
fn systemd_understands_every_line() {
    for (name, started_as) in units() {
        let content = read(&format!("conf/systemd/{name}"));
        assert_eq!(verify(name, &content, &started_as), "", "{started_as}");
        // The tool reports a wrong key.
        let wrong = content.replace("LimitNOFILE", "LimitFiles");
        assert!(verify(name, &wrong, &started_as).contains("LimitFiles"));
    }
}

#[test]
fn a_unit_has_few_privileges() {
    for name in ["signpost.service", "login@.service"] {
        let unit = project(&format!("conf/systemd/{name}"));
        // Exposure in tenths: 2.0 of 10.
        let arguments = ["security", "--offline=true", "--threshold=20", "--no-pager"];
        output(Command::new("systemd-analyze").args(arguments).arg(unit));
    }
}

/// Issue 22, row 19: a process of the gateway's user can share its port.
#[test]
fn each_program_has_a_user_of_its_own_and_limits() {
    let users = read("conf/systemd/signpost.sysusers");
    let has = |line: &str| users.lines().any(|one| one == line);
    let group = "signpost-shared";
    assert!(has(&format!("m signpost {group}")), "{users}");
    for version in versions() {
        assert!(has(&format!("m signpost-{} {group}", version.name)));
    }
    for (name, user) in [
        ("signpost.service", "signpost"),
        ("login@.service", "signpost-%i"),
    ] {
        let unit = read(&format!("conf/systemd/{name}"));
        let value = |key: &str| {
            let values = unit.lines().filter_map(|line| line.strip_prefix(key));
            let values: Vec<_> = values.collect();
            assert_eq!(values.len(), 1, "{name}: {key}");
            values[0]
        };
        assert_eq!(value("User="), user);
        assert!(value("MemoryMax=").ends_with('G'));
        assert!(value("TasksMax=").parse::<u32>().is_ok());
        // systemd would give these folders to the user of the unit that starts last.
        assert!(!unit.contains("\nStateDirectory="));
        assert_eq!(value("ReadWritePaths="), value("WorkingDirectory="));
        assert_ne!(value("LogsDirectory="), "signpost");
    }
}
