//! The commands that all programs have, and the output and exit codes of all commands.

mod listing;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{self, ExitCode},
};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use clap_complete::Shell;

pub use self::listing::{Entry, Selection};
use crate::{
    config::keys::{Key, schema::file_schema},
    log::writer::write_final_line,
    metrics::{Families, shared::SHARED},
    reload::control::{self, Verb},
    server::health::{self, HealthAddress},
};

/// The option that names the configuration file.
#[derive(Debug, Args)]
pub struct ConfigFile {
    /// The configuration file.
    #[arg(long, value_name = "FILE", default_value = "conf/gateway.toml")]
    pub config: PathBuf,
}

/// The commands that every program has.
#[derive(Debug, Subcommand)]
pub enum SharedCommand {
    /// Check the configuration file, and print all problems and warnings; exit code 0 or 1.
    Check {
        /// The configuration file.
        #[command(flatten)]
        file: ConfigFile,
        /// Have the running program check the file, and print what a reload would change.
        #[arg(long)]
        diff: bool,
    },
    /// Reload the running program's configuration, and print the changes or the errors; exit code 0 or 1.
    Reload(ConfigFile),
    /// Check whether the running program is ready to serve requests; exit code 0 or 1.
    Health(ConfigFile),
    /// Print the keys of the configuration file: allowed values, default, meaning, and whether a reload applies a change
    /// or a new process is needed. TEXT can be a key as a file has it, for example versions.v1.backend.
    Keys {
        /// The keys.
        #[command(flatten)]
        selection: Selection,
        /// Print a JSON Schema of the file, for editors.
        #[arg(long, conflicts_with_all = ["texts", "json"])]
        schema: bool,
    },
    /// Print the metrics: name as in Prometheus' text format, type, labels, meaning. Those that a version of the login
    /// service makes itself are not listed.
    Metrics(Selection),
    /// Print a shell's completion of this program's commands, for example bash; it is for the shell's folder of completions.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write the manual pages of this program and of each command into a folder, which must exist.
    Man {
        /// The folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

impl SharedCommand {
    /// Runs the command. `program` is its command line. `keys` describes the program's keys, and `families` the metrics
    /// that only this program has. `warnings` checks the file. `address` reads where the program serves `/readyz`, in
    /// case it does not report that itself.
    ///
    /// # Errors
    ///
    /// The file is invalid, the running program cannot be reached, there is no key or metric of that name, or the folder
    /// cannot be written.
    pub fn run(
        self,
        program: clap::Command,
        keys: impl FnOnce() -> Vec<Key>,
        families: &[Families],
        warnings: impl FnOnce(&Path) -> anyhow::Result<Vec<String>>,
        address: impl FnOnce(&Path) -> anyhow::Result<HealthAddress>,
    ) -> anyhow::Result<ExitCode> {
        match self {
            // Asks the running program: only it has the environment variables that the file refers to.
            Self::Check { file, diff: true } => send_command(&file.config, Verb::Diff),
            Self::Check { file, diff: false } => {
                for warning in warnings(&file.config)? {
                    print_line(&format!("warning: {warning}"));
                }
                print_text(&format!("{}: OK", file.config.display()))
            }
            Self::Reload(file) => send_command(&file.config, Verb::Reload),
            Self::Health(ConfigFile { config: file }) => {
                let check = health::check_program(&file, || address(&file));
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                let health = runtime.block_on(check)?;
                print_line(&health.body);
                Ok(ExitCode::from(u8::from(!health.is_ready)))
            }
            Self::Keys { selection, schema } => print_text(&match schema {
                true => serde_json::to_string_pretty(&file_schema(&keys()))?,
                false => selection.list("key", keys(), listing::key)?,
            }),
            Self::Metrics(selection) => {
                let families = families.iter().chain(&SHARED);
                let families = families.copied().flatten().copied().collect();
                print_text(&selection.list("metric", families, listing::family)?)
            }
            Self::Completions { shell } => print_text(completions(program, shell).trim_end()),
            Self::Man { folder } => {
                let written = clap_mangen::generate_to(program, &folder);
                written.with_context(|| format!("cannot write to {}", folder.display()))?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

/// The completions of a program, for a shell.
fn completions(mut program: clap::Command, shell: Shell) -> String {
    let (name, mut script) = (program.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut program, &name, &mut script);
    // For bash, the library writes the hyphens of a program's name in two ways.
    let [long, short] = ["__subcmd__", "__"].map(|hyphen| name.replace('-', hyphen));
    String::from_utf8_lossy(&script).replace(&long, &short)
}

/// Prints the output of a command that succeeds.
///
/// # Errors
///
/// None: commands return such a result.
pub fn print_text(text: &str) -> anyhow::Result<ExitCode> {
    print_line(text);
    Ok(ExitCode::SUCCESS)
}

/// Prints a line of a command's output.
///
/// If the reader has closed the pipe, as `head` does, it wants no more. If the line cannot be written for another reason, for
/// example on a full disk, the command fails: its output may be the only copy of a new key.
pub fn print_line(line: &str) {
    if let Err(error) = writeln!(io::stdout(), "{line}")
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        write_final_line(format!("cannot write to standard output: {error}"));
        process::exit(1);
    }
}

/// Sends a command to the program running with `file` and prints its reply; a failure goes to standard error.
///
/// # Errors
///
/// As [`control::send`].
pub fn send_command(file: &Path, verb: Verb) -> anyhow::Result<ExitCode> {
    let reply = control::send(file, verb)?;
    if reply.is_success {
        print_line(&reply.text);
        Ok(ExitCode::SUCCESS)
    } else {
        write_final_line(reply.text);
        Ok(ExitCode::FAILURE)
    }
}
