//! Compares two schemas: what the new one allows less, and what it allows more.
//!
//! A request that was allowed must stay so: what narrows its schema breaks clients. A response must stay what clients
//! know: what widens its schema breaks them.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use serde_json::Value;

use crate::{
    document::Document,
    finding::{List, Step},
    hint,
    schema::{ANY, Alternative, BOOLEAN, NULL, NUMBER, STRING, Schema, type_names},
};

/// Limit of nested schemas, and of a comparison's steps and differences.
const MAX_DEPTH: usize = 64;
const MAX_WORK: usize = 2_000_000;
const MAX_DIFFERENCES: usize = 1000;

/// Who sends the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    Request,
    Response,
}

use Direction::{Request, Response};

/// What a difference does with the values that are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Narrows,
    Widens,
    /// Allows others.
    Replaces,
    Breaks,
    /// Breaks nothing.
    Harmless,
}

use Effect::{Breaks, Harmless, Narrows, Replaces, Widens};

impl Effect {
    pub(crate) const fn is_breaking(self, direction: Direction) -> bool {
        match self {
            Narrows => matches!(direction, Request),
            Widens => matches!(direction, Response),
            Replaces | Breaks => true,
            Harmless => false,
        }
    }

    const fn reversed(self) -> Self {
        match self {
            Narrows => Widens,
            Widens => Narrows,
            other => other,
        }
    }
}

/// A difference of two schemas.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// Of the value, without the `$`.
    pub(crate) path: String,
    pub(crate) kind: Cow<'static, str>,
    pub(crate) effect: Effect,
    pub(crate) text: String,
    pub(crate) steps: Vec<Step>,
}

/// The values of two schemas that are compared, by their places in the documents.
type Key = (Vec<usize>, Vec<usize>, Direction, bool);

/// Compares schemas of two documents.
pub(crate) struct Schemas<'d> {
    pub(crate) old: &'d Document,
    pub(crate) new: &'d Document,
    pub(crate) direction: Direction,
    /// Whether values are sent as texts, as parameters and headers are.
    pub(crate) is_text: bool,
    pub(crate) is_complete: bool,
    /// What was compared before. Nothing yet for what is being compared: a reference to itself adds nothing.
    known: HashMap<Key, Rc<[Difference]>>,
    depth: usize,
    work: usize,
}

pub(crate) type Values<'v, 'd> = &'v [&'d Value];

impl<'d> Schemas<'d> {
    pub(crate) fn new(old: &'d Document, new: &'d Document) -> Self {
        Self {
            old,
            new,
            direction: Request,
            is_text: false,
            is_complete: true,
            known: HashMap::new(),
            depth: 0,
            work: 0,
        }
    }

    /// What differs between the schemas of two values.
    pub(crate) fn compare(&mut self, old: Values<'_, 'd>, new: Values<'_, 'd>) -> Rc<[Difference]> {
        // A plain reference is what it leads to.
        let places = |document: &Document, values: Values<'_, '_>| {
            let places = values.iter().map(|value| document.plain(value));
            places
                .map(|value| std::ptr::from_ref(value).addr())
                .collect()
        };
        let (olds, news) = (places(self.old, old), places(self.new, new));
        let key = (olds, news, self.direction, self.is_text);
        if let Some(known) = self.known.get(&key) {
            return Rc::clone(known);
        }
        self.known.insert(key.clone(), Rc::default());
        let (old, new) = (Schema::new(self.old, old), Schema::new(self.new, new));
        let differences: Rc<[_]> = self.compare_schemas(&old, &new).into();
        self.known.insert(key, Rc::clone(&differences));
        differences
    }

    /// Whether clients can go on with the new schema.
    pub(crate) fn is_compatible(&mut self, old: Values<'_, 'd>, new: Values<'_, 'd>) -> bool {
        let differences = self.compare(old, new);
        !differences
            .iter()
            .any(|one| one.effect.is_breaking(self.direction))
    }

    fn compare_schemas(&mut self, old: &Schema<'d>, new: &Schema<'d>) -> Vec<Difference> {
        if self.depth == MAX_DEPTH || self.work == MAX_WORK {
            self.is_complete = false;
            return Vec::new();
        }
        self.work += 1;
        self.depth += 1;
        let mut found = Found::default();
        let is_open =
            |schema: &Schema<'d>| !schema.has_alternatives() && schema.types() | NULL == ANY;
        let dynamic = [old, new].map(|schema| schema.first("$dynamicRef"));
        if dynamic[0] != dynamic[1] {
            found.add("not-compared", Harmless, "$dynamicRef is not followed");
        } else if is_open(old) && new.has_alternatives() {
            found.add("type-narrowed", Narrows, "any type → alternatives");
        } else if is_open(new) && old.has_alternatives() {
            found.add("type-widened", Widens, "alternatives → any type");
        } else if old.has_alternatives() || new.has_alternatives() {
            self.compare_alternatives(old, new, &mut found);
        } else if old.is_never || new.is_never {
            match (old.is_never, new.is_never) {
                (false, true) => found.add("forbidden", Narrows, "no value is allowed"),
                (true, false) => found.add("no-longer-forbidden", Widens, "values are allowed"),
                _ => {}
            }
        } else {
            self.compare_plain(old, new, &mut found);
        }
        self.depth -= 1;
        if found.0.len() > MAX_DIFFERENCES {
            found.0.truncate(MAX_DIFFERENCES);
            self.is_complete = false;
        }
        found.0
    }

    fn compare_alternatives(&mut self, old: &Schema<'d>, new: &Schema<'d>, found: &mut Found) {
        let (olds, news) = (old.alternatives(self.old), new.alternatives(self.new));
        let (pairs, gone, fresh) = self.pair_alternatives(&olds, &news);
        for (old, new) in pairs {
            found.join(self.compare_schemas(&old.1, &new.1));
        }
        for old in gone {
            let is_request = self.direction == Request;
            if is_request && news.iter().any(|new| self.is_covered(&old.1, &new.1)) {
                continue;
            }
            match &*news {
                // All alternatives became one schema.
                [only] if only.1.types() == old.1.types() => {
                    found.join(self.compare_schemas(&old.1, &only.1));
                }
                _ => {
                    let text = format!("alternative {} is gone", shown_alternative(old));
                    found.add("alternative-removed", Narrows, text);
                }
            }
        }
        for new in fresh {
            let is_response = self.direction == Response;
            if !(is_response && olds.iter().any(|old| self.is_covered(&old.1, &new.1))) {
                let text = format!("alternative {} is new", shown_alternative(new));
                found.add("alternative-added", Widens, text);
            }
        }
    }

    /// The alternatives that differ but belong together, and those that are only in one of both.
    fn pair_alternatives<'a>(
        &mut self,
        olds: &'a [Alternative<'d>],
        news: &'a [Alternative<'d>],
    ) -> (
        Vec<(&'a Alternative<'d>, &'a Alternative<'d>)>,
        Vec<&'a Alternative<'d>>,
        Vec<&'a Alternative<'d>>,
    ) {
        let is_named =
            |one: &Alternative<'_>, other: &Alternative<'_>| !one.0.is_empty() && one.0 == other.0;
        let (mut gone, mut fresh, mut pairs) =
            (Vec::new(), news.iter().collect::<Vec<_>>(), Vec::new());
        for old in olds {
            fresh.sort_by_key(|new| !is_named(old, new));
            match fresh
                .iter()
                .position(|new| self.compare_schemas(&old.1, &new.1).is_empty())
            {
                Some(same) => drop(fresh.remove(same)),
                None => gone.push(old),
            }
        }
        // Those with the same name, and the only one with its types.
        gone.retain(|old| {
            let named = fresh.iter().position(|new| is_named(old, new));
            let mut alike = (0..fresh.len()).filter(|at| fresh[*at].1.types() == old.1.types());
            let alike = alike.next().filter(|_| alike.next().is_none());
            let other = named.or(alike).map(|at| fresh.remove(at));
            pairs.extend(other.map(|new| (*old, new)));
            other.is_none()
        });
        (pairs, gone, fresh)
    }

    fn is_covered(&mut self, old: &Schema<'d>, new: &Schema<'d>) -> bool {
        let differences = self.compare_schemas(old, new);
        !differences
            .iter()
            .any(|one| one.effect.is_breaking(self.direction))
    }

    fn compare_plain(&mut self, old: &Schema<'d>, new: &Schema<'d>, found: &mut Found) {
        if !self.compare_types(old, new, found) {
            return;
        }
        compare_values(old, new, found);
        compare_bounds(old, new, found);
        compare_texts(old, new, found);
        if self.direction == Request {
            compare_defaults(old, new, found);
        }
        if new.is("deprecated") && !old.is("deprecated") {
            found.add("deprecated", Harmless, "is deprecated");
        }
        self.compare_properties(old, new, found);
        self.compare_items(old, new, found);
        self.compare_conditions(old, new, found);
        for (keyword, member) in [
            ("additionalProperties", ".*"),
            ("unevaluatedProperties", ".*"),
            ("unevaluatedItems", "[]"),
        ] {
            self.compare_others(old, new, (keyword, member), found);
        }
    }

    /// Whether the types are so alike that the rest can be compared.
    fn compare_types(&mut self, old: &Schema<'d>, new: &Schema<'d>, found: &mut Found) -> bool {
        let types = |schema: &Schema<'_>| match schema.types() {
            types if self.is_text && types & STRING > 0 => types | BOOLEAN | NUMBER,
            types => types,
        };
        let (before, after) = (types(old), types(new));
        let (values, new_values) = (before & !NULL, after & !NULL);
        if values != new_values {
            let text = format!("{} → {}", type_names(old.types()), type_names(new.types()));
            let (kind, effect) = match values & new_values {
                both if both == values => ("type-widened", Widens),
                both if both == new_values => ("type-narrowed", Narrows),
                _ => ("type-changed", Replaces),
            };
            found.add(kind, effect, text);
            let action = hint::of_types(self, old, new);
            found.hint(action.map(|action| self.step(String::new(), action)));
            let is_open = values == ANY & !NULL || new_values == ANY & !NULL;
            return values & new_values > 0 && !is_open;
        }
        match (before & NULL, after & NULL) {
            (0, NULL) => found.add("became-nullable", Widens, "can be null"),
            (NULL, 0) => found.add("became-not-nullable", Narrows, "cannot be null"),
            _ => {}
        }
        true
    }

    pub(crate) fn step(&self, at: String, action: crate::finding::Action) -> Step {
        let list = match self.direction {
            Request => List::RequestBody,
            Response => List::Response,
        };
        Step { list, at, action }
    }

    fn compare_properties(&mut self, old: &Schema<'d>, new: &Schema<'d>, found: &mut Found) {
        let (old_all, new_all) = (old.properties(), new.properties());
        let (old_required, new_required) = (old.required(), new.required());
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        let names: BTreeSet<_> = old_all.keys().chain(new_all.keys()).copied().collect();
        for name in names {
            let (old, new) = (old_all.get(name), new_all.get(name));
            let shown = |document, values: Option<&Vec<&'d Value>>| {
                let hidden = match self.direction {
                    Request => "readOnly",
                    Response => "writeOnly",
                };
                values.is_some_and(|values| !Schema::new(document, values).is(hidden))
            };
            match (old, shown(self.old, old), new, shown(self.new, new)) {
                (Some(old), true, Some(new), true) => {
                    let inside = format!(".{name}");
                    match (old_required.contains(name), new_required.contains(name)) {
                        (false, true) => {
                            found.at(&inside, "property-became-required", Narrows, "is required")
                        }
                        (true, false) => {
                            found.at(&inside, "property-became-optional", Widens, "is optional")
                        }
                        _ => {}
                    }
                    found.inside(&inside, &self.compare(old, new));
                }
                // Servers ignore it, as they should in 3.0 and 3.1.
                (_, true, Some(_), false) if self.direction == Request => {
                    found.at(
                        &format!(".{name}"),
                        "property-became-read-only",
                        Harmless,
                        "is read-only",
                    );
                }
                (Some(old), true, ..) => removed.push((name, old.as_slice())),
                (.., Some(new), true) => added.push((name, new.as_slice())),
                _ => {}
            }
        }
        let hints = hint::of_properties(self, &removed, &added, &new_required);
        for (name, _) in &removed {
            found.at(&format!(".{name}"), "property-removed", Breaks, "is gone");
            found.hint(hints.get(name).cloned().unwrap_or_default());
        }
        for (name, _) in &added {
            let is_needed = self.direction == Request && new_required.contains(name);
            let (kind, effect, text) = match is_needed {
                true => ("required-property-added", Breaks, "is new and required"),
                false => ("property-added", Harmless, "is new"),
            };
            found.at(&format!(".{name}"), kind, effect, text);
            found.hint(hints.get(name).cloned().unwrap_or_default());
        }
    }

    fn compare_items(&mut self, old: &Schema<'d>, new: &Schema<'d>, found: &mut Found) {
        let (old_items, new_items) = (old.all("items"), new.all("items"));
        let tuple = |schema: &Schema<'d>| schema.first("prefixItems").and_then(Value::as_array);
        let (old_tuple, new_tuple) = (tuple(old), tuple(new));
        let length = |tuple: Option<&Vec<Value>>| tuple.map_or(0, Vec::len);
        // No item follows a tuple that is as long as its array.
        let is_whole = |schema: &Schema<'d>, tuple| {
            length(tuple) > 0
                && schema
                    .bound("maxItems", true)
                    .is_some_and(|most| most <= length(tuple) as f64)
        };
        let has_items = !old_items.is_empty() || !new_items.is_empty();
        if has_items && !is_whole(old, old_tuple) && !is_whole(new, new_tuple) {
            found.inside("[]", &self.compare(&old_items, &new_items));
        }
        for at in 0..length(old_tuple).max(length(new_tuple)) {
            // What has no place of its own is as all other items.
            let item = |tuple: Option<&'d Vec<Value>>, items: &[&'d Value]| {
                let item = tuple.and_then(|tuple| tuple.get(at));
                item.map_or_else(|| items.to_vec(), |item| vec![item])
            };
            let (old, new) = (item(old_tuple, &old_items), item(new_tuple, &new_items));
            found.inside(&format!("[{at}]"), &self.compare(&old, &new));
        }
    }

    /// What narrows a schema by being there.
    fn compare_conditions(&mut self, old: &Schema<'d>, new: &Schema<'d>, found: &mut Found) {
        for keyword in [
            "contains",
            "propertyNames",
            "contentSchema",
            "not",
            "if",
            "then",
            "else",
        ] {
            let (kind, shown) = (kebab(keyword), keyword);
            match (old.first(keyword), new.first(keyword)) {
                (None, Some(_)) => {
                    found.add(format!("{kind}-added"), Narrows, format!("{shown} is new"))
                }
                (Some(_), None) => found.add(
                    format!("{kind}-removed"),
                    Widens,
                    format!("{shown} is gone"),
                ),
                (Some(old), Some(new)) if keyword == "if" => {
                    if old != new {
                        found.add("if-changed", Replaces, "if differs");
                    }
                }
                (Some(old), Some(new)) => {
                    let mut inner = self.compare(&[old], &[new]).to_vec();
                    for one in &mut inner {
                        one.text = format!("{keyword}: {}", one.text);
                        one.steps.clear();
                        if keyword == "not" {
                            one.effect = one.effect.reversed();
                        }
                    }
                    found.0.extend(inner);
                }
                (None, None) => {}
            }
        }
        for (keyword, kind) in [
            ("dependentRequired", "dependent-required"),
            ("dependentSchemas", "dependent-schema"),
            ("patternProperties", "pattern-property"),
        ] {
            let (old, new) = (old.keyed(keyword), new.keyed(keyword));
            for (name, values) in &old {
                match new.get(name) {
                    None => found.add(
                        format!("{kind}-removed"),
                        Widens,
                        format!("{keyword} {name:?} is gone"),
                    ),
                    Some(new) if keyword == "dependentRequired" => {
                        if values != new {
                            found.add(
                                format!("{kind}-changed"),
                                Replaces,
                                format!("{keyword} {name:?} differs"),
                            );
                        }
                    }
                    Some(new) => found.inside(
                        if kind == "pattern-property" { ".*" } else { "" },
                        &self.compare(values, new),
                    ),
                }
            }
            for name in new.keys().filter(|name| !old.contains_key(*name)) {
                found.add(
                    format!("{kind}-added"),
                    Narrows,
                    format!("{keyword} {name:?} is new"),
                );
            }
        }
    }

    /// What is allowed besides the properties and items that have a name or a place.
    fn compare_others(
        &mut self,
        old: &Schema<'d>,
        new: &Schema<'d>,
        (keyword, member): (&str, &str),
        found: &mut Found,
    ) {
        let is_open = |value: &Value| {
            value == &Value::Bool(true) || value.as_object().is_some_and(serde_json::Map::is_empty)
        };
        let read = |schema: &Schema<'d>| {
            let mut values = schema.all(keyword);
            values.retain(|value| !is_open(value));
            let is_closed = values.contains(&&Value::Bool(false));
            (values, is_closed)
        };
        let ((old, was_closed), (new, is_closed)) = (read(old), read(new));
        let kind = kebab(keyword);
        match (&*old, &*new) {
            ([], []) => {}
            ([], _) => found.add(
                format!("{kind}-added"),
                Narrows,
                format!("{keyword} is restricted"),
            ),
            // As with a new property: clients ignore what they do not know.
            (_, []) if was_closed && keyword == "additionalProperties" => {
                found.add(
                    format!("{kind}-removed"),
                    Harmless,
                    format!("{keyword} is allowed"),
                );
            }
            (_, []) => found.add(
                format!("{kind}-removed"),
                Widens,
                format!("{keyword} is not restricted"),
            ),
            _ => match (was_closed, is_closed) {
                (true, true) => {}
                (true, false) => found.add(
                    format!("{kind}-removed"),
                    Harmless,
                    format!("{keyword} is allowed"),
                ),
                (false, true) => found.add(
                    format!("{kind}-added"),
                    Narrows,
                    format!("{keyword} is not allowed"),
                ),
                (false, false) => found.inside(member, &self.compare(&old, &new)),
            },
        }
    }
}

/// The name of an alternative, or what it is.
fn shown_alternative((name, schema): &Alternative<'_>) -> String {
    match &**name {
        "" => type_names(schema.types()),
        name => name.to_owned(),
    }
}

/// The differences of two schemas.
#[derive(Default)]
struct Found(Vec<Difference>);

impl Found {
    /// Adds what is not known yet: alternatives share what surrounds them.
    fn join(&mut self, differences: Vec<Difference>) {
        for one in differences {
            let is_same = |other: &Difference| {
                (&other.path, &other.kind, &other.text) == (&one.path, &one.kind, &one.text)
            };
            if !self.0.iter().any(is_same) {
                self.0.push(one);
            }
        }
    }

    fn add(&mut self, kind: impl Into<Cow<'static, str>>, effect: Effect, text: impl Into<String>) {
        self.0.push(Difference {
            path: String::new(),
            kind: kind.into(),
            effect,
            text: text.into(),
            steps: Vec::new(),
        });
    }

    fn at(&mut self, path: &str, kind: &'static str, effect: Effect, text: &str) {
        self.add(kind, effect, text);
        self.0.last_mut().expect("just added").path = path.to_owned();
    }

    /// Adds steps to the last difference.
    fn hint(&mut self, steps: impl IntoIterator<Item = Step>) {
        self.0.last_mut().expect("just added").steps.extend(steps);
    }

    /// The differences of a value inside.
    fn inside(&mut self, prefix: &str, differences: &[Difference]) {
        self.0.extend(differences.iter().map(|one| {
            let mut one = one.clone();
            one.path.insert_str(0, prefix);
            one.steps
                .iter_mut()
                .for_each(|step| hint::lift(step, prefix));
            one
        }));
    }
}

fn compare_values(old: &Schema<'_>, new: &Schema<'_>, found: &mut Found) {
    match (old.allowed("enum"), new.allowed("enum")) {
        (None, Some(new)) => found.add("became-enum", Narrows, format!("only {}", list(&new))),
        (Some(_), None) => found.add("became-not-enum", Widens, "any value"),
        (Some(old), Some(new)) => {
            let (mut removed, mut added) = (old.clone(), new.clone());
            removed.retain(|value| !new.contains(value));
            added.retain(|value| !old.contains(value));
            if !removed.is_empty() {
                found.add(
                    "enum-value-removed",
                    Narrows,
                    format!("without {}", list(&removed)),
                );
            }
            if !added.is_empty() {
                found.add("enum-value-added", Widens, format!("also {}", list(&added)));
            }
        }
        (None, None) => {}
    }
    const EXTENSIBLE: &str = "x-extensible-enum";
    if let (Some(old), Some(new)) = (old.allowed(EXTENSIBLE), new.allowed(EXTENSIBLE)) {
        let removed: Vec<_> = old
            .into_iter()
            .filter(|value| !new.contains(value))
            .collect();
        if !removed.is_empty() {
            found.add(
                "extensible-enum-value-removed",
                Narrows,
                format!("without {}", list(&removed)),
            );
        }
    }
}

/// A bound: the keyword, whether it is an upper one, and what it is if it is absent.
const BOUNDS: [(&str, bool, Option<f64>); 8] = [
    ("maxLength", true, None),
    ("minLength", false, Some(0.0)),
    ("maxItems", true, None),
    ("minItems", false, Some(0.0)),
    ("maxProperties", true, None),
    ("minProperties", false, Some(0.0)),
    ("maxContains", true, None),
    ("minContains", false, Some(1.0)),
];

fn compare_bounds(old: &Schema<'_>, new: &Schema<'_>, found: &mut Found) {
    for (keyword, is_upper, absent) in BOUNDS {
        let bound = |schema: &Schema<'_>| {
            schema
                .bound(keyword, is_upper)
                .filter(|bound| Some(*bound) != absent)
        };
        let bounds = (bound(old), bound(new)).into();
        compare_bound(keyword, is_upper, bounds, found);
    }
    for (keyword, exclusive, is_upper) in [
        ("maximum", "exclusiveMaximum", true),
        ("minimum", "exclusiveMinimum", false),
    ] {
        // In 3.0 the exclusive bound is a flag beside the other one.
        let flagged = |schema: &Schema<'_>| schema.is(exclusive);
        let inclusive =
            |schema: &Schema<'_>| schema.bound(keyword, is_upper).filter(|_| !flagged(schema));
        let strict = |schema: &Schema<'_>| {
            let flag = schema.bound(keyword, is_upper).filter(|_| flagged(schema));
            flag.or_else(|| schema.bound(exclusive, is_upper))
        };
        compare_bound(keyword, is_upper, [inclusive(old), inclusive(new)], found);
        compare_bound(exclusive, is_upper, [strict(old), strict(new)], found);
    }
    let [before, after] = [old, new].map(|schema| schema.bound("multipleOf", false));
    match (before, after) {
        (None, Some(after)) => found.add(
            "multiple-of-set",
            Narrows,
            format!("only multiples of {after}"),
        ),
        (Some(before), None) => found.add(
            "multiple-of-unset",
            Widens,
            format!("not only multiples of {before}"),
        ),
        (Some(before), Some(after)) if before != after => {
            let (kind, effect) = match (before % after == 0.0, after % before == 0.0) {
                (true, _) => ("multiple-of-widened", Widens),
                (_, true) => ("multiple-of-narrowed", Narrows),
                _ => ("multiple-of-changed", Replaces),
            };
            found.add(kind, effect, format!("multiples of {before} → {after}"));
        }
        _ => {}
    }
    match (old.is("uniqueItems"), new.is("uniqueItems")) {
        (false, true) => found.add("unique-items-set", Narrows, "items must differ"),
        (true, false) => found.add("unique-items-unset", Widens, "items may be equal"),
        _ => {}
    }
}

fn compare_bound(keyword: &str, is_upper: bool, bounds: [Option<f64>; 2], found: &mut Found) {
    let shown =
        |bound: Option<f64>| bound.map_or_else(|| "none".to_owned(), |bound| bound.to_string());
    let (ending, effect) = match bounds {
        [None, Some(_)] => ("set", Narrows),
        [Some(_), None] => ("unset", Widens),
        [Some(before), Some(after)] if after > before => {
            ("increased", if is_upper { Widens } else { Narrows })
        }
        [Some(before), Some(after)] if after < before => {
            ("decreased", if is_upper { Narrows } else { Widens })
        }
        _ => return,
    };
    let text = format!("{keyword} {} → {}", shown(bounds[0]), shown(bounds[1]));
    found.add(format!("{}-{ending}", kebab(keyword)), effect, text);
}

fn compare_texts(old: &Schema<'_>, new: &Schema<'_>, found: &mut Found) {
    // A password is any text, and these two numbers are what JSON has.
    let any = ["password", "int64", "double"];
    let format = |schema: &Schema<'_>| {
        let format = schema.first("format").and_then(Value::as_str);
        format.filter(|name| !any.contains(name)).map(str::to_owned)
    };
    let (before, after) = (format(old), format(new));
    if before != after {
        let shown = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".to_owned());
        let text = format!("format {} → {}", shown(&before), shown(&after));
        let (kind, effect) = match (&before, &after) {
            (None, _) => ("format-narrowed", Narrows),
            (_, None) => ("format-widened", Widens),
            _ => ("format-changed", Replaces),
        };
        found.add(kind, effect, text);
    }
    let patterns = |schema: &Schema<'_>| {
        let all = schema
            .all("pattern")
            .into_iter()
            .filter_map(|pattern| pattern.as_str().map(str::to_owned));
        let all = all.filter(|pattern| !matches!(&**pattern, "" | ".*" | "^.*$"));
        all.collect::<BTreeSet<_>>()
    };
    let (before, after) = (patterns(old), patterns(new));
    match (before.is_subset(&after), after.is_subset(&before)) {
        (true, true) => {}
        (true, false) => found.add("pattern-added", Narrows, "a pattern is new"),
        (false, true) => found.add("pattern-removed", Widens, "a pattern is gone"),
        (false, false) => found.add("pattern-changed", Replaces, "the pattern differs"),
    }
    for keyword in ["contentMediaType", "contentEncoding"] {
        if old.first(keyword) != new.first(keyword) {
            found.add(
                format!("{}-changed", kebab(keyword)),
                Replaces,
                format!("{keyword} differs"),
            );
        }
    }
}

/// A client that leaves a value out gets another one.
fn compare_defaults(old: &Schema<'_>, new: &Schema<'_>, found: &mut Found) {
    match (old.first("default"), new.first("default")) {
        (None, Some(new)) => {
            found.add("default-added", Harmless, format!("default {}", short(new)))
        }
        (Some(old), None) => found.add(
            "default-removed",
            Breaks,
            format!("no default; before {}", short(old)),
        ),
        (Some(old), Some(new)) if old != new => {
            found.add(
                "default-changed",
                Breaks,
                format!("default {} → {}", short(old), short(new)),
            );
        }
        _ => {}
    }
}

/// `maxLength` as `max-length`.
fn kebab(keyword: &str) -> String {
    let letters = keyword.chars().flat_map(|letter| {
        let dash = letter.is_ascii_uppercase().then_some('-');
        dash.into_iter().chain([letter.to_ascii_lowercase()])
    });
    letters.collect()
}

fn list(values: &[&Value]) -> String {
    let all: Vec<_> = values.iter().take(8).map(|value| short(value)).collect();
    let more = if values.len() > 8 { ", …" } else { "" };
    format!("{}{more}", all.join(", "))
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
