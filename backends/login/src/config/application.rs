//! The application of single-application mode.

pub use signpost_kit::config::origin::Origin;
use signpost_kit::config::{Read, Section};
use signpost_protocol::app::shown_name;

/// Limit of a name's length in characters.
const MAX_NAME_LENGTH: usize = 100;
/// Default of `name`, shown on pages.
const NAME: &str = "Signpost";

/// The application of single-application mode. In multi-application mode, the store has these values.
#[derive(Clone, Debug)]
pub struct SingleApplication {
    /// Its name, shown to users. 1 to 100 visible characters.
    pub name: String,
    /// Origins that logins may return to; default none.
    pub return_to: Vec<Origin>,
}

impl SingleApplication {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let name = section.parsed_by("name", NAME, "1 to 100 visible characters", |name| {
            shown_name(name, MAX_NAME_LENGTH).map(str::to_owned)
        });
        let origins = "origins, for example \"https://app.example\"";
        let return_to = section.list("return_to", &[], origins, |origin| origin.parse().ok());
        Ok(Self {
            name: name?,
            return_to: return_to?,
        })
    }
}
