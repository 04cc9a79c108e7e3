//! The images: their contents, and how they are started.

use std::{fs, path::Path, process::Command};

use end_to_end::{folder::Folder, program::Program, versions::versions};
use toml::Table;

use super::{output, project, read};

/// The programs with an image.
fn images() -> Vec<Program> {
    let versions = versions().into_iter().map(|one| one.program);
    versions
        .chain([Program::Gateway, Program::Provider])
        .collect()
}

/// Every file below a folder, as a path relative to `root`.
fn files(root: &Path, folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let below = entries.flat_map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(root, &path)
        } else {
            vec![path.strip_prefix(root).unwrap().display().to_string()]
        }
    });
    below.collect()
}

#[test]
fn an_image_contains_only_the_program_and_its_dependencies() {
    for program in images() {
        let folder = Folder::create();
        let image = folder.path().join("image");
        let script = project("scripts/image");
        output(
            Command::new(script)
                .arg(&image)
                .arg(program.name())
                .arg(program.path()),
        );

        let binary = format!("usr/local/bin/{program}");
        let files = files(&image, &image);
        let is_known = |file: &String| {
            [&binary, "program", "etc/ssl/certs/ca-certificates.crt"].contains(&&**file)
                || file.contains(".so.")
        };
        assert!(files.iter().all(is_known), "{files:?}");
        // The image's own loader, which searches only the image.
        let loader = files.iter().find(|file| file.contains("ld-linux")).unwrap();
        let libc = files.iter().find(|file| file.contains("libc.so")).unwrap();
        let libraries = image.join(libc);
        let load = || {
            let mut command = Command::new(image.join(loader));
            command
                .args(["--inhibit-cache", "--library-path"])
                .arg(libraries.parent().unwrap());
            command
        };
        let found = output(load().arg("--list").arg(image.join(&binary)));
        let mut found = found.lines().filter_map(|line| line.split_once(" => "));
        let image_path = image.display().to_string();
        assert!(found.clone().count() > 1, "a program needs libraries");
        assert!(
            found.all(|(_, path)| path.starts_with(&image_path)),
            "{program}: a library is missing"
        );
        let version = output(load().arg(image.join(&binary)).arg("--version"));
        assert!(version.starts_with(program.name()), "{version}");
    }
}

#[test]
fn an_image_is_built_by_the_script_and_started_without_a_shell_or_privileges() {
    let workspace: Table = read("Cargo.toml").parse().unwrap();
    let compiler = workspace["workspace"]["package"]["rust-version"]
        .as_str()
        .unwrap();
    let text = read("scripts/Dockerfile");
    let has = |line: &str| text.lines().any(|one| one == line);
    for line in [
        &format!("FROM rust:{compiler}-bookworm AS build"),
        "ARG PROFILE=dist",
        "FROM scratch AS login",
        "COPY --from=build /image /",
        "USER 10001:10001",
        "STOPSIGNAL SIGTERM",
        "    CMD [\"/program\", \"health\", \"--config\", \"/etc/signpost/config.toml\"]",
        "ENTRYPOINT [\"/program\"]",
    ] {
        assert!(has(line), "{line}");
    }
    let compose = read("docker-compose.yml");
    for program in images() {
        let target = match program {
            Program::Gateway => "gateway",
            Program::Provider => "sandbox-provider",
            _ => "login",
        };
        let stage = format!(" AS {target}");
        assert!(
            text.lines()
                .any(|line| line.starts_with("FROM ") && line.ends_with(&stage))
        );
        let build = format!("target: {target}, args: {{ PROGRAM: {program}, ");
        assert!(compose.contains(&build), "{build}");
    }
}

#[test]
fn no_secret_is_sent_to_the_builder() {
    let ignored = read(".dockerignore");
    let mut sent = ignored.lines().filter_map(|line| line.strip_prefix('!'));
    assert!(ignored.lines().any(|line| line == "*"));
    assert!(sent.all(|path| path != "data" && path != "target" && path != "conf"));
}
