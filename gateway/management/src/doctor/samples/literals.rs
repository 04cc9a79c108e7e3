//! Values as each language writes them.

use serde_json::{Value, json};

/// How a language writes a value of JSON.
pub(super) struct Literals {
    /// In front of an object, in front of a name, behind it, behind the object.
    object: [&'static str; 4],
    list: [&'static str; 2],
    empty_object: &'static str,
    /// `true`, `false` and `null`.
    words: [&'static str; 3],
    text: fn(&str) -> String,
}

pub(super) const JAVASCRIPT: Literals = Literals {
    object: ["{ ", "", ": ", " }"],
    list: ["[", "]"],
    empty_object: "{}",
    words: ["true", "false", "null"],
    text,
};
pub(super) const PYTHON: Literals = Literals {
    object: ["{", "", ": ", "}"],
    words: ["True", "False", "None"],
    ..JAVASCRIPT
};
pub(super) const GO: Literals = Literals {
    object: ["map[string]any{", "", ": ", "}"],
    list: ["[]any{", "}"],
    empty_object: "map[string]any{}",
    words: ["true", "false", "nil"],
    text,
};
pub(super) const JAVA: Literals = Literals {
    object: ["java.util.Map.of(", "", ", ", ")"],
    list: ["List.of(", ")"],
    empty_object: "java.util.Map.of()",
    ..JAVASCRIPT
};
pub(super) const PHP: Literals = Literals {
    object: ["[", "", " => ", "]"],
    empty_object: "new \\stdClass()",
    text: php_text,
    ..JAVASCRIPT
};
pub(super) const CSHARP: Literals = Literals {
    object: [
        "new System.Collections.Generic.Dictionary<string, object> { ",
        "[",
        "] = ",
        " }",
    ],
    list: ["new object[] { ", " }"],
    empty_object: "new System.Collections.Generic.Dictionary<string, object>()",
    ..JAVASCRIPT
};

impl Literals {
    pub(super) fn write(&self, value: &Value) -> String {
        match value {
            Value::Object(members) if members.is_empty() => self.empty_object.to_owned(),
            Value::Object(members) => {
                let [before, before_name, joint, after] = self.object;
                let members = members.iter().map(|(name, value)| {
                    let name = (self.text)(name);
                    format!("{before_name}{name}{joint}{}", self.write(value))
                });
                let members = members.collect::<Vec<_>>().join(", ");
                format!("{before}{members}{after}")
            }
            Value::Array(values) => {
                let values = values.iter().map(|value| self.write(value));
                let [before, after] = self.list;
                format!("{before}{}{after}", values.collect::<Vec<_>>().join(", "))
            }
            Value::String(value) => (self.text)(value),
            Value::Bool(true) => self.words[0].to_owned(),
            Value::Bool(false) => self.words[1].to_owned(),
            Value::Null => self.words[2].to_owned(),
            Value::Number(number) => number.to_string(),
        }
    }
}

/// A text in quotes, as most languages read it. What some take for the end of a line is escaped.
pub(super) fn text(text: &str) -> String {
    literal(&json!(text))
}

pub(super) fn literal(value: &Value) -> String {
    let mut written = value.to_string();
    for letter in ['\u{7f}', '\u{85}', '\u{2028}', '\u{2029}'] {
        written = written.replace(letter, &format!("\\u{:04x}", u32::from(letter)));
    }
    written
}

pub(super) fn php_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            // In double quotes PHP would replace `$name` by the variable's value.
            '"' | '\\' | '$' => quoted.extend(['\\', letter]),
            '\n' => quoted += "\\n",
            letter if letter.is_control() => quoted += &format!("\\u{{{:x}}}", u32::from(letter)),
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}
