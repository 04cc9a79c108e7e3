//! The program of version 1.

use std::process::ExitCode;

use login::program::{Program, run};
use signpost_release::RELEASE;

fn main() -> ExitCode {
    run::<login_v1::V1>(&Program {
        name: "login-v1",
        about: "Version 1 of Signpost's login service",
        version: RELEASE,
        config: "conf/v1.toml",
    })
}
