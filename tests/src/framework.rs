//! A server of another language or program, as a process: the examples in `backends/examples`, and readers of requests.

use std::{
    env, fs,
    net::SocketAddr,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{
    documents::root,
    signed_client::http_client,
    waiting::{WAIT_TIMEOUT, until_within},
};

/// The installed frameworks. `None` if `scripts/test` has reported that they cannot be installed here.
///
/// # Panics
///
/// When they are missing without a report.
#[must_use]
pub fn frameworks() -> Option<PathBuf> {
    if env::var_os("SIGNPOST_TEST_WITHOUT_FRAMEWORKS").is_some() {
        return None;
    }
    let frameworks = root().join("target/examples").canonicalize();
    Some(frameworks.expect("run scripts/prerequisites examples"))
}

/// The command that starts an example by its framework, as its documentation tells: `program` is `orders` or `api`.
/// `None` without the frameworks.
///
/// # Panics
///
/// When its files cannot be copied, or Go does not build it.
#[must_use]
pub fn example(
    program: &str,
    framework: &str,
    address: SocketAddr,
    folder: &Path,
) -> Option<Command> {
    let frameworks = frameworks()?;
    let examples = root().join("backends/examples");
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let module = format!("{program}_{framework}:app");
    let command = match framework {
        "express" => {
            let own = folder.join("node");
            fs::create_dir_all(&own).expect("temporary files can be created");
            for file in ["gateway.mjs", &format!("{program}.mjs")] {
                let from = examples.join("node").join(file);
                fs::copy(from, own.join(file)).expect("the file is there");
            }
            let modules = own.join("node_modules");
            if !modules.exists() {
                symlink(frameworks.join("node/node_modules"), modules).expect("a new link");
            }
            let mut command = Command::new("node");
            command.args([&format!("{program}.mjs"), &host, &port]);
            command.current_dir(own);
            command
        }
        "go" => {
            let mut command = go(&examples.join("go").join(format!("{program}.go")), folder);
            command.arg(address.to_string());
            command
        }
        "fastapi" => {
            let mut command = python(&frameworks, "uvicorn", &examples.join("python"));
            command.args(["--timeout-keep-alive", "120", "--host", &host]);
            command.args(["--port", &port, &module]);
            command
        }
        _ => {
            let mut command = python(&frameworks, "gunicorn", &examples.join("python"));
            command.args(["--bind", &address.to_string(), &module]);
            command
        }
    };
    Some(command)
}

/// A program of the environment of Python, for example `uvicorn`, which finds the modules in `folder`.
#[must_use]
pub fn python(frameworks: &Path, program: &str, folder: &Path) -> Command {
    let mut command = Command::new(frameworks.join("python/bin").join(program));
    command
        .current_dir(folder)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A program of one file of Go, built into `folder`.
///
/// # Panics
///
/// When it cannot be built.
#[must_use]
pub fn go(file: &Path, folder: &Path) -> Command {
    let built = folder.join("go-program");
    let mut build = Command::new("go");
    build.args(["build", "-buildvcs=false", "-o"]);
    build
        .arg(&built)
        .arg(file.canonicalize().expect("the file is there"));
    let output = build.current_dir(folder).env("GOPROXY", "off").output();
    let output = output.expect("Go is installed: scripts/prerequisites test");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    Command::new(built)
}

/// A running server. When dropped, it is ended.
#[derive(Debug)]
pub struct Server {
    /// Its address.
    pub address: SocketAddr,
    child: Child,
}

impl Server {
    /// Starts it by this command, and waits until it answers requests for `path`.
    ///
    /// # Panics
    ///
    /// When it exits, or does not answer in time.
    pub async fn start(mut command: Command, address: SocketAddr, path: &str) -> Self {
        let what = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::null()).spawn();
        let child = child.expect("the program is installed");
        let mut server = Self { address, child };
        let (http, url) = (http_client(), format!("http://{address}{path}"));
        let limit = 3 * WAIT_TIMEOUT;
        until_within(limit, &format!("{what} to answer"), || {
            let exited = server.child.try_wait().expect("its status can be read");
            assert!(exited.is_none(), "{what} has exited");
            let response = http.get(&url).send();
            async move { response.await.ok() }
        })
        .await;
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited. gunicorn and nginx end their workers by SIGTERM only.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let _ = self.child.wait();
    }
}
