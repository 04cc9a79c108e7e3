//! The step of a bridge that makes up for a difference. A guess: documents show no values.
//!
//! A step of a request changes what an old client sends into what the new version takes; one of a response changes what
//! the new version sends into what an old client knows.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::{
    document::Document,
    finding::Step,
    schema::{ARRAY, NULL, NUMBER, OBJECT, STRING, Schema},
    schemas::{Direction, Schemas, Values},
};

/// Limit of the levels in which a moved property is looked for.
const MAX_LEVELS: usize = 3;

type Keys = Vec<(&'static str, Value)>;

/// The change from a type to another.
pub(crate) fn of_types<'d>(
    schemas: &Schemas<'d>,
    old: &Schema<'d>,
    new: &Schema<'d>,
) -> Option<Keys> {
    let ends = [(old, schemas.old), (new, schemas.new)];
    let [(from, from_document), (to, to_document)] = match schemas.direction {
        Direction::Request => ends,
        Direction::Response => [ends[1], ends[0]],
    };
    let types = |schema: &Schema<'_>| schema.types() & !NULL;
    let items = |schema: &Schema<'d>, document| types(&Schema::new(document, &schema.all("items")));
    let (source, target) = (types(from), types(to));
    let step = |key, within: &str| vec![(key, "".into()), ("in", within.into())];
    match (source, target) {
        (STRING, target) if target & !NUMBER == 0 => Some(vec![("to_number", "".into())]),
        (source, STRING) if source & !NUMBER == 0 => Some(vec![("to_text", "".into())]),
        (_, ARRAY) if items(to, to_document) == source => Some(step("wrap", "[]")),
        (ARRAY, _) if items(from, from_document) == target => Some(step("unwrap", "[]")),
        (_, OBJECT) | (OBJECT, _) => {
            // The one property that has the other's types.
            let (object, document, other, key) = match target {
                OBJECT => (to, to_document, source, "wrap"),
                _ => (from, from_document, target, "unwrap"),
            };
            let all = object.properties();
            let mut fits = all
                .iter()
                .filter(|(_, values)| types(&Schema::new(document, values)) == other);
            let (name, _) = fits.next().filter(|_| fits.next().is_none())?;
            (key == "unwrap" || all.len() == 1).then(|| step(key, name))
        }
        _ => None,
    }
}

type Property<'p, 'd> = (&'d str, Values<'p, 'd>);

/// The steps for properties that are gone or new in an object, by name.
pub(crate) fn of_properties<'d>(
    schemas: &mut Schemas<'d>,
    removed: &[Property<'_, 'd>],
    added: &[Property<'_, 'd>],
    required: &BTreeSet<&str>,
) -> HashMap<&'d str, Vec<Step>> {
    let mut steps: HashMap<&str, Vec<Step>> = HashMap::new();
    let is_request = schemas.direction == Direction::Request;
    let mut taken = BTreeSet::new();
    for (old, values) in removed {
        if let Some(new) =
            renamed(schemas, (old, values), removed, added).filter(|new| taken.insert(*new))
        {
            let (from, to) = if is_request { (*old, new) } else { (new, *old) };
            let step = schemas.step(vec![
                ("rename", format!(".{from}").into()),
                ("to", to.into()),
            ]);
            steps.insert(new, vec![step.clone()]);
            steps.insert(old, vec![step]);
        }
    }
    let leaves = |all: &[Property<'_, 'd>], document| {
        let mut leaves = Vec::new();
        for (root, values) in all.iter().filter(|(name, _)| !steps.contains_key(name)) {
            add_leaves(
                document,
                (root, format!(".{root}"), values.to_vec()),
                root,
                MAX_LEVELS,
                &mut leaves,
            );
        }
        leaves
    };
    let (gone, fresh) = (leaves(removed, schemas.old), leaves(added, schemas.new));
    for old in &gone {
        let end = |leaf: &Leaf<'_>| leaf.1.rsplit('.').next().map(str::to_owned);
        let mut same = fresh.iter().filter(|new| end(new) == end(old));
        let new = same.next().filter(|_| same.next().is_none());
        let Some(new) = new.filter(|new| schemas.compare(&old.2, &new.2).is_empty()) else {
            continue;
        };
        let (from, to) = if is_request { (old, new) } else { (new, old) };
        let step = schemas.step(vec![
            ("move", from.1.as_str().into()),
            ("to", to.1.as_str().into()),
        ]);
        steps.entry(old.0).or_default().push(step.clone());
        steps.entry(new.0).or_default().push(step);
    }
    let (all, document) = if is_request {
        (added, schemas.new)
    } else {
        (removed, schemas.old)
    };
    for (name, values) in all
        .iter()
        .filter(|(name, _)| !is_request || required.contains(name))
    {
        let value =
            only_value(&Schema::new(document, values)).filter(|_| !steps.contains_key(name));
        if let Some(value) = value {
            let keys = vec![
                ("default", format!(".{name}").into()),
                ("value", value.clone()),
            ];
            steps.insert(name, vec![schemas.step(keys)]);
        }
    }
    steps
}

/// The property that took another one's place: with a name like it, or the only one that fits.
fn renamed<'d>(
    schemas: &mut Schemas<'d>,
    (old, values): Property<'_, 'd>,
    removed: &[Property<'_, 'd>],
    added: &[Property<'_, 'd>],
) -> Option<&'d str> {
    let types = Schema::new(schemas.old, values).types();
    let mut fits = added.to_vec();
    fits.retain(|(_, new)| {
        let differences = schemas.compare(values, new);
        Schema::new(schemas.new, new).types() == types && schemas.is_compatible(&differences)
    });
    let mut alike = fits.iter().filter(|(name, _)| is_alike(old, name));
    match (alike.next(), alike.next(), &*fits) {
        (Some((name, _)), None, _) => Some(name),
        (None, _, [(name, _)]) if removed.len() == 1 => Some(name),
        _ => None,
    }
}

/// Whether names are the same but for their style, or one has the other's words: `name`, `displayName`.
pub(crate) fn is_alike(one: &str, other: &str) -> bool {
    let words = |name: &str| {
        let mut spaced = String::new();
        for letter in name.chars() {
            if letter.is_uppercase() && spaced.ends_with(char::is_lowercase) {
                spaced.push('_');
            }
            spaced.extend(letter.to_lowercase());
        }
        spaced
            .split(['_', '-'])
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut both = [words(one), words(other)];
    both.sort_by_key(Vec::len);
    let [short, long] = both;
    long.concat() == short.concat() || long.ends_with(&short) || long.starts_with(&short)
}

/// The value that a schema allows only, or has as its default, if a step can have it.
pub(crate) fn only_value<'d>(schema: &Schema<'d>) -> Option<&'d Value> {
    let only = schema
        .allowed()
        .filter(|all| all.len() == 1)
        .map(|all| all[0]);
    let value = schema.first("default").or(only)?;
    (value.is_string() || value.is_boolean() || value.is_i64()).then_some(value)
}

/// A property inside a property, or that itself: the outer name, its path, its schemas.
type Leaf<'d> = (&'d str, String, Vec<&'d Value>);

fn add_leaves<'d>(
    document: &'d Document,
    (root, path, values): Leaf<'d>,
    name: &str,
    levels: usize,
    leaves: &mut Vec<Leaf<'d>>,
) {
    let schema = Schema::new(document, &values);
    if name.contains('.') || levels == 0 || schema.types() & !NULL != OBJECT {
        return leaves.push((root, path, values));
    }
    for (name, values) in schema.properties() {
        add_leaves(
            document,
            (root, format!("{path}.{name}"), values),
            name,
            levels - 1,
            leaves,
        );
    }
}
