//! `conf/observe/alerts.yml`.

use super::read;

/// A rule: an alert, or a series that is computed ahead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The name of the alert or series.
    pub name: String,
    /// Whether it is an alert.
    pub is_alert: bool,
    /// The `PromQL` expression that Prometheus evaluates.
    pub expression: String,
    /// The rest of it as it is in the file: labels and texts.
    pub text: String,
}

impl Rule {
    /// The labels of the series that its texts name.
    #[must_use]
    pub fn named_labels(&self) -> Vec<&str> {
        let parts = self.text.split("$labels.").skip(1);
        parts
            .map(|part| {
                let end =
                    part.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                &part[..end.unwrap_or(part.len())]
            })
            .collect()
    }
}

/// All rules, in their order.
///
/// # Panics
///
/// When the file is missing.
#[must_use]
pub fn rules() -> Vec<Rule> {
    parse(&read("alerts.yml"))
}

/// Reads the form in which the file is written: an expression is on the line of its key, or in a block below `|`.
fn parse(text: &str) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let (indent, content) = (indent(line), line.trim());
        if let Some((kind, name)) = content
            .strip_prefix("- ")
            .and_then(|rule| rule.split_once(": "))
            .filter(|(kind, _)| ["alert", "record"].contains(kind))
        {
            rules.push(Rule {
                name: name.to_owned(),
                is_alert: kind == "alert",
                ..Rule::default()
            });
            continue;
        }
        let Some(rule) = rules.last_mut() else {
            continue;
        };
        match content.strip_prefix("expr: ") {
            Some("|") => {
                while let Some(further) = lines.next_if(|line| self::indent(line) > indent) {
                    rule.expression += further.trim();
                    rule.expression.push('\n');
                }
            }
            Some(expression) => expression.clone_into(&mut rule.expression),
            None if content.starts_with('#') => {}
            None => {
                rule.text += content;
                rule.text.push('\n');
            }
        }
    }
    rules
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
groups:
  - name: some
    rules:
      - record: a:b
        expr: sum(c)
      - alert: D
        # A comment.
        expr: |
          a:b > 1
            or d > 2
        for: 1m
        annotations:
          summary: Something is {{ $labels.e }}, {{ $labels.f | humanize }}
";

    #[test]
    fn rules_are_read_with_their_expressions() {
        let rules = parse(TEXT);
        assert_eq!(rules.len(), 2);
        assert_eq!((&*rules[0].name, &*rules[0].expression), ("a:b", "sum(c)"));
        assert_eq!(rules[1].expression, "a:b > 1\nor d > 2\n");
        assert!(rules[1].is_alert && !rules[0].is_alert);
        assert_eq!(rules[1].named_labels(), ["e", "f"]);
    }
}
