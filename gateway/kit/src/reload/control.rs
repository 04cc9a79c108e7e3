//! The control socket, through which the `reload` command reaches the running program.
//!
//! It is a Unix socket in Linux's abstract namespace: it needs no folder and leaves no file behind. Its name is derived
//! from the path of the configuration file, so that the command finds the program by the same `--config`. Any user of the
//! machine can take a free name, so each side asks the kernel for the other's user (`SO_PEERCRED`). The program accepts
//! commands only from its own user and root. A command trusts only a program of its own user, root's included: root cannot
//! know as which user the program runs, so the operator says it, by running the command as that user.

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
use rustix::{
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as connect_to, socket_with,
        sockopt::socket_peercred,
    },
    process::{Uid, geteuid},
};
use sha2::{Digest, Sha256};
use signpost_protocol::app::is_invisible;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
    sync::{Semaphore, mpsc},
    time::timeout,
};

/// Timeout for reading a command, and for writing its reply.
const IO_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a command. Long, since a reload may need DNS lookups of backends.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);
/// Limit on a reply, in bytes.
const MAX_REPLY: usize = 1024 * 1024;
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time between two attempts to bind the socket while another process still has it.
const BIND_INTERVAL: Duration = Duration::from_millis(50);
/// Timeout for a new process to bind the socket.
const SUCCESSOR_TIMEOUT: Duration = Duration::from_secs(20);
/// Limit on connections whose command is being read.
pub(super) const MAX_READING: usize = 8;
/// Commands that are queued while another one runs; more wait in the socket's backlog.
const MAX_QUEUED: usize = 1;

/// A command to the running program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verb {
    /// Reload, and report the changes.
    Reload = b'r',
    /// Report what a reload would change.
    Diff = b'd',
    /// Report the address of `/readyz`.
    HealthAddress = b'h',
    /// Hand over to a new process of the program's new file.
    Upgrade = b'u',
    /// Report the program's state, in a format of its own.
    Status = b's',
}

impl Verb {
    fn from_byte(byte: u8) -> Option<Self> {
        let all = [
            Self::Reload,
            Self::Diff,
            Self::HealthAddress,
            Self::Upgrade,
            Self::Status,
        ];
        all.into_iter().find(|verb| *verb as u8 == byte)
    }
}

/// A received command and the connection for its reply.
pub(super) struct Command {
    pub(super) verb: Verb,
    /// The number of the user who sent it.
    pub(super) user: u32,
    stream: UnixStream,
}

/// The program's reply to a command.
#[derive(Debug)]
pub struct Reply {
    /// Whether the command succeeded.
    pub is_success: bool,
    /// Text for the operator.
    pub text: String,
}

/// Listens for commands to the program running with `file`. Needs a runtime.
pub(super) fn commands(file: &Path) -> mpsc::Receiver<Command> {
    let (sender, commands) = mpsc::channel(MAX_QUEUED);
    // Bound before this returns: a command right after the start finds the program.
    let (file, first) = (file.to_owned(), listen(file));
    tokio::spawn(async move {
        let listener = match first {
            Ok(listener) => listener,
            Err(cause) => listen_later(&file, &cause).await,
        };
        let reading = Arc::new(Semaphore::new(MAX_READING));
        loop {
            let accepted = tokio::select! {
                // The reloader has ended or handed over: a new process needs the name.
                () = sender.closed() => return,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            // Not a byte is read from other users: they cost no more than the accept.
            let Some(user) = our_user(&stream) else {
                continue;
            };
            // Waits here, and accepts no more meanwhile: a user's open connections are bounded, too.
            let Ok(permit) = Arc::clone(&reading).acquire_owned().await else {
                continue;
            };
            let sender = sender.clone();
            tokio::spawn(async move {
                if let Some(command) = read(stream, user).await {
                    drop(sender.send(command).await);
                }
                // Only once the command is queued: during a slow reload, further ones stay in the backlog.
                drop(permit);
            });
        }
    });
    commands
}

/// Binds the socket as soon as the process that has it ends.
async fn listen_later(file: &Path, cause: &io::Error) -> UnixListener {
    report_holder(file, cause);
    loop {
        tokio::time::sleep(BIND_INTERVAL).await;
        if let Ok(listener) = listen(file) {
            tracing::info!("the reload command is available");
            return listener;
        }
    }
}

/// Logs why the socket cannot be bound. During an upgrade, the old process of the same user still has it.
fn report_holder(file: &Path, cause: &io::Error) {
    let holder = match holder(file) {
        Ok(user) if user == geteuid() => {
            tracing::warn!(%cause, "the reload command is not available yet; use SIGHUP instead");
            return;
        }
        Ok(user) => format!("a process of user {}", user.as_raw()),
        Err(_) => "a process that does not answer".to_owned(),
    };
    tracing::error!(
        holder,
        "the reload command is not available: another process has taken its socket; end that process, or use SIGHUP"
    );
}

/// Waits until another process accepts commands. This one must have stopped: its receiver is closed.
pub(super) async fn wait_for_successor(file: &Path) {
    let bound = async {
        loop {
            // First, so that this process' own socket is closed.
            tokio::time::sleep(BIND_INTERVAL).await;
            if holder(file).is_ok_and(|user| user == geteuid()) {
                return;
            }
        }
    };
    // Without it, the command fails for a moment.
    let _ = timeout(SUCCESSOR_TIMEOUT, bound).await;
}

pub(super) fn listen(file: &Path) -> io::Result<UnixListener> {
    let listener = StdListener::bind_addr(&SocketAddr::from_abstract_name(name(file)?)?)?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// Connects to the socket. Does not block: the process that has it may accept nothing.
pub(super) fn connect(file: &Path) -> io::Result<StdStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect_to(
        &socket,
        &SocketAddrUnix::new_abstract_name(name(file)?.as_bytes())?,
    )?;
    let stream = StdStream::from(socket);
    // From here on it blocks, since the timeouts of a socket have no effect otherwise.
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// The user of the process that has the socket.
fn holder(file: &Path) -> io::Result<Uid> {
    peer(&connect(file)?)
}

/// The user of the process at the other end.
fn peer(stream: &StdStream) -> io::Result<Uid> {
    Ok(socket_peercred(stream)?.uid)
}

/// The peer's user, if that is this process' user, or root.
fn our_user(stream: &UnixStream) -> Option<u32> {
    let user = stream.peer_cred().ok()?.uid();
    (user == geteuid().as_raw() || user == 0).then_some(user)
}

async fn read(mut stream: UnixStream, user: u32) -> Option<Command> {
    let byte = timeout(IO_TIMEOUT, stream.read_u8()).await.ok()?.ok()?;
    let verb = Verb::from_byte(byte)?;
    Some(Command { verb, user, stream })
}

impl Command {
    pub(super) async fn reply(mut self, reply: anyhow::Result<String>) {
        let reply = match reply {
            Ok(text) => format!("+{text}"),
            Err(error) => format!("-{error:#}"),
        };
        // The sender may have given up.
        let _ = timeout(IO_TIMEOUT, self.stream.write_all(reply.as_bytes())).await;
    }
}

/// Sends a command to the program running with `file`, and waits for the reply, for up to 60 s. Blocks.
///
/// # Errors
///
/// No such program is running, it does not reply, or it belongs to another user.
pub fn send(file: &Path, verb: Verb) -> anyhow::Result<Reply> {
    send_to(file, verb, geteuid().as_raw(), COMMAND_TIMEOUT)
}

/// As [`send`], to a program of this user, which accepts commands from it and from root.
///
/// # Errors
///
/// As [`send`].
pub fn send_to_user(file: &Path, verb: Verb, user: u32) -> anyhow::Result<Reply> {
    send_to(file, verb, user, COMMAND_TIMEOUT)
}

/// As [`send`], with another timeout.
pub(crate) fn send_within(file: &Path, verb: Verb, timeout: Duration) -> anyhow::Result<Reply> {
    send_to(file, verb, geteuid().as_raw(), timeout)
}

fn send_to(file: &Path, verb: Verb, trusted: u32, timeout: Duration) -> anyhow::Result<Reply> {
    let mut stream = connect(file).with_context(|| {
        format!(
            "no running program was started with --config {} (same path, same container)",
            file.display()
        )
    })?;
    // Before a byte is sent or believed: any user of the machine may have taken the name.
    let user = peer(&stream)?;
    if user.as_raw() != trusted {
        bail!(
            "the process that answers for {} belongs to user {}, not to this command's: if that is the user of the \
             program, run the command as that user, otherwise end the process",
            file.display(),
            user.as_raw()
        );
    }
    let deadline = Instant::now() + timeout;
    stream.set_write_timeout(Some(timeout))?;
    stream.write_all(&[verb as u8])?;
    let mut reply = Vec::new();
    let mut piece = [0; 4096];
    while reply.len() < MAX_REPLY {
        let left = deadline.saturating_duration_since(Instant::now());
        // A timeout of 0 is an error, so at least 1 ms.
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => reply.extend_from_slice(&piece[..length]),
            // A signal, which the command handles itself.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("the program does not reply"),
        }
    }
    let [is_success, text @ ..] = &*reply else {
        bail!(
            "the program did not reply: it does not accept commands from this user, or it has ended"
        );
    };
    Ok(Reply {
        is_success: *is_success == b'+',
        text: without_invisible_characters(&String::from_utf8_lossy(text)),
    })
}

/// Removes what a terminal would interpret, except line breaks. CONTRACT 7.
fn without_invisible_characters(text: &str) -> String {
    let is_printable = |letter: &char| !is_invisible(*letter) || *letter == '\n';
    text.chars().filter(is_printable).collect()
}

/// The socket's name: unique for a configuration file and a container.
fn name(file: &Path) -> io::Result<String> {
    let file = std::path::absolute(file)?;
    // Containers that share a network namespace also share the names of abstract sockets.
    let container = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let mut hash = Sha256::new();
    hash.update(container.as_os_str().as_encoded_bytes());
    // No path has this byte: the end of the container and the beginning of the file cannot be confused.
    hash.update([0]);
    hash.update(file.as_os_str().as_encoded_bytes());
    Ok(format!("signpost-{}", hex::encode(&hash.finalize()[..16])))
}
