//! The socket of the commands to a running program, while another user of the machine has taken its name.
//! Issue 22, row 6.

use std::{
    fs,
    io::Read,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, chown},
    },
    path::{Path, absolute},
    process::{Child, Command, Output, Stdio},
};

use end_to_end::{
    program::{Instance, Program, output_text},
    stack::Stack,
    waiting::until,
};
use sha2::{Digest, Sha256};

/// The user `nobody`, who runs no program of Signpost.
const STRANGER: u32 = 65534;

/// A process of another user that has a socket's name, and answers every command as a reload that succeeded. It ends when
/// dropped.
struct Impostor(Child);

impl Impostor {
    /// Takes the name of the program that runs with this file. `listens`: or does not even listen.
    async fn start(file: &str, listens: bool) -> Self {
        let script = r"
import socket, sys
name, listens = sys.argv[1], sys.argv[2] == 'listens'
taken = socket.socket(socket.AF_UNIX)
taken.bind('\0' + name)
if listens:
    taken.listen()
print('bound', flush=True)
while listens:
    command, _ = taken.accept()
    command.recv(1)
    try:
        command.send(b'+reloaded, nothing changed')
    except BrokenPipeError:
        pass
    command.close()
sys.stdin.read()
";
        let listens = if listens { "listens" } else { "is deaf" };
        let stranger = STRANGER.to_string();
        let mut child = Command::new("setpriv")
            .args(["--reuid", &stranger, "--regid", &stranger, "--clear-groups"])
            .args([
                "/usr/bin/python3",
                "-c",
                script,
                &socket_name(file),
                listens,
            ])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("scripts/prerequisites test installs them");
        let mut printed = child.stdout.take().unwrap();
        let bound = tokio::task::spawn_blocking(move || {
            let mut line = [0; 6];
            printed.read_exact(&mut line).map(|()| line)
        });
        assert_eq!(&bound.await.unwrap().unwrap(), b"bound\n");
        Self(child)
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The name as any user can work it out.
fn socket_name(file: &str) -> String {
    let mut hash = Sha256::new();
    let container = fs::read_link("/proc/self/ns/pid").unwrap();
    hash.update(container.as_os_str().as_bytes());
    hash.update([0]);
    hash.update(absolute(Path::new(file)).unwrap().as_os_str().as_bytes());
    format!("signpost-{}", hex::encode(&hash.finalize()[..16]))
}

/// A program of another user needs root to start it. Without root there is no other user to test with.
fn can_act_as_others() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn reload(program: Program, folder: &Path) -> Output {
    let config = config(program, folder);
    program.run(folder, &["reload", "--config", &config])
}

fn config(program: Program, folder: &Path) -> String {
    let file = folder.join(format!("{}.toml", Instance::from(program)));
    file.display().to_string()
}

#[tokio::test]
async fn an_impostor_is_reported_and_not_believed() {
    if !can_act_as_others() {
        return;
    }
    let mut stack = Stack::start().await;
    for (program, listens) in [
        (Program::Gateway, true),
        (Program::Gateway, false),
        (Program::V1, true),
    ] {
        stack.kill(program);
        let impostor = Impostor::start(&config(program, stack.folder()), listens).await;
        stack.restart(program).await;
        let holder = if listens {
            "holder=\"a process of user 65534\""
        } else {
            "holder=\"a process that does not answer\""
        };
        let log = stack.log_with(program, holder).await;
        let line = log.lines().find(|line| line.contains(holder)).unwrap();
        assert!(
            line.contains("ERROR") && line.contains("has taken its socket"),
            "{line}"
        );
        let refused = reload(program, stack.folder());
        let text = output_text(&refused);
        assert_eq!(refused.status.code(), Some(1), "{text}");
        assert!(!text.contains("reloaded"), "{text}");
        assert_eq!(text.contains("belongs to user 65534"), listens, "{text}");
        // The program takes the name once it is free.
        drop(impostor);
        until("the command to work", || async {
            let output = reload(program, stack.folder());
            let text = output_text(&output);
            (output.status.success() && text.contains("reloaded, nothing changed")).then_some(())
        })
        .await;
    }
}

/// Root says as which user a program runs, by running the command as that user.
#[tokio::test]
async fn a_program_of_another_user_takes_commands_of_that_user() {
    let (mut stack, _backend) = Stack::recording().await;
    let folder = stack.folder().to_owned();
    let as_stranger = || Program::Gateway.command_as(STRANGER, STRANGER, &folder);
    let Some(gateway) = as_stranger() else {
        return;
    };
    stack.kill(Program::Gateway);
    for file in fs::read_dir(&folder).unwrap() {
        chown(file.unwrap().path(), Some(STRANGER), None).unwrap();
    }
    stack.restart_as(Program::Gateway, gateway).await;
    let refused = reload(Program::Gateway, stack.folder());
    let text = output_text(&refused);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(text.contains("run the command as that user"), "{text}");
    let mut command = as_stranger().unwrap();
    let config = config(Program::Gateway, &folder);
    let reloaded = command.args(["reload", "--config", &config]).output();
    let text = output_text(&reloaded.unwrap());
    assert!(text.contains("reloaded, nothing changed"), "{text}");
}
