//! The program that serves every version.

use std::process::ExitCode;

use login::program::{Program, run_all};

fn main() -> ExitCode {
    let program = Program {
        name: "login-all",
        about: "Every version of Signpost's login service in one process",
        version: login::release!(),
        config: "conf/all.toml",
    };
    run_all(&program, &login_all::versions())
}
