//! The place of values in JSON bodies: `$.items[].id`.

use std::{fmt, str::FromStr};

/// Largest number of steps in a path.
pub const MAX_STEPS: usize = 16;

/// A path: `$` is the whole body, `.name` a member of an object, `[]` each item of an array.
///
/// Member names have no dots, brackets, quotation marks, white space or control characters, and at most [`MAX_STEPS`]
/// steps follow the `$`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JsonPath(Vec<Step>);

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Step {
    /// To each item of an array.
    Items,
    /// To the member of an object that has this name.
    Member(String),
}

/// A text is no path. `Display` says what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", Self::ALLOWED)]
pub struct ParsePathError;

impl ParsePathError {
    /// The form of a path.
    pub const ALLOWED: &'static str =
        "$, then at most 16 steps: .name for a member, [] for each item of an array";
}

impl JsonPath {
    /// The path of these steps.
    pub(crate) fn from_steps(steps: &[Step]) -> Self {
        Self(steps.to_vec())
    }

    /// The steps behind the `$`.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The steps to the object of the member that this path ends with, and that member's name. `None` if the path does
    /// not end with a member.
    pub(crate) fn parent_and_name(&self) -> Option<(&[Step], &str)> {
        match self.0.split_last() {
            Some((Step::Member(name), parent)) => Some((parent, name)),
            _ => None,
        }
    }

    /// The number of steps to the last array item on the way, itself included.
    pub(crate) fn last_items(&self) -> usize {
        let last = self.0.iter().rposition(|step| *step == Step::Items);
        last.map_or(0, |at| at + 1)
    }
}

/// Whether a path can name such a member.
pub(crate) fn is_name(name: &str) -> bool {
    let is_allowed = |letter: char| {
        !letter.is_whitespace() && !letter.is_control() && !matches!(letter, '.' | '[' | ']' | '"')
    };
    !name.is_empty() && name.chars().all(is_allowed)
}

impl FromStr for JsonPath {
    type Err = ParsePathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut rest = text.strip_prefix('$').ok_or(ParsePathError)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, behind) = split_step(rest).ok_or(ParsePathError)?;
            if steps.len() == MAX_STEPS {
                return Err(ParsePathError);
            }
            steps.push(step);
            rest = behind;
        }
        Ok(Self(steps))
    }
}

/// The first step of a text, and what is behind it.
fn split_step(text: &str) -> Option<(Step, &str)> {
    if let Some(behind) = text.strip_prefix("[]") {
        return Some((Step::Items, behind));
    }
    let text = text.strip_prefix('.')?;
    let (name, behind) = text.split_at(text.find(['.', '[']).unwrap_or(text.len()));
    is_name(name).then(|| (Step::Member(name.to_owned()), behind))
}

impl fmt::Display for JsonPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("$")?;
        for step in &self.0 {
            match step {
                Step::Items => formatter.write_str("[]")?,
                Step::Member(name) => write!(formatter, ".{name}")?,
            }
        }
        Ok(())
    }
}

/// The path of a value that has another form in the other version: of both, the shorter one.
pub(crate) fn form<'p>(from: &'p str, to: &'p str) -> Option<&'p str> {
    let (short, long) = if from.len() < to.len() {
        (from, to)
    } else {
        (to, from)
    };
    let rest = long.strip_prefix(short)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(short)
}

/// A path, and those of all that it is in.
pub(crate) fn up(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| {
        path.rfind(['.', '[']).map(|end| &path[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_as_it_was_read() {
        let longest = format!("${}", ".a".repeat(MAX_STEPS));
        for text in [
            "$",
            "$.a",
            "$.a.b",
            "$.items[].id",
            "$[].x",
            "$[][]",
            "$.$",
            "$.张-1.*",
            &longest,
        ] {
            let path: JsonPath = text.parse().unwrap();
            assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_no_paths() {
        let too_long = format!("${}", "[]".repeat(MAX_STEPS + 1));
        for bad in [
            "",
            "a",
            ".a",
            "$a",
            "$.",
            "$..a",
            "$.a.",
            "$[",
            "$[0]",
            "$.a[0]",
            "$.a]",
            "$.a b",
            "$.a\u{a0}b",
            "$.\"a\"",
            "$['a']",
            "$.a[]b",
            " $",
            "$ ",
            "$.a\u{7}",
            &too_long,
        ] {
            let error = bad.parse::<JsonPath>().unwrap_err();
            assert_eq!(error.to_string(), ParsePathError::ALLOWED, "{bad}");
        }
    }

    #[test]
    fn the_text_of_what_is_allowed_is_up_to_date() {
        let steps = format!("at most {MAX_STEPS} steps");
        assert!(ParsePathError::ALLOWED.contains(&steps));
    }
}
