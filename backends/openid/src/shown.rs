//! Text of a provider that a log line may show.

use std::fmt;

/// Most characters that are shown.
const MAX_SHOWN: usize = 200;

/// The visible ASCII characters of a text, at most 200: nothing that changes a log line or a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown(String);

impl Shown {
    pub(crate) fn new(text: &str) -> Self {
        let visible = text.chars().filter(char::is_ascii_graphic);
        Self(visible.take(MAX_SHOWN).collect())
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_ascii_characters_are_shown() {
        let long = "é a\u{202e}\u{1b}[31m\n".to_owned() + &"b".repeat(300);
        let shown = Shown::new(&long).to_string();
        assert_eq!(shown, "a[31m".to_owned() + &"b".repeat(195));
    }
}
