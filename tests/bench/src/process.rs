//! A started program: its log, processor time and memory.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Read},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// The processor reserved for contestants of one thread.
const CONTESTANTS: &str = "0";

/// The processors of contestants with several threads.
const SEVERAL_THREADS: &str = "0,1";

/// The processor that the load and the backend share.
const LOAD: &str = "1";

/// Timeout of a program's start, and of its stop. Long, since valgrind slows everything down.
const START_STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection that is not reset within this time stays open.
const RESET_TIMEOUT: Duration = Duration::from_millis(50);

/// Pause between two checks of a condition.
const INTERVAL: Duration = Duration::from_millis(10);

/// How a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    /// As a contestant of one thread.
    Contestant,
    /// As a contestant of several threads.
    SeveralThreads,
    /// As the backend.
    Backend,
    /// As a contestant, under callgrind, which does not count yet.
    Callgrind,
    /// On any processor.
    Anywhere,
}

/// A running program. When dropped, it is stopped and waited for.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program; its output goes to a log file in the folder. It is terminated when this process exits.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(
        name: &str,
        line: &[String],
        folder: &Path,
        run_mode: RunMode,
    ) -> anyhow::Result<Self> {
        let log = folder.join("output.log");
        let output = File::options().create(true).append(true).open(&log)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]);
        match run_mode {
            RunMode::Backend => command.args(["taskset", "-c", LOAD]),
            RunMode::Contestant | RunMode::Callgrind => {
                command.args(["taskset", "-c", CONTESTANTS])
            }
            RunMode::SeveralThreads => command.args(["taskset", "-c", SEVERAL_THREADS]),
            RunMode::Anywhere => &mut command,
        };
        if run_mode == RunMode::Callgrind {
            let file = folder.join(CALLGRIND_FILE).display().to_string();
            command.args(["valgrind", "--tool=callgrind", "--instr-atstart=no"]);
            command.arg(format!("--callgrind-out-file={file}"));
        }
        let child = command
            .args(line)
            .current_dir(folder)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("setpriv (util-linux) does not start")?;
        Ok(Self {
            name: name.to_owned(),
            child,
            log,
        })
    }

    /// Waits until it listens on an address.
    ///
    /// # Errors
    ///
    /// When it exits, or does not listen in time.
    pub fn listens(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        let listens = self.until(START_STOP_TIMEOUT, |process| {
            if let Some(status) = process.child.try_wait()? {
                bail!("{} exited ({status}):\n{}", process.name, process.log());
            }
            Ok(accepts(address))
        })?;
        ensure!(listens, "{} does not listen:\n{}", self.name, self.log());
        Ok(())
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Processor time since its start, with all its threads and child processes.
    ///
    /// # Errors
    ///
    /// When a process has exited.
    pub fn cpu_time(&self) -> anyhow::Result<Duration> {
        let mut nanoseconds = 0;
        for id in self.family()? {
            for task in fs::read_dir(format!("/proc/{id}/task"))? {
                let statistics = fs::read_to_string(task?.path().join("schedstat"))?;
                // Nanoseconds on a processor, nanoseconds waiting for one, number of time slices.
                let first = statistics.split(' ').next().context("schedstat is empty")?;
                nanoseconds += first.parse::<u64>()?;
            }
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// Resident memory in KiB (`VmRSS`), summed over its processes.
    ///
    /// # Errors
    ///
    /// When a process has exited.
    pub fn resident_kib(&self) -> anyhow::Result<u64> {
        let mut sum = 0;
        for id in self.family()? {
            let status = fs::read_to_string(format!("/proc/{id}/status"))?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let number = line.and_then(|line| line.trim().strip_suffix("kB"));
            sum += number.context("no VmRSS")?.trim().parse::<u64>()?;
        }
        Ok(sum)
    }

    /// The last 4,000 bytes of its log.
    pub fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let end = bytes.len().saturating_sub(4000);
        String::from_utf8_lossy(&bytes[end..]).into_owned()
    }

    /// Stops it by `SIGTERM`, and waits until it has exited and written its last files.
    ///
    /// # Errors
    ///
    /// When it does not exit.
    pub fn end(mut self) -> anyhow::Result<ExitStatus> {
        self.terminate()?;
        let name = self.name.clone();
        self.wait_for_exit()?
            .with_context(|| format!("{name} does not exit after SIGTERM"))
    }

    fn terminate(&self) -> anyhow::Result<()> {
        let id = Pid::from_raw(i32::try_from(self.child.id())?).context("no process id")?;
        Ok(kill_process(id, Signal::TERM)?)
    }

    fn wait_for_exit(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let mut status = None;
        self.until(START_STOP_TIMEOUT, |process| {
            status = process.child.try_wait()?;
            Ok(status.is_some())
        })?;
        Ok(status)
    }

    fn until(
        &mut self,
        timeout: Duration,
        mut look: impl FnMut(&mut Self) -> anyhow::Result<bool>,
    ) -> anyhow::Result<bool> {
        let start = Instant::now();
        while !look(self)? {
            if start.elapsed() > timeout {
                return Ok(false);
            }
            thread::sleep(INTERVAL);
        }
        Ok(true)
    }

    /// The process and its child processes: nginx has a master and a worker.
    fn family(&self) -> io::Result<Vec<u32>> {
        let own = self.child.id();
        let mut family = vec![own];
        for entry in fs::read_dir("/proc")? {
            let Some(id) = entry?
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            if parent_of(id) == Some(own) {
                family.push(id);
            }
        }
        Ok(family)
    }
}

/// Whether connections to an address stay open. The gateway checks at its start that its addresses are free: a connection
/// that is established meanwhile is reset at once.
fn accepts(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    let read = stream
        .set_read_timeout(Some(RESET_TIMEOUT))
        .and_then(|()| stream.read(&mut [0]));
    let is_open = |kind| matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut);
    read.map_or_else(|error| is_open(error.kind()), |_| true)
}

/// The name of callgrind's output file. The names of its dumps have a number appended.
pub const CALLGRIND_FILE: &str = "callgrind.out";

fn parent_of(id: u32) -> Option<u32> {
    // The process may exit meanwhile.
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name is in parentheses and may have any characters; state and parent follow.
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

impl Drop for Process {
    fn drop(&mut self) {
        let has_ended = matches!(self.child.try_wait(), Ok(Some(_)));
        if has_ended {
            return;
        }
        let is_signalled = self.terminate().is_ok();
        if !is_signalled || !matches!(self.wait_for_exit(), Ok(Some(_))) {
            // If this fails too, nothing more can be done.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
