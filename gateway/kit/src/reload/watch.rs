//! Notices that the configuration file, or a file that it names, has changed.
//!
//! The files' contents are compared once a second. So it does not matter how a file was changed: written in place, renamed
//! over, or reached by a symlink that was swapped, as Kubernetes does with a `ConfigMap`; on any file system.

use std::{
    collections::hash_map::DefaultHasher,
    fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::sleep;

use crate::config::Settings;

/// Time between two looks. What is half written now will be whole then, as a rule.
const INTERVAL: Duration = Duration::from_secs(1);
/// Files that are larger are not read whole, bytes.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Watches the files of one configuration.
pub(super) struct FileWatch {
    files: Vec<PathBuf>,
    is_on: bool,
    /// The contents that the running configuration, or the last attempt to reload, was made of.
    known: u64,
}

impl FileWatch {
    pub(super) fn new(file: &Path, settings: &Settings) -> Self {
        let mut watch = Self {
            files: Vec::new(),
            is_on: false,
            known: 0,
        };
        watch.follow(file, settings);
        watch
    }

    /// From now on, changes are those from the present contents.
    pub(super) fn follow(&mut self, file: &Path, settings: &Settings) {
        self.files = vec![file.to_owned()];
        self.files.extend_from_slice(settings.files());
        self.is_on = settings.is_watched();
        if self.is_on {
            self.known = fingerprint(&self.files);
        }
    }

    /// Waits until the contents have changed, and stayed the same for a second since: a file that is being written is left
    /// to its writer. For ever, unless watching is on.
    pub(super) async fn changed(&self) {
        if !self.is_on {
            return std::future::pending().await;
        }
        let mut last = self.known;
        loop {
            sleep(INTERVAL).await;
            let now = fingerprint(&self.files);
            if now == last && now != self.known {
                return;
            }
            last = now;
        }
    }
}

/// A number that is another one as soon as a file's content is.
fn fingerprint(files: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        content(file).hash(&mut hasher);
    }
    hasher.finish()
}

/// `None` if it cannot be read: then it changes as soon as it can.
fn content(file: &Path) -> Option<Vec<u8>> {
    let length = fs::metadata(file).ok()?.len();
    if length > MAX_BYTES {
        return Some(length.to_be_bytes().to_vec());
    }
    fs::read(file).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tokio::time::timeout;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn watch(file: &Path) -> FileWatch {
        FileWatch {
            files: vec![file.to_owned()],
            is_on: true,
            known: fingerprint(&[file.to_owned()]),
        }
    }

    #[tokio::test]
    async fn it_sees_a_write_a_rename_and_a_swapped_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("..1")).unwrap();
        fs::create_dir(path("..2")).unwrap();
        fs::write(path("..1/a.toml"), "one").unwrap();
        fs::write(path("..2/a.toml"), "two").unwrap();
        symlink("..1", path("..data")).unwrap();
        symlink("..data/a.toml", path("a.toml")).unwrap();
        let file = path("a.toml");
        let changes: [&dyn Fn(); 3] = [
            &|| fs::write(path("..1/a.toml"), "one more").unwrap(),
            &|| {
                fs::write(path("new"), "renamed").unwrap();
                fs::rename(path("new"), path("..1/a.toml")).unwrap();
            },
            &|| {
                symlink("..2", path("..new")).unwrap();
                fs::rename(path("..new"), path("..data")).unwrap();
            },
        ];
        for change in changes {
            let watch = watch(&file);
            change();
            timeout(LONG, watch.changed()).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_being_written_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        fs::write(&file, "one").unwrap();
        let watch = watch(&file);
        let writing = async {
            for length in 1..10 {
                sleep(INTERVAL * 9 / 10).await;
                fs::write(&file, "x".repeat(length)).unwrap();
            }
        };
        tokio::select! {
            biased;
            () = watch.changed() => panic!("the file is not whole yet"),
            () = writing => {}
        }
        timeout(INTERVAL * 3, watch.changed()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_change_it_waits() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        fs::write(&file, "one").unwrap();
        let watch = watch(&file);
        timeout(INTERVAL * 10, watch.changed()).await.unwrap_err();
        fs::remove_file(&file).unwrap();
        timeout(INTERVAL * 3, watch.changed()).await.unwrap();
    }
}
