//! A call by each client library: cut out of the samples beside the libraries, which the tests run.

mod literals;

use serde::Serialize;
use serde_json::{Map, Value, json};
use signpost_protocol::{
    header::{HeaderNames, HeaderOverrides},
    sign::{SignAlgorithm, SignCarrier, SignProfile},
};
use utoipa::ToSchema;

use self::literals::{
    CSHARP, GO, JAVA, JAVASCRIPT, Literals, PHP, PYTHON, literal, php_text, text,
};

/// The languages that there is a client library for.
pub const LANGUAGES: [ClientLanguage; 7] = [
    ClientLanguage {
        word: "python",
        name: "Python",
        sample: include_str!("../../../clients/python/sample.py"),
        setting: |name, value| format!(", {name}={}", literal(value)),
        call: |call| {
            let pair = |name: &str, value: &str| format!("({}, {})", text(name), text(value));
            let further = call.further([
                call.pairs("[", pair, "]"),
                call.json("json=", &PYTHON, ""),
                call.credential(|one| format!("credential={}", text(one))),
            ]);
            format!("client.call({}{further})", call.target(text))
        },
    },
    ClientLanguage {
        word: "javascript",
        name: "JavaScript",
        sample: include_str!("../../../clients/javascript/sample.mjs"),
        setting: |name, value| format!(", {}: {}", camel(name), literal(value)),
        call: |call| {
            let pair = |name: &str, value: &str| format!("[{}, {}]", text(name), text(value));
            let options = [
                call.json("json: ", &JAVASCRIPT, ""),
                call.credential(|one| format!("credential: {}", text(one))),
            ];
            let options: Vec<_> = options.into_iter().flatten().collect();
            let options = (!options.is_empty()).then(|| format!("{{ {} }}", options.join(", ")));
            let further = call.further([call.pairs("[", pair, "]"), options]);
            format!("await client.call({}{further})", call.target(text))
        },
    },
    ClientLanguage {
        word: "go",
        name: "Go",
        sample: include_str!("../../../clients/go/sample/main.go"),
        setting: |name, value| {
            let name = pascal(name);
            let of_list = |list: &str| format!("[]string{{{list}}}");
            let written = members(value, "signpost.", &name, ": ", of_list);
            format!(", {name}: {written}")
        },
        call: |call| {
            let pair = |name: &str, value: &str| format!("{{{}, {}}}", text(name), text(value));
            let further = call.further([
                call.pairs("signpost.Pairs{", pair, "}"),
                call.json("signpost.JSON(", &GO, ")"),
                call.credential(|one| format!("signpost.Credential({})", text(one))),
            ]);
            let target = call.target(text);
            format!("client.Call(context.Background(), {target}{further})")
        },
    },
    ClientLanguage {
        word: "java",
        name: "Java",
        sample: include_str!("../../../clients/java/Sample.java"),
        setting: |name, value| format!(".{}({})", camel(name), JAVA.write(value)),
        call: |call| {
            let pair =
                |name: &str, value: &str| format!("Signpost.pair({}, {})", text(name), text(value));
            let (list, target) = (call.pairs("List.of(", pair, ")"), call.target(text));
            let further = [
                java_body(call),
                call.credential(|one| format!(".credential({})", text(one))),
            ];
            let further: String = further.into_iter().flatten().collect();
            match list {
                Some(list) if further.is_empty() => format!("client.call({target}, {list})"),
                list => {
                    let pairs = list
                        .map(|list| format!(".pairs({list})"))
                        .unwrap_or_default();
                    format!("client.request({target}){pairs}{further}.send()")
                }
            }
        },
    },
    ClientLanguage {
        word: "php",
        name: "PHP",
        sample: include_str!("../../../clients/php/sample.php"),
        setting: |name, value| format!(", {}: {}", camel(name), PHP.write(value)),
        call: |call| {
            let pair =
                |name: &str, value: &str| format!("[{}, {}]", php_text(name), php_text(value));
            let further = call.further([
                call.pairs("[", pair, "]"),
                call.json("json: ", &PHP, ""),
                call.credential(|one| format!("credential: {}", php_text(one))),
            ]);
            format!("$client->call({}{further})", call.target(php_text))
        },
    },
    ClientLanguage {
        word: "csharp",
        name: "C#",
        sample: include_str!("../../../clients/csharp/Sample.cs"),
        setting: |name, value| {
            let is_names = name == "header_names";
            let name = pascal(name);
            let of_list = |list: &str| format!("new[] {{ {list} }}");
            let written = match is_names {
                true => csharp_names(value),
                false => members(value, "new Signpost", &name, " = ", of_list),
            };
            format!(", {name} = {written}")
        },
        call: |call| {
            let pair = |name: &str, value: &str| {
                format!("SignpostClient.Pair({}, {})", text(name), text(value))
            };
            let pairs = match call.json {
                None => call.pairs("", pair, ""),
                Some(_) => None,
            };
            let of_call = call.json.is_some().then(|| csharp_call(call));
            let further = call.further([pairs, of_call]);
            let user = call.credential(|one| format!(".WithCredential({})", text(one)));
            let user = user.unwrap_or_default();
            format!("client{user}.Call({}{further})", call.target(text))
        },
    },
    ClientLanguage {
        word: "shell",
        name: "Bash",
        sample: include_str!("../../../clients/shell/sample.sh"),
        setting: shell_setting,
        call: shell_call,
    },
];

/// The prefix of a client library by default.
const USUAL_PREFIX: &str = "Acme";
/// The gateway's address in the samples.
const ADDRESS: &str = "http://127.0.0.1:8080";
/// The application in the samples.
const APP: &str = "demo";

/// A setting of a client, and its value: a text, a list of texts, or an object of these.
pub(crate) type Setting = (&'static str, Value);

/// The settings of a client that differ from its defaults by the rules of a gateway and a profile.
pub(crate) fn settings_of(names: &HeaderNames, profile: &SignProfile) -> Vec<Setting> {
    let mut settings = Vec::new();
    if names.prefix().as_str() != USUAL_PREFIX {
        settings.push(("prefix", json!(names.prefix().as_str())));
    }
    if let Ok(usual) = HeaderNames::new(names.prefix(), &HeaderOverrides::default()) {
        let both = names.convention().into_iter().zip(usual.convention());
        let renamed = both.filter(|((_, name), (_, usual))| name != usual);
        let renamed = renamed.map(|((key, name), _)| (key.to_owned(), json!(names.spelled(name))));
        let renamed: Map<_, _> = renamed.collect();
        if !renamed.is_empty() {
            settings.push(("header_names", renamed.into()));
        }
    }
    // In headers, libraries sign by the stronger algorithm.
    let usual = json!(SignProfile {
        algorithm: match profile.carrier {
            SignCarrier::Headers => SignAlgorithm::HmacSha256,
            SignCarrier::Parameters | SignCarrier::Both => SignAlgorithm::default(),
        },
        ..SignProfile::default()
    });
    if let Value::Object(mut profile) = json!(profile) {
        // Only gateways replay.
        profile.retain(|name, value| name != "replay" && usual[name] != *value);
        if !profile.is_empty() {
            settings.push(("profile", profile.into()));
        }
    }
    settings
}

/// A language, and how its library is called.
pub struct ClientLanguage {
    /// Its word in options and documents.
    pub word: &'static str,
    /// Its name.
    pub name: &'static str,
    /// A complete program.
    sample: &'static str,
    /// A setting as it follows the key and the others.
    setting: fn(&str, &Value) -> String,
    /// A call in one line.
    call: fn(&Call<'_>) -> String,
}

/// A call.
pub struct Call<'c> {
    /// The gateway's address.
    pub address: &'c str,
    /// The settings of the client that differ from its defaults.
    pub settings: &'c [Setting],
    /// The method.
    pub method: &'c str,
    /// The path.
    pub path: &'c str,
    /// Names and values, decoded.
    pub pairs: &'c [(String, String)],
    /// The body, beside which the pairs are the query.
    pub json: Option<&'c Value>,
    /// Whose call it is.
    pub credential: Option<&'c str>,
}

/// A call in a language.
#[derive(Serialize, ToSchema)]
pub struct CodeSample {
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

    /// The pairs, if there are any.
    fn pairs(
        &self,
        before: &str,
        written: impl Fn(&str, &str) -> String,
        after: &str,
    ) -> Option<String> {
        let pairs = self.written(written);
        (!pairs.is_empty()).then(|| format!("{before}{}{after}", pairs.join(", ")))
    }

    fn json(&self, before: &str, literals: &Literals, after: &str) -> Option<String> {
        let json = self.json?;
        Some(format!("{before}{}{after}", literals.write(json)))
    }

    fn credential(&self, written: impl Fn(&str) -> String) -> Option<String> {
        self.credential.map(written)
    }

    fn written(&self, written: impl Fn(&str, &str) -> String) -> Vec<String> {
        let pairs = self.pairs.iter();
        pairs.map(|(name, value)| written(name, value)).collect()
    }

    /// What there is of these, each behind a comma.
    fn further<const N: usize>(&self, arguments: [Option<String>; N]) -> String {
        let arguments = arguments.into_iter().flatten();
        arguments.map(|one| format!(", {one}")).collect()
    }
}

impl ClientLanguage {
    /// The sample's lines.
    fn lines(&self) -> String {
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

    /// The sample with another call. What the call has of the client's is put in last.
    pub fn code(&self, call: &Call<'_>) -> CodeSample {
        let pairs = [("provider".to_owned(), "sandbox".to_owned())];
        let of_sample = Call {
            address: ADDRESS,
            settings: &[("app", json!(APP))],
            method: "POST",
            path: "/login",
            pairs: &pairs,
            json: None,
            credential: None,
        };
        let settings = |call: &Call<'_>| {
            let settings = call.settings.iter();
            let written: String = settings
                .map(|(name, value)| (self.setting)(name, value))
                .collect();
            match written.strip_prefix(", ") {
                Some(members) if self.word == "csharp" => format!(" {{ {members} }}"),
                _ => written,
            }
        };
        let code = self.lines().replace(ADDRESS, call.address);
        // NUL keeps the place: the client's own texts can contain what is replaced below.
        let code = code.replace(&(self.call)(&of_sample), "\0");
        let code = code.replace(&settings(&of_sample), &settings(call));
        CodeSample {
            language: self.word,
            code: code.replace('\0', &(self.call)(call)),
        }
    }
}

/// The name of the language with this word.
pub fn name_of(word: &str) -> Option<&'static str> {
    let language = LANGUAGES.iter().find(|language| language.word == word);
    language.map(|language| language.name)
}

/// `Map.of` and `List.of` take no null, ten members at most, and a long number needs a letter: such JSON is a text.
fn java_body(call: &Call<'_>) -> Option<String> {
    fn is_plain(value: &Value) -> bool {
        match value {
            Value::Null => false,
            Value::Number(number) => number.as_i64().is_none_or(|one| i32::try_from(one).is_ok()),
            Value::Object(members) => members.len() <= 10 && members.values().all(is_plain),
            Value::Array(values) => values.iter().all(is_plain),
            Value::Bool(_) | Value::String(_) => true,
        }
    }
    if call.json.is_some_and(is_plain) {
        return call.json(".json(", &JAVA, ")");
    }
    let json = text(&call.json?.to_string());
    Some(format!(
        ".body({json}.getBytes(java.nio.charset.StandardCharsets.UTF_8), \"application/json\")"
    ))
}

/// A call with a body has its pairs in the same object.
fn csharp_call(call: &Call<'_>) -> String {
    let pair =
        |name: &str, value: &str| format!("SignpostClient.Pair({}, {})", text(name), text(value));
    let members = [
        call.pairs("Pairs = new[] { ", pair, " }"),
        call.json("Json = ", &CSHARP, ""),
    ];
    let members: Vec<_> = members.into_iter().flatten().collect();
    format!("new SignpostCall {{ {} }}", members.join(", "))
}

fn list(value: &Value) -> String {
    let texts = value.as_array().into_iter().flatten();
    texts.map(literal).collect::<Vec<_>>().join(", ")
}

/// An object as a value of a type, with its members by name.
fn members(
    value: &Value,
    before: &str,
    of_type: &str,
    joint: &str,
    of_list: impl Fn(&str) -> String,
) -> String {
    let Value::Object(members) = value else {
        return literal(value);
    };
    let members = members.iter().map(|(name, value)| {
        let written = match value {
            Value::Array(_) => of_list(&list(value)),
            value => literal(value),
        };
        format!("{}{joint}{written}", pascal(name))
    });
    let members = members.collect::<Vec<_>>().join(", ");
    format!("{before}{of_type}{{{members}}}")
}

fn csharp_names(value: &Value) -> String {
    let members = value.as_object().into_iter().flatten();
    let members = members.map(|(name, value)| format!("[{}] = {}", text(name), literal(value)));
    let members = members.collect::<Vec<_>>().join(", ");
    format!("new Dictionary<string, string> {{ {members} }}")
}

fn shell_call(call: &Call<'_>) -> String {
    let json = call
        .json
        .map(|json| format!(" --json {}", shell(&json.to_string())));
    let credential = call.credential(|one| format!(" --credential {}", shell(one)));
    // A name with `=` stands by itself.
    let is_separate = call.pairs.iter().any(|(name, _)| name.contains('='));
    let separate = is_separate.then(|| " --separate".to_owned());
    let options: String = [json, credential, separate].into_iter().flatten().collect();
    let pairs = call.written(|name, value| match is_separate {
        true => format!(" {} {}", shell(name), shell(value)),
        false => format!(" {}", shell(&format!("{name}={value}"))),
    });
    let (method, path, pairs) = (call.method, shell(call.path), pairs.concat());
    format!("signpost_call{options} {method} {path}{pairs}")
}

fn shell_setting(name: &str, value: &Value) -> String {
    match (name, value) {
        ("header_names", Value::Object(members)) => {
            let members = members.iter();
            members
                .map(|(name, value)| shell_setting(&format!("header_{name}"), value))
                .collect()
        }
        (_, Value::Object(members)) => members
            .iter()
            .map(|(name, value)| shell_setting(name, value))
            .collect(),
        (name, Value::Array(list)) => list
            .iter()
            .map(|value| shell_setting(name, value))
            .collect(),
        (name, value) => format!(" {name}={}", shell(value.as_str().unwrap_or_default())),
    }
}

/// A word of a command, in quotes if it needs them.
pub fn shell(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// The same, always in quotes: origins and header names may have a shell's special characters.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn pascal(name: &str) -> String {
    let words = name.split('_');
    let words = words.map(|word| word[..1].to_uppercase() + &word[1..]);
    words.collect()
}

fn camel(name: &str) -> String {
    let name = pascal(name);
    name[..1].to_lowercase() + &name[1..]
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn each_readme_shows_the_lines_of_its_sample() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for language in &LANGUAGES {
            let readme = folder.join("clients").join(language.word).join("README.md");
            let readme = fs::read_to_string(readme).unwrap();
            assert!(
                readme.lines().count() <= 60,
                "{}: more than a screen",
                language.name
            );
            let lines = format!("\n{}\n```\n", language.lines());
            assert!(readme.contains(&lines), "{}: {lines}", language.name);
        }
    }

    #[test]
    fn each_sample_is_made_another_call() {
        let pairs = [(
            "a$".to_owned(),
            "it's \"http://127.0.0.1:8080\"\\\n".to_owned(),
        )];
        let settings = [
            ("app", json!("shop")),
            ("version", json!("v2")),
            (
                "profile",
                json!({ "layout": "pairs-key", "leave_out": ["x y"] }),
            ),
            ("header_names", json!({ "app": "X-Shop" })),
        ];
        let call = Call {
            address: "https://api.example",
            settings: &settings,
            method: "GET",
            path: "/a/b",
            pairs: &pairs,
            json: None,
            credential: None,
        };
        let value = r#""it's \"http://127.0.0.1:8080\"\\\n""#;
        let expected = [
            [
                r#"client.call("GET", "/a/b", [("a$", VALUE)])"#,
                r#", app="shop", version="v2", profile={"layout":"pairs-key","leave_out":["x y"]}, header_names={"app":"X-Shop"})"#,
            ],
            [
                r#"await client.call("GET", "/a/b", [["a$", VALUE]])"#,
                r#", app: "shop", version: "v2", profile: {"layout":"pairs-key","leave_out":["x y"]}, headerNames: {"app":"X-Shop"} })"#,
            ],
            [
                r#"client.Call(context.Background(), "GET", "/a/b", signpost.Pairs{{"a$", VALUE}})"#,
                r#", App: "shop", Version: "v2", Profile: signpost.Profile{Layout: "pairs-key", LeaveOut: []string{"x y"}}, HeaderNames: signpost.HeaderNames{App: "X-Shop"}}"#,
            ],
            [
                r#"client.call("GET", "/a/b", List.of(Signpost.pair("a$", VALUE)))"#,
                r#".app("shop").version("v2").profile(java.util.Map.of("layout", "pairs-key", "leave_out", List.of("x y"))).headerNames(java.util.Map.of("app", "X-Shop")).build()"#,
            ],
            [
                r#"$client->call("GET", "/a/b", [["a\$", VALUE]])"#,
                r#", app: "shop", version: "v2", profile: ["layout" => "pairs-key", "leave_out" => ["x y"]], headerNames: ["app" => "X-Shop"])"#,
            ],
            [
                r#"client.Call("GET", "/a/b", SignpostClient.Pair("a$", VALUE))"#,
                r#" { App = "shop", Version = "v2", Profile = new SignpostProfile{Layout = "pairs-key", LeaveOut = new[] { "x y" }}, HeaderNames = new Dictionary<string, string> { ["app"] = "X-Shop" } };"#,
            ],
            [
                "signpost_call GET /a/b 'a$=it'\\''s \"http://127.0.0.1:8080\"\\\n'",
                " app=shop version=v2 layout=pairs-key leave_out='x y' header_app=X-Shop\n",
            ],
        ];
        for (language, [expected, settings]) in LANGUAGES.iter().zip(expected) {
            let name = language.name;
            let code = language.code(&call).code;
            for part in [
                &*expected.replace("VALUE", value),
                settings,
                "https://api.example",
            ] {
                assert_eq!(code.matches(part).count(), 1, "{name}: {part}: {code}");
            }
            for gone in ["sandbox", "demo"] {
                assert!(!code.contains(gone), "{name}: {gone}: {code}");
            }
            let bare = Call {
                settings: &[],
                pairs: &[],
                ..call
            };
            let code = language.code(&bare).code;
            assert!(
                !code.contains("shop") && !code.contains("demo"),
                "{name}: {code}"
            );
        }
    }

    #[test]
    fn no_value_ends_a_line_or_a_text() {
        let pairs = [("a=b".to_owned(), "\u{2028}\u{85}'$(id)".to_owned())];
        let call = Call {
            address: ADDRESS,
            settings: &[],
            method: "GET",
            path: "/",
            pairs: &pairs,
            json: None,
            credential: None,
        };
        for language in &LANGUAGES {
            let code = language.code(&call).code;
            let expected = match language.word {
                "php" => "\"\u{2028}\\u{85}'\\$(id)\"",
                "shell" => "--separate GET / 'a=b' '\u{2028}\u{85}'\\''$(id)'",
                _ => r#""\u2028\u0085'$(id)""#,
            };
            assert!(code.contains(expected), "{}: {code}", language.name);
        }
    }
    #[test]
    fn a_call_has_json_and_the_credential_as_its_own() {
        let profile = SignProfile {
            carrier: SignCarrier::Headers,
            algorithm: SignAlgorithm::HmacSha256,
            ..SignProfile::default()
        };
        let prefix = "Acme".parse().unwrap();
        let names = HeaderNames::new(&prefix, &HeaderOverrides::default()).unwrap();
        let settings = settings_of(&names, &profile);
        assert_eq!(settings, [("profile", json!({ "carrier": "headers" }))]);
        let md5 = SignProfile {
            algorithm: SignAlgorithm::Md5,
            ..profile
        };
        let of_md5 = settings_of(&names, &md5);
        assert_eq!(
            of_md5[0].1,
            json!({ "algorithm": "md5", "carrier": "headers" })
        );
        let json = json!({ "a": "it's", "b": [1, true, {}] });
        let call = Call {
            address: ADDRESS,
            settings: &settings,
            method: "PUT",
            path: "/a",
            pairs: &[],
            json: Some(&json),
            credential: Some("C"),
        };
        for (language, expected) in LANGUAGES.iter().zip([
            r#"client.call("PUT", "/a", json={"a": "it's", "b": [1, True, {}]}, credential="C")"#,
            r#"await client.call("PUT", "/a", { json: { "a": "it's", "b": [1, true, {}] }, credential: "C" })"#,
            r#"client.Call(context.Background(), "PUT", "/a", signpost.JSON(map[string]any{"a": "it's", "b": []any{1, true, map[string]any{}}}), signpost.Credential("C"))"#,
            r#"client.request("PUT", "/a").json(java.util.Map.of("a", "it's", "b", List.of(1, true, java.util.Map.of()))).credential("C").send()"#,
            r#"$client->call("PUT", "/a", json: ["a" => "it's", "b" => [1, true, new \stdClass()]], credential: "C")"#,
            r#"client.WithCredential("C").Call("PUT", "/a", new SignpostCall { Json = new System.Collections.Generic.Dictionary<string, object> { ["a"] = "it's", ["b"] = new object[] { 1, true, new System.Collections.Generic.Dictionary<string, object>() } } })"#,
            r#"signpost_call --json '{"a":"it'\''s","b":[1,true,{}]}' --credential C PUT /a"#,
        ]) {
            let code = language.code(&call).code;
            assert_eq!(
                code.matches(expected).count(),
                1,
                "{}: {code}",
                language.name
            );
        }
        let (pairs, json) = ([("p".to_owned(), "q".to_owned())], json!([null]));
        let call = Call {
            json: Some(&json),
            pairs: &pairs,
            ..call
        };
        let code = |number: usize| LANGUAGES[number].code(&call).code;
        assert!(
            code(3).contains(r#".pairs(List.of(Signpost.pair("p", "q"))).body("[null]".getBytes"#)
        );
        assert!(code(5).contains(
            r#"{ Pairs = new[] { SignpostClient.Pair("p", "q") }, Json = new object[] { null } }"#
        ));
    }

    #[test]
    fn json_that_java_has_no_word_for_is_a_text() {
        let (pairs, json) = ([("p".to_owned(), "q".to_owned())], json!([null]));
        let call = Call {
            address: ADDRESS,
            settings: &[],
            method: "PUT",
            path: "/a",
            pairs: &pairs,
            json: Some(&json),
            credential: None,
        };
        let code = |number: usize| LANGUAGES[number].code(&call).code;
        assert!(
            code(3).contains(r#".pairs(List.of(Signpost.pair("p", "q"))).body("[null]".getBytes"#)
        );
        assert!(code(5).contains(
            r#"{ Pairs = new[] { SignpostClient.Pair("p", "q") }, Json = new object[] { null } }"#
        ));
    }
}
