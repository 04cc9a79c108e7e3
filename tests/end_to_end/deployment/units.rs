//! The units, read by systemd's own tool, which needs no running systemd.

use std::{fs, process::Command};

use end_to_end::{folder::Folder, program::Program, versions::versions};

use super::{output, project, read};

/// Systemd's warnings about a unit whose programs are at their build paths.
fn verify(name: &str, content: &str, started_as: &str) -> String {
    let folder = Folder::create();
    let built = Program::Gateway.path();
    let built = built.parent().unwrap().display();
    let content = content.replace("/usr/local/bin/", &format!("{built}/"));
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

#[test]
fn the_user_of_the_units_is_created() {
    let user = read("conf/systemd/signpost.sysusers");
    let created: Vec<_> = user
        .lines()
        .filter(|line| line.starts_with("u signpost "))
        .collect();
    assert_eq!(created.len(), 1);
    for name in ["signpost.service", "login@.service"] {
        let unit = fs::read_to_string(project(&format!("conf/systemd/{name}"))).unwrap();
        assert!(unit.lines().any(|line| line == "User=signpost"), "{name}");
    }
}
