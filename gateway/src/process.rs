//! The running program: its start, reload, upgrade and stop, and what it shows of its state.

pub(crate) mod certificate_watch;
pub(crate) mod drain_watch;
pub(crate) mod listeners;
pub(crate) mod old_rows;
pub(crate) mod presence;
pub(crate) mod rate_sharing;
pub(crate) mod reconnect;
pub(crate) mod reload;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod upgrade;
