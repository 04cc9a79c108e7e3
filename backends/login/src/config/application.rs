//! The application of single-application mode, and the origins that logins may return to.

use signpost_kit::config::{Read, Section};
pub use signpost_kit::origin::Origin;

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
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let name = section.parsed_by("name", NAME, "1 to 100 characters", |name| {
            let is_name = !name.trim().is_empty() && name.chars().count() <= 100;
            is_name.then(|| name.to_owned())
        });
        let origins = "origins, for example \"https://app.example\"";
        let return_to = section.list("return_to", &[], origins, |origin| origin.parse().ok());
        Ok(Self {
            name: name?,
            return_to: return_to?,
        })
    }
}
