//! The application of single-application mode, and the origins that logins may return to.

pub use signpost_kit::origin::Origin;

use super::{problems::Problems, raw::RawApplication};

/// Shown on pages when no name was configured.
const NAME: &str = "Signpost";

/// What a record in the store says in multi-application mode.
#[derive(Clone, Debug)]
pub struct SingleApplication {
    /// Its name, for people.
    pub name: String,
    /// Origins that logins may return to; default none.
    pub return_to: Vec<Origin>,
}

impl SingleApplication {
    pub(super) fn read(raw: RawApplication, problems: &mut Problems) -> Self {
        let return_to = raw
            .return_to
            .unwrap_or_default()
            .into_iter()
            .filter_map(|origin| {
                problems.parse(
                    "application.return_to",
                    &origin,
                    "origins, \"https://app.example\" say",
                )
            });
        let return_to = return_to.collect();
        let name = raw.name.unwrap_or_else(|| NAME.to_owned());
        if name.trim().is_empty() || name.chars().count() > 100 {
            problems.add(
                "application.name",
                &format!("{name:?}"),
                "1 to 100 characters",
            );
        }
        Self { name, return_to }
    }
}
