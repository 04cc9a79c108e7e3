//! The application of single-application mode.

use signpost_kit::config::{Read, Section};
pub use signpost_kit::origin::Origin;

/// Default of `name`, shown on pages.
const NAME: &str = "Signpost";

/// The application of single-application mode. In multi-application mode, the store has these values.
#[derive(Clone, Debug)]
pub struct SingleApplication {
    /// Its name, shown to users. 1 to 100 characters.
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
