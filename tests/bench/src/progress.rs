//! What is said while it runs.

use std::io::{self, Write};

/// Says a line, for whoever waits.
///
/// # Errors
///
/// Nobody listens any more.
pub fn say(line: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{line}")
}
