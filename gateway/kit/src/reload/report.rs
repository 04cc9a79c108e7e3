//! What a reload changed, or would change.

use std::{fmt, path::PathBuf};

use serde::Serialize;

use crate::config::Change;

/// Limit of the keys in a line of the log.
const MAX_LOGGED_KEYS: usize = 20;

/// What a reload changed, or would change; secrets are hidden. `Display` is the output of the commands.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "operators", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "operators", schema(as = ReloadReport))]
pub struct Report {
    #[serde(skip)]
    pub(super) file: PathBuf,
    /// Whether it was applied; otherwise it was only compared.
    pub(super) is_applied: bool,
    /// What an operator should know of the new configuration.
    pub warnings: Vec<String>,
    /// Changes that a reload applies.
    pub changed: Vec<Change>,
    /// Changes that need a new process: until then, the keys keep their values.
    pub needing_restart: Vec<Change>,
    /// What applies these.
    pub new_process: String,
}

impl Report {
    pub(super) const fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.needing_restart.is_empty()
    }

    pub(super) fn log(&self) {
        let file = self.file.display();
        let changed = match keys(&self.changed) {
            none if none.is_empty() => "nothing changed".to_owned(),
            changed => changed,
        };
        tracing::info!(%file, changed, "configuration reloaded");
        if !self.needing_restart.is_empty() {
            let keys = keys(&self.needing_restart);
            tracing::warn!(%file, keys, "keys keep their values: {}", self.new_process);
        }
    }
}

/// The keys of changes, for the log; of many, the first ones and how many there are more. The commands list all.
fn keys(changes: &[Change]) -> String {
    let (shown, further) = changes.split_at(changes.len().min(MAX_LOGGED_KEYS));
    let keys: Vec<_> = shown.iter().map(|change| change.key.as_str()).collect();
    let keys = keys.join(", ");
    match further.len() {
        0 => keys,
        more => format!("{keys} and {more} more"),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = match (self.is_applied, self.changed.is_empty()) {
            (true, false) => "reloaded",
            (true, true) => "reloaded, nothing changed",
            (false, false) => "OK, a reload would change:",
            (false, true) => "OK, a reload would change nothing",
        };
        for warning in &self.warnings {
            writeln!(formatter, "warning: {warning}")?;
        }
        write!(formatter, "{}: {title}", self.file.display())?;
        for change in &self.changed {
            write!(formatter, "\n  {change}")?;
        }
        if !self.needing_restart.is_empty() {
            write!(formatter, "\n{}:", self.new_process)?;
        }
        for change in &self.needing_restart {
            write!(formatter, "\n  {change}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config;

    #[test]
    fn a_line_of_the_log_has_a_limited_number_of_keys() {
        let settings = |size: u32| {
            let lines = (0..30).map(|number| format!("k{number:02} = {size}\n"));
            let text: String = lines.collect();
            let read = |root: &mut config::Section<'_>| {
                for number in 0..30 {
                    root.number(&format!("k{number:02}"), 0..=9, 0_u32)?;
                }
                Ok(())
            };
            let loaded = config::parse(Path::new("a.toml"), &text, read);
            loaded.unwrap().settings
        };
        let changes = settings(1).changes(&settings(2));
        let logged = keys(&changes);
        assert!(logged.starts_with("k00, k01, "), "{logged}");
        assert!(logged.ends_with(", k19 and 10 more"), "{logged}");
        assert_eq!(keys(&changes[..2]), "k00, k01");
    }
}
