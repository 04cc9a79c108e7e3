//! The documents of the project: their links, their anchors, and the commands that they show.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// Folders without documents of the project.
const SKIPPED_FOLDERS: [&str; 2] = ["target", "data"];

/// A Markdown file.
#[derive(Debug)]
pub struct Document {
    /// Relative to the project's root.
    pub path: PathBuf,
    /// The targets of its links and images, each with its line.
    pub links: Vec<(String, usize)>,
    /// The anchors of its headings, without `#`.
    pub anchors: BTreeSet<String>,
    /// The commands of its `console` blocks, in order.
    pub commands: Vec<Command>,
}

/// A command that a document shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The line of the document.
    pub line: usize,
    /// What a shell reads, without the prompt.
    pub text: String,
    /// The output that the document shows; `…` stands for any text.
    pub output: String,
}

/// The folder of the project.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All documents of the project, by path.
///
/// # Panics
///
/// When the project's folder cannot be read.
#[must_use]
pub fn documents() -> Vec<Document> {
    let mut paths = Vec::new();
    collect(&root(), &mut paths);
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a document can be read");
            let path = path.strip_prefix(root()).expect("it is below the root");
            Document::parse(path, &text)
        })
        .collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be read") {
        let entry = entry.expect("an entry can be read");
        let (name, kind) = (entry.file_name(), entry.file_type().expect("a file type"));
        let name = name.to_string_lossy();
        let is_skipped = name.starts_with('.') || SKIPPED_FOLDERS.contains(&name.as_ref());
        if kind.is_dir() && !is_skipped {
            collect(&entry.path(), paths);
        } else if kind.is_file() && name.ends_with(".md") {
            paths.push(entry.path());
        }
    }
}

impl Document {
    /// Reads a document's text.
    #[must_use]
    pub fn parse(path: &Path, text: &str) -> Self {
        let mut document = Self {
            path: path.to_owned(),
            links: Vec::new(),
            anchors: BTreeSet::new(),
            commands: Vec::new(),
        };
        let mut repeats = BTreeMap::new();
        let (mut heading, mut block) = (None, None);
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            let Range { start, .. } = range;
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let heading = heading.take().unwrap_or_default();
                    document.anchors.insert(anchor(&heading, &mut repeats));
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document
                        .links
                        .push((dest_url.into_string(), line(text, start)));
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    let is_console = info.split(' ').next() == Some("console");
                    block = is_console.then(|| (line(text, start) + 1, String::new()));
                }
                Event::End(TagEnd::CodeBlock) => {
                    if let Some((first_line, block)) = block.take() {
                        document.commands.extend(commands(&block, first_line));
                    }
                }
                Event::Text(part) | Event::Code(part) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&part);
                    }
                    if let Some((_, block)) = &mut block {
                        block.push_str(&part);
                    }
                }
                _ => {}
            }
        }
        document
    }
}

/// The number of the line at an offset, from 1.
fn line(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// The anchor that a heading gets where Markdown is shown: small letters, `-` for spaces, no other punctuation. A repeated
/// heading gets a number.
fn anchor(heading: &str, repeats: &mut BTreeMap<String, usize>) -> String {
    let anchor: String = heading
        .to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect();
    let repeat = repeats.entry(anchor.clone()).or_insert(0);
    *repeat += 1;
    match *repeat {
        1 => anchor,
        number => format!("{anchor}-{}", number - 1),
    }
}

/// The commands of a block. A command begins behind the prompt `$ ` or `# `, and goes on behind a backslash at the end of its
/// line, or with the prompt `> `; what follows is its output.
fn commands(block: &str, first_line: usize) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    let mut continues = false;
    for (number, text) in block.lines().enumerate() {
        let more = text.strip_prefix("> ").or((text == ">").then_some(""));
        match (commands.last_mut(), more) {
            (Some(command), _) if continues => {
                command.text.push('\n');
                command.text.push_str(text);
            }
            (Some(command), Some(more)) if command.output.is_empty() => {
                command.text.push('\n');
                command.text.push_str(more);
            }
            (last, _) => {
                let prompt = text.strip_prefix("$ ").or_else(|| text.strip_prefix("# "));
                if let Some(text) = prompt {
                    commands.push(Command {
                        line: first_line + number,
                        text: text.to_owned(),
                        output: String::new(),
                    });
                } else if let Some(command) = last {
                    command.output.push_str(text);
                    command.output.push('\n');
                    continue;
                }
            }
        }
        continues = text.ends_with('\\');
    }
    commands
}

/// Whether an output is the one that a document shows, where `…` stands for any text, also of several lines.
#[must_use]
pub fn is_shown(shown: &str, output: &str) -> bool {
    let (shown, mut rest) = (shown.trim(), output.trim());
    let mut parts = shown.split('…').map(str::trim);
    let first = parts.next().unwrap_or_default();
    let Some(after) = rest.strip_prefix(first) else {
        return false;
    };
    rest = after;
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_anchors_and_commands_are_read() {
        let text = "# One `key`, two\n\nSee [this](a.md#b) and ![that](c.svg).\n\n## Again\n\n## Again\n\n```console\n$ echo \\\n    a\na\n# id -u\n0\n$ cat <<E\n> x\n> E\nx\n```\n\n```toml\n# $ no\n```\n";
        let document = Document::parse(Path::new("x.md"), text);
        assert_eq!(
            document.links,
            [("a.md#b".to_owned(), 3), ("c.svg".to_owned(), 3)]
        );
        let anchors: Vec<_> = document.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["again", "again-1", "one-key-two"]);
        let command = |line, text: &str, output: &str| Command {
            line,
            text: text.to_owned(),
            output: output.to_owned(),
        };
        assert_eq!(
            document.commands,
            [
                command(10, "echo \\\n    a", "a\n"),
                command(13, "id -u", "0\n"),
                command(15, "cat <<E\nx\nE", "x\n"),
            ]
        );
    }

    #[test]
    fn an_ellipsis_stands_for_any_text() {
        for (shown, output, is_equal) in [
            ("a", "a\n", true),
            ("a", "ab", false),
            ("a…c", "abbc", true),
            ("a…c", "abb", false),
            ("…\nlast", "first\nsecond\nlast\n", true),
            ("{\"a\":1,…}", "{\"a\":1,\"b\":2}", true),
            ("a…b…c", "a1b2c", true),
            ("a…b…c", "a1c2b", false),
        ] {
            assert_eq!(is_shown(shown, output), is_equal, "{shown} {output}");
        }
    }
}
