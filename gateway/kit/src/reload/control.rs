//! The socket by which the `reload` command reaches the running program.
//!
//! It is a Unix socket in Linux's abstract namespace: it needs no folder, and leaves no file behind. Its name is made of the
//! configuration file's path, so that the command finds the program by the same `--config`. The program takes commands
//! of its own user and of root only, by the kernel's word (`SO_PEERCRED`).

use std::{
    io::{self, Read, Write},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener as StdListener, UnixStream as StdStream},
    },
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use rustix::{net::sockopt::socket_peercred, process::geteuid};
use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    sync::{Semaphore, mpsc},
    time::timeout,
};

/// A command is read, and an answer written, within this time.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The command waits this long for the answer: names of backends may have to be resolved.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest answer that the command prints, in bytes.
const MAX_ANSWER: usize = 1024 * 1024;
/// After an accept that failed, the socket pauses.
const PAUSE: Duration = Duration::from_millis(100);
/// Time between two tries to take the socket over from a program that is still ending.
const BIND_INTERVAL: Duration = Duration::from_secs(2);
/// Connections whose command is being read.
const MAX_READING: usize = 8;
/// Commands that wait while another is carried out; more wait in the socket's backlog.
const WAITING: usize = 1;

/// What the program is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reload, and say what changed.
    Reload,
    /// Say what a reload would change.
    Diff,
    /// Say where `/readyz` is answered.
    HealthAddress,
}

impl Verb {
    const fn byte(self) -> u8 {
        match self {
            Self::Reload => b'r',
            Self::Diff => b'd',
            Self::HealthAddress => b'h',
        }
    }

    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            b'r' => Some(Self::Reload),
            b'd' => Some(Self::Diff),
            b'h' => Some(Self::HealthAddress),
            _ => None,
        }
    }
}

/// A command that waits for its answer.
pub(super) struct Command {
    verb: Verb,
    stream: UnixStream,
}

/// What the running program said to a command.
#[derive(Debug)]
pub struct Answer {
    /// Whether it did what it was asked.
    pub is_good: bool,
    /// For a person.
    pub text: String,
}

/// The commands that are given to the program that runs with `file`. Only within a runtime.
pub(super) fn commands(file: &Path) -> mpsc::Receiver<Command> {
    let (sender, commands) = mpsc::channel(WAITING);
    let (file, first) = (file.to_owned(), listen(file));
    tokio::spawn(async move {
        let listener = match first {
            Ok(listener) => listener,
            Err(cause) => listen_later(&file, &cause).await,
        };
        let reading = Arc::new(Semaphore::new(MAX_READING));
        while !sender.is_closed() {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            // Of other users not even a byte is read; they cost no more than the accept.
            let (true, Ok(permit)) = (is_ours(&stream), Arc::clone(&reading).acquire_owned().await)
            else {
                continue;
            };
            let sender = sender.clone();
            tokio::spawn(async move {
                if let Some(command) = read(stream).await {
                    drop(sender.send(command).await);
                }
                drop(permit);
            });
        }
    });
    commands
}

/// The socket, once the process that has it has ended.
async fn listen_later(file: &Path, cause: &io::Error) -> UnixListener {
    tracing::warn!(%cause, "the reload command is not available yet ({cause}); SIGHUP reloads");
    loop {
        tokio::time::sleep(BIND_INTERVAL).await;
        if let Ok(listener) = listen(file) {
            tracing::info!("the reload command is available");
            return listener;
        }
    }
}

pub(super) fn listen(file: &Path) -> io::Result<UnixListener> {
    let listener = StdListener::bind_addr(&address(file)?)?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

pub(super) fn connect(file: &Path) -> io::Result<StdStream> {
    StdStream::connect_addr(&address(file)?)
}

/// Whether the other end is of this process' user, or root.
fn is_ours(stream: &UnixStream) -> bool {
    let user = stream.peer_cred().map(|peer| peer.uid());
    user.is_ok_and(|user| user == geteuid().as_raw() || user == 0)
}

async fn read(mut stream: UnixStream) -> Option<Command> {
    let byte = timeout(TIMEOUT, stream.read_u8()).await.ok()?.ok()?;
    let verb = Verb::from_byte(byte)?;
    Some(Command { verb, stream })
}

impl Command {
    pub(super) const fn verb(&self) -> Verb {
        self.verb
    }

    pub(super) async fn answer(mut self, is_good: bool, text: &str) {
        let mut answer = vec![if is_good { b'+' } else { b'-' }];
        answer.extend_from_slice(text.as_bytes());
        // The command may have been given up.
        let _ = timeout(TIMEOUT, self.stream.write_all(&answer)).await;
    }
}

/// Gives a command to the program that runs with `file`, and waits for its answer. Blocks.
///
/// # Errors
///
/// No such program runs, or it does not answer, or another user's does.
pub fn ask(file: &Path, verb: Verb) -> anyhow::Result<Answer> {
    ask_within(file, verb, ANSWER_TIMEOUT)
}

/// As [`ask`], within `limit`.
pub(crate) fn ask_within(file: &Path, verb: Verb, limit: Duration) -> anyhow::Result<Answer> {
    let mut stream = connect(file).with_context(|| {
        format!(
            "no running program was started with --config {} (the same path, in the same container)",
            file.display()
        )
    })?;
    let own = geteuid();
    let user = socket_peercred(&stream)?.uid;
    if user != own && !own.is_root() {
        bail!(
            "the program that runs with {} belongs to another user",
            file.display()
        );
    }
    let deadline = Instant::now() + limit;
    stream.set_write_timeout(Some(limit))?;
    stream.write_all(&[verb.byte()])?;
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while answer.len() < MAX_ANSWER {
        let left = deadline.saturating_duration_since(Instant::now());
        // No time left would mean: wait for ever.
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream
            .read(&mut piece)
            .context("the program does not answer")?
        {
            0 => break,
            length => answer.extend_from_slice(&piece[..length]),
        }
    }
    let [is_good, text @ ..] = &*answer else {
        bail!("the program did not answer: it does not accept commands of this user, or it ended");
    };
    Ok(Answer {
        is_good: *is_good == b'+',
        text: for_a_terminal(&String::from_utf8_lossy(text)),
    })
}

/// Without what would do something to a terminal.
fn for_a_terminal(text: &str) -> String {
    let is_harmless = |letter: &char| !letter.is_control() || *letter == '\n';
    text.chars().filter(is_harmless).collect()
}

/// The socket's name: the same for the same file in the same container, and for no other.
fn address(file: &Path) -> io::Result<SocketAddr> {
    let file = std::path::absolute(file)?;
    // Containers may share the network, and then the names of such sockets.
    let container = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let mut hash = Sha256::new();
    hash.update(container.as_os_str().as_encoded_bytes());
    hash.update([0]);
    hash.update(file.as_os_str().as_encoded_bytes());
    let name = format!("signpost-{}", hex::encode(&hash.finalize()[..16]));
    SocketAddr::from_abstract_name(name)
}
