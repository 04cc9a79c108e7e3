//! Warnings about files with a secret that other users may read.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;
use signpost_store::sqlite::mode_of_files;

/// Where container engines mount secrets, readable for every user of the container. It has no other users.
const CONTAINER_SECRETS: &str = "/run/secrets";

/// The files that hold secrets, each with the keys of these.
#[derive(Debug, Default)]
pub(super) struct SecretFiles {
    all: Vec<(PathBuf, Vec<String>)>,
    /// The database, if it is one of the files: its programs write it, and the files beside it.
    pub(super) database: Option<PathBuf>,
}

impl SecretFiles {
    pub(super) fn add(&mut self, file: &Path, key: String) {
        match self.all.iter_mut().find(|(known, _)| known == file) {
            Some((_, keys)) => keys.push(key),
            None => self.all.push((file.to_owned(), vec![key])),
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        for (_, keys) in &mut self.all {
            keys.retain(|other| other != key);
        }
    }

    /// A warning for each file that other users may read now. Blocks.
    pub(super) fn warnings(&self) -> Vec<String> {
        let files = self.all.iter().filter(|(_, keys)| !keys.is_empty());
        let files = files.filter(|(file, _)| !file.starts_with(CONTAINER_SECRETS));
        files
            .filter_map(|(file, keys)| warning(file, keys, self.database.as_ref() == Some(file)))
            .collect()
    }
}

fn warning(file: &Path, keys: &[String], is_database: bool) -> Option<String> {
    let status = fs::metadata(file).ok()?;
    let (mode, owner, user) = (status.mode() & 0o777, status.uid(), geteuid());
    let may = if is_database {
        mode_of_files(file)
    } else {
        0o600
    };
    if !may_others_read(mode, owner, may) {
        return None;
    }
    let (keys, file) = (keys.join(", "), file.display());
    let is_own = owner == user.as_raw() && !user.is_root();
    let run = if is_own { "run" } else { "as root, run" };
    // The programs must still be able to use it, each with a user of its own.
    let remedy = match is_database {
        true if is_own || may != 0o600 => format!("{run} chmod {may:o} {file}*"),
        true => "its folder must belong to a group of all programs that use it, with mode 2770: \
                 conf/guides/deploy.md, systemd"
            .to_owned(),
        false if is_own => format!("{run} chmod 600 {file}"),
        false => format!(
            "{run} chown root:GROUP {file} && chmod 440 {file}, with a group of the programs that read it"
        ),
    };
    Some(format!(
        "{keys}: other users may read {file} (mode {mode:04o}); {remedy}"
    ))
}

/// Whether a file is open to users that mode `may` excludes. A group may read any file of root: otherwise only programs
/// of root could read it.
fn may_others_read(mode: u32, owner: u32, may: u32) -> bool {
    let others = if owner == 0 { 0o007 } else { 0o077 & !may };
    mode & others != 0
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
            assert_eq!(may_others_read(mode, owner, 0o600), may, "{mode:o} {owner}");
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
            let allowed = mode_of_files(&file);
            assert_eq!(may_others_read(of_file, 7, allowed), may, "{of_file:o}");
        }
    }

    /// Issue 44, row 17.
    #[test]
    fn a_remedy_keeps_the_programs_running() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("signpost.db");
        fs::write(&file, "").unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let remedy = |is_database| {
            let warning = warning(&file, &["store".to_owned()], is_database).unwrap();
            warning.split_once("; ").unwrap().1.to_owned()
        };
        set(&file, 0o644);
        let others = remedy(true);
        let may_be_read = remedy(false);
        if geteuid().is_root() {
            // Who runs the check as root need not run the programs as root.
            assert!(others.starts_with("its folder must belong to a group"));
            assert!(may_be_read.starts_with("as root, run chown root:GROUP "));
        } else {
            assert_eq!(others, format!("run chmod 600 {}*", file.display()));
            assert_eq!(may_be_read, format!("run chmod 600 {}", file.display()));
        }
        set(folder.path(), 0o2770);
        set(&file, 0o664);
        let shared = format!("run chmod 660 {}*", file.display());
        assert!(remedy(true).ends_with(&shared), "{}", remedy(true));
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
