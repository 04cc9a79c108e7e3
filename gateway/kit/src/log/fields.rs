//! The values of an event or a span, as text.

use std::fmt::{self, Debug, Write};

use tracing::field::{Field, Visit};

/// The name of the message among an event's fields.
const MESSAGE: &str = "message";

/// The names under which `tracing-log` passes on where a line of the `log` crate is from.
const OF_LOG_CRATE: &str = "log.";

/// Fields in the order in which they were recorded. Their texts share one allocation.
#[derive(Debug, Default)]
pub(super) struct Fields {
    texts: String,
    fields: Vec<Recorded>,
}

#[derive(Debug)]
struct Recorded {
    name: &'static str,
    form: Form,
    start: usize,
    end: usize,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Text: quoted in both formats.
    Text,
    /// A value's `Display` or `Debug`: quoted in JSON.
    Shown,
    /// A number or a truth value.
    Literal,
}

/// A field's value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'f> {
    pub form: Form,
    pub text: &'f str,
}

impl Fields {
    /// Removes all fields. The text of so many bytes stays allocated.
    pub(super) fn clear(&mut self, retained: usize) {
        self.texts.clear();
        self.texts.shrink_to(retained);
        self.fields.clear();
    }

    /// Bytes allocated for the text.
    #[cfg(test)]
    pub(super) const fn capacity(&self) -> usize {
        self.texts.capacity()
    }

    /// The message; empty if there is none.
    pub(super) fn message(&self) -> &str {
        self.value(MESSAGE).map_or("", |value| value.text)
    }

    /// All fields but the message.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, Value<'_>)> {
        let fields = self.fields.iter().filter(|one| one.name != MESSAGE);
        fields.map(|one| (one.name, self.value_of(one)))
    }

    pub(super) fn value(&self, name: &str) -> Option<Value<'_>> {
        let found = self.fields.iter().find(|one| one.name == name);
        found.map(|one| self.value_of(one))
    }

    fn value_of(&self, recorded: &Recorded) -> Value<'_> {
        Value {
            form: recorded.form,
            text: &self.texts[recorded.start..recorded.end],
        }
    }

    /// Adds a field. A later value of the same name replaces an earlier one, as in a span.
    fn add(&mut self, field: &Field, form: Form, value: impl fmt::Display) {
        let name = field.name();
        if name.starts_with(OF_LOG_CRATE) {
            return;
        }
        self.fields.retain(|one| one.name != name);
        let start = self.texts.len();
        // Fails only if the value's own `Display` does: what it wrote is kept.
        let _ = write!(self.texts, "{value}");
        self.fields.push(Recorded {
            name,
            form,
            start,
            end: self.texts.len(),
        });
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        let is_number = value.is_finite();
        self.add(
            field,
            if is_number {
                Form::Literal
            } else {
                Form::Shown
            },
            value,
        );
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, Form::Literal, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, Form::Literal, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, Form::Literal, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, Form::Text, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, Form::Shown, format_args!("{value:?}"));
    }
}
