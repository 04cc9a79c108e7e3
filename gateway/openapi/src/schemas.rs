//! Compares two schemas: what the new one allows less, and what it allows more.
//!
//! A request that was allowed must stay so: what narrows its schema breaks clients. A response must stay what clients
//! know: what widens its schema breaks them.

pub(crate) mod hint;

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use serde_json::Value;

use crate::{
    document::Document,
    finding::Step,
    schema::{ANY, Alternative, BOOLEAN, NULL, NUMBER, STRING, Schema, type_names},
};

/// Limit of nested schemas, and of a comparison's steps and differences.
const MAX_DEPTH: usize = 64;
const MAX_WORK: usize = 1_000_000;
const MAX_DIFFERENCES: usize = 1000;

/// Who sends the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    Request,
    Response,
}

use Direction::Request;

/// What a difference does with the values that are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Narrows,
    Widens,
    /// Breaks in both directions.
    Breaks,
    Harmless,
}

use Effect::{Breaks, Harmless, Narrows, Widens};

impl Effect {
    pub(crate) fn is_breaking(self, direction: Direction) -> bool {
        self == Breaks
            || self
                == if direction == Request {
                    Narrows
                } else {
                    Widens
                }
    }
}

/// A difference of two schemas.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    /// Of the value, without the `$`.
    pub(crate) path: String,
    pub(crate) kind: Cow<'static, str>,
    pub(crate) effect: Effect,
    /// What is not in the kind.
    pub(crate) text: String,
    pub(crate) steps: Vec<Step>,
}

/// What a keyword does. Without it, all is allowed.
#[derive(Clone, Copy)]
enum Rule {
    /// A number, which values must not exceed.
    Upper,
    Lower,
    Multiple,
    /// One more condition.
    Condition,
    /// Something else than without.
    Meaning,
    /// A schema of the values at a path.
    Schema(&'static str),
    /// A schema that values must not satisfy.
    Not,
    /// A schema or a condition for each name.
    Named(&'static str),
}

const RULES: [(&str, Rule); 12] = [
    (
        "maximum exclusiveMaximum maxLength maxItems maxProperties maxContains",
        Rule::Upper,
    ),
    (
        "minimum exclusiveMinimum minLength minItems minProperties minContains",
        Rule::Lower,
    ),
    ("multipleOf", Rule::Multiple),
    ("uniqueItems format pattern if", Rule::Condition),
    ("contentMediaType contentEncoding", Rule::Meaning),
    ("contentSchema then else propertyNames", Rule::Schema("")),
    ("contains unevaluatedItems", Rule::Schema("[]")),
    (
        "additionalProperties unevaluatedProperties",
        Rule::Schema(".*"),
    ),
    ("not", Rule::Not),
    ("patternProperties", Rule::Named(".*")),
    ("dependentSchemas", Rule::Named("")),
    ("dependentRequired", Rule::Named("")),
];

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
    pub(crate) fn is_compatible(&self, differences: &[Difference]) -> bool {
        !differences
            .iter()
            .any(|one| one.effect.is_breaking(self.direction))
    }

    fn compare_schemas(&mut self, old: &Schema<'d>, new: &Schema<'d>) -> Vec<Difference> {
        if self.depth == MAX_DEPTH || self.work > MAX_WORK {
            self.is_complete = false;
            return Vec::new();
        }
        self.work += old.size() + new.size();
        self.depth += 1;
        let mut found = Found::default();
        let is_open =
            |schema: &Schema<'d>| !schema.has_alternatives() && schema.types() | NULL == ANY;
        let dynamic = [old, new].map(|schema| schema.first("$dynamicRef"));
        if dynamic[0] != dynamic[1] {
            found.add("dynamic-reference-not-compared", Harmless);
        } else if old.is_never || new.is_never {
            match (old.is_never, new.is_never) {
                (false, true) => found.add("forbidden", Narrows),
                (true, false) => found.add("allowed", Widens),
                _ => {}
            }
        } else if !old.has_alternatives() && !new.has_alternatives() || is_open(old) || is_open(new)
        {
            self.compare_plain(old, new, &mut found);
        } else {
            self.compare_alternatives(old, new, &mut found);
        }
        self.depth -= 1;
        self.is_complete &= found.0.len() <= MAX_DIFFERENCES;
        found.0.truncate(MAX_DIFFERENCES);
        found.0
    }

    fn compare_alternatives(&mut self, old: &Schema<'d>, new: &Schema<'d>, found: &mut Found) {
        let (olds, news) = (old.alternatives(self.old), new.alternatives(self.new));
        let (pairs, gone, fresh) = self.pair_alternatives(&olds, &news);
        for (old, new) in pairs {
            found.join(self.compare_schemas(&old.1, &new.1));
        }
        for old in gone {
            let is_taken =
                self.direction == Request && news.iter().any(|new| self.covers(old, new));
            match &*news {
                _ if is_taken => {}
                // All alternatives became one schema.
                [only] if only.1.types() == old.1.types() => {
                    found.join(self.compare_schemas(&old.1, &only.1));
                }
                _ => found.explain("alternative-removed", Narrows, name_of(old)),
            }
        }
        for new in fresh {
            if self.direction == Request || !olds.iter().any(|old| self.covers(old, new)) {
                found.explain("alternative-added", Widens, name_of(new));
            }
        }
    }

    /// The alternatives that differ but belong together, and those that are only in one of both.
    #[allow(clippy::type_complexity, reason = "named at its only caller")]
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
            |old: &Alternative<'_>, new: &Alternative<'_>| !old.0.is_empty() && old.0 == new.0;
        let (mut gone, mut pairs) = (Vec::new(), Vec::new());
        let mut fresh: Vec<_> = news.iter().collect();
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

    fn covers(&mut self, old: &Alternative<'d>, new: &Alternative<'d>) -> bool {
        let differences = self.compare_schemas(&old.1, &new.1);
        self.is_compatible(&differences)
    }

    fn compare_plain(&mut self, old: &Schema<'d>, new: &Schema<'d>, found: &mut Found) {
        if !self.compare_types(old, new, found) {
            return;
        }
        compare_enums(old, new, found);
        if self.direction == Request {
            // A client that leaves a value out gets another one.
            let defaults = [old, new].map(|schema| schema.first("default"));
            if defaults[0] != defaults[1] {
                let effect = if defaults[0].is_some() {
                    Breaks
                } else {
                    Harmless
                };
                let shown = defaults.map(|value| shown(value.as_slice()));
                found.explain("default-changed", effect, shown.join(" → "));
            }
        }
        if new.is("deprecated") && !old.is("deprecated") {
            found.add("deprecated", Harmless);
        }
        self.compare_properties(old, new, found);
        self.compare_items(old, new, found);
        for (keywords, rule) in RULES {
            for keyword in keywords.split(' ') {
                self.compare_keywords(keyword, rule, [old, new], found);
            }
        }
    }

    fn compare_keywords(
        &mut self,
        keyword: &str,
        rule: Rule,
        both: [&Schema<'d>; 2],
        found: &mut Found,
    ) {
        let Rule::Named(path) = rule else {
            let [old, new] = both.map(|schema| schema.all(keyword));
            return self.compare_keyword((keyword, rule), &old, &new, found);
        };
        let rule = match keyword {
            "dependentRequired" => Rule::Condition,
            _ => Rule::Schema(path),
        };
        let all = both.map(|schema| schema.keyed(keyword));
        let names = all.iter().flat_map(|all| all.keys().copied());
        for name in names.collect::<BTreeSet<_>>() {
            let [old, new] =
                [&all[0], &all[1]].map(|all| all.get(name).cloned().unwrap_or_default());
            self.compare_keyword((keyword, rule), &old, &new, found);
        }
    }

    /// Whether the types are so alike that the rest can be compared.
    fn compare_types(&mut self, old: &Schema<'d>, new: &Schema<'d>, found: &mut Found) -> bool {
        let [before, after] = [old, new].map(|schema| match schema.types() {
            types if self.is_text && types & STRING > 0 => types | BOOLEAN | NUMBER,
            types => types,
        });
        let (values, new_values) = (before & !NULL, after & !NULL);
        if values != new_values {
            let (kind, effect) = match values & new_values {
                both if both == values => ("type-widened", Widens),
                both if both == new_values => ("type-narrowed", Narrows),
                _ => ("type-changed", Breaks),
            };
            let text = format!("{} → {}", type_names(old.types()), type_names(new.types()));
            found.explain(kind, effect, text);
            let keys = hint::of_types(self, old, new);
            found.hint(keys.map(|keys| self.step(keys)));
            return values & new_values > 0 && values | NULL != ANY && new_values | NULL != ANY;
        }
        match (before & NULL, after & NULL) {
            (0, NULL) => found.add("became-nullable", Widens),
            (NULL, 0) => found.add("became-not-nullable", Narrows),
            _ => {}
        }
        true
    }

    pub(crate) fn step(&self, keys: Vec<(&'static str, Value)>) -> Step {
        let list = if self.direction == Request {
            "request_body"
        } else {
            "response"
        };
        Step { list, keys }
    }

    fn compare_properties(&mut self, old: &Schema<'d>, new: &Schema<'d>, found: &mut Found) {
        let (old_all, new_all) = (old.properties(), new.properties());
        let (old_required, new_required) = (old.required(), new.required());
        let hidden = if self.direction == Request {
            "readOnly"
        } else {
            "writeOnly"
        };
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        for name in old_all
            .keys()
            .chain(new_all.keys())
            .copied()
            .collect::<BTreeSet<_>>()
        {
            let (old, new) = (old_all.get(name), new_all.get(name));
            let shown = |document, values: Option<&Vec<&'d Value>>| {
                values.is_some_and(|values| !Schema::new(document, values).is(hidden))
            };
            let inside = format!(".{name}");
            match (old, shown(self.old, old), new, shown(self.new, new)) {
                (Some(old), true, Some(new), true) => {
                    match (old_required.contains(name), new_required.contains(name)) {
                        (false, true) => found.at(&inside, "property-became-required", Narrows),
                        (true, false) => found.at(&inside, "property-became-optional", Widens),
                        _ => {}
                    }
                    found.inside(&inside, &self.compare(old, new));
                }
                // Servers ignore it, as they should in 3.0 and 3.1.
                (_, true, Some(_), false) if self.direction == Request => {
                    found.at(&inside, "property-became-read-only", Harmless);
                }
                (Some(old), true, ..) => removed.push((name, &**old)),
                (.., Some(new), true) => added.push((name, &**new)),
                _ => {}
            }
        }
        self.add_properties(&removed, &added, &new_required, found);
    }

    fn add_properties(
        &mut self,
        removed: &[(&'d str, &[&'d Value])],
        added: &[(&'d str, &[&'d Value])],
        required: &BTreeSet<&str>,
        found: &mut Found,
    ) {
        let hints = hint::of_properties(self, removed, added, required);
        let steps = |name| hints.get(name).cloned().unwrap_or_default();
        for (name, _) in removed {
            found.at(&format!(".{name}"), "property-removed", Breaks);
            found.hint(steps(*name));
        }
        for (name, _) in added {
            let is_needed = self.direction == Request && required.contains(name);
            let (kind, effect) = match is_needed {
                true => ("required-property-added", Breaks),
                false => ("property-added", Harmless),
            };
            found.at(&format!(".{name}"), kind, effect);
            found.hint(steps(*name));
        }
    }

    fn compare_items(&mut self, old: &Schema<'d>, new: &Schema<'d>, found: &mut Found) {
        let read = |schema: &Schema<'d>| {
            let tuple = schema.first("prefixItems").and_then(Value::as_array);
            let tuple = tuple.map_or(&[][..], |tuple| tuple);
            // No item follows a tuple that is as long as its array.
            let most = schema
                .all("maxItems")
                .into_iter()
                .filter_map(Value::as_u64)
                .min();
            let is_whole = !tuple.is_empty() && most.is_some_and(|most| most <= tuple.len() as u64);
            (schema.all("items"), tuple, is_whole)
        };
        let ((olds, old_tuple, old_whole), (news, new_tuple, new_whole)) = (read(old), read(new));
        if !(olds.is_empty() && news.is_empty() || old_whole || new_whole) {
            found.inside("[]", &self.compare(&olds, &news));
        }
        for at in 0..old_tuple.len().max(new_tuple.len()) {
            // What has no place of its own is as all other items.
            let old = old_tuple
                .get(at)
                .map_or_else(|| olds.clone(), |item| vec![item]);
            let new = new_tuple
                .get(at)
                .map_or_else(|| news.clone(), |item| vec![item]);
            found.inside(&format!("[{at}]"), &self.compare(&old, &new));
        }
    }

    fn compare_keyword(
        &mut self,
        (keyword, rule): (&str, Rule),
        old: Values<'_, 'd>,
        new: Values<'_, 'd>,
        found: &mut Found,
    ) {
        let filled = |values: Values<'_, 'd>| {
            let values = values.iter().filter(|value| !says_nothing(keyword, value));
            values.copied().collect::<Vec<_>>()
        };
        let (old, new) = (filled(old), filled(new));
        let number = |values: &[&Value]| {
            let numbers = values.iter().filter_map(|value| value.as_f64());
            let is_upper = matches!(rule, Rule::Upper);
            numbers.reduce(|one, other| {
                if is_upper {
                    one.min(other)
                } else {
                    one.max(other)
                }
            })
        };
        let (before, after) = (number(&old).unwrap_or(0.0), number(&new).unwrap_or(0.0));
        let is_part =
            |part: &[&Value], whole: &[&Value]| part.iter().all(|value| whole.contains(value));
        let is_open = keyword == "additionalProperties" && !new.contains(&&Value::Bool(false));
        let (ending, effect) = match (&*old, &*new, rule) {
            ([], [], _) => return,
            ([], _, Rule::Meaning) | (_, [], Rule::Meaning) => ("changed", Breaks),
            // As with a new property: clients ignore what they do not know.
            ([Value::Bool(false), ..], ..) if is_open => ("unset", Harmless),
            ([], ..) => ("set", Narrows),
            (_, [], _) => ("unset", Widens),
            (.., Rule::Upper) if after > before => ("increased", Widens),
            (.., Rule::Upper) if after < before => ("decreased", Narrows),
            (.., Rule::Lower) if after > before => ("increased", Narrows),
            (.., Rule::Lower) if after < before => ("decreased", Widens),
            (.., Rule::Upper | Rule::Lower) => return,
            (.., Rule::Schema(path)) => return found.inside(path, &self.compare(&old, &new)),
            (.., Rule::Not) => return found.0.extend(reversed(&self.compare(&old, &new))),
            _ if is_part(&old, &new) && is_part(&new, &old) => return,
            (.., Rule::Multiple) if before % after == 0.0 => ("widened", Widens),
            (.., Rule::Multiple) if after % before == 0.0 => ("narrowed", Narrows),
            (.., Rule::Condition) if is_part(&old, &new) => ("set", Narrows),
            (.., Rule::Condition) if is_part(&new, &old) => ("unset", Widens),
            _ => ("changed", Breaks),
        };
        let text = format!("{} → {}", shown(&old), shown(&new));
        found.explain(format!("{}-{ending}", kebab(keyword)), effect, text);
    }
}

/// Whether a keyword's value is as none.
fn says_nothing(keyword: &str, value: &Value) -> bool {
    match (keyword, value) {
        ("uniqueItems", value) => value == &Value::Bool(false),
        // A password is any text, and these two numbers are what JSON has.
        ("format", Value::String(name)) => matches!(&**name, "password" | "int64" | "double"),
        ("pattern", Value::String(pattern)) => matches!(&**pattern, "" | ".*" | "^.*$"),
        ("minLength" | "minItems" | "minProperties", value) => value == &Value::from(0),
        ("minContains", value) => value == &Value::from(1),
        ("then" | "else" | "if", _) => false,
        (_, Value::Object(members)) => members.is_empty(),
        (_, value) => value == &Value::Bool(true),
    }
}

fn reversed(differences: &[Difference]) -> impl Iterator<Item = Difference> {
    differences.iter().cloned().map(|mut one| {
        one.effect = match one.effect {
            Narrows => Widens,
            Widens => Narrows,
            other => other,
        };
        one.steps.clear();
        one
    })
}

fn compare_enums(old: &Schema<'_>, new: &Schema<'_>, found: &mut Found) {
    match (old.allowed(), new.allowed()) {
        (None, Some(new)) => found.explain("enum-set", Narrows, shown(&new)),
        (Some(_), None) => found.add("enum-unset", Widens),
        (Some(old), Some(new)) => {
            let (mut removed, mut added) = (old.clone(), new.clone());
            removed.retain(|value| !new.contains(value));
            added.retain(|value| !old.contains(value));
            if !removed.is_empty() {
                found.explain("enum-value-removed", Narrows, shown(&removed));
            }
            if !added.is_empty() {
                found.explain("enum-value-added", Widens, shown(&added));
            }
        }
        (None, None) => {}
    }
}

/// The differences of two schemas.
#[derive(Default)]
struct Found(Vec<Difference>);

impl Found {
    fn explain(&mut self, kind: impl Into<Cow<'static, str>>, effect: Effect, text: String) {
        self.0.push(Difference {
            path: String::new(),
            kind: kind.into(),
            effect,
            text,
            steps: Vec::new(),
        });
    }

    fn add(&mut self, kind: &'static str, effect: Effect) {
        self.explain(kind, effect, String::new());
    }

    fn at(&mut self, path: &str, kind: &'static str, effect: Effect) {
        self.add(kind, effect);
        self.0.last_mut().expect("just added").path = path.to_owned();
    }

    /// Adds steps to the last difference.
    fn hint(&mut self, steps: impl IntoIterator<Item = Step>) {
        self.0.last_mut().expect("just added").steps.extend(steps);
    }

    /// Adds what is not known yet: alternatives share what surrounds them.
    fn join(&mut self, differences: Vec<Difference>) {
        for one in differences {
            if !self.0.contains(&one) {
                self.0.push(one);
            }
        }
    }

    /// The differences of a value inside.
    fn inside(&mut self, prefix: &str, differences: &[Difference]) {
        self.0.extend(differences.iter().cloned().map(|mut one| {
            one.path.insert_str(0, prefix);
            one.steps.iter_mut().for_each(|step| step.lift(prefix));
            one
        }));
    }
}

/// The name of an alternative, or what it is.
fn name_of((name, schema): &Alternative<'_>) -> String {
    match &**name {
        "" => type_names(schema.types()),
        name => name.to_owned(),
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

/// Values for people; long ones are cut.
fn shown(values: &[&Value]) -> String {
    let all: Vec<_> = values.iter().map(ToString::to_string).collect();
    let text = if all.is_empty() {
        "none".to_owned()
    } else {
        all.join(", ")
    };
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
