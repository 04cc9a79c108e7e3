//! Asks git which commit is built.

#![allow(clippy::print_stdout, reason = "Cargo reads it")]

use std::{
    env,
    ffi::OsStr,
    path::{Component, Path},
    process::Command,
};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SIGNPOST_RELEASE");
    let profile = profile();
    let release = env::var("SIGNPOST_RELEASE").ok();
    let release = release.filter(|release| !release.is_empty());
    let release = release.unwrap_or_else(|| match commit() {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    });
    let text = match release.strip_suffix(')') {
        Some(with_commit) => format!("{with_commit}, {profile})"),
        None => format!("{release} ({profile})"),
    };
    println!("cargo::rustc-env=SIGNPOST_RELEASE_TEXT={text}");
}

/// The name of the profile, from the folder's name. Cargo's `PROFILE` names the profile that it inherits from.
fn profile() -> String {
    let folder = env::var_os("OUT_DIR").unwrap_or_default();
    let mut folders = Path::new(&folder).components().rev();
    let is_build = |one: &Component<'_>| one.as_os_str() == OsStr::new("build");
    let profile = folders.find(is_build).and_then(|_| folders.next());
    let profile = profile.and_then(|one| one.as_os_str().to_str());
    profile.unwrap_or("unknown profile").to_owned()
}

/// The commit, or what was changed after it: Cargo does not run this again for each change of the sources. `None` outside a
/// checkout of this project.
fn commit() -> Option<String> {
    // The log has a line for each commit and each change of the branch; the others are for checkouts without it.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["logs/HEAD", "HEAD"].into_iter().chain(branch.as_deref()) {
        let path = git(&["rev-parse", "--git-path", name]);
        // Cargo would build a missing file's crate each time.
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    // Sources without git, below another project's checkout, are not of its commit.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    Some(format!("{commit} or later"))
}

/// What git prints; `None` if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| printed.trim().to_owned())
}
