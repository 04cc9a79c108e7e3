//! YAML as the JSON that it stands for. The parser reports events and does not recurse.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};
use serde_json::{Map, Number, Value};

use crate::document::Unreadable;

/// As in JSON.
const MAX_DEPTH: usize = 127;

/// Limit of the values of a document, with each alias written out.
const MAX_VALUES: usize = 4_000_000;

/// Reads the one document of a text.
pub(crate) fn read(text: &str) -> Result<Value, Unreadable> {
    let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(text);
    let mut builder = Builder::default();
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let mark = error.marker();
            Unreadable::new(place(mark.line(), mark.col()), error.info(), "YAML 1.2")
        })?;
        builder.take(event, &span)?;
    }
    Ok(builder.root.unwrap_or_default())
}

fn place(line: usize, column: usize) -> String {
    format!("line {line}, column {}", column + 1)
}

/// A collection that is not complete.
enum Open {
    Array(Vec<Value>),
    /// With the key that waits for its value.
    Object(Map<String, Value>, Option<String>),
}

#[derive(Default)]
struct Builder {
    root: Option<Value>,
    /// Each with its anchor, and the number of values before it.
    open: Vec<(Open, usize, usize)>,
    anchors: HashMap<usize, (Value, usize)>,
    values: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Unreadable> {
        let at = || place(span.start.line(), span.start.col());
        let before = self.values;
        let (value, anchor, before) = match event {
            Event::SequenceStart(anchor, _) => {
                return self.open(Open::Array(Vec::new()), anchor, at);
            }
            Event::MappingStart(anchor, _) => {
                return self.open(Open::Object(Map::new(), None), anchor, at);
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.is_some_and(|tag| tag.suffix == "str");
                let is_key = matches!(self.open.last(), Some((Open::Object(_, None), ..)));
                let is_plain = style == ScalarStyle::Plain && !is_text && !is_key;
                let value = if is_plain {
                    plain(&text)
                } else {
                    Value::from(text)
                };
                self.values += 1;
                (value, anchor, before)
            }
            Event::Alias(anchor) => {
                // An alias inside its own anchor has no value yet.
                let missing = || Unreadable::new(at(), "an alias", "an alias of a value before it");
                let (value, values) = self.anchors.get(&anchor).ok_or_else(missing)?;
                self.values += values;
                check(self.values <= MAX_VALUES, at, "more values")?;
                (value.clone(), 0, before)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((Open::Array(items), anchor, before)) => (items.into(), anchor, before),
                Some((Open::Object(members, _), anchor, before)) => {
                    (members.into(), anchor, before)
                }
                None => return Ok(()),
            },
            Event::DocumentStart(_) => return check(self.root.is_none(), at, "a second document"),
            _ => return Ok(()),
        };
        check(self.values <= MAX_VALUES, at, "more values")?;
        if anchor != 0 {
            let values = self.values - before;
            self.values += values;
            self.anchors.insert(anchor, (value.clone(), values));
        }
        self.put(value, at)
    }

    fn open(
        &mut self,
        open: Open,
        anchor: usize,
        at: impl Fn() -> String,
    ) -> Result<(), Unreadable> {
        check(self.open.len() < MAX_DEPTH, at, "more levels")?;
        self.open.push((open, anchor, self.values));
        self.values += 1;
        Ok(())
    }

    fn put(&mut self, value: Value, at: impl Fn() -> String) -> Result<(), Unreadable> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some((Open::Array(items), ..)) => items.push(value),
            Some((Open::Object(members, key), ..)) => match (key.take(), value) {
                (None, Value::String(text)) => *key = Some(text),
                (None, _) => return Err(Unreadable::new(at(), "a collection as a key", "a text")),
                (Some(key), Value::Object(merged)) if key == "<<" => {
                    for (key, value) in merged {
                        members.entry(key).or_insert(value);
                    }
                }
                (Some(key), value) => {
                    members.insert(key, value);
                }
            },
        }
        Ok(())
    }
}

fn check(is_fine: bool, at: impl Fn() -> String, found: &str) -> Result<(), Unreadable> {
    let allowed =
        "one document of at most 127 levels and 4,000,000 values, with aliases written out";
    is_fine
        .then_some(())
        .ok_or_else(|| Unreadable::new(at(), found, allowed))
}

/// What a text without quotes stands for, by YAML's core schema.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return text.into();
    }
    let radix = |prefix, radix| u64::from_str_radix(text.strip_prefix(prefix)?, radix).ok();
    let whole = radix("0x", 16)
        .or_else(|| radix("0o", 8))
        .or_else(|| text.parse().ok());
    let whole = whole
        .map(Number::from)
        .or_else(|| text.parse().ok().map(|whole: i64| whole.into()));
    let number = whole.or_else(|| text.parse().ok().and_then(Number::from_f64));
    number.map_or_else(|| text.into(), Value::Number)
}
