//! The program of version 2.

use std::process::ExitCode;

use login::program::{Program, run};

fn main() -> ExitCode {
    run(&Program {
        name: "login-v2",
        about: "Version 2 of Signpost's login service",
        version: login::release!(),
        config: "conf/v2.toml",
        router: login_v2::router,
    })
}
