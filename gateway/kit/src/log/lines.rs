//! The lines of the log, by the layers of `tracing-subscriber`: its plain text, or one flat JSON object.
//!
//! A message or value may hold a client's text. So what would end the line, control a terminal or change the direction of
//! the text is escaped in both formats, and what is long is cut.

use std::{
    fmt::{self, Write},
    io,
    sync::{Arc, atomic::Ordering},
};

use signpost_protocol::app::is_invisible;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
};
use tracing_log::NormalizeEvent;
use tracing_subscriber::{
    Layer,
    field::RecordFields,
    fmt::{
        self as layers, FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter,
        format::{Format, Full, Writer},
        time::{FormatTime, SystemTime},
    },
    registry::LookupSpan,
};

use super::{
    ACCESS_TARGET, Style,
    writer::{LogKind, LogWriter},
};

/// Limit on a message, and on a value, in a line. `…` stands for the rest.
pub(super) const MAX_VALUE_BYTES: usize = 8 * 1024;

/// The names under which `tracing-log` passes on where a line of the `log` crate is from.
const OF_LOG_CRATE: &str = "log.";

/// The name of the message among an event's fields.
const MESSAGE: &str = "message";

/// Keys of a JSON line that are no fields. Fields of these names, which only libraries have, are left out.
const KEYS: [&str; 4] = ["timestamp", "level", "target", MESSAGE];

/// Layers that write each event to the log, in the style that is set then. Both format the fields of each span, so that
/// the style can change within a request.
pub(super) fn layer<S>(style: &Arc<Style>, writer: &LogWriter) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    let plain = layers::format().with_target(false);
    let text = TextLines {
        style: Arc::clone(style),
        coloured: plain.clone().with_ansi(true),
        plain: plain.with_ansi(false),
    };
    let writer = LineWriter {
        log: writer.clone(),
        kind: LogKind::Error,
    };
    let text = layers::layer()
        .fmt_fields(Fields::<false>)
        .event_format(text)
        .with_writer(writer.clone());
    layers::layer()
        .fmt_fields(Fields::<true>)
        .event_format(JsonLines(Arc::clone(style)))
        .with_writer(writer)
        .and_then(text)
}

/// Time, level, spans, message, fields.
struct TextLines {
    style: Arc<Style>,
    plain: Format<Full, SystemTime>,
    coloured: Format<Full, SystemTime>,
}

impl<S> FormatEvent<S, Fields<false>> for TextLines
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, Fields<false>>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if self.style.is_json.load(Ordering::Relaxed) {
            // Nothing is written.
            return Err(fmt::Error);
        }
        let is_coloured = self.style.is_coloured.load(Ordering::Relaxed);
        let format = if is_coloured {
            &self.coloured
        } else {
            &self.plain
        };
        format.format_event(context, writer, event)
    }
}

/// A flat object: the event's fields, then the fields of its spans that it does not have itself. `tracing-subscriber`
/// would nest the spans, parse their fields again for each line, and bound nothing.
struct JsonLines(Arc<Style>);

impl<S> FormatEvent<S, Fields<true>> for JsonLines
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, Fields<true>>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if !self.0.is_json.load(Ordering::Relaxed) {
            return Err(fmt::Error);
        }
        // An event of the `log` crate has its own metadata among its fields.
        let normalized = event.normalized_metadata();
        let metadata = normalized.as_ref().unwrap_or_else(|| event.metadata());
        writer.write_str("{\"timestamp\":\"")?;
        SystemTime.format_time(&mut writer)?;
        writer.write_str("\",\"level\":\"")?;
        writer.write_str(metadata.level().as_str())?;
        writer.write_str("\",\"target\":\"")?;
        writer.write_str(metadata.target())?;
        writer.write_str("\",\"message\":\"")?;
        event.record(&mut MessageWriter(Escaping::new(&mut writer)));
        writer.write_char('"')?;
        event.record(&mut FieldWriter::<true>::new(writer.by_ref(), ",", ","));
        let spans: Vec<_> = context.event_scope().into_iter().flatten().collect();
        let extensions: Vec<_> = spans.iter().map(|span| span.extensions()).collect();
        let mut written = Vec::new();
        for fields in &extensions {
            let fields = fields.get::<FormattedFields<Fields<true>>>();
            // The last value of a name is its current one.
            for field in fields.into_iter().flat_map(|fields| fields.lines().rev()) {
                let Some(name) = field.split('"').nth(1) else {
                    continue;
                };
                if event.metadata().fields().field(name).is_none() && !written.contains(&name) {
                    write!(writer, ",{}", field.trim_end())?;
                    written.push(name);
                }
            }
        }
        writer.write_str("}\n")
    }
}

/// Writes the message of a JSON line: the text alone, since each field is a key of its own.
struct MessageWriter<'f, 'w>(Escaping<'f, 'w, true>);

impl Visit for MessageWriter<'_, '_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A message that is cut ends there.
        if field.name() == MESSAGE {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

/// Writes the fields of events and spans; the fields of a span in JSON with a line for each.
struct Fields<const JSON: bool>;

impl<'w, const JSON: bool> FormatFields<'w> for Fields<JSON> {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let (first, further) = if JSON { ("\n", "\n") } else { ("", " ") };
        fields.record(&mut FieldWriter::<JSON>::new(writer, first, further));
        Ok(())
    }
}

/// Writes one field after the other. The line takes everything, so only a value's own `Display` can fail: then what it
/// wrote is kept.
struct FieldWriter<'w, const JSON: bool> {
    writer: Writer<'w>,
    /// What precedes the next field.
    separator: &'static str,
    /// What precedes those after it.
    further: &'static str,
}

impl<'w, const JSON: bool> FieldWriter<'w, JSON> {
    const fn new(writer: Writer<'w>, separator: &'static str, further: &'static str) -> Self {
        Self {
            writer,
            separator,
            further,
        }
    }

    fn add(&mut self, field: &Field, is_text: bool, value: fmt::Arguments<'_>) {
        let name = field.name();
        if name.starts_with(OF_LOG_CRATE) || JSON && KEYS.contains(&name) {
            return;
        }
        let _ = self.writer.write_str(self.separator);
        self.separator = self.further;
        if JSON {
            let _ = self.writer.write_str("\"");
        }
        if JSON || name != MESSAGE {
            let _ = self.writer.write_str(name);
            let _ = self.writer.write_str(if JSON { "\":" } else { "=" });
        }
        if !is_text {
            let _ = self.writer.write_fmt(value);
            return;
        }
        let quote = if JSON { "\"" } else { "" };
        let _ = self.writer.write_str(quote);
        let _ = Escaping::<JSON>::new(&mut self.writer).write_fmt(value);
        let _ = self.writer.write_str(quote);
    }
}

impl<const JSON: bool> Visit for FieldWriter<'_, JSON> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has neither NaN nor infinity: these are texts.
        self.add(field, !value.is_finite(), format_args!("{value}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, false, format_args!("{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, false, format_args!("{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, false, format_args!("{value}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if JSON || field.name() == MESSAGE {
            self.add(field, true, format_args!("{value}"));
        } else {
            // Quoted: a value with spaces and `=` must not look like further fields.
            self.add(field, true, format_args!("{value:?}"));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, true, format_args!("{value:?}"));
    }
}

/// Escapes what is written through it, and cuts it.
struct Escaping<'f, 'w, const JSON: bool> {
    writer: &'f mut Writer<'w>,
    /// How many bytes can follow.
    left: usize,
    /// Whether something did not fit: nothing follows.
    is_cut: bool,
}

impl<'f, 'w, const JSON: bool> Escaping<'f, 'w, JSON> {
    const fn new(writer: &'f mut Writer<'w>) -> Self {
        Self {
            writer,
            left: MAX_VALUE_BYTES,
            is_cut: false,
        }
    }

    /// Whether nothing in a text is escaped; most have only letters, digits and signs of ASCII.
    fn is_plain(text: &str) -> bool {
        let is_plain =
            |byte| matches!(byte, b' '..=b'~') && !(JSON && matches!(byte, b'"' | b'\\'));
        text.bytes().all(is_plain)
    }

    fn is_special(letter: char) -> bool {
        match letter {
            '"' | '\\' => JSON,
            ' '..='~' => false,
            _ => is_invisible(letter),
        }
    }

    fn escape(letter: char) -> String {
        match letter {
            '"' | '\\' => format!("\\{letter}"),
            '\n' => "\\n".to_owned(),
            _ if JSON => {
                // Escapes are UTF-16 (RFC 8259 section 7): a letter beyond 16 bits needs two.
                let mut units = [0; 2];
                let units = letter.encode_utf16(&mut units).iter();
                units.map(|unit| format!("\\u{unit:04x}")).collect()
            }
            _ => letter.escape_default().to_string(),
        }
    }

    /// Writes a text up to the limit; an error ends the value.
    fn write_within(&mut self, text: &str, kept: usize) -> fmt::Result {
        self.writer.write_str(&text[..kept])?;
        self.left -= kept;
        if kept < text.len() {
            self.is_cut = true;
            self.writer.write_char('…')?;
            return Err(fmt::Error);
        }
        Ok(())
    }
}

impl<const JSON: bool> Write for Escaping<'_, '_, JSON> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        if self.is_cut {
            return Err(fmt::Error);
        }
        if text.len() <= self.left && Self::is_plain(text) {
            self.left -= text.len();
            return self.writer.write_str(text);
        }
        while let Some(at) = rest.find(Self::is_special) {
            let (before, special) = rest.split_at(at);
            self.write_within(before, before.floor_char_boundary(self.left))?;
            let mut letters = special.chars();
            let escaped = letters.next().map(Self::escape).unwrap_or_default();
            // An escape is not cut.
            let fits = escaped.len() <= self.left;
            self.write_within(&escaped, if fits { escaped.len() } else { 0 })?;
            rest = letters.as_str();
        }
        self.write_within(rest, rest.floor_char_boundary(self.left))
    }
}

/// Queues the lines of the log that the event's target chooses.
#[derive(Clone)]
struct LineWriter {
    log: LogWriter,
    kind: LogKind,
}

impl MakeWriter<'_> for LineWriter {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }

    fn make_writer_for(&self, metadata: &Metadata<'_>) -> Self {
        let log = self.log.clone();
        let is_access = metadata.target() == ACCESS_TARGET;
        let kind = if is_access {
            LogKind::Access
        } else {
            self.kind
        };
        Self { log, kind }
    }
}

impl io::Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.log.output().push(self.kind, line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
