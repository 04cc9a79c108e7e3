//! The program `faulty-backend`: a backend that stops at one moment of an exchange, to be killed or frozen there.

use std::{fs, net::SocketAddr, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use crate::{
    program::{path_of, signal},
    waiting::until,
};

/// A running one. It is killed when dropped.
#[derive(Debug)]
pub struct FaultyBackend {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl FaultyBackend {
    /// Starts one that stops at this moment, for the names see the program, and waits until it listens.
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

    /// Waits until it has stopped at its moment. May be called again, if this was dropped before its end.
    ///
    /// # Panics
    ///
    /// When it has ended.
    pub async fn reached(&mut self) {
        assert_eq!(self.line().await.as_deref(), Some("reached"));
    }

    /// Lets it go on.
    ///
    /// # Panics
    ///
    /// When it has ended.
    pub async fn go_on(&mut self) {
        let input = self.child.stdin.as_mut().expect("it has not been ended");
        input.write_all(b"\n").await.expect("it runs");
    }

    /// Ends it as a crash would (`SIGKILL`).
    ///
    /// # Panics
    ///
    /// When the system does not know the process.
    pub async fn kill(&mut self) {
        self.child.kill().await.expect("a child can be killed");
    }

    /// Lets it end by itself.
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
    /// When it has ended.
    pub async fn freeze(&self) {
        signal(self.id(), "STOP");
        let path = format!("/proc/{}/stat", self.id());
        until("the process to be stopped", || async {
            let stat = fs::read_to_string(&path).expect("it runs");
            // proc(5): the state stands behind the name, which is in brackets.
            stat.contains(") T ").then_some(())
        })
        .await;
    }

    /// Lets it run again (`SIGCONT`).
    ///
    /// # Panics
    ///
    /// When it has ended.
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

/// Whether bytes wait in the kernel for whoever listens at an IPv4 address (proc(5), `/proc/net/tcp`).
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
