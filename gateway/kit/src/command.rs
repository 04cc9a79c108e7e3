//! What the commands of every program print, and their exit codes.

use std::{net::SocketAddr, path::Path, process::ExitCode};

use crate::{
    health,
    log_writer::write_final_line,
    reload::control::{self, Verb},
};

/// Prints a line of a command's output.
#[expect(clippy::print_stdout, reason = "the output of a command")]
pub fn print_line(line: &str) {
    println!("{line}");
}

/// Gives the program that runs with `file` a command, and prints its answer: to standard error if it did not do it.
///
/// # Errors
///
/// As [`control::ask`].
pub fn ask(file: &Path, verb: Verb) -> anyhow::Result<ExitCode> {
    let answer = control::ask(file, verb)?;
    if answer.is_good {
        print_line(&answer.text);
        Ok(ExitCode::SUCCESS)
    } else {
        write_final_line(answer.text);
        Ok(ExitCode::FAILURE)
    }
}

/// Prints what `/readyz` of the program that runs with `file` answers; 200 is success. `from_file` says where that is, if the
/// program does not.
///
/// # Errors
///
/// As [`health::ask_program`].
pub fn health(
    file: &Path,
    from_file: impl FnOnce() -> anyhow::Result<SocketAddr>,
) -> anyhow::Result<ExitCode> {
    let health = health::ask_program(file, from_file)?;
    print_line(&health.words);
    Ok(if health.is_ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
