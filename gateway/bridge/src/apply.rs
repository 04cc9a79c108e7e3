//! Changes JSON bodies by a list of operations.

use std::borrow::Cow;

use crate::{
    document::{MemberPlace, Members, Node},
    not_applied::NotApplied,
    operation::{Container, Effect, Operation, Otherwise},
    path::Step,
    raw::{self, JsonType},
    walk,
};

/// Changes a body by these operations, one after the other: either by all or not at all.
///
/// Containers that no operation touches keep their bytes; the others lose their white space. Space and time are
/// proportional to the body for each operation, except that copies of copies add up.
///
/// # Errors
///
/// When the body is not JSON, or an operation cannot be applied to it: [`Operation`] says when.
pub fn apply(operations: &[Operation], body: &[u8]) -> Result<Vec<u8>, NotApplied> {
    let not_json = || NotApplied::at(&[], NotApplied::NOT_JSON);
    let mut document = Node::read(body).ok_or_else(not_json)?;
    for operation in operations {
        change(operation, &mut document)?;
    }
    // Only now: if an operation fails, nothing of a changed body leaves.
    Ok(document.write().into_bytes())
}

fn change<'d>(operation: &'d Operation, document: &mut Node<'d>) -> Result<(), NotApplied> {
    let path = operation.path.steps();
    let fails = |reason| NotApplied::at(path, reason);
    // Checked for callers that have not: `walk` relies on a member at the end of these paths.
    (operation.check_paths()).map_err(|_| fails(NotApplied::NOT_ALLOWED))?;
    match &operation.effect {
        Effect::Rename { to } => {
            let target = [walk::parent(path), &[Step::Member(to.clone())]].concat();
            walk::each_object(document, path, &mut |members, place| {
                let is_free = rename(members, place, to);
                let exists = || NotApplied::at(&target, NotApplied::EXISTS);
                is_free.then_some(()).ok_or_else(exists)
            })
        }
        Effect::Move { to } => walk::transfer(document, path, to.steps(), Members::remove),
        Effect::Copy { to } => walk::transfer(document, path, to.steps(), Members::copy),
        Effect::Remove => walk::each_object(document, path, &mut |members, place| {
            if let Some(at) = place {
                members.remove(at);
            }
            Ok(())
        }),
        Effect::RemoveNull => walk::each_object(document, path, &mut |members, place| {
            if let Some(at) = place.filter(|at| members.value(*at).is_null()) {
                members.remove(at);
            }
            Ok(())
        }),
        Effect::Default { value } => set(document, path, value, false),
        Effect::Constant { value } => set(document, path, value, true),
        effect => walk::each(document, path, &mut |node| {
            replace(effect, node).map_err(fails)
        }),
    }
}

/// Adds a member to every object that may have it; if `replaces`, also in place of one that exists.
fn set<'d>(
    document: &mut Node<'d>,
    path: &[Step],
    value: &'d str,
    replaces: bool,
) -> Result<(), NotApplied> {
    let no_value = || NotApplied::at(path, NotApplied::NO_VALUE);
    let new = Node::read(value.as_bytes()).ok_or_else(no_value)?;
    walk::each_object(document, path, &mut |members, place| {
        match place {
            None => _ = members.add(walk::name(path), new.clone()),
            Some(at) if replaces => *members.value(at) = new.clone(),
            Some(_) => {}
        }
        Ok(())
    })
}

fn rename(members: &mut Members<'_>, place: Option<usize>, to: &str) -> bool {
    let is_free = members.find(to) == MemberPlace::Absent;
    if let Some(at) = place.filter(|_| is_free) {
        members.rename(at, to);
    }
    is_free
}

/// Replaces a value by what one of the effects on values makes of it.
fn replace<'d>(effect: &'d Effect, node: &mut Node<'d>) -> Result<(), &'static str> {
    *node = match effect {
        Effect::Wrap { within } => wrapped(node.take().into_text(), within),
        Effect::Unwrap { within } => unwrapped(node, within)?,
        // Null can be wrapped, and is no container to unwrap. Everything below leaves it.
        _ if node.is_null() => return Ok(()),
        Effect::Map { values, otherwise } => match mapped(node, values, otherwise)? {
            Some(value) => value,
            None => return Ok(()),
        },
        Effect::ToText => {
            let digits = node
                .text()
                .filter(|text| JsonType::of(text) == JsonType::Number);
            Node::string(digits.ok_or(NotApplied::NOT_A_NUMBER)?)
        }
        _ => {
            let digits = string(node)?.filter(|text| raw::is_number(text));
            Node::owned(&digits.ok_or(NotApplied::NOT_NUMERIC)?)
        }
    };
    Ok(())
}

fn wrapped<'d>(value: Node<'d>, within: &Container) -> Node<'d> {
    match within {
        Container::First if value.is_null() => Node::Array(Vec::new()),
        Container::Array | Container::First => Node::Array(vec![value]),
        Container::Object(name) => {
            let mut members = Members::default();
            members.add(name, value);
            Node::Object(members)
        }
    }
}

fn unwrapped<'d>(node: &mut Node<'d>, within: &Container) -> Result<Node<'d>, &'static str> {
    match within {
        Container::Array => {
            let items = node.items().ok_or(NotApplied::NOT_AN_ARRAY)?;
            let item = items.pop().filter(|_| items.is_empty());
            item.ok_or(NotApplied::NOT_ONE_ITEM)
        }
        Container::First => {
            let items = node.items().ok_or(NotApplied::NOT_AN_ARRAY)?;
            let first = items.first_mut().map(Node::take);
            Ok(first.unwrap_or_else(|| Node::owned("null")))
        }
        Container::Object(name) => {
            let members = node.members().ok_or(NotApplied::NOT_AN_OBJECT)?;
            match members.find(name) {
                MemberPlace::At(at) => Ok(members.remove(at)),
                MemberPlace::Absent => Err(NotApplied::NO_MEMBER),
                MemberPlace::Twice => Err(NotApplied::TWO_MEMBERS),
            }
        }
    }
}

/// The value that belongs to a string; `None` if the string stays.
fn mapped<'d>(
    node: &Node<'_>,
    values: &'d [(String, String)],
    otherwise: &'d Otherwise,
) -> Result<Option<Node<'d>>, &'static str> {
    let text = string(node)?;
    let entry = text.and_then(|text| values.iter().find(|(of, _)| *of == text));
    let value = match (entry, otherwise) {
        (Some((_, value)), _) | (None, Otherwise::Value(value)) => value,
        (None, Otherwise::Keep) => return Ok(None),
        (None, Otherwise::Fail) => return Err(NotApplied::NOT_IN_MAP),
    };
    let value = Node::read(value.as_bytes());
    value.map(Some).ok_or(NotApplied::NO_VALUE)
}

/// What a string stands for. `None` if that is no Unicode text.
fn string<'n>(node: &'n Node<'_>) -> Result<Option<Cow<'n, str>>, &'static str> {
    let text = node
        .text()
        .filter(|text| JsonType::of(text) == JsonType::String);
    text.map(raw::decoded).ok_or(NotApplied::NOT_A_STRING)
}

#[cfg(test)]
mod tests;
