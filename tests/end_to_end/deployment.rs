//! What installs Signpost: docker-compose.yml and what it uses, the images, systemd's units.
//!
//! No container engine and no systemd run here. Compose's own parser reads the file, the images' contents are made by the
//! script that makes them in a container, and the programs run with the very configuration that containers get.

mod compose;
mod front;
mod images;
mod installation;
mod places;
mod units;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A path in the project.
fn project(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path)
}

/// A file of the project.
fn read(path: &str) -> String {
    let path = project(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a command printed; it must succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error}; scripts/prerequisites test installs it")
    });
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    assert!(output.status.success(), "{command:?}: {printed}");
    printed
}
