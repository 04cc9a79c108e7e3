//! The program of version 2.

use std::process::ExitCode;

use login::program::{Program, run};
use signpost_release::RELEASE;

fn main() -> ExitCode {
    run::<login_v2::V2>(&Program {
        name: "login-v2",
        about: "Version 2 of Signpost's login service",
        version: RELEASE,
        config: "conf/v2.toml",
    })
}
