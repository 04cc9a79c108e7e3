//! The program that serves every version.

use std::process::ExitCode;

use login::program::{Program, run};

fn main() -> ExitCode {
    run(&Program {
        name: "login-all",
        about: "Every version of Signpost's login service in one process",
        version: login::release!(),
        config: "conf/all.toml",
        router: login_all::router,
    })
}
