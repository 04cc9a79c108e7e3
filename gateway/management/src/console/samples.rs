//! A call in each language.

use maud::{Markup, html};

use super::page::Reader;

/// Calls by the client libraries, folded: the name of each language, and its lines.
pub(super) fn samples(
    reader: &Reader,
    samples: impl Iterator<Item = (&'static str, String)>,
) -> Markup {
    html! {
        h2 { (reader.text("console_samples")) }
        p { (reader.text("console_samples_how")) }
        @for (name, code) in samples {
            details { summary { (name) } pre { code { (code) } } }
        }
    }
}
