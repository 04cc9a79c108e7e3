//! Who changes something by a command: the system's user, on this machine.

use std::{env, fs};

use clap::Args;
use rustix::process::{geteuid, getuid};
use signpost_protocol::app::shown_name;
use signpost_store::tables::audit::Author;

use crate::{directory::apps::rules::Reason, observe::gateways::host_name};

/// Limit of a user's name in characters.
const MAX_NAME_LENGTH: usize = 255;

/// Why something is changed.
#[derive(Debug, Args)]
pub(super) struct Why {
    /// Why, for signpost audit: up to 200 characters.
    #[arg(long, value_name = "TEXT")]
    reason: Option<Reason>,
}

impl Why {
    /// The author of a change by this command.
    pub(super) fn author(self) -> Author {
        Author {
            actor: actor(),
            origin: format!("cli {}", host_name()),
            reason: self.reason.map(String::from),
        }
    }
}

/// The user's name, or `uid 1000` if it has none in the system's file. Of root by sudo, whose caller only root can choose,
/// that caller.
fn actor() -> String {
    let sudo = env::var("SUDO_USER").ok().filter(|_| geteuid().is_root());
    if let Some(caller) = sudo.as_deref().and_then(name) {
        return format!("{caller} (sudo)");
    }
    let id = getuid().as_raw();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = user_of(&users, id).and_then(name);
    user.map_or_else(|| format!("uid {id}"), str::to_owned)
}

/// The name of a user in the format of `/etc/passwd`.
fn user_of(users: &str, id: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, user) = (fields.next()?, fields.nth(1)?);
        (user.parse() == Ok(id)).then_some(name)
    })
}

fn name(text: &str) -> Option<&str> {
    shown_name(text, MAX_NAME_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(user_of(users, 0), Some("root"));
        assert_eq!(user_of(users, 1000), Some("ada"));
        assert_eq!(user_of(users, 100), None);
    }
}
