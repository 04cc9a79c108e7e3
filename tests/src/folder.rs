//! A temporary folder for one stack's files.

use std::{
    env, fs,
    io::ErrorKind::NotFound,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// A new, empty folder. It is removed with its content when dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates one in the system's folder for temporary files.
    ///
    /// # Panics
    ///
    /// When it cannot be created: no test can continue then.
    #[must_use]
    pub fn create() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("signpost-test-{}-{number}", process::id()));
        // An earlier process with the same id may have been killed before it removed its folder.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("temporary files can be created");
        Self(path)
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into it, and returns its path.
    ///
    /// # Panics
    ///
    /// When the file cannot be written.
    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).expect("temporary files can be written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A program that was killed a moment ago may still be writing its last file.
        let start = Instant::now();
        while fs::remove_dir_all(&self.0).is_err_and(|error| error.kind() != NotFound)
            && start.elapsed() < REMOVE_TIMEOUT
        {
            thread::sleep(INTERVAL);
        }
        // A temporary file that remains is no reason to fail a test that passed.
    }
}

const REMOVE_TIMEOUT: Duration = Duration::from_secs(2);
const INTERVAL: Duration = Duration::from_millis(20);
