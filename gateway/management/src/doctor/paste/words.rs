//! The words of a command, as its shell reads them.

use std::{iter::Peekable, str::Chars};

use super::{Noticed, ParsePastedError, unread};

/// The shell that a command is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shell {
    /// bash, and others like it.
    Bash,
    /// Windows' cmd, without its `^`: what the program's runtime reads then.
    Cmd,
    /// PowerShell.
    PowerShell,
}

/// A part of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Text, without its quotes.
    Text(String),
    /// A letter that has a meaning to the shell.
    Sign(char),
}

/// Splits a command. In bash and cmd it ends before a pipe, a file or another command.
pub(super) fn words(
    text: &str,
    shell: Shell,
    noticed: &mut Vec<Noticed>,
) -> Result<Vec<Word>, ParsePastedError> {
    let (signs, escape) = match shell {
        Shell::PowerShell => ("@{}()[]=;,|", '`'),
        Shell::Bash | Shell::Cmd => ("|;&<>", '\\'),
    };
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let read = match letter {
            _ if letter.is_whitespace() => None,
            _ if signs.contains(letter) => {
                words.extend(word.take().map(Word::Text));
                if shell != Shell::PowerShell {
                    let rest = format!("{letter}{}", letters.collect::<String>());
                    noticed.push(("doctor_unread", rest));
                    return Ok(words);
                }
                words.push(Word::Sign(letter));
                continue;
            }
            '"' => Some(double_quoted(&mut letters, shell, noticed)?),
            '\'' if shell != Shell::Cmd => Some(single_quoted(&mut letters, shell)?),
            '$' if shell == Shell::Bash && letters.next_if_eq(&'\'').is_some() => {
                Some(ansi_quoted(&mut letters)?)
            }
            '$' if shell == Shell::Bash => Some(variable(&mut letters, noticed)),
            _ if letter == escape && shell != Shell::Cmd => match letters.next() {
                Some('\n' | '\r') | None => None,
                Some(escaped) => Some(escaped.to_string()),
            },
            _ => Some(letter.to_string()),
        };
        match read {
            Some(read) => word.get_or_insert_default().push_str(&read),
            None => words.extend(word.take().map(Word::Text)),
        }
    }
    words.extend(word.map(Word::Text));
    Ok(words)
}

type Letters<'t> = Peekable<Chars<'t>>;

/// A variable, whose value is not known.
fn variable(letters: &mut Letters<'_>, noticed: &mut Vec<Noticed>) -> String {
    let mut name = "$".to_owned();
    let is_of_name = |letter: &char| letter.is_ascii_alphanumeric() || "_{}".contains(*letter);
    while let Some(letter) = letters.next_if(is_of_name) {
        name.push(letter);
    }
    if name.len() > 1 {
        noticed.push(("doctor_unread", name.clone()));
    }
    name
}

fn single_quoted(letters: &mut Letters<'_>, shell: Shell) -> Result<String, ParsePastedError> {
    let mut text = String::new();
    loop {
        match letters.next() {
            None => return Err(unread(format!("'{text}"))),
            Some('\'') if shell == Shell::PowerShell && letters.next_if_eq(&'\'').is_some() => {
                text.push('\'');
            }
            Some('\'') => return Ok(text),
            Some(letter) => text.push(letter),
        }
    }
}

fn double_quoted(
    letters: &mut Letters<'_>,
    shell: Shell,
    noticed: &mut Vec<Noticed>,
) -> Result<String, ParsePastedError> {
    let mut text = String::new();
    loop {
        match letters.next() {
            None => return Err(unread(format!("\"{text}"))),
            Some('"') if shell != Shell::Bash && letters.next_if_eq(&'"').is_some() => {
                text.push('"');
            }
            Some('"') => return Ok(text),
            Some('`') if shell == Shell::PowerShell => text.extend(match letters.next() {
                Some('n') => Some('\n'),
                Some('r') => Some('\r'),
                Some('t') => Some('\t'),
                other => other,
            }),
            Some('$') if shell == Shell::PowerShell => {
                let rest: String = letters.clone().collect();
                let number = rest
                    .strip_prefix("([char]")
                    .and_then(|rest| rest.split_once(')'));
                let (number, after) = number.ok_or_else(|| unread(format!("${rest}")))?;
                let letter = number.parse().ok().and_then(char::from_u32);
                text.push(letter.ok_or_else(|| unread(format!("$([char]{number})")))?);
                letters
                    .by_ref()
                    .take(rest.chars().count() - after.chars().count())
                    .for_each(drop);
            }
            Some('\\') if shell != Shell::PowerShell => {
                match letters.next_if(|letter| "\"\\$`\n".contains(*letter)) {
                    Some('\n') => {}
                    Some(escaped) => text.push(escaped),
                    None => text.push('\\'),
                }
            }
            Some('$') if shell == Shell::Bash => text += &variable(letters, noticed),
            Some(letter) => text.push(letter),
        }
    }
}

/// Text in `$'…'` of bash.
fn ansi_quoted(letters: &mut Letters<'_>) -> Result<String, ParsePastedError> {
    let mut bytes = Vec::new();
    loop {
        let letter = match letters.next() {
            Some('\'') => {
                let text = String::from_utf8(bytes);
                return text.map_err(|error| unread(error.to_string()));
            }
            Some('\\') => match letters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('x') => {
                    bytes.extend(u8::try_from(digits(letters, 2)));
                    continue;
                }
                Some(kind @ ('u' | 'U')) => {
                    let number = digits(letters, if kind == 'u' { 4 } else { 8 });
                    let letter = char::from_u32(number);
                    letter.ok_or_else(|| unread(format!("\\{kind}{number:04x}")))?
                }
                Some(letter @ ('\\' | '\'' | '"' | '?')) => letter,
                other => return Err(unread(format!("\\{}", other.unwrap_or_default()))),
            },
            Some(letter) => letter,
            None => return Err(unread("$'")),
        };
        bytes.extend(letter.encode_utf8(&mut [0; 4]).bytes());
    }
}

/// A number of at most so many hexadecimal digits.
fn digits(letters: &mut Letters<'_>, most: usize) -> u32 {
    let mut number = 0;
    for _ in 0..most {
        let digit = letters.next_if(char::is_ascii_hexdigit);
        let Some(digit) = digit.and_then(|digit| digit.to_digit(16)) else {
            break;
        };
        number = number * 16 + digit;
    }
    number
}
