//! Just enough of HTML to press the buttons of our own pages: tags, attributes, links and forms.

use std::collections::BTreeMap;

/// A start tag with its attributes, unescaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// In small letters; an end tag's begins with a slash.
    pub name: String,
    /// By name, in small letters.
    pub attributes: BTreeMap<String, String>,
}

/// A form that can be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Where to; empty is the page's own address.
    pub action: String,
    /// `get` or `post`.
    pub method: String,
    /// The hidden fields, in order.
    pub hidden: Vec<(String, String)>,
}

impl Tag {
    /// An attribute's value.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str)
    }
}

/// All tags of a page, in order. Comments and the like have a name that no tag has.
#[must_use]
pub fn tags(page: &str) -> Vec<Tag> {
    page.split('<')
        .skip(1)
        .filter_map(|after| after.split('>').next())
        .map(tag)
        .collect()
}

/// All forms of a page.
#[must_use]
pub fn forms(page: &str) -> Vec<Form> {
    let mut forms: Vec<Form> = Vec::new();
    for tag in tags(page) {
        let attribute = |name: &str| tag.attribute(name).unwrap_or_default().to_owned();
        if tag.name == "form" {
            let method = attribute("method").to_ascii_lowercase();
            forms.push(Form {
                action: attribute("action"),
                method,
                hidden: Vec::new(),
            });
        }
        if tag.name == "input"
            && attribute("type") == "hidden"
            && let Some(form) = forms.last_mut()
        {
            form.hidden.push((attribute("name"), attribute("value")));
        }
    }
    forms
}

/// Where the links of a page lead.
#[must_use]
pub fn links(page: &str) -> Vec<String> {
    let anchors = tags(page).into_iter().filter(|tag| tag.name == "a");
    anchors
        .filter_map(|tag| tag.attribute("href").map(str::to_owned))
        .collect()
}

fn tag(inside: &str) -> Tag {
    let (name, mut rest) = inside
        .split_once(char::is_whitespace)
        .unwrap_or((inside, ""));
    let mut attributes = BTreeMap::new();
    loop {
        rest = rest.trim_start();
        let end = rest.find(|sign: char| sign == '=' || sign.is_whitespace());
        let Some(end) = end else {
            if !rest.is_empty() {
                attributes.insert(rest.to_ascii_lowercase(), String::new());
            }
            break;
        };
        let (attribute, after) = rest.split_at(end);
        let (value, after) = match after.strip_prefix('=') {
            None => ("", after),
            Some(after) => match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => after.split_once(char::is_whitespace).unwrap_or((after, "")),
            },
        };
        attributes.insert(attribute.to_ascii_lowercase(), unescape(value));
        rest = after;
    }
    Tag {
        name: name.to_ascii_lowercase(),
        attributes,
    }
}

/// The five escapes that our pages use; `&amp;` last, or it would make new ones.
fn unescape(text: &str) -> String {
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
    ];
    let text = pairs
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    text.replace("&#x2F;", "/").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_with_its_hidden_fields() {
        let page = r#"<p>x</p><form method="POST" action="/a?b=1&amp;c=2">
            <input type="hidden" name="state" value="&quot;v1.x&quot;"><button name=b>Go</button>
            </form><a href="/x?y=1&amp;z=2" rel=next>next</a>"#;
        let form = Form {
            action: "/a?b=1&c=2".to_owned(),
            method: "post".to_owned(),
            hidden: vec![("state".to_owned(), "\"v1.x\"".to_owned())],
        };
        assert_eq!(forms(page), [form]);
        assert_eq!(links(page), ["/x?y=1&z=2"]);
    }
}
