//! One of the product's programs, running as a process of its own.

use std::{
    env, fmt,
    fs::{self, File},
    io::{PipeReader, pipe},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::mpsc,
    thread,
};

use crate::waiting::PATIENCE;

/// A program of the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Program {
    /// `signpost`
    Gateway,
    /// `login-v1`
    V1,
    /// `login-v2`
    V2,
    /// `login-all`: both versions in one process.
    All,
    /// `sandbox-provider`
    Provider,
}

impl Program {
    /// The file's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "signpost",
            Self::V1 => "login-v1",
            Self::V2 => "login-v2",
            Self::All => "login-all",
            Self::Provider => "sandbox-provider",
        }
    }

    /// One of several of its processes.
    #[must_use]
    pub const fn number(self, number: usize) -> Instance {
        Instance {
            program: self,
            number,
        }
    }

    /// Where it was built: beside the running test.
    ///
    /// # Panics
    ///
    /// When it has not been built.
    #[must_use]
    pub fn path(self) -> PathBuf {
        path_of(self.name())
    }

    /// A command that runs it, in a folder, without what the surroundings have set for it.
    #[must_use]
    pub fn command(self, folder: &Path) -> Command {
        Self::in_folder(Command::new(self.path()), folder)
    }

    /// The same, with so many file descriptors at most: soft and hard limit.
    #[must_use]
    pub fn command_with_descriptors(self, folder: &Path, limit: u32) -> Command {
        let mut command = Command::new("sh");
        let script = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
        command.args(["-c", &script]).arg(self.path());
        Self::in_folder(command, folder)
    }

    fn in_folder(mut command: Command, folder: &Path) -> Command {
        command
            .current_dir(folder)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end, for the command line's own commands and for what must not start.
    ///
    /// # Panics
    ///
    /// When it cannot be started, or does not end soon.
    #[must_use]
    pub fn run(self, folder: &Path, arguments: &[&str]) -> Output {
        let mut command = self.command(folder);
        command
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().expect("a built program starts");
        let id = child.id();
        let (sender, receiver) = mpsc::channel();
        // Ends with the child, which is ended below if it does not end by itself.
        thread::spawn(move || sender.send(child.wait_with_output()));
        match receiver.recv_timeout(PATIENCE) {
            Ok(output) => output.expect("a child can be waited for"),
            Err(_) => {
                signal(id, "KILL");
                panic!("{self} {arguments:?} still runs after {PATIENCE:?}");
            }
        }
    }
}

/// Where a program of this name was built: beside the running test.
///
/// # Panics
///
/// When it has not been built.
pub(crate) fn path_of(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a test knows where it is");
    // The test itself is one folder further down, in `deps`.
    let folder = test
        .parent()
        .and_then(Path::parent)
        .expect("a test lies in a target folder");
    let path = folder.join(name);
    assert!(
        path.is_file(),
        "{} is not there: run scripts/test, or cargo build --workspace --bins",
        path.display()
    );
    path
}

/// One process of a program of which there may be several. The first, number 0, is meant wherever a program is named alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instance {
    /// What runs.
    pub program: Program,
    /// Which of them.
    pub number: usize,
}

impl From<Program> for Instance {
    fn from(program: Program) -> Self {
        program.number(0)
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            0 => write!(f, "{}", self.program),
            number => write!(f, "{}-{number}", self.program),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A started program. Dropping it ends the process and waits for that.
///
/// When the test fails, what the program wrote is printed.
#[derive(Debug)]
pub struct Running {
    instance: Instance,
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts a program; what it writes goes to a file in the folder.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn start(instance: Instance, folder: &Path, arguments: &[String]) -> Self {
        Self::start_as(
            instance,
            instance.program.command(folder),
            folder,
            arguments,
        )
    }

    /// Starts a program by a command of its own; otherwise as [`Self::start`].
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn start_as(
        instance: Instance,
        mut command: Command,
        folder: &Path,
        arguments: &[String],
    ) -> Self {
        let log = log_of(instance, folder);
        let output = File::options().create(true).append(true).open(&log);
        let output = output.expect("a log can be written");
        let child = command
            .args(arguments)
            .stdout(output.try_clone().expect("a file has a second handle"))
            .stderr(output)
            .spawn()
            .expect("a built program starts");
        Self {
            instance,
            child,
            log,
        }
    }

    /// Starts a program that writes into a pipe, which is read by nobody but the caller.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn start_into_pipe(
        instance: Instance,
        folder: &Path,
        arguments: &[String],
    ) -> (Self, PipeReader) {
        let (reader, output) = pipe().expect("a pipe can be made");
        let child = instance
            .program
            .command(folder)
            .args(arguments)
            .stdout(output.try_clone().expect("a pipe has a second handle"))
            .stderr(output)
            .spawn()
            .expect("a built program starts");
        let log = log_of(instance, folder);
        let running = Self {
            instance,
            child,
            log,
        };
        (running, reader)
    }

    /// The process's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    ///
    /// # Panics
    ///
    /// When the system does not know the process.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be asked after")
    }

    /// All that it wrote so far, on both of its outputs.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Memory that is really in use, in KiB (`VmRSS`, proc(5)).
    ///
    /// # Panics
    ///
    /// When the process is gone.
    #[must_use]
    pub fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.expect("a running process has a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.trim().strip_suffix("kB"));
        number
            .and_then(|number| number.trim().parse().ok())
            .expect("proc(5) gives the form")
    }

    /// Asks it to end (`SIGTERM`), as an operator would.
    ///
    /// # Panics
    ///
    /// When `kill` is not there.
    pub fn terminate(&self) {
        signal(self.id(), "TERM");
    }

    /// Asks it to reload its configuration (`SIGHUP`).
    ///
    /// # Panics
    ///
    /// When `kill` is not there.
    pub fn hang_up(&self) {
        signal(self.id(), "HUP");
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        // Fails only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            let log = self.log();
            let shown = log
                .char_indices()
                .rev()
                .nth(MOST_SHOWN)
                .map_or(0, |(index, _)| index);
            #[expect(
                clippy::print_stderr,
                reason = "the test runner shows this with the failure"
            )]
            {
                eprintln!("---- {} wrote ----\n{}", self.instance, &log[shown..]);
            }
        }
    }
}

fn log_of(instance: Instance, folder: &Path) -> PathBuf {
    folder.join(format!("{instance}.log"))
}

/// Characters of a log that a failure shows, from its end.
const MOST_SHOWN: usize = 16_000;

/// Sends a signal by its name, without `SIG`.
pub(crate) fn signal(id: u32, signal: &str) {
    let status = Command::new("kill")
        .args([&format!("-{signal}"), &id.to_string()])
        .status();
    assert!(status.expect("kill is a command").success());
}
