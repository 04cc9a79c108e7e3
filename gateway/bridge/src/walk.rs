//! Finds what the steps of a path lead to in a document.
//!
//! Where an object on the way is null, or lacks the member, the way ends without a failure.

use crate::{
    document::{MemberPlace, Members, Node},
    not_applied::NotApplied,
    path::Step,
};

/// Limit of the values that one operation changes: what is added to each must not fill the memory.
const MAX_PLACES: usize = 10_000;

/// A change of a value.
type NodeChange<'c, 'd> = dyn FnMut(&mut Node<'d>) -> Result<(), NotApplied> + 'c;

/// A change of an object's members, by the index of one of them if the object has it.
type ChangeObject<'c, 'd> =
    dyn FnMut(&mut Members<'d>, Option<usize>) -> Result<(), NotApplied> + 'c;

/// An object's members, and the index of one of them if the object has it. `None` if the object is null.
type Found<'n, 'd> = Option<(&'n mut Members<'d>, Option<usize>)>;

/// The steps to the object that has the member which a path ends with.
pub(crate) fn parent(path: &[Step]) -> &[Step] {
    path.split_last().map_or(&[], |(_, parent)| parent)
}

/// The name of the member that a path ends with.
pub(crate) fn name(path: &[Step]) -> &str {
    match path.last() {
        Some(Step::Member(name)) => name,
        _ => "",
    }
}

/// Changes every value that a path leads to.
pub(crate) fn each<'d>(
    document: &mut Node<'d>,
    path: &[Step],
    change: &mut NodeChange<'_, 'd>,
) -> Result<(), NotApplied> {
    let mut places = 0;
    each_below(document, path, 0, &mut |node| {
        places += 1;
        if places > MAX_PLACES {
            return Err(NotApplied::at(path, NotApplied::TOO_MANY));
        }
        change(node)
    })
}

fn each_below<'d>(
    node: &mut Node<'d>,
    path: &[Step],
    at: usize,
    change: &mut NodeChange<'_, 'd>,
) -> Result<(), NotApplied> {
    match path.get(at) {
        None => change(node),
        Some(_) if node.is_null() => Ok(()),
        Some(Step::Items) => {
            let fails = || NotApplied::at(&path[..at], NotApplied::NOT_AN_ARRAY);
            let items = node.items().ok_or_else(fails)?;
            let mut items = items.iter_mut();
            items.try_for_each(|item| each_below(item, path, at + 1, change))
        }
        Some(Step::Member(_)) => match find(node, path, at)? {
            Some((members, Some(place))) => each_below(members.value(place), path, at + 1, change),
            _ => Ok(()),
        },
    }
}

/// Changes every object that has, or may have, the member which a path ends with.
pub(crate) fn each_object<'d>(
    document: &mut Node<'d>,
    path: &[Step],
    change: &mut ChangeObject<'_, 'd>,
) -> Result<(), NotApplied> {
    let parent = parent(path);
    each(
        document,
        parent,
        &mut |node| match find(node, path, parent.len())? {
            Some((members, place)) => change(members, place),
            None => Ok(()),
        },
    )
}

/// Finds the member that the step at `at` leads to.
fn find<'n, 'd>(
    node: &'n mut Node<'d>,
    path: &[Step],
    at: usize,
) -> Result<Found<'n, 'd>, NotApplied> {
    if node.is_null() {
        return Ok(None);
    }
    let fails = || NotApplied::at(&path[..at], NotApplied::NOT_AN_OBJECT);
    let members = node.members().ok_or_else(fails)?;
    match members.find(name(&path[..=at])) {
        MemberPlace::Absent => Ok(Some((members, None))),
        MemberPlace::At(place) => Ok(Some((members, Some(place)))),
        MemberPlace::Twice => Err(NotApplied::at(&path[..=at], NotApplied::TWICE)),
    }
}

/// Adds what `take` takes from `path` at the path `to`. Both are the same up to the last `[]` of either.
pub(crate) fn transfer<'d>(
    document: &mut Node<'d>,
    path: &[Step],
    to: &[Step],
    take: fn(&mut Members<'d>, usize) -> Node<'d>,
) -> Result<(), NotApplied> {
    let is_items = |step: &Step| *step == Step::Items;
    let shared = path.iter().rposition(is_items).map_or(0, |at| at + 1);
    each(document, &path[..shared], &mut |node| {
        // Also if there is nothing to take: the opposite operation would move what is there.
        check_is_free(node, to, shared)?;
        match take_from(node, path, shared, take)? {
            Some(value) => put(node, to, shared, value),
            None => Ok(()),
        }
    })
}

fn check_is_free(node: &mut Node<'_>, path: &[Step], at: usize) -> Result<(), NotApplied> {
    match find(node, path, at)? {
        Some((_, Some(_))) if at + 1 == path.len() => Err(NotApplied::at(path, NotApplied::EXISTS)),
        Some((members, Some(place))) => check_is_free(members.value(place), path, at + 1),
        _ => Ok(()),
    }
}

fn take_from<'d>(
    node: &mut Node<'d>,
    path: &[Step],
    at: usize,
    take: fn(&mut Members<'d>, usize) -> Node<'d>,
) -> Result<Option<Node<'d>>, NotApplied> {
    match find(node, path, at)? {
        Some((members, Some(place))) if at + 1 == path.len() => Ok(Some(take(members, place))),
        Some((members, Some(place))) => take_from(members.value(place), path, at + 1, take),
        _ => Ok(None),
    }
}

fn put<'d>(
    node: &mut Node<'d>,
    path: &[Step],
    at: usize,
    value: Node<'d>,
) -> Result<(), NotApplied> {
    let fails = || NotApplied::at(&path[..at], NotApplied::NOT_AN_OBJECT);
    // Null is a value, which a new object must not replace.
    let (members, place) = find(node, path, at)?.ok_or_else(fails)?;
    let name = name(&path[..=at]);
    if at + 1 == path.len() {
        members.add(name, value);
        return Ok(());
    }
    let next = match place {
        Some(place) => members.value(place),
        None => members.add(name, Node::Object(Members::default())),
    };
    put(next, path, at + 1, value)
}
