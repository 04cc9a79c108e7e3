//! Parses the command line. Errors never quote an address, which may contain a password.

use std::{ffi::OsString, process::ExitCode};

use clap::{Parser, error::Error};

use super::{Arguments, print_error};

/// Replaces a sensitive word.
const REDACTED: &str = "…";

/// Parses the command line.
///
/// # Errors
///
/// It asks for help or is invalid. The text was printed already; the process should end with this exit code.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Arguments, ExitCode> {
    let words: Vec<OsString> = words.into_iter().collect();
    Arguments::try_parse_from(&words).map_err(|error| print_and_exit_code(&error, &words))
}

fn print_and_exit_code(error: &Error, words: &[OsString]) -> ExitCode {
    let may_hold_password = sensitive_words(words);
    if may_hold_password.is_empty() || !error.use_stderr() {
        // Printed by clap, which uses colours on a terminal.
        let _ = error.print();
    } else {
        print_error(redacted(error.to_string(), &may_hold_password).trim_end());
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Words, and values after an equals sign, with a colon or an at sign. The longest come first, since a shorter one may
/// be part of a longer one.
fn sensitive_words(words: &[OsString]) -> Vec<String> {
    let words = words.iter().skip(1).map(|word| word.to_string_lossy());
    let mut sensitive_words: Vec<String> = words
        .flat_map(|word| {
            let value = word.split_once('=').map(|(_, value)| value.to_owned());
            [Some(word.into_owned()), value]
        })
        .flatten()
        .filter(|word| word.contains([':', '@']))
        .collect();
    sensitive_words.sort_unstable_by_key(|word| std::cmp::Reverse(word.len()));
    sensitive_words
}

fn redacted(text: String, sensitive_words: &[String]) -> String {
    sensitive_words
        .iter()
        .fold(text, |text, word| text.replace(&**word, REDACTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "postgres://u:hush@db/d";

    fn error_text(words: &str) -> String {
        let words: Vec<OsString> = words.split(' ').map(Into::into).collect();
        let error = Arguments::try_parse_from(&words).unwrap_err();
        redacted(error.to_string(), &sensitive_words(&words))
    }

    #[test]
    fn an_address_in_the_wrong_place_is_not_quoted() {
        for words in [
            "signpost store copy ADDRESS",
            "signpost store copy --from sqlite:x --to y ADDRESS",
            "signpost store copy --from ADDRESS ADDRESS",
            "signpost store copy --form=ADDRESS",
            "signpost store copy --form ADDRESS",
            "signpost store copy -ADDRESS",
            "signpost store copy -- ADDRESS",
            "signpost store copy --from --to ADDRESS",
            "signpost store copy --to=ADDRESS --to=ADDRESS",
            "signpost store copy --ADDRESS",
            "signpost store ADDRESS",
            "signpost ADDRESS",
            "signpost run ADDRESS",
            "signpost app rotate ADDRESS",
            "signpost app rotate x --overlap=ADDRESS",
            "signpost store copy postgres://u:h w:hush@db/d",
        ] {
            let text = error_text(&words.replace("ADDRESS", ADDRESS));
            assert!(text.starts_with("error: "), "{words}: {text}");
            assert!(
                !text.contains("hush") && !text.contains("u:h"),
                "{words}: {text}"
            );
        }
    }

    #[test]
    fn clap_itself_would_quote_it() {
        let words = ["signpost", "store", "copy", ADDRESS];
        let error = Arguments::try_parse_from(words).unwrap_err();
        assert!(error.to_string().contains(ADDRESS));
    }

    #[test]
    fn other_words_are_quoted() {
        assert!(error_text("signpost rnu").contains("'rnu'"));
        assert!(error_text("signpost store copy --form sqlite:x").contains("'--form'"));
    }
}
