//! A schema with all that `$ref` and `allOf` add to it: a value must satisfy each of its parts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::document::Document;

pub(crate) const NULL: u8 = 1;
pub(crate) const BOOLEAN: u8 = 2;
pub(crate) const INTEGER: u8 = 4;
pub(crate) const NUMBER: u8 = 12;
pub(crate) const STRING: u8 = 16;
pub(crate) const ARRAY: u8 = 32;
pub(crate) const OBJECT: u8 = 64;
pub(crate) const ANY: u8 = 127;

/// Limit of the parts of a schema.
const MAX_PARTS: usize = 256;

/// A schema of `oneOf` or `anyOf`: the end of its reference or its title, and what it is.
pub(crate) type Alternative<'d> = (String, Schema<'d>);

/// A schema, or several that a value must all satisfy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema<'d> {
    parts: Vec<&'d Map<String, Value>>,
    /// Of each `oneOf` and `anyOf`, the alternatives without null.
    groups: Vec<Vec<&'d Value>>,
    is_nullable: bool,
    /// Whether no value satisfies it.
    pub(crate) is_never: bool,
}

impl<'d> Schema<'d> {
    pub(crate) fn new(document: &'d Document, values: &[&'d Value]) -> Self {
        let mut schema = Self::default();
        schema.add(document, values);
        schema
    }

    fn add(&mut self, document: &'d Document, values: &[&'d Value]) {
        let mut open = values.to_vec();
        while let Some(value) = open.pop() {
            self.is_never |= value == &Value::Bool(false);
            let Some(members) = value.as_object() else {
                continue;
            };
            // A schema that is a part of itself adds nothing.
            if self.parts.len() == MAX_PARTS
                || self.parts.iter().any(|part| std::ptr::eq(*part, members))
            {
                continue;
            }
            self.parts.push(members);
            self.is_nullable |= members.get("nullable") == Some(&Value::Bool(true));
            open.extend(document.referred(members));
            let all = members.get("allOf").and_then(Value::as_array);
            open.extend(all.into_iter().flatten());
            for key in ["oneOf", "anyOf"] {
                let Some(all) = members.get(key).and_then(Value::as_array) else {
                    continue;
                };
                let mut values: Vec<_> = all.iter().collect();
                values.retain(|one| !is_null(document.follow(one)));
                self.is_nullable |= values.len() < all.len();
                match *values {
                    [] => {}
                    [only] => open.push(only),
                    _ => self.groups.push(values),
                }
            }
        }
    }

    /// Each alternative with all that surrounds it. Only the schema itself if it has none.
    pub(crate) fn alternatives(&self, document: &'d Document) -> Vec<Alternative<'d>> {
        let Some((group, others)) = self.groups.split_first() else {
            return vec![(String::new(), self.clone())];
        };
        let alternative = |value: &&'d Value| {
            let mut schema = Self {
                groups: others.to_vec(),
                ..self.clone()
            };
            schema.add(document, &[*value]);
            let name = value["$ref"].as_str().or_else(|| value["title"].as_str());
            let name = name.unwrap_or_default();
            (
                name[name.rfind('/').map_or(0, |at| at + 1)..].to_owned(),
                schema,
            )
        };
        group.iter().map(alternative).collect()
    }

    /// How much there is to compare.
    pub(crate) const fn size(&self) -> usize {
        1 + self.parts.len()
    }

    pub(crate) const fn has_alternatives(&self) -> bool {
        !self.groups.is_empty()
    }

    /// The values of a keyword. In 3.0, the exclusive bound is a flag beside the other one.
    pub(crate) fn all(&self, keyword: &str) -> Vec<&'d Value> {
        if !keyword.ends_with("imum") {
            let values = self.parts.iter().map(|part| part.get(keyword));
            return values.flatten().collect();
        }
        let flag = keyword.replacen('m', "exclusiveM", 1);
        let bound = keyword.replace("exclusiveM", "m");
        let is_set =
            |part: &Map<String, Value>, key: &str| part.get(key) == Some(&Value::Bool(true));
        let value = |part: &&'d Map<String, Value>| match part.get(keyword)? {
            Value::Bool(flag) if bound != keyword => part.get(&bound).filter(|_| *flag),
            value => Some(value).filter(|_| !is_set(part, &flag)),
        };
        self.parts.iter().filter_map(value).collect()
    }

    pub(crate) fn first(&self, keyword: &str) -> Option<&'d Value> {
        self.parts.iter().find_map(|part| part.get(keyword))
    }

    pub(crate) fn is(&self, keyword: &str) -> bool {
        self.all(keyword).contains(&&Value::Bool(true))
    }

    /// The schemas of the members of a keyword's object, by name.
    pub(crate) fn keyed(&self, keyword: &str) -> BTreeMap<&'d str, Vec<&'d Value>> {
        let mut keyed: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        let objects = self.all(keyword).into_iter().filter_map(Value::as_object);
        for (name, value) in objects.flatten() {
            keyed.entry(name).or_default().push(value);
        }
        keyed
    }

    pub(crate) fn required(&self) -> BTreeSet<&'d str> {
        let lists = self.all("required").into_iter().filter_map(Value::as_array);
        lists.flatten().filter_map(Value::as_str).collect()
    }

    /// Its properties, also those that only `required` names.
    pub(crate) fn properties(&self) -> BTreeMap<&'d str, Vec<&'d Value>> {
        let mut properties = self.keyed("properties");
        for name in self.required() {
            properties.entry(name).or_default();
        }
        properties
    }

    /// The values that it allows, without null; `None`: all.
    pub(crate) fn allowed(&self) -> Option<Vec<&'d Value>> {
        let constants = self.all("const").into_iter().map(std::slice::from_ref);
        let lists = self.all("enum").into_iter();
        let lists = lists.filter_map(|list| Some(&**list.as_array()?));
        let mut lists = lists.chain(constants);
        let mut allowed: Vec<_> = lists.next()?.iter().collect();
        allowed.retain(|value| !value.is_null());
        lists.for_each(|list| allowed.retain(|value| list.contains(value)));
        Some(allowed)
    }

    /// The types of its values. What has no `type` has the one that its keywords are for.
    pub(crate) fn types(&self) -> u8 {
        let named = self.all("type").into_iter().filter_map(named_types);
        let named = named.reduce(|one, other| one & other);
        let types = named.unwrap_or_else(|| self.implied());
        types | if self.is_nullable { NULL } else { 0 }
    }

    fn implied(&self) -> u8 {
        const IMPLIED: [(u8, &str); 4] = [
            (
                OBJECT,
                "properties required additionalProperties minProperties maxProperties",
            ),
            (ARRAY, "items prefixItems minItems maxItems uniqueItems"),
            (STRING, "pattern minLength maxLength"),
            (NUMBER, "minimum maximum multipleOf"),
        ];
        if let Some(values) = self.allowed() {
            let types = values.into_iter().map(type_of);
            return types.fold(0, |all, one| all | one);
        }
        let has = |keys: &str| keys.split(' ').any(|key| self.first(key).is_some());
        let implied = IMPLIED.iter().find(|(_, keys)| has(keys));
        implied.map_or(ANY, |(types, _)| *types)
    }
}

fn is_null(schema: &Value) -> bool {
    let names = schema.get("type").and_then(named_types);
    let is_null = |list: &Value| list == &Value::Array(vec![Value::Null]);
    names == Some(NULL) || schema.get("enum").is_some_and(is_null)
}

/// Each type before those that it includes.
const NAMES: [(u8, &str); 7] = [
    (BOOLEAN, "boolean"),
    (NUMBER, "number"),
    (INTEGER, "integer"),
    (STRING, "string"),
    (ARRAY, "array"),
    (OBJECT, "object"),
    (NULL, "null"),
];

fn named_types(value: &Value) -> Option<u8> {
    let all = value
        .as_array()
        .map_or(std::slice::from_ref(value), |all| all);
    let types = |one: &Value| NAMES.iter().find(|(_, name)| one == name);
    let types = all.iter().filter_map(|one| Some(types(one)?.0));
    types.reduce(|one, other| one | other)
}

fn type_of(value: &Value) -> u8 {
    match value {
        Value::Null => NULL,
        Value::Bool(_) => BOOLEAN,
        Value::Number(number) if number.is_f64() => NUMBER,
        Value::Number(_) => INTEGER,
        Value::String(_) => STRING,
        Value::Array(_) => ARRAY,
        Value::Object(_) => OBJECT,
    }
}

/// The names of types, without null: `integer or string`.
pub(crate) fn type_names(types: u8) -> String {
    if types | NULL == ANY {
        return "any type".to_owned();
    }
    let (mut left, mut names) = (types & !NULL, Vec::new());
    for (bits, name) in NAMES {
        if bits & left == bits {
            left &= !bits;
            names.push(name);
        }
    }
    names.join(" or ")
}
