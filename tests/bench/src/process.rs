//! A program that runs under measurement, and what the kernel knows of it.

use std::{
    fs::{self, File},
    io,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// The processor that contestants have to themselves.
const CONTESTANTS: &str = "0";

/// The processors of contestants with several threads.
const SEVERAL_THREADS: &str = "0,1";

/// The processor that the load and the backend share.
const LOAD: &str = "1";

/// How long a program may take to start, and to end. Under valgrind everything takes long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at a condition.
const INTERVAL: Duration = Duration::from_millis(10);

/// How a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As a contestant of one thread.
    Contestant,
    /// As a contestant of several threads.
    SeveralThreads,
    /// As the backend.
    Backend,
    /// As a contestant, in callgrind, which does not count yet.
    Callgrind,
    /// Beside others, on whichever processor is free.
    Anywhere,
}

/// A started program. Dropping it ends the process and waits for that.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program; what it writes goes to a file in the folder. It ends when this process does.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn start(
        name: &str,
        line: &[String],
        folder: &Path,
        manner: Manner,
    ) -> anyhow::Result<Self> {
        let log = folder.join("output.log");
        let output = File::options().create(true).append(true).open(&log)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]);
        match manner {
            Manner::Backend => command.args(["taskset", "-c", LOAD]),
            Manner::Contestant | Manner::Callgrind => command.args(["taskset", "-c", CONTESTANTS]),
            Manner::SeveralThreads => command.args(["taskset", "-c", SEVERAL_THREADS]),
            Manner::Anywhere => &mut command,
        };
        if manner == Manner::Callgrind {
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

    /// Waits until something listens at an address.
    ///
    /// # Errors
    ///
    /// The program ended, or nothing listens there for a long time.
    pub fn listens(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        let listens = self.until(PATIENCE, |process| {
            if let Some(status) = process.child.try_wait()? {
                bail!("{} ended ({status}):\n{}", process.name, process.log());
            }
            Ok(TcpStream::connect(address).is_ok())
        })?;
        ensure!(listens, "{} does not listen:\n{}", self.name, self.log());
        Ok(())
    }

    /// Its process's number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Time that it spent on a processor since it started, with all its threads and child processes.
    ///
    /// # Errors
    ///
    /// A process is gone.
    pub fn cpu_time(&self) -> anyhow::Result<Duration> {
        let mut nanoseconds = 0;
        for id in self.family()? {
            for task in fs::read_dir(format!("/proc/{id}/task"))? {
                let statistics = fs::read_to_string(task?.path().join("schedstat"))?;
                // Time on a processor, time waiting for one, turns: nanoseconds but for the last.
                let first = statistics.split(' ').next().context("schedstat is empty")?;
                nanoseconds += first.parse::<u64>()?;
            }
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// Memory that is really in use, in KiB (`VmRSS`), summed over its processes.
    ///
    /// # Errors
    ///
    /// A process is gone.
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

    /// All that it wrote, its end at least.
    pub fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let end = bytes.len().saturating_sub(4000);
        String::from_utf8_lossy(&bytes[end..]).into_owned()
    }

    /// Asks it to end, as an operator would, and waits for that: what it writes at its end is then written.
    ///
    /// # Errors
    ///
    /// It does not end.
    pub fn end(mut self) -> anyhow::Result<ExitStatus> {
        self.terminate()?;
        let name = self.name.clone();
        self.ended()?
            .with_context(|| format!("{name} does not end when told to"))
    }

    fn terminate(&self) -> anyhow::Result<()> {
        let id = Pid::from_raw(i32::try_from(self.child.id())?).context("no process id")?;
        Ok(kill_process(id, Signal::TERM)?)
    }

    fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let mut status = None;
        self.until(PATIENCE, |process| {
            status = process.child.try_wait()?;
            Ok(status.is_some())
        })?;
        Ok(status)
    }

    fn until(
        &mut self,
        patience: Duration,
        mut look: impl FnMut(&mut Self) -> anyhow::Result<bool>,
    ) -> anyhow::Result<bool> {
        let start = Instant::now();
        while !look(self)? {
            if start.elapsed() > patience {
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

/// The name of callgrind's own file; its dumps have a number behind it.
pub const CALLGRIND_FILE: &str = "callgrind.out";

fn parent_of(id: u32) -> Option<u32> {
    // A process may end while it is looked at.
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name is in parentheses and may have any characters; the state is behind it, then the parent.
    let behind_name = stat.rsplit_once(')')?.1;
    behind_name.split_whitespace().nth(1)?.parse().ok()
}

impl Drop for Process {
    fn drop(&mut self) {
        let has_ended = matches!(self.child.try_wait(), Ok(Some(_)));
        if has_ended {
            return;
        }
        let is_told = self.terminate().is_ok();
        if !is_told || !matches!(self.ended(), Ok(Some(_))) {
            // Nothing more can be done about one that withstands this.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
