//! The processes of a real browser: `ChromeDriver`, and the Chromium that it starts.

use std::{
    fs,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Instant,
};

use crate::{
    folder::Folder,
    port::free_address,
    waiting::{WAIT_TIMEOUT, until},
};

/// A running `ChromeDriver`, and an empty profile for its one browser. Both processes are stopped when this is dropped.
#[derive(Debug)]
pub(super) struct Driver {
    process: Child,
    address: SocketAddr,
    /// The browser's session, once it has started.
    pub(super) session: Option<String>,
    // Last, so that the profile is removed after the processes have ended.
    profile: Folder,
}

impl Driver {
    /// Starts it, and waits until it listens.
    ///
    /// # Panics
    ///
    /// When it is missing, or does not start.
    pub(super) async fn start() -> Self {
        let address = free_address();
        let process = Command::new("chromedriver")
            .arg(format!("--port={}", address.port()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is installed: run scripts/prerequisites test");
        let driver = Self {
            process,
            address,
            session: None,
            profile: Folder::create(),
        };
        until("chromedriver to listen", || async {
            TcpStream::connect(address).ok()
        })
        .await;
        driver
    }

    /// Its base URL.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The folder of the browser's profile.
    pub(super) fn profile(&self) -> &Path {
        self.profile.path()
    }

    /// Ends the browser session. Blocking, because it is called from `drop`.
    fn end_session(&self) -> io::Result<()> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let mut connection = TcpStream::connect(self.address)?;
        connection.set_read_timeout(Some(WAIT_TIMEOUT))?;
        let host = self.address;
        write!(
            connection,
            "DELETE /session/{session} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )?;
        // The driver answers when the session has ended, and keeps the connection open: one read is enough.
        connection.read(&mut [0; 1024]).map(drop)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Chromium writes to its profile until its last process has ended; only then can the profile be removed.
        let _ = self.end_session();
        let _ = self.process.kill();
        let _ = self.process.wait();
        let profile = self.profile.path().display().to_string();
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while is_on_a_command_line(&profile) && Instant::now() < deadline {
            thread::yield_now();
        }
    }
}

/// Whether any process has this text in its command line.
fn is_on_a_command_line(text: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .any(|arguments| String::from_utf8_lossy(&arguments).contains(text))
}
