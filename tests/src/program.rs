//! The product's programs, and their processes.

use std::{
    env, fmt,
    fs::{self, File},
    io::{PipeReader, pipe},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::stack::serving;

/// Timeout of a command: several may start at once, beside other tests.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);

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
    /// The program of another version, by its file name. See [`versions`](crate::versions).
    Further(&'static str),
}

impl Program {
    /// The file name of the executable.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "signpost",
            Self::V1 => "login-v1",
            Self::V2 => "login-v2",
            Self::All => "login-all",
            Self::Provider => "sandbox-provider",
            Self::Further(name) => name,
        }
    }

    /// One of several processes of it.
    #[must_use]
    pub const fn number(self, number: usize) -> Instance {
        Instance {
            program: self,
            number,
        }
    }

    /// The path of the built program.
    ///
    /// # Panics
    ///
    /// When it has not been built.
    #[must_use]
    pub fn path(self) -> PathBuf {
        path_of(self.name())
    }

    /// Its release, as `--version` prints it.
    ///
    /// # Panics
    ///
    /// When it prints anything else.
    #[must_use]
    pub fn release(self) -> String {
        let printed = output_text(&self.run(Path::new("/"), &["--version"]));
        let release = printed.trim().strip_prefix(self.name());
        release.expect("its name").trim_start().to_owned()
    }

    /// A command that runs it in a folder, without `RUST_LOG` and without input.
    #[must_use]
    pub fn command(self, folder: &Path) -> Command {
        Self::command_at(&self.path(), folder)
    }

    /// The same, for a program at another path.
    #[must_use]
    pub fn command_at(path: &Path, folder: &Path) -> Command {
        Self::in_folder(Command::new(path), folder)
    }

    /// The same, with a soft and hard limit on file descriptors.
    #[must_use]
    pub fn command_with_descriptors(self, folder: &Path, limit: u32) -> Command {
        let mut command = Command::new("sh");
        let script = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
        command.args(["-c", &script]).arg(self.path());
        Self::in_folder(command, folder)
    }

    /// The same, as another user (a number) of one more group. `None` if this process is not root's, so that there is no
    /// other user to test with, or if that user cannot open the folder of the build.
    ///
    /// # Panics
    ///
    /// When `setpriv` is missing.
    #[must_use]
    pub fn command_as(self, user: u32, group: u32, folder: &Path) -> Option<Command> {
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        let as_user = || {
            let mut command = Command::new("setpriv");
            let (user, group) = (user.to_string(), group.to_string());
            command.args(["--reuid", &user, "--regid", &user, "--groups", &group]);
            command
        };
        let mut test = as_user();
        test.args(["test", "-x"]).arg(self.path());
        if !is_root || !test.status().expect("util-linux has it").success() {
            return None;
        }
        let mut command = as_user();
        command.arg(self.path());
        Some(Self::in_folder(command, folder))
    }

    fn in_folder(mut command: Command, folder: &Path) -> Command {
        command
            .current_dir(folder)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null());
        command
    }

    /// Runs it until it exits: for subcommands, and for configurations that must not start.
    ///
    /// # Panics
    ///
    /// When it cannot be started, or does not exit in time.
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
        // The thread ends with the child, which is killed below if it does not exit.
        thread::spawn(move || sender.send(child.wait_with_output()));
        match receiver.recv_timeout(RUN_TIMEOUT) {
            Ok(output) => output.expect("a child can be waited for"),
            Err(_) => {
                signal(id, "KILL");
                panic!("{self} {arguments:?} still runs after {RUN_TIMEOUT:?}");
            }
        }
    }
}

/// Whether a program ended because another process has bound its port in the meantime, as its log says.
#[must_use]
pub fn is_port_taken(log: &str) -> bool {
    let log = log.to_ascii_lowercase();
    log.contains("in use") || log.contains("os error 98")
}

/// The lines of a log that were written to their ends: the last one may still be on its way.
#[must_use]
pub fn whole_lines(mut log: String) -> String {
    log.truncate(log.rfind('\n').map_or(0, |end| end + 1));
    log
}

/// What a program printed, on standard output and then on standard error.
#[must_use]
pub fn output_text(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|text| String::from_utf8_lossy(text))
        .concat()
}

/// The folder into which the programs were built: the one above the running test's.
///
/// # Panics
///
/// When the test does not lie in a target folder.
#[must_use]
pub fn programs_folder() -> PathBuf {
    let this = env::current_exe().expect("a program knows where it is");
    let folder = this.parent().expect("a file lies in a folder");
    // A test is one folder further down, in `deps`.
    let above = folder.parent().filter(|_| folder.ends_with("deps"));
    above.unwrap_or(folder).to_owned()
}

/// The path of the built program of this name.
///
/// # Panics
///
/// When it has not been built.
pub(crate) fn path_of(name: &str) -> PathBuf {
    let path = programs_folder().join(name);
    assert!(
        path.is_file(),
        "{} is missing: run scripts/test, or cargo build --workspace --bins",
        path.display()
    );
    path
}

/// One of several processes of a program. A [`Program`] alone stands for its first process, number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instance {
    /// The program that it runs.
    pub program: Program,
    /// Its number, from 0.
    pub number: usize,
}

impl From<Program> for Instance {
    fn from(program: Program) -> Self {
        serving(program).number(0)
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

/// A running program. When dropped, it is killed and waited for.
///
/// If the test fails, the end of the program's log is printed.
#[derive(Debug)]
pub struct Running {
    instance: Instance,
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts a program; its output goes to a log file in the folder.
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

    /// Starts a program by this command; otherwise like [`Self::start`].
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
        let log = log_path(instance, folder);
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

    /// Starts a program that writes into a pipe. Only the caller reads the pipe.
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
        let (reader, output) = pipe().expect("a pipe can be created");
        let child = instance
            .program
            .command(folder)
            .args(arguments)
            .stdout(output.try_clone().expect("a pipe has a second handle"))
            .stderr(output)
            .spawn()
            .expect("a built program starts");
        let log = log_path(instance, folder);
        let running = Self {
            instance,
            child,
            log,
        };
        (running, reader)
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it has exited.
    ///
    /// # Panics
    ///
    /// When the system does not know the process.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child has a status")
    }

    /// Its log so far, from standard output and standard error.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        whole_lines(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Resident memory in KiB (`VmRSS`, proc(5)).
    ///
    /// # Panics
    ///
    /// When the process has exited.
    #[must_use]
    pub fn resident_kib(&self) -> u64 {
        self.memory_kib("VmRSS:")
    }

    /// Largest resident memory since the last [`Self::reset_peak`], in KiB (`VmHWM`, proc(5)).
    ///
    /// # Panics
    ///
    /// When the process has exited.
    #[must_use]
    pub fn peak_kib(&self) -> u64 {
        self.memory_kib("VmHWM:")
    }

    /// Sets [`Self::peak_kib`] to the resident memory of now.
    ///
    /// # Panics
    ///
    /// When the process has exited.
    pub fn reset_peak(&self) {
        fs::write(format!("/proc/{}/clear_refs", self.id()), "5").expect("a running process");
    }

    fn memory_kib(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.expect("a running process has a status");
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.trim().strip_suffix("kB"));
        number
            .and_then(|number| number.trim().parse().ok())
            .expect("proc(5) gives the form")
    }

    /// Sends `SIGTERM`, as an operator would to stop it.
    ///
    /// # Panics
    ///
    /// When the program `kill` is missing.
    pub fn terminate(&self) {
        signal(self.id(), "TERM");
    }

    /// Sends `SIGHUP`: the program reloads its configuration.
    ///
    /// # Panics
    ///
    /// When the program `kill` is missing.
    pub fn reload_by_signal(&self) {
        signal(self.id(), "HUP");
    }

    /// Sends `SIGUSR1`: the program reopens its log files.
    ///
    /// # Panics
    ///
    /// When the program `kill` is missing.
    pub fn reopen_logs(&self) {
        signal(self.id(), "USR1");
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) {
        // Fails only if it has exited already.
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
                .nth(MAX_SHOWN)
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

fn log_path(instance: Instance, folder: &Path) -> PathBuf {
    folder.join(format!("{instance}.log"))
}

/// Characters of the log's end that are printed after a failure.
const MAX_SHOWN: usize = 16_000;

/// Sends a signal, named without `SIG`.
///
/// # Panics
///
/// When the program `kill` is missing.
pub fn signal(id: u32, signal: &str) {
    let status = Command::new("kill")
        .args([&format!("-{signal}"), &id.to_string()])
        .status();
    assert!(status.expect("kill is a command").success());
}
