//! Version 1 without its program: `tests/bridged` runs the tests of version 1 against v2 behind a bridge.

use std::{env, sync::OnceLock};

use crate::program::Program;

/// The name of the test program whose stacks have a bridge.
const BRIDGED: &str = "bridged-";

/// Whether version 2 serves version 1 in this process.
#[must_use]
pub fn is_bridged() -> bool {
    static IS_BRIDGED: OnceLock<bool> = OnceLock::new();
    *IS_BRIDGED.get_or_init(|| {
        let program = env::current_exe().expect("a test has a program");
        let name = program.file_name().expect("it is a file");
        name.to_string_lossy().starts_with(BRIDGED)
    })
}

/// The program that serves what this one serves by its own name.
#[must_use]
pub fn serving(program: Program) -> Program {
    match program {
        Program::V1 if is_bridged() => Program::V2,
        program => program,
    }
}
