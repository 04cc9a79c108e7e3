//! Warnings about files with a secret that other users may read.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

/// Where container engines mount secrets, readable for every user of the container. It has no other users.
const CONTAINER_SECRETS: &str = "/run/secrets";

/// The files that hold secrets, each with the keys of these.
#[derive(Debug, Default)]
pub(super) struct SecretFiles(Vec<(PathBuf, Vec<String>)>);

impl SecretFiles {
    pub(super) fn add(&mut self, file: &Path, key: String) {
        match self.0.iter_mut().find(|(one, _)| one == file) {
            Some((_, keys)) => keys.push(key),
            None => self.0.push((file.to_owned(), vec![key])),
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        for (_, keys) in &mut self.0 {
            keys.retain(|one| one != key);
        }
    }

    /// A warning for each file that other users may read now. Blocks.
    pub(super) fn warnings(&self) -> Vec<String> {
        let files = self.0.iter().filter(|(_, keys)| !keys.is_empty());
        let files = files.filter(|(file, _)| !file.starts_with(CONTAINER_SECRETS));
        files
            .filter_map(|(file, keys)| warning(file, keys))
            .collect()
    }
}

fn warning(file: &Path, keys: &[String]) -> Option<String> {
    let status = fs::metadata(file).ok()?;
    let mode = status.mode() & 0o777;
    if !may_others_read(mode, status.uid()) {
        return None;
    }
    let (keys, file, user) = (keys.join(", "), file.display(), geteuid().as_raw());
    let remedy = if status.uid() == user {
        format!("run chmod 600 {file}")
    } else {
        // The program must still be able to read it.
        format!("as root, run chown {user} {file} && chmod 400 {file}")
    };
    Some(format!(
        "{keys}: other users may read {file} (mode {mode:04o}); {remedy}"
    ))
}

/// A group may read a file of root: no program but root's could read it otherwise.
const fn may_others_read(mode: u32, owner: u32) -> bool {
    let others = if owner == 0 { 0o007 } else { 0o077 };
    mode & others != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_for_its_owner_or_for_a_group_that_root_chose() {
        for (mode, owner, may) in [
            (0o600, 7, false),
            (0o400, 0, false),
            (0o640, 0, false),
            (0o640, 7, true),
            (0o644, 0, true),
            (0o604, 7, true),
        ] {
            assert_eq!(may_others_read(mode, owner), may, "{mode:o} {owner}");
        }
    }

    #[test]
    fn what_a_container_engine_mounts_is_not_warned_of() {
        let mut files = SecretFiles::default();
        files.add(Path::new("/run/secrets/master_key"), "key".to_owned());
        files.add(Path::new("/proc/version"), "other".to_owned());
        let warnings = files.warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("other: other users may read /proc/version (mode 0444)"));
        files.remove("other");
        assert_eq!(files.warnings(), Vec::<String>::new());
    }
}
