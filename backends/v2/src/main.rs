//! The program of version 2.

use std::process::ExitCode;

use login::program::{Program, run};

fn main() -> ExitCode {
    run::<login_v2::V2>(&Program {
        name: "login-v2",
        about: "Version 2 of Signpost's login service",
        version: login::release!(),
        config: "conf/v2.toml",
    })
}
