//! The step of a bridge that makes up for a difference. A guess: documents show no values.
//!
//! A step of a request changes what an old client sends into what the new version takes; one of a response changes what
//! the new version sends into what an old client knows.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use crate::{
    document::Document,
    finding::{Action, Step},
    schema::{ARRAY, NULL, NUMBER, OBJECT, STRING, Schema},
    schemas::{Direction, Schemas, Values},
};

/// Limit of the levels in which a moved property is looked for.
const MAX_LEVELS: usize = 3;

/// Puts a step's paths below another one.
pub(crate) fn lift(step: &mut Step, prefix: &str) {
    step.at.insert_str(0, prefix);
    if let Action::Move(to) = &mut step.action {
        to.insert_str(0, prefix);
    }
}

/// The change from a type to another.
pub(crate) fn of_types<'d>(
    schemas: &Schemas<'d>,
    old: &Schema<'d>,
    new: &Schema<'d>,
) -> Option<Action> {
    let ((from, from_document), (to, to_document)) = match schemas.direction {
        Direction::Request => ((old, schemas.old), (new, schemas.new)),
        Direction::Response => ((new, schemas.new), (old, schemas.old)),
    };
    let types = |schema: &Schema<'_>| schema.types() & !NULL;
    let (source, target) = (types(from), types(to));
    let items = |schema: &Schema<'d>, document| types(&Schema::new(document, &schema.all("items")));
    // The one property of an object that has these types.
    let property = |schema: &Schema<'d>, document, wanted| {
        let has = |values: &[&'d Value]| types(&Schema::new(document, values)) == wanted;
        let all = schema.properties();
        let mut alike = all
            .iter()
            .filter(|(_, values)| has(values))
            .map(|(name, _)| (*name).to_owned());
        alike
            .next()
            .filter(|_| alike.next().is_none())
            .map(|name| (name, all.len()))
    };
    match (source, target) {
        (STRING, target) if target & !NUMBER == 0 => Some(Action::ToNumber),
        (source, STRING) if source & !NUMBER == 0 => Some(Action::ToText),
        (_, ARRAY) if items(to, to_document) == source => Some(Action::Wrap("[]".to_owned())),
        (ARRAY, _) if items(from, from_document) == target => Some(Action::Unwrap("[]".to_owned())),
        (_, OBJECT) => property(to, to_document, source)
            .filter(|(_, all)| *all == 1)
            .map(|(name, _)| Action::Wrap(name)),
        (OBJECT, _) => property(from, from_document, target).map(|(name, _)| Action::Unwrap(name)),
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
    let mut taken = BTreeSet::new();
    for (old, values) in removed {
        if let Some(new) =
            renamed(schemas, (old, values), removed, added).filter(|new| taken.insert(*new))
        {
            let (from, to) = match schemas.direction {
                Direction::Request => (*old, new),
                Direction::Response => (new, *old),
            };
            let step = schemas.step(format!(".{from}"), Action::Rename(to.to_owned()));
            steps.insert(new, vec![step.clone()]);
            steps.insert(old, vec![step]);
        }
    }
    let leaves = |all: &[Property<'_, 'd>], document| {
        let left = all.iter().filter(|(name, _)| !steps.contains_key(name));
        let mut leaves = Vec::new();
        left.for_each(|(name, values)| {
            add_leaves(
                document,
                name,
                (String::new(), name, values.to_vec()),
                MAX_LEVELS,
                &mut leaves,
            )
        });
        leaves
    };
    let (gone, fresh) = (leaves(removed, schemas.old), leaves(added, schemas.new));
    for old in &gone {
        let mut same = fresh
            .iter()
            .filter(|new| new.name == old.name && new.path != old.path);
        let Some(new) = same.next().filter(|_| same.next().is_none()) else {
            continue;
        };
        if schemas.is_compatible(&old.values, &new.values) {
            let (from, to) = match schemas.direction {
                Direction::Request => (old, new),
                Direction::Response => (new, old),
            };
            let step = schemas.step(from.path.clone(), Action::Move(to.path.clone()));
            steps.entry(old.root).or_default().push(step.clone());
            steps.entry(new.root).or_default().push(step);
        }
    }
    let (all, document) = match schemas.direction {
        Direction::Request => (added, schemas.new),
        Direction::Response => (removed, schemas.old),
    };
    for (name, values) in all {
        let is_needed = schemas.direction == Direction::Response || required.contains(name);
        if let Some(value) = only_value(&Schema::new(document, values))
            .filter(|_| is_needed && !steps.contains_key(name))
        {
            steps.insert(
                name,
                vec![schemas.step(format!(".{name}"), Action::Default(value.clone()))],
            );
        }
    }
    steps
}

/// The property that took another one's place: with a name like it, or the only one that fits.
fn renamed<'d>(
    schemas: &mut Schemas<'d>,
    (old, values): (&str, Values<'_, 'd>),
    removed: &[Property<'_, 'd>],
    added: &[Property<'_, 'd>],
) -> Option<&'d str> {
    let types = Schema::new(schemas.old, values).types();
    let fits: Vec<_> = added
        .iter()
        .filter(|(_, new)| {
            Schema::new(schemas.new, new).types() == types && schemas.is_compatible(values, new)
        })
        .collect();
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
                spaced.push(' ');
            }
            spaced.extend(letter.to_lowercase());
        }
        let words = spaced.split([' ', '_', '-']).map(str::to_owned);
        words.collect::<Vec<_>>()
    };
    let (one, other) = (words(one), words(other));
    let (short, long) = if one.len() <= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    long.concat() == short.concat() || long.ends_with(&short) || long.starts_with(&short)
}

/// The value that a schema allows only, or has as its default, if a step can have it.
pub(crate) fn only_value<'d>(schema: &Schema<'d>) -> Option<&'d Value> {
    let only = schema
        .allowed("enum")
        .filter(|all| all.len() == 1)
        .map(|all| all[0]);
    let value = schema.first("default").or(only)?;
    let is_simple = value.is_string() || value.is_boolean() || value.is_i64();
    is_simple.then_some(value)
}

/// A property inside a property, or that itself.
struct Leaf<'d> {
    /// The property that it is in.
    root: &'d str,
    path: String,
    name: &'d str,
    values: Vec<&'d Value>,
}

fn add_leaves<'d>(
    document: &'d Document,
    root: &'d str,
    (prefix, name, values): (String, &'d str, Vec<&'d Value>),
    levels: usize,
    leaves: &mut Vec<Leaf<'d>>,
) {
    let path = format!("{prefix}.{name}");
    let schema = Schema::new(document, &values);
    if levels > 0 && schema.types() & !NULL == OBJECT {
        for (name, values) in schema.properties() {
            add_leaves(
                document,
                root,
                (path.clone(), name, values),
                levels - 1,
                leaves,
            );
        }
    } else {
        leaves.push(Leaf {
            root,
            path,
            name,
            values,
        });
    }
}
