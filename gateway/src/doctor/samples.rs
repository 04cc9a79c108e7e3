//! A call by each client library: cut out of the samples beside the libraries, which the tests run.

use serde::Serialize;
use utoipa::ToSchema;

/// The languages that there is a client library for.
pub(crate) const LANGUAGES: [ClientLanguage; 7] = [
    ClientLanguage {
        word: "python",
        name: "Python",
        sample: include_str!("../../clients/python/sample.py"),
        comment: "#",
        written: |call| {
            let pairs = call.pairs(", ", |name, value| {
                format!("({}, {})", json(name), json(value))
            });
            format!("client.call({}, [{pairs}])", call.target(json))
        },
    },
    ClientLanguage {
        word: "javascript",
        name: "JavaScript",
        sample: include_str!("../../clients/javascript/sample.mjs"),
        comment: "//",
        written: |call| {
            let pairs = call.pairs(", ", |name, value| {
                format!("[{}, {}]", json(name), json(value))
            });
            format!("await client.call({}, [{pairs}])", call.target(json))
        },
    },
    ClientLanguage {
        word: "go",
        name: "Go",
        sample: include_str!("../../clients/go/sample/main.go"),
        comment: "//",
        written: |call| {
            let pairs = call.pairs(", ", |name, value| {
                format!("{{{}, {}}}", json(name), json(value))
            });
            format!(
                "client.Call({}, signpost.Pairs{{{pairs}}})",
                call.target(json)
            )
        },
    },
    ClientLanguage {
        word: "java",
        name: "Java",
        sample: include_str!("../../clients/java/Sample.java"),
        comment: "//",
        written: |call| {
            let pair =
                |name: &str, value: &str| format!("Signpost.pair({}, {})", json(name), json(value));
            format!(
                "client.call({}, List.of({}))",
                call.target(json),
                call.pairs(", ", pair)
            )
        },
    },
    ClientLanguage {
        word: "php",
        name: "PHP",
        sample: include_str!("../../clients/php/sample.php"),
        comment: "//",
        written: |call| {
            let pairs = call.pairs(", ", |name, value| {
                format!("[{}, {}]", php(name), php(value))
            });
            format!("$client->call({}, [{pairs}])", call.target(php))
        },
    },
    ClientLanguage {
        word: "csharp",
        name: "C#",
        sample: include_str!("../../clients/csharp/Sample.cs"),
        comment: "//",
        written: |call| {
            let pair = |name: &str, value: &str| {
                format!(", Signpost.Pair({}, {})", json(name), json(value))
            };
            format!("client.Call({}{})", call.target(json), call.pairs("", pair))
        },
    },
    ClientLanguage {
        word: "shell",
        name: "Bash",
        sample: include_str!("../../clients/shell/sample.sh"),
        comment: "#",
        written: |call| {
            let pairs = call.pairs("", |name, value| {
                format!(" {}", shell(&format!("{name}={value}")))
            });
            format!("signpost_call {} {}{pairs}", call.method, shell(call.path))
        },
    },
];

/// The application in the samples.
const APP: &str = "demo";

/// What the samples call.
const SAMPLE: Call<'_> = Call {
    address: "http://127.0.0.1:8080",
    app: Some(APP),
    method: "POST",
    path: "/login",
    pairs: &[],
    settings: "",
};

/// A language, and how its library is called.
pub(crate) struct ClientLanguage {
    /// Its word in options and documents.
    pub word: &'static str,
    /// Its name.
    pub name: &'static str,
    /// A complete program.
    sample: &'static str,
    /// What a comment begins with.
    comment: &'static str,
    /// A call in one line.
    written: fn(&Call<'_>) -> String,
}

/// A call.
pub(crate) struct Call<'c> {
    /// The gateway's address.
    pub address: &'c str,
    /// The application's ident, in multi-application mode.
    pub app: Option<&'c str>,
    pub method: &'c str,
    pub path: &'c str,
    /// Names and values, decoded.
    pub pairs: &'c [(String, String)],
    /// The settings of the client that differ from its defaults; empty if none does.
    pub settings: &'c str,
}

/// A call in a language.
#[derive(Serialize, ToSchema)]
pub(crate) struct CodeSample {
    /// The language: `python`, `javascript`, `go`, `java`, `php`, `csharp` or `shell`.
    #[schema(value_type = String)]
    pub language: &'static str,
    /// The lines.
    pub code: String,
}

impl Call<'_> {
    fn target(&self, quoted: fn(&str) -> String) -> String {
        format!("{}, {}", quoted(self.method), quoted(self.path))
    }

    fn pairs(&self, between: &str, written: impl Fn(&str, &str) -> String) -> String {
        let pairs = self.pairs.iter();
        let pairs = pairs.map(|(name, value)| written(name, value));
        pairs.collect::<Vec<_>>().join(between)
    }
}

impl ClientLanguage {
    /// The sample's lines.
    pub(crate) fn lines(&self) -> String {
        let lines = self.sample.lines();
        let lines = lines.skip_while(|line| !line.contains("sample: begin"));
        let lines = lines.skip(1);
        let lines: Vec<_> = lines
            .take_while(|line| !line.contains("sample: end"))
            .collect();
        let written = lines.iter().filter(|line| !line.trim().is_empty());
        let indents = written.map(|line| line.len() - line.trim_start().len());
        let indent = indents.min().unwrap_or(0);
        let lines = lines.iter().map(|line| line.get(indent..).unwrap_or(""));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The sample's lines, for this application.
    pub(crate) fn lines_of(&self, app: &str) -> String {
        self.lines().replace(APP, app)
    }

    /// The sample with another call.
    pub(crate) fn code(&self, call: &Call<'_>) -> CodeSample {
        let pairs = [("provider".to_owned(), "sandbox".to_owned())];
        let of_sample = Call {
            pairs: &pairs,
            ..SAMPLE
        };
        let code = self
            .lines_of(call.app.unwrap_or(APP))
            .replace(&(self.written)(&of_sample), &(self.written)(call))
            .replace(SAMPLE.address, call.address);
        let code = match call.settings {
            "" => code,
            settings => format!("{} The client's settings: {settings}\n{code}", self.comment),
        };
        CodeSample {
            language: self.word,
            code,
        }
    }
}

/// The name of the language with this word.
pub(crate) fn name_of(word: &str) -> Option<&'static str> {
    let language = LANGUAGES.iter().find(|language| language.word == word);
    language.map(|language| language.name)
}

/// A text in quotes, as most languages read it.
fn json(text: &str) -> String {
    serde_json::json!(text).to_string()
}

fn php(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' | '$' => quoted.extend(['\\', letter]),
            '\n' => quoted += "\\n",
            letter if letter.is_control() => quoted += &format!("\\u{{{:x}}}", u32::from(letter)),
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// A word of a command, in quotes if it needs them.
pub(super) fn shell(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sample_is_made_another_call() {
        let pairs = [("a$".to_owned(), "it's \"x\"\\\n".to_owned())];
        let call = Call {
            address: "https://api.example",
            app: Some("shop"),
            method: "GET",
            path: "/a/b",
            pairs: &pairs,
            settings: "version \"v2\"",
        };
        let expected = [
            r#"client.call("GET", "/a/b", [("a$", "it's \"x\"\\\n")])"#,
            r#"await client.call("GET", "/a/b", [["a$", "it's \"x\"\\\n"]])"#,
            r#"client.Call("GET", "/a/b", signpost.Pairs{{"a$", "it's \"x\"\\\n"}})"#,
            r#"client.call("GET", "/a/b", List.of(Signpost.pair("a$", "it's \"x\"\\\n")))"#,
            r#"$client->call("GET", "/a/b", [["a\$", "it's \"x\"\\\n"]])"#,
            r#"client.Call("GET", "/a/b", Signpost.Pair("a$", "it's \"x\"\\\n"))"#,
            "signpost_call GET /a/b 'a$=it'\\''s \"x\"\\\n'",
        ];
        for (language, expected) in LANGUAGES.iter().zip(expected) {
            let name = language.name;
            let lines = language.lines();
            assert!(lines.lines().count() >= 3, "{name}: {lines}");
            let code = language.code(&call).code;
            for part in [expected, "https://api.example", "shop", "version \"v2\""] {
                assert_eq!(code.matches(part).count(), 1, "{name}: {part}: {code}");
            }
            for gone in ["sandbox", "demo", "127.0.0.1"] {
                assert!(!code.contains(gone), "{name}: {gone}: {code}");
            }
        }
    }
}
