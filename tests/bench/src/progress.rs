//! Progress messages.

use std::io::{self, Write};

/// Prints a line to standard error.
///
/// # Errors
///
/// When standard error is closed.
pub fn print_line(line: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{line}")
}
