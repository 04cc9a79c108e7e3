//! Who changes something by a command: the system's user, on this machine.

use std::env;

use clap::Args;
use rustix::process::{geteuid, getuid};
use signpost_store::tables::audit::Author;

use signpost_management::{
    administration::{
        audit::{user_name, user_shown},
        rules::Reason,
    },
    reports::gateways::host_name,
};

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
            origin: origin(),
            reason: self.reason.map(String::from),
        }
    }
}

/// From where: this computer.
pub(super) fn origin() -> String {
    format!("cli {}", host_name())
}

/// The user's name. Of root by sudo, whose caller only root can choose, that caller.
pub(super) fn actor() -> String {
    let sudo = env::var("SUDO_USER").ok().filter(|_| geteuid().is_root());
    if let Some(caller) = sudo.as_deref().and_then(user_shown) {
        return format!("{caller} (sudo)");
    }
    user_name(getuid().as_raw())
}
