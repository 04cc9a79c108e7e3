//! Detects changes of the configuration file and of the files that it names.
//!
//! Once a second the contents are compared with what the last attempt to reload read. So every kind of change is
//! detected: a write in place, a rename, a swapped symlink (as with a Kubernetes `ConfigMap`), on any file system, also
//! during a reload.

use std::time::Duration;

use tokio::time::sleep;

use crate::config::ReadFile;

/// Time between two checks. A file that is half written is usually complete at the next one.
const INTERVAL: Duration = Duration::from_secs(1);

/// Watches the files of one configuration.
pub(super) struct FileWatch {
    is_on: bool,
    /// The contents that the running configuration, or the last attempt to reload, has read.
    known: Vec<ReadFile>,
    /// The contents at the last check.
    last: Vec<ReadFile>,
}

impl FileWatch {
    /// Watches the files that were read, if `is_on`.
    pub(super) fn new(is_on: bool, known: Vec<ReadFile>) -> Self {
        Self {
            is_on,
            last: known.clone(),
            known,
        }
    }

    /// Waits until the contents have changed, and then stayed the same for a second: a file may still be being written.
    /// Never returns if watching is off.
    pub(super) async fn changed(&mut self) {
        if !self.is_on {
            return std::future::pending().await;
        }
        loop {
            sleep(INTERVAL).await;
            let files = self.last.clone();
            // A file may be on a server that does not answer.
            let check = tokio::task::spawn_blocking(move || {
                let now: Vec<_> = files.iter().map(ReadFile::reread).collect();
                now
            });
            let Ok(now) = check.await else { continue };
            let is_settled = now == self.last;
            self.last = now;
            if is_settled && self.last != self.known {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::Path};

    use tokio::time::timeout;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn watch(file: &Path) -> FileWatch {
        let content = fs::read(file).unwrap();
        FileWatch::new(true, vec![ReadFile::new(file, Some(&content))])
    }

    #[tokio::test]
    async fn a_write_a_rename_and_a_swapped_link_are_detected() {
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
            let mut watch = watch(&file);
            change();
            timeout(LONG, watch.changed()).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_still_being_written_is_not_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        fs::write(&file, "one").unwrap();
        let mut watch = watch(&file);
        let writing = async {
            for length in 1..10 {
                sleep(INTERVAL * 9 / 10).await;
                fs::write(&file, "x".repeat(length)).unwrap();
            }
        };
        tokio::select! {
            biased;
            () = watch.changed() => panic!("the file is still being written"),
            () = writing => {}
        }
        timeout(INTERVAL * 3, watch.changed()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_change_nothing_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        fs::write(&file, "one").unwrap();
        let mut watch = watch(&file);
        timeout(INTERVAL * 10, watch.changed()).await.unwrap_err();
        fs::remove_file(&file).unwrap();
        timeout(INTERVAL * 3, watch.changed()).await.unwrap();
    }
}
