//! JSON bodies as values, if these have all that the text has.

use serde_json::Value;

/// Containers that are nested deeper are compared by their text, so their values say nothing.
const MAX_NESTING: usize = 32;

/// Reads a body. `None` if it is not JSON, or if another body could have the same value: by a number that a float only
/// approximates or that is written in an unusual form, a name that is there twice, or by its nesting.
pub fn read(body: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let parts = outside_strings(std::str::from_utf8(body).ok()?);
    let names = parts.matches(':').count();
    let are_unique = names == members(&value);
    let is_separator = |letter: char| !letter.is_ascii_alphanumeric() && !"+-.".contains(letter);
    let mut words = parts.split(is_separator).filter(|word| !word.is_empty());
    (are_unique && words.all(is_exact) && is_shallow(body)).then_some(value)
}

/// Whether a body's containers are not nested too deeply.
pub fn is_shallow(body: &[u8]) -> bool {
    let (mut nesting, mut deepest) = (0_usize, 0);
    for letter in outside_strings(&String::from_utf8_lossy(body)).chars() {
        match letter {
            '[' | '{' => nesting += 1,
            ']' | '}' => nesting = nesting.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(nesting);
    }
    deepest <= MAX_NESTING
}

/// The text without its strings.
fn outside_strings(text: &str) -> String {
    let (mut outside, mut is_string, mut is_escaped) = (String::new(), false, false);
    for letter in text.chars() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_string => is_escaped = true,
            '"' => is_string = !is_string,
            _ if !is_string => outside.push(letter),
            _ => {}
        }
    }
    outside
}

/// Whether a number, or another word, is what its value is written as. Zero has one value with two signs.
fn is_exact(word: &str) -> bool {
    let value = serde_json::from_str::<Value>(word);
    let written = value.map(|value| value.to_string());
    word != "-0.0" && written.is_ok_and(|written| written == word)
}

/// The number of members of all objects in a value.
fn members(value: &Value) -> usize {
    match value {
        Value::Object(object) => object.len() + object.values().map(members).sum::<usize>(),
        Value::Array(items) => items.iter().map(members).sum(),
        _ => 0,
    }
}
