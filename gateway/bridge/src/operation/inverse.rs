//! What undoes an operation: for tests, which change bodies and change them back.

use std::collections::BTreeSet;

use super::{Container, Effect, Operation, Otherwise, check_target};
use crate::{
    path::{JsonPath, Step, is_name},
    raw::{self, JsonType},
};

impl Operation {
    /// The operation that restores every body which this one was applied to. The order of members is not restored.
    /// `None` if there is no such operation.
    #[must_use]
    pub fn inverse(&self) -> Option<Self> {
        let path = self.path.clone();
        let (path, effect) = match self.effect.clone() {
            Effect::Rename { to } => {
                let (parent, name) = path.parent_and_name()?;
                let renamed = [parent, &[Step::Member(to.clone())]].concat();
                let renamed = is_name(&to).then(|| JsonPath::from_steps(&renamed))?;
                let to = name.to_owned();
                (renamed, Effect::Rename { to })
            }
            // Otherwise the way back would leave the objects that were created.
            Effect::Move { to } if target_exists(&path, &to) => (to, Effect::Move { to: path }),
            Effect::Copy { to } if target_exists(&path, &to) => (to, Effect::Remove),
            // A value that was kept or replaced could be one that another was replaced by.
            Effect::Map {
                values,
                otherwise: Otherwise::Fail,
            } => {
                let (values, otherwise) = (inverse_map(&values)?, Otherwise::Fail);
                (path, Effect::Map { values, otherwise })
            }
            Effect::ToText => (path, Effect::ToNumber),
            Effect::ToNumber => (path, Effect::ToText),
            Effect::Wrap { within } => (path, Effect::Unwrap { within }),
            // The other members of an object are lost.
            Effect::Unwrap { within } if within == Container::Array => {
                (path, Effect::Wrap { within })
            }
            _ => return None,
        };
        Some(Self { path, effect })
    }
}

/// Whether the target's object exists wherever the source does: no object has to be created.
fn target_exists(path: &JsonPath, to: &JsonPath) -> bool {
    let parents = path.parent_and_name().zip(to.parent_and_name());
    check_target(path, to).is_ok()
        && parents.is_some_and(|((source, _), (target, _))| source.starts_with(target))
}

/// The map in the other direction. `None` if two texts have the same value, or a value is no string.
fn inverse_map(values: &[(String, String)]) -> Option<Vec<(String, String)>> {
    let mut seen = BTreeSet::new();
    let mut inverse = Vec::with_capacity(values.len());
    for (text, value) in values {
        let value = raw::value(value.as_bytes())?;
        let is_string = JsonType::of(value) == JsonType::String;
        let decoded = raw::decoded(value).filter(|_| is_string)?.into_owned();
        if !seen.insert(decoded.clone()) {
            return None;
        }
        inverse.push((decoded, raw::string(text)));
    }
    Some(inverse)
}
