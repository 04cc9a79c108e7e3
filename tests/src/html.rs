//! Links and forms of a page, as far as our own pages need.

use scraper::{ElementRef, Html, Selector};

/// A form that can be submitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Its target; if empty, the URL of the page.
    pub action: String,
    /// `get` or `post`.
    pub method: String,
    /// The hidden fields, in order.
    pub hidden: Vec<(String, String)>,
}

/// All forms of a page.
#[must_use]
pub fn forms(page: &str) -> Vec<Form> {
    let page = Html::parse_document(page);
    page.select(&selector("form")).map(form).collect()
}

/// The targets of all links of a page.
#[must_use]
pub fn links(page: &str) -> Vec<String> {
    let page = Html::parse_document(page);
    let anchors = selector("a[href]");
    let anchors = page.select(&anchors);
    anchors.map(|anchor| attribute(anchor, "href")).collect()
}

fn form(form: ElementRef<'_>) -> Form {
    let hidden = selector("input[type=hidden]");
    let hidden = form.select(&hidden);
    Form {
        action: attribute(form, "action"),
        method: attribute(form, "method").to_ascii_lowercase(),
        hidden: hidden
            .map(|input| (attribute(input, "name"), attribute(input, "value")))
            .collect(),
    }
}

fn attribute(element: ElementRef<'_>, name: &str) -> String {
    element.attr(name).unwrap_or_default().to_owned()
}

fn selector(css: &str) -> Selector {
    Selector::parse(css).expect("every selector here is valid CSS")
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
