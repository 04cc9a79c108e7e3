//! The program that serves every version.

use std::process::ExitCode;

use login::program::{Program, run_all};
use signpost_release::RELEASE;

fn main() -> ExitCode {
    let program = Program {
        name: "login-all",
        about: "Every version of Signpost's login service in one process",
        version: RELEASE,
        config: "conf/all.toml",
    };
    run_all(&program, &login_all::versions())
}
