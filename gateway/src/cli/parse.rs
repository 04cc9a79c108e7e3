//! The command line as typed, and what is told of one that is wrong: never an address, which may hold a password.

use std::{ffi::OsString, process::ExitCode};

use clap::{Parser, error::Error};

use super::{Arguments, print_error};

/// In place of what is not repeated.
const HIDDEN: &str = "…";

/// What the command line says, or the exit code where it asks for help, or is wrong.
///
/// # Errors
///
/// There is nothing more to do: whatever there is to say was said.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Arguments, ExitCode> {
    let words: Vec<OsString> = words.into_iter().collect();
    Arguments::try_parse_from(&words).map_err(|error| tell(&error, &words))
}

fn tell(error: &Error, words: &[OsString]) -> ExitCode {
    let may_hold_password = hidden(words);
    if may_hold_password.is_empty() || !error.use_stderr() {
        // As clap would: in colours, where they are seen.
        let _ = error.print();
    } else {
        print_error(without(error.to_string(), &may_hold_password).trim_end());
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Words with a colon or an at sign, and values of that kind behind an equals sign; the longest first, since a shorter
/// one may be part of it.
fn hidden(words: &[OsString]) -> Vec<String> {
    let words = words.iter().skip(1).map(|word| word.to_string_lossy());
    let mut hidden: Vec<String> = words
        .flat_map(|word| {
            let value = word.split_once('=').map(|(_, value)| value.to_owned());
            [Some(word.into_owned()), value]
        })
        .flatten()
        .filter(|word| word.contains([':', '@']))
        .collect();
    hidden.sort_unstable_by_key(|word| std::cmp::Reverse(word.len()));
    hidden
}

fn without(text: String, hidden: &[String]) -> String {
    hidden
        .iter()
        .fold(text, |text, word| text.replace(&**word, HIDDEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "postgres://u:hush@db/d";

    fn told(words: &str) -> String {
        let words: Vec<OsString> = words.split(' ').map(Into::into).collect();
        let error = Arguments::try_parse_from(&words).unwrap_err();
        without(error.to_string(), &hidden(&words))
    }

    #[test]
    fn an_address_in_the_wrong_place_is_not_repeated() {
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
            let told = told(&words.replace("ADDRESS", ADDRESS));
            assert!(told.starts_with("error: "), "{words}: {told}");
            assert!(
                !told.contains("hush") && !told.contains("u:h"),
                "{words}: {told}"
            );
        }
    }

    #[test]
    fn it_would_be() {
        let words = ["signpost", "store", "copy", ADDRESS];
        let error = Arguments::try_parse_from(words).unwrap_err();
        assert!(error.to_string().contains(ADDRESS));
    }

    #[test]
    fn other_words_are() {
        assert!(told("signpost rnu").contains("'rnu'"));
        assert!(told("signpost store copy --form sqlite:x").contains("'--form'"));
    }
}
