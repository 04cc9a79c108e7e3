//! The closed list of changes to JSON bodies, and what each may say.

use std::collections::BTreeSet;

use crate::{
    path::{JsonPath, Step, is_name},
    raw,
};

/// A change of a JSON body. Where the path has `[]`, it changes each item.
///
/// If a member on the way is absent or null, the operation does nothing. It is not applied if a value has another type
/// than it needs, or if an object has a member on the way twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What is changed.
    pub path: JsonPath,
    /// How.
    pub effect: Effect,
}

/// How an [`Operation`] changes what is at its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Gives a member another name, in the same place. Not applied if a member with that name exists, even if there is
    /// nothing to rename: so that the opposite change restores the body.
    Rename {
        /// Its new name.
        to: String,
    },
    /// Puts a member elsewhere, as the last member of its new object. Missing objects on the way there are created. Not
    /// applied if the target exists, even if there is nothing to move.
    Move {
        /// Where it is put.
        to: JsonPath,
    },
    /// As [`Self::Move`], but the member also stays where it is.
    Copy {
        /// Where its copy is put.
        to: JsonPath,
    },
    /// Removes a member.
    Remove,
    /// Removes a member that is null.
    RemoveNull,
    /// Adds a member if it is absent and its object exists. Null is a value.
    Default {
        /// JSON text.
        value: String,
    },
    /// Sets a member, whether it exists or not, if its object exists.
    Constant {
        /// JSON text.
        value: String,
    },
    /// Replaces a string by the value that belongs to it. Null stays.
    Map {
        /// Pairs of what the string stands for and the JSON text of its replacement. The first pair counts.
        values: Vec<(String, String)>,
        /// What happens to a string without one: a replacement is JSON text.
        otherwise: Otherwise,
    },
    /// Changes a number into the string with the same digits. Null stays.
    ToText,
    /// Changes a string that is a JSON number into that number. Null stays.
    ToNumber,
    /// Puts a value, also null, into a new container.
    Wrap {
        /// The new container, in the value's place.
        within: Container,
    },
    /// Puts a container's value in the container's place. Not applied if an array has other than one item, or an object
    /// lacks the member. All other members are dropped.
    Unwrap {
        /// What the container is.
        within: Container,
    },
}

/// What happens to a value that a map does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Otherwise {
    /// The change is not applied.
    #[default]
    Fail,
    /// It stays.
    Keep,
    /// It is replaced by this one.
    Value(String),
}

/// What [`Effect::Wrap`] puts a value into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Container {
    /// An array with the value as its one item.
    Array,
    /// An array whose first item is the value: without one, null is put in its place, and no array has it as its one item.
    First,
    /// An object with the value as the member of this name.
    Object(String),
}

impl Operation {
    /// Checks what a configuration says.
    ///
    /// # Errors
    ///
    /// Says what is allowed instead.
    pub fn check(&self) -> Result<(), &'static str> {
        self.check_paths()?;
        match &self.effect {
            Effect::Default { value } | Effect::Constant { value } => check_json(value),
            Effect::Map { values, otherwise } => check_map(values, otherwise),
            _ => Ok(()),
        }
    }

    /// The part of [`Self::check`] that does not depend on values.
    pub(crate) fn check_paths(&self) -> Result<(), &'static str> {
        let path = &self.path;
        match &self.effect {
            Effect::Rename { to } => {
                let (_, name) = check_member(path)?;
                check_name(to)?;
                (name != to)
                    .then_some(())
                    .ok_or("the new name must differ from the old one")
            }
            Effect::Move { to } | Effect::Copy { to } => check_target(path, to),
            Effect::Remove
            | Effect::RemoveNull
            | Effect::Default { .. }
            | Effect::Constant { .. } => check_member(path).map(|_| ()),
            Effect::Wrap { within } | Effect::Unwrap { within } => match within {
                Container::Array | Container::First => Ok(()),
                Container::Object(name) => check_name(name),
            },
            Effect::Map { .. } | Effect::ToText | Effect::ToNumber => Ok(()),
        }
    }
}

fn check_member(path: &JsonPath) -> Result<(&[Step], &str), &'static str> {
    path.parent_and_name()
        .ok_or("the path must end with a member, as $.name does")
}

fn check_name(name: &str) -> Result<(), &'static str> {
    is_name(name).then_some(()).ok_or(
        "a name must have no dots, brackets, quotation marks or white space, and must not be empty",
    )
}

fn check_target(path: &JsonPath, to: &JsonPath) -> Result<(), &'static str> {
    check_member(path)?;
    check_member(to)?;
    let shared = path.last_items();
    if shared != to.last_items() || path.steps()[..shared] != to.steps()[..shared] {
        return Err("both paths must be the same up to the last []");
    }
    let (from, to) = (path.steps(), to.steps());
    if to.starts_with(from) || from.starts_with(to) {
        return Err("neither of both paths may be inside the other");
    }
    Ok(())
}

fn check_json(value: &str) -> Result<(), &'static str> {
    raw::value(value.as_bytes())
        .map(|_| ())
        .ok_or("the value must be JSON")
}

fn check_map(values: &[(String, String)], otherwise: &Otherwise) -> Result<(), &'static str> {
    if let Otherwise::Value(value) = otherwise {
        check_json(value)?;
    }
    let mut texts = BTreeSet::new();
    for (text, value) in values {
        check_json(value)?;
        if !texts.insert(text) {
            return Err("each text must be there once");
        }
    }
    (!texts.is_empty())
        .then_some(())
        .ok_or("the map must have an entry")
}

#[cfg(any(test, feature = "testing"))]
mod inverse;
#[cfg(test)]
mod tests;
