//! Log lines in both formats.
//!
//! A message may name fields of its event in braces, as in `{backend.addr} is unhealthy`. In plain text their values take
//! that place, so that the message can be read alone. In JSON the message stays as it is: it is the same for all events of
//! its kind, and no value is there twice. In the source the braces are doubled, for `format_args!`.
//!
//! A library's message may contain a client's text, and braces in it. So the message of an event without fields, as all of
//! the `log` crate are, stays as it is, and so do the values.
//!
//! Either way an event is one line: control characters are escaped.

use std::{cell::Cell, fmt::Write, mem, sync::Arc};

use tracing::{
    Event, Level, Metadata, Subscriber,
    span::{Attributes, Id, Record},
};
use tracing_log::NormalizeEvent;
use tracing_subscriber::{
    Layer,
    fmt::{
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    layer::Context,
    registry::LookupSpan,
};

use super::{
    ACCESS_TARGET, Format,
    fields::{Fields, Form, Value},
};
use crate::log::writer::{LogKind, LogWriter};

/// Limit of a message in a line, after the values took their places. What follows is replaced by `…`.
const MAX_MESSAGE_BYTES: usize = 8 * 1024;

/// Limit of a field's name in a message. Longer ones stay as they are, so that the search for a name's end is bounded.
pub(super) const MAX_NAME_BYTES: usize = 64;

/// Memory that the buffers of a thread keep allocated, each.
pub(super) const RETAINED_BYTES: usize = 64 * 1024;

thread_local! {
    /// The buffers of the last line, for the next one. An event within an event finds them empty.
    static BUFFERS: Cell<(String, Fields)> = Cell::default();
}

/// The memory that the buffers of this thread keep allocated.
#[cfg(test)]
pub(super) fn retained_bytes() -> usize {
    let (line, fields) = BUFFERS.take();
    let retained = line.capacity() + fields.capacity();
    BUFFERS.set((line, fields));
    retained
}

/// Writes each event to its log.
pub(super) struct LineLayer {
    format: Arc<Format>,
    writer: LogWriter,
}

impl LineLayer {
    pub(super) const fn new(format: Arc<Format>, writer: LogWriter) -> Self {
        Self { format, writer }
    }
}

/// An event and its spans, from the outermost one.
struct Described<'e> {
    metadata: &'e Metadata<'e>,
    fields: &'e Fields,
    spans: &'e [(&'static str, &'e Fields)],
}

impl<S> Layer<S> for LineLayer
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        // An event of the `log` crate has its own metadata among its fields.
        let normalized = event.normalized_metadata();
        let metadata = normalized.as_ref().unwrap_or_else(|| event.metadata());
        let kind = if metadata.target() == ACCESS_TARGET {
            LogKind::Access
        } else {
            LogKind::Error
        };
        let (mut line, mut fields) = BUFFERS.take();
        event.record(&mut fields);
        let spans: Vec<_> = context
            .event_scope(event)
            .into_iter()
            .flat_map(|scope| scope.from_root())
            .collect();
        let extensions: Vec<_> = spans
            .iter()
            .map(|span| (span.name(), span.extensions()))
            .collect();
        let spans: Vec<_> = extensions
            .iter()
            .filter_map(|(name, extensions)| Some((*name, extensions.get::<Fields>()?)))
            .collect();
        let described = Described {
            metadata,
            fields: &fields,
            spans: &spans,
        };
        let output = self.writer.output(kind);
        if self.format.is_json() {
            described.write_json(&mut line);
        } else {
            described.write_text(output.is_terminal(), &mut line);
        }
        output.push(kind, line.as_bytes());
        line.clear();
        line.shrink_to(RETAINED_BYTES);
        fields.clear(RETAINED_BYTES);
        BUFFERS.set((line, fields));
    }
}

impl Described<'_> {
    /// A flat object: the event's fields, then those of its spans that it does not have itself.
    fn write_json(&self, line: &mut String) {
        line.push_str("{\"timestamp\":\"");
        write_time(line);
        line.push_str("\",\"level\":\"");
        line.push_str(self.metadata.level().as_str());
        line.push_str("\",\"target\":");
        write_json_text(self.metadata.target(), line);
        line.push_str(",\"message\":\"");
        let message = self.fields.message();
        let kept = beginning(message, MAX_MESSAGE_BYTES);
        write_json_escaped(kept, line);
        line.push_str(if kept == message { "\"" } else { "…\"" });
        for (name, value) in self.fields.each() {
            write_json_field(name, value, line);
        }
        for (depth, (_, fields)) in self.spans.iter().enumerate() {
            let inner = &self.spans[depth + 1..];
            let is_hidden = |name| {
                self.fields.value(name).is_some()
                    || inner.iter().any(|(_, fields)| fields.value(name).is_some())
            };
            for (name, value) in fields.each().filter(|(name, _)| !is_hidden(name)) {
                write_json_field(name, value, line);
            }
        }
        line.push_str("}\n");
    }

    /// Time, level, spans, message, fields.
    fn write_text(&self, is_terminal: bool, line: &mut String) {
        let level = *self.metadata.level();
        if is_terminal {
            line.push_str("\x1b[2m");
            write_time(line);
            let colour = colour(level);
            // A `String` takes everything.
            let _ = write!(line, "\x1b[0m \x1b[{colour}m{level:>5}\x1b[0m ");
        } else {
            write_time(line);
            let _ = write!(line, " {level:>5} ");
        }
        for (name, fields) in self.spans {
            line.push_str(name);
            let mut separator = '{';
            for (name, value) in fields.each() {
                line.push(mem::replace(&mut separator, ' '));
                write_text_field(name, value, line);
            }
            line.push_str(if separator == ' ' { "}:" } else { ":" });
        }
        if !self.spans.is_empty() {
            line.push(' ');
        }
        self.write_message(line);
        for (name, value) in self.fields.each() {
            line.push(' ');
            write_text_field(name, value, line);
        }
        line.push('\n');
    }

    /// The message, with the values of the fields that it names; at most [`MAX_MESSAGE_BYTES`].
    fn write_message(&self, line: &mut String) {
        let end = line.len() + MAX_MESSAGE_BYTES;
        let mut rest = self.fields.message();
        let has_fields = self.fields.each().next().is_some();
        while has_fields && let Some((before, named)) = rest.split_once('{') {
            let value = placeholder(named).and_then(|name| {
                let (_, value) = self.fields.each().find(|(field, _)| *field == name)?;
                Some((value.text, &named[name.len() + 1..]))
            });
            // Without such a field, the brace is text.
            let (text, after) = value.unwrap_or(("{", named));
            if !write_within(before, end, line) || !write_within(text, end, line) {
                return;
            }
            rest = after;
        }
        write_within(rest, end, line);
    }
}

/// The name that a brace has opened, if one follows.
fn placeholder(named: &str) -> Option<&str> {
    let mut bytes = named.bytes().take(MAX_NAME_BYTES + 1);
    let length = bytes.position(|byte| matches!(byte, b'{' | b'}'))?;
    let (name, rest) = named.split_at(length);
    rest.starts_with('}').then_some(name)
}

/// Writes text, escaped, until the line has `end` bytes. Returns whether all of it was written; if not, `…` follows it.
fn write_within(text: &str, end: usize, line: &mut String) -> bool {
    let kept = beginning(text, end.saturating_sub(line.len()));
    write_escaped(kept, line);
    let is_whole = kept == text && line.len() <= end;
    if !is_whole {
        // Escapes are longer than what they stand for.
        line.truncate(line.floor_char_boundary(end));
        line.push('…');
    }
    is_whole
}

/// At most so many bytes of a text, in whole characters.
fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Keys of a JSON line that are no fields. No event of Signpost has fields of these names; those of libraries are left
/// out.
const KEYS: [&str; 3] = ["timestamp", "level", "target"];

fn write_json_field(name: &str, value: Value<'_>, line: &mut String) {
    if KEYS.contains(&name) {
        return;
    }
    line.push(',');
    write_json_text(name, line);
    line.push(':');
    match value.form {
        Form::Literal => line.push_str(value.text),
        Form::Text | Form::Shown => write_json_text(value.text, line),
    }
}

/// A JSON string. RFC 8259 section 7.
fn write_json_text(text: &str, line: &mut String) {
    line.push('"');
    write_json_escaped(text, line);
    line.push('"');
}

/// What is between the quotes of a JSON string.
fn write_json_escaped(text: &str, line: &mut String) {
    let mut written = 0;
    for (index, byte) in text.bytes().enumerate() {
        if !matches!(byte, b'"' | b'\\' | ..=0x1f | 0x7f) {
            continue;
        }
        line.push_str(&text[written..index]);
        written = index + 1;
        match byte {
            b'"' => line.push_str("\\\""),
            b'\\' => line.push_str("\\\\"),
            b'\n' => line.push_str("\\n"),
            control => {
                let _ = write!(line, "\\u{control:04x}");
            }
        }
    }
    line.push_str(&text[written..]);
}

fn write_text_field(name: &str, value: Value<'_>, line: &mut String) {
    line.push_str(name);
    line.push('=');
    match value.form {
        Form::Text => {
            let _ = write!(line, "{:?}", value.text);
        }
        Form::Shown | Form::Literal => write_escaped(value.text, line),
    }
}

/// Text in which nothing ends the line or controls a terminal.
fn write_escaped(text: &str, line: &mut String) {
    let mut written = 0;
    for (index, control) in text.match_indices(char::is_control) {
        line.push_str(&text[written..index]);
        line.extend(control.chars().flat_map(char::escape_default));
        written = index + control.len();
    }
    line.push_str(&text[written..]);
}

/// RFC 3339, in UTC, with microseconds.
fn write_time(line: &mut String) {
    // Fails only if the line does.
    let _ = SystemTime.format_time(&mut Writer::new(line));
}

/// The colour of a level, in SGR parameters (ECMA-48).
fn colour(level: Level) -> u8 {
    match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    }
}
