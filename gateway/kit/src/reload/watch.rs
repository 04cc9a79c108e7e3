//! Notices that the configuration file, or a file that it names, has changed.
//!
//! The files' contents are compared once a second, with what the last attempt to reload read. So it does not matter how or when
//! a file was changed: written in place, renamed over, or reached by a symlink that was swapped, as Kubernetes does with a
//! `ConfigMap`; on any file system, and during a reload.

use std::time::Duration;

use tokio::time::sleep;

use crate::config::ReadFile;

/// Time between two looks. What is half written now will be whole then, as a rule.
const INTERVAL: Duration = Duration::from_secs(1);

/// Watches the files of one configuration.
pub(super) struct FileWatch {
    is_on: bool,
    /// As the running configuration, or the last attempt to reload, read them.
    known: Vec<ReadFile>,
    /// As the last look found them.
    last: Vec<ReadFile>,
}

impl FileWatch {
    /// Watches files that were read, if it `is_on`.
    pub(super) fn new(is_on: bool, known: Vec<ReadFile>) -> Self {
        Self {
            is_on,
            last: known.clone(),
            known,
        }
    }

    /// Waits until the contents have changed, and stayed the same for a second since: a file that is being written is left
    /// to its writer. For ever, unless watching is on.
    pub(super) async fn changed(&mut self) {
        if !self.is_on {
            return std::future::pending().await;
        }
        loop {
            sleep(INTERVAL).await;
            let files = self.last.clone();
            // A file may be on a server that does not answer.
            let look = tokio::task::spawn_blocking(move || {
                let now: Vec<_> = files.iter().map(ReadFile::reread).collect();
                now
            });
            let Ok(now) = look.await else { continue };
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
            let mut watch = watch(&file);
            change();
            timeout(LONG, watch.changed()).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_being_written_is_left_alone() {
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
        let mut watch = watch(&file);
        timeout(INTERVAL * 10, watch.changed()).await.unwrap_err();
        fs::remove_file(&file).unwrap();
        timeout(INTERVAL * 3, watch.changed()).await.unwrap();
    }
}
