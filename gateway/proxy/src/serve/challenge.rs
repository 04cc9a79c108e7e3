//! Serves ACME challenges by http (RFC 8555 section 8.3), on a listener with `acme_webroot`. `conf/guides/edge.md`.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::fs::{Mode, OFlags, open};
use signpost_kit::log::once_a_minute::OnceAMinute;
use tokio::{sync::Semaphore, time::timeout};

use crate::request::rejection::Rejection;

/// Where a certificate authority asks for challenges, and certbot's webroot way writes them.
const FOLDER: &str = "/.well-known/acme-challenge/";

/// Limit of a token's length. It has 128 bits at least, and 43 characters at authorities of today.
const MAX_TOKEN: usize = 128;

/// Limit of concurrent reads, each on a thread of its own.
const MAX_READS: usize = 4;

/// Timeout of a read, with the wait for others: the folder may be on a server that does not answer.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Limit of a file's size, in bytes. A key authorization has some 90.
const MAX_FILE: u64 = 4096;

/// What a request asks for below the folder of challenges; `None` if it is elsewhere.
#[must_use]
pub(super) fn match_challenge(path: &str) -> Option<&str> {
    path.strip_prefix(FOLDER)
}

/// What bounds the reads of challenges.
#[derive(Debug)]
pub(crate) struct ChallengeReads {
    permits: Arc<Semaphore>,
    failures: OnceAMinute,
}

impl Default for ChallengeReads {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(MAX_READS)),
            failures: OnceAMinute::new(),
        }
    }
}

impl ChallengeReads {
    /// The content of a challenge's file.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none. If it cannot be served, that is logged once a minute.
    pub(super) async fn read(&self, webroot: &Path, name: &str) -> Result<Vec<u8>, Rejection> {
        let file = challenge_file(name).ok_or(Rejection::NotFound)?;
        let file = webroot.join(file);
        let content = timeout(READ_TIMEOUT, self.read_file(file.clone())).await;
        let content = content.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        content.map_err(|cause| {
            // Strangers ask for files that do not exist, at any rate they like: the log has only what an operator can
            // repair.
            if cause.kind() != io::ErrorKind::NotFound
                && let Some(times) = self.failures.count(Instant::now())
            {
                let file = file.display();
                tracing::warn!(times, %file, %cause, "a file of acme_webroot cannot be served");
            }
            // The same for every cause: a stranger learns nothing about the folder.
            Rejection::NotFound
        })
    }

    async fn read_file(&self, file: PathBuf) -> io::Result<Vec<u8>> {
        let permits = Arc::clone(&self.permits);
        let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
        let reading = tokio::task::spawn_blocking(move || {
            // The read holds it, not the request, which may end earlier.
            let _permit = permit;
            read_small(&file)
        });
        reading.await?
    }
}

/// The path of a challenge's file below the webroot; `None` if the name is no token, which is in base64url. So it leads
/// nowhere else.
fn challenge_file(name: &str) -> Option<String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_valid = (1..=MAX_TOKEN).contains(&name.len()) && name.bytes().all(is_token);
    is_valid.then(|| format!("{}{name}", FOLDER.trim_start_matches('/')))
}

/// Reads a small regular file. A link is not followed.
fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    // Without NONBLOCK, a pipe would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    // Asked of the open file, not of the path: the path may lead to another file by now.
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > MAX_FILE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut content = Vec::new();
    // Limited once more: the file may have grown since its length was read.
    file.take(MAX_FILE).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tokens_name_files() {
        let file = |path: &str| match_challenge(path).map(challenge_file);
        let found = file("/.well-known/acme-challenge/aZ09_-");
        assert_eq!(
            found,
            Some(Some(".well-known/acme-challenge/aZ09_-".to_owned()))
        );
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "a.b",
            "%61",
            "a ",
            "\u{e9}",
            &"a".repeat(129),
        ] {
            let found = file(&format!("/.well-known/acme-challenge/{name}"));
            assert_eq!(found, Some(None), "{name}");
        }
        for path in [
            "/",
            "/.well-known/",
            "/.well-known/acme-challenge",
            "//.well-known/acme-challenge/a",
        ] {
            assert_eq!(file(path), None, "{path}");
        }
    }
}
