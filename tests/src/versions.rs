//! The versions in `backends/`. What is checked for each of them holds for a new one at once.

use std::fs;

use crate::{
    documents::root,
    examples::{example, keys},
    program::Program,
};

/// A version of the login service, with a project of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// For example `v2`.
    pub name: &'static str,
    /// For example 2.
    pub number: u32,
    /// The program that serves it.
    pub program: Program,
    /// The port in its example.
    pub port: String,
}

/// All versions, by number.
///
/// # Panics
///
/// When `backends/` cannot be read, or a version has no example in `conf/`.
#[must_use]
pub fn versions() -> Vec<Version> {
    let folders = fs::read_dir(root().join("backends")).expect("there are backends");
    let names = folders.map(|folder| {
        let name = folder.expect("a folder can be read").file_name();
        name.into_string().expect("names are UTF-8")
    });
    let mut versions: Vec<_> = names.filter_map(|name| Version::in_folder(&name)).collect();
    versions.sort_by_key(|version| version.number);
    versions
}

impl Version {
    fn in_folder(name: &str) -> Option<Self> {
        let number = name.strip_prefix('v')?.parse().ok()?;
        // As long as the test program: a few bytes for each version.
        let name: &'static str = name.to_owned().leak();
        let listen = &keys(&example(&format!("{name}.toml")))["listen"];
        let port = listen.trim_matches('"').rsplit(':').next();
        Some(Self {
            name,
            number,
            program: match number {
                1 => Program::V1,
                2 => Program::V2,
                _ => Program::Further(format!("login-{name}").leak()),
            },
            port: port.unwrap_or_default().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_of_their_numbers() {
        let versions = versions();
        assert!(versions.is_sorted_by(|one, next| one.number < next.number));
        let first = &versions[0];
        assert_eq!((first.name, &*first.port), ("v1", "7001"));
        assert_eq!(first.program, Program::V1);
    }
}
