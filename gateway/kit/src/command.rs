//! Output and exit codes of the commands that all programs share.

use std::{
    io::{self, Write as _},
    net::SocketAddr,
    path::Path,
    process::{self, ExitCode},
};

use crate::{
    log::writer::write_final_line,
    reload::control::{self, Verb},
    server::health,
};

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
