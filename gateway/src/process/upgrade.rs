//! An upgrade without loss: this process starts its program's new file, and hands it the listening sockets.
//!
//! The new process gets a Unix socket as its standard input, and over it each listening socket with its address. Once it
//! serves, it says so, and this process stops: it finishes its requests within the grace period. If the new process
//! fails, this one goes on. A connection is never refused: a listening socket is always open in one of them.

use std::{
    env,
    ffi::OsString,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    net::{SocketAddr, TcpListener},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Error, anyhow, bail};
use rustix::{
    cmsg_space,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
        sockopt::{Timeout, set_socket_timeout},
    },
    process::{Pid, Signal, kill_process},
};
use signpost_release::RELEASE;

use signpost_proxy::program::{ListeningSockets, OpenSockets};

/// The hidden option of `signpost run` by which the new process knows that it takes over.
pub(crate) const TAKE_OVER: &str = "take-over";
/// Timeout of the new process' start. A gateway starts within a second, unless a name server or the store is slow.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of the new process for a socket that the old one sends.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// Limit of a message between the two processes, in bytes.
const MAX_MESSAGE: usize = 4096;
/// Follows the last socket.
const END: &[u8] = b"end";
/// Sent by the new process once it serves, and followed by its release.
const READY: &str = "ready ";

/// How to start this program again.
#[derive(Clone, Debug)]
pub(crate) struct NewProcess {
    program: PathBuf,
    config: PathBuf,
}

impl NewProcess {
    /// The program's path as it was started: a new file may have replaced this process' file.
    ///
    /// # Errors
    ///
    /// The working directory does not exist.
    pub(crate) fn new(config: &Path) -> io::Result<Self> {
        let named = env::args_os().next().map(PathBuf::from);
        // Without a slash it was found in `PATH`, which may have changed.
        let named = named.filter(|path| path.components().count() > 1);
        // Resolved at the start: once the file is replaced, `current_exe` names the old one, as ` (deleted)`.
        let program = named.map_or_else(env::current_exe, std::path::absolute)?;
        Ok(Self {
            program,
            config: std::path::absolute(config)?,
        })
    }

    /// Starts the program, hands it `sockets`, and waits until it serves. Returns its process id and release. Blocks.
    ///
    /// # Errors
    ///
    /// It cannot be started, or does not serve within 30 s. It has been ended then.
    pub(crate) fn start(&self, sockets: &ListeningSockets) -> anyhow::Result<(u32, String)> {
        if process::id() == 1 {
            bail!(
                "this gateway is process 1 of a container, which ends with it: replace the container instead"
            );
        }
        // SEQPACKET keeps the boundaries of messages, so each brings one socket and needs no length. Unlike with
        // datagrams, the end of the other process is seen, too.
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let arguments: [OsString; 4] = [
            "run".into(),
            "--config".into(),
            self.config.clone().into(),
            format!("--{TAKE_OVER}").into(),
        ];
        let program = self.program.display();
        // This statement drops the command, and with it the parent's copy of `theirs`: the end of file shows that the
        // new process has ended.
        let child = Command::new(&self.program)
            .args(arguments)
            .stdin(Stdio::from(theirs))
            .spawn()
            .with_context(|| format!("{program} cannot be started"))?;
        let mut child = EndOnDrop(Some(child));
        let message = hand_over(&ours, sockets).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => anyhow!(
                "{program} did not serve within {} s",
                START_TIMEOUT.as_secs()
            ),
            // With or without what was sent to it.
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => {
                anyhow!("{program} ended before it served: its log says why")
            }
            _ => Error::new(error).context(format!("{program} does not take over the sockets")),
        })?;
        let message = String::from_utf8_lossy(&message);
        match message.strip_prefix(READY) {
            Some(release) => Ok((child.keep(), release.to_owned())),
            None => bail!("{message}"),
        }
    }
}

/// Begins the graceful stop of a process that was started.
pub(crate) fn terminate(id: u32) {
    let id = i32::try_from(id).ok().and_then(Pid::from_raw);
    if let Some(id) = id {
        // It may have ended by itself.
        // Not SIGKILL: it serves already, and may have accepted connections.
        let _ = kill_process(id, Signal::TERM);
    }
}

/// A process that is killed unless it is kept.
struct EndOnDrop(Option<Child>);

impl EndOnDrop {
    fn keep(&mut self) -> u32 {
        self.0.take().map_or(0, |child| child.id())
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It may have ended by itself.
            let _ = child.kill();
            // Without this each failed upgrade would leave a zombie.
            let _ = child.wait();
        }
    }
}

/// The sockets that the old process has handed over, and the connection to it.
#[derive(Debug)]
pub(crate) struct TakenOver {
    sockets: Mutex<Vec<(SocketAddr, TcpListener)>>,
    old: OwnedFd,
}

impl TakenOver {
    /// Receives the sockets over standard input.
    ///
    /// # Errors
    ///
    /// It was not started by an upgrade.
    pub(crate) fn receive() -> anyhow::Result<Self> {
        let old = io::stdin().as_fd().try_clone_to_owned()?;
        let not_upgraded = "only `signpost upgrade` starts a program that takes over";
        // Fails if standard input is no socket: then somebody has typed the option.
        set_socket_timeout(&old, Timeout::Recv, Some(SEND_TIMEOUT)).context(not_upgraded)?;
        let mut sockets = Vec::new();
        loop {
            let (message, socket) = receive(&old).context(not_upgraded)?;
            if message == END {
                let sockets = Mutex::new(sockets);
                return Ok(Self { sockets, old });
            }
            let address = std::str::from_utf8(&message).ok();
            let address: Option<SocketAddr> = address.and_then(|text| text.parse().ok());
            let (Some(address), Some(socket)) = (address, socket) else {
                bail!("the old process does not hand over its sockets");
            };
            sockets.push((address, TcpListener::from(socket)));
        }
    }

    /// The addresses of the sockets that no listener has taken.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.iter().map(|(address, _)| *address).collect()
    }

    /// Takes the sockets that listen on `address`.
    pub(crate) fn take(&self, address: SocketAddr) -> Vec<TcpListener> {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = sockets.extract_if(.., |(listen, _)| *listen == address);
        taken.map(|(_, socket)| socket).collect()
    }

    /// Tells the old process that this one serves. Closes sockets that nobody took: the configuration no longer has them.
    ///
    /// # Errors
    ///
    /// The old process has given up.
    pub(crate) fn ready(&self) -> anyhow::Result<()> {
        self.sockets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        let ready = format!("{READY}{RELEASE}");
        send(&self.old, ready.as_bytes(), None).context("the old process did not wait for this one")
    }

    /// Tells the old process why this one cannot serve.
    pub(crate) fn fail(&self, cause: &Error) {
        let text = format!("{cause:#}");
        let end = text.floor_char_boundary(MAX_MESSAGE);
        // The old process may have given up.
        let _ = send(&self.old, &text.as_bytes()[..end], None);
    }
}

/// Sends all sockets, and returns the new process' reply.
fn hand_over(to: &OwnedFd, sockets: &ListeningSockets) -> io::Result<Vec<u8>> {
    // A new process that reads nothing would block this thread, and with it each later reload.
    set_socket_timeout(to, Timeout::Send, Some(SEND_TIMEOUT))?;
    for OpenSockets {
        address, sockets, ..
    } in &*sockets.lock()
    {
        let address = address.to_string();
        for socket in sockets {
            send(to, address.as_bytes(), Some(socket))?;
        }
    }
    send(to, END, None)?;
    set_socket_timeout(to, Timeout::Recv, Some(START_TIMEOUT))?;
    let (message, _) = receive(to)?;
    if message.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(message)
}

/// Sends a message, with a socket or without.
fn send(to: &OwnedFd, message: &[u8], socket: Option<&TcpListener>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let sockets = socket.map(AsFd::as_fd);
    if let Some(socket) = &sockets {
        ancillary.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(
            socket,
        )));
    }
    sendmsg(
        to,
        &[IoSlice::new(message)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives a message, and the socket that came with it. The message is empty if the other process has ended.
fn receive(from: &OwnedFd) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut message = vec![0; MAX_MESSAGE];
    let received = recvmsg(
        from,
        &mut [IoSliceMut::new(&mut message)],
        &mut ancillary,
        // A child that inherited the socket would keep it open after this process has closed it: the kernel would still
        // assign it connections, and nothing would accept them.
        RecvFlags::CMSG_CLOEXEC,
    )?;
    message.truncate(received.bytes);
    let sockets = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
        _ => None,
    });
    let socket = sockets.flatten().next();
    Ok((message, socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_arrives_with_its_address() {
        let (one, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        send(&one, b"first", Some(&listener)).unwrap();
        send(&one, b"second", None).unwrap();
        drop((one, listener));
        let (message, socket) = receive(&other).unwrap();
        assert_eq!(message, b"first");
        assert_eq!(
            TcpListener::from(socket.unwrap()).local_addr().unwrap(),
            address
        );
        let (message, socket) = receive(&other).unwrap();
        assert!(message == b"second" && socket.is_none());
        assert!(receive(&other).unwrap().0.is_empty());
    }

    #[test]
    fn each_address_has_its_sockets() {
        let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (old, _) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let sockets = [1, 2, 1].map(|port| (address(port), listen()));
        let taken = TakenOver {
            sockets: Mutex::new(sockets.into()),
            old,
        };
        assert_eq!(taken.take(address(1)).len(), 2);
        assert_eq!(taken.take(address(1)).len(), 0);
        assert_eq!(taken.take(address(2)).len(), 1);
    }
}
