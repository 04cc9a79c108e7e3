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
    let is_database = keys.iter().all(|key| key == "store");
    let is_shared = is_database && is_in_shared_folder(file);
    if !may_others_read(mode, status.uid(), is_shared) {
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

/// A group may read a file of root: no program but root's could read it otherwise. It may also read a database in a
/// folder that it shares, which gives new files to it (setgid): the programs there can have users of their own.
fn may_others_read(mode: u32, owner: u32, is_shared_database: bool) -> bool {
    let others = if owner == 0 || is_shared_database {
        0o007
    } else {
        0o077
    };
    mode & others != 0
}

fn is_in_shared_folder(file: &Path) -> bool {
    const SHARED_FOLDER: u32 = 0o2020;
    let folder = file.parent().and_then(|folder| fs::metadata(folder).ok());
    folder.is_some_and(|folder| folder.mode() & SHARED_FOLDER == SHARED_FOLDER)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

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
            assert_eq!(may_others_read(mode, owner, false), may, "{mode:o} {owner}");
        }
    }

    #[test]
    fn a_database_is_also_for_the_group_of_a_shared_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("signpost.db");
        fs::write(&file, "").unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        for (of_folder, of_file, may) in [
            (0o2770, 0o660, false),
            (0o2770, 0o664, true),
            (0o0770, 0o660, true),
            (0o0700, 0o600, false),
            (0o0755, 0o644, true),
        ] {
            set(folder.path(), of_folder);
            set(&file, of_file);
            let is_shared = is_in_shared_folder(&file);
            assert_eq!(may_others_read(of_file, 7, is_shared), may, "{of_file:o}");
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
