//! Output and exit codes of the commands that all programs share.

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

/// Prints the `/readyz` response of the program running with `file`; status 200 is success.
///
/// `from_file` returns the address if the program itself does not report one.
///
/// # Errors
///
/// As [`health::check_program`].
pub fn print_health(
    file: &Path,
    from_file: impl FnOnce() -> anyhow::Result<SocketAddr>,
) -> anyhow::Result<ExitCode> {
    let health = health::check_program(file, from_file)?;
    print_line(&health.body);
    Ok(if health.is_ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
