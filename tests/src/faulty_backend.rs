//! The program `faulty-backend`: a backend that pauses at one moment of an exchange, to be killed or frozen there.

use std::{fs, net::SocketAddr, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use crate::{
    program::{path_of, signal},
    waiting::until,
};

/// A running `faulty-backend`. It is killed when dropped.
#[derive(Debug)]
pub struct FaultyBackend {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl FaultyBackend {
    /// Starts one that pauses at `moment` (see the program for the names), and waits until it listens.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn start(address: SocketAddr, moment: &str) -> Self {
        let mut child = Command::new(path_of("faulty-backend"))
            .args([&address.to_string(), moment])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("a built program starts");
        let output = child.stdout.take().expect("its output is a pipe");
        let lines = BufReader::new(output).lines();
        let mut started = Self { child, lines };
        assert_eq!(started.line().await.as_deref(), Some("ready"));
        started
    }

    /// Waits until it has paused at its moment. Cancel-safe: may be called again if the future was dropped.
    ///
    /// # Panics
    ///
    /// When it has exited.
    pub async fn wait_for_moment(&mut self) {
        assert_eq!(self.line().await.as_deref(), Some("reached"));
    }

    /// Continues it after the pause.
    ///
    /// # Panics
    ///
    /// When it has exited.
    pub async fn resume(&mut self) {
        let input = self.child.stdin.as_mut().expect("it has not been stopped");
        input.write_all(b"\n").await.expect("it runs");
    }

    /// Kills it, as a crash would (`SIGKILL`).
    ///
    /// # Panics
    ///
    /// When the system does not know the process.
    pub async fn kill(&mut self) {
        self.child.kill().await.expect("a child can be killed");
    }

    /// Stops it: closes its input, and waits until it has exited.
    ///
    /// # Panics
    ///
    /// When it fails.
    pub async fn end(&mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().await.expect("a child can be waited for");
        assert!(status.success());
    }

    /// Freezes it (`SIGSTOP`), and waits until it is frozen.
    ///
    /// # Panics
    ///
    /// When it has exited.
    pub async fn freeze(&self) {
        signal(self.id(), "STOP");
        let path = format!("/proc/{}/stat", self.id());
        until("the process to be frozen", || async {
            let stat = fs::read_to_string(&path).expect("it runs");
            // proc(5): the state follows the name, which is in parentheses.
            stat.contains(") T ").then_some(())
        })
        .await;
    }

    /// Continues it after a freeze (`SIGCONT`).
    ///
    /// # Panics
    ///
    /// When it has exited.
    pub fn thaw(&self) {
        signal(self.id(), "CONT");
    }

    fn id(&self) -> u32 {
        self.child.id().expect("it has not been waited for")
    }

    async fn line(&mut self) -> Option<String> {
        self.lines.next_line().await.expect("its output is text")
    }
}

/// Whether the kernel holds unread bytes for the listener at an IPv4 address (proc(5), `/proc/net/tcp`).
///
/// # Panics
///
/// When the system has no such file.
#[must_use]
pub fn has_unread_bytes(address: SocketAddr) -> bool {
    let table = fs::read_to_string("/proc/net/tcp").expect("Linux has this file");
    let port = format!(":{:04X}", address.port());
    table.lines().skip(1).any(|line| {
        let columns: Vec<_> = line.split_whitespace().collect();
        let [_, local, _, state, queues, ..] = columns[..] else {
            return false;
        };
        let unread = queues.split_once(':').map(|(_, unread)| unread);
        local.ends_with(&port) && state == "01" && unread.is_some_and(|unread| unread != "00000000")
    })
}
