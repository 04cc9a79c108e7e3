//! Edits the addresses of a version in the text of a configuration file. All else stays as it is, comments included.

use anyhow::{Context, bail};
use signpost_protocol::version::Version;
use toml_edit::{Array, DocumentMut, Item, Key, Table, Value};

const ONE: &str = "backend";
const SEVERAL: &str = "backends";

/// What is moved: a version, or one of its routes.
#[derive(Clone, Copy)]
pub(super) struct Moved<'m> {
    pub version: &'m Version,
    /// The route's path, as the file has it.
    pub route: Option<&'m str>,
}

impl Moved<'_> {
    fn table<'d>(&self, document: &'d mut DocumentMut) -> anyhow::Result<&'d mut Table> {
        let version = version_table(document, self.version)?;
        let Some(path) = self.route else {
            return Ok(version);
        };
        let routes = version
            .get_mut("routes")
            .and_then(Item::as_array_of_tables_mut);
        let mut routes = routes.into_iter().flat_map(|routes| routes.iter_mut());
        let is_meant = |route: &&mut Table| route.get("path").and_then(Item::as_str) == Some(path);
        match routes.find(is_meant) {
            Some(route) => Ok(route),
            None => bail!(
                "write the route {path} as a table of its own, [[versions.{}.routes]]",
                self.version
            ),
        }
    }
}

/// The text with a further address of the version: `backend` becomes `backends`.
pub(super) fn with_address(text: &str, of: Moved<'_>, address: &str) -> anyhow::Result<String> {
    let mut document: DocumentMut = text.parse()?;
    let table = of.table(&mut document)?;
    if let Some(Value::Array(addresses)) = table.get_mut(SEVERAL).and_then(Item::as_value_mut) {
        let last = addresses.iter().last().map(Value::decor);
        let before = last.and_then(|decor| decor.prefix()?.as_str());
        // In a list with lines, a line of its own, as far to the right; without a comment of the last one.
        let before = match before.and_then(|before| before.rfind('\n').map(|end| &before[end..])) {
            Some(line) => line.to_owned(),
            None => " ".to_owned(),
        };
        addresses.push_formatted(Value::from(address).decorated(before, ""));
    } else {
        let known = table.get(ONE).and_then(Item::as_value);
        let known = known.context("it has no backend")?.clone();
        let mut addresses = Array::new();
        addresses.push(known.as_str().unwrap_or_default());
        addresses.push(address);
        let mut addresses = Value::from(addresses);
        *addresses.decor_mut() = known.decor().clone();
        rename(table, ONE, SEVERAL, &addresses);
    }
    Ok(document.to_string())
}

/// The text with this as the only address of the version.
pub(super) fn only_address(text: &str, of: Moved<'_>, address: &str) -> anyhow::Result<String> {
    let mut document: DocumentMut = text.parse()?;
    let table = of.table(&mut document)?;
    if let Some(Value::Array(addresses)) = table.get_mut(SEVERAL).and_then(Item::as_value_mut) {
        let first = addresses.get(0).map(|first| first.decor().clone());
        addresses.clear();
        let mut only = Value::from(address);
        *only.decor_mut() = first.unwrap_or_default();
        addresses.push_formatted(only);
    } else {
        let known = table.get_mut(ONE).and_then(Item::as_value_mut);
        let known = known.context("it has no backend")?;
        let decor = known.decor().clone();
        *known = Value::from(address);
        *known.decor_mut() = decor;
    }
    Ok(document.to_string())
}

/// The table of a version; upper and lower case of its name are the same.
fn version_table<'d>(
    document: &'d mut DocumentMut,
    version: &Version,
) -> anyhow::Result<&'d mut Table> {
    let versions = document
        .get_mut("versions")
        .and_then(Item::as_table_like_mut);
    let mut versions = versions
        .into_iter()
        .flat_map(|versions| versions.iter_mut());
    let found = versions.find(|(name, _)| name.parse() == Ok(version.clone()));
    match found.and_then(|(_, item)| item.as_table_mut()) {
        Some(table) => Ok(table),
        None => bail!("write {version} as a table of its own, [versions.{version}]"),
    }
}

/// Gives a key another name and value, in its place.
fn rename(table: &mut Table, from: &str, to: &str, value: &Value) {
    let names: Vec<_> = table.iter().map(|(name, _)| name.to_owned()).collect();
    for name in names {
        let Some((key, item)) = table.remove_entry(&name) else {
            continue;
        };
        if name == from {
            let renamed = Key::new(to)
                .with_leaf_decor(key.leaf_decor().clone())
                .with_dotted_decor(key.dotted_decor().clone());
            table.insert_formatted(&renamed, Item::Value(value.clone()));
        } else {
            table.insert_formatted(&key, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# The gateway.\nprefix = \"Acme\" # short\n\n# Old.\n[versions.v1]\n# Its address.\n\
        backend = \"127.0.0.1:1\"   # machine a\nidle_seconds = 4\n\n[versions.v1.health]\npath = \"/up\"\n\n\
        [versions.V2] # new\nsticky_by = \"app\"\nbackends = [\n    # machine b\n    \"127.0.0.1:2\",\n    \
        { address = \"127.0.0.1:3\", weight = 2 }, # machine c\n]\n# The end.\n";

    fn shifted(
        edit: fn(&str, Moved<'_>, &str) -> anyhow::Result<String>,
        text: &str,
        name: &str,
        route: Option<&str>,
    ) -> anyhow::Result<String> {
        let version = name.parse().unwrap();
        let of = Moved {
            version: &version,
            route,
        };
        edit(text, of, "127.0.0.1:9")
    }

    #[test]
    fn a_route_moves_alone() {
        let routes = "[[versions.v1.routes]]\npath = \"/a\"\nbackend = \"127.0.0.1:4\"\n\
            [[versions.v1.routes]]\npath = \"/b/**\"\nbackend = \"127.0.0.1:5\" # b\n";
        let file = format!("[versions.v1]\nbackend = \"127.0.0.1:1\"\n{routes}");
        let both = shifted(with_address, &file, "v1", Some("/b/**")).unwrap();
        let backends = "backends = [\"127.0.0.1:5\", \"127.0.0.1:9\"] # b";
        assert_eq!(
            both,
            file.replace("backend = \"127.0.0.1:5\" # b", backends)
        );
        let one = shifted(only_address, &file, "v1", Some("/b/**")).unwrap();
        assert_eq!(one, file.replace("127.0.0.1:5", "127.0.0.1:9"));
        assert!(shifted(only_address, &file, "v1", Some("/c")).is_err());
    }

    #[test]
    fn one_address_becomes_two_and_one_again() {
        let both = shifted(with_address, FILE, "v1", None).unwrap();
        let backends = "backends = [\"127.0.0.1:1\", \"127.0.0.1:9\"]   # machine a";
        assert_eq!(
            both,
            FILE.replace("backend = \"127.0.0.1:1\"   # machine a", backends)
        );
        let one = shifted(only_address, FILE, "v1", None).unwrap();
        assert_eq!(one, FILE.replace("127.0.0.1:1\"", "127.0.0.1:9\""));
    }

    #[test]
    fn a_list_gets_an_address_in_its_form() {
        let more = shifted(with_address, FILE, "v2", None).unwrap();
        let last = "{ address = \"127.0.0.1:3\", weight = 2 },";
        assert_eq!(
            more,
            FILE.replace(last, &format!("{last}\n    \"127.0.0.1:9\","))
        );
        let only = shifted(only_address, FILE, "v2", None).unwrap();
        assert!(
            only.contains("    # machine b\n    \"127.0.0.1:9\""),
            "{only}"
        );
        assert!(
            !only.contains("127.0.0.1:3") && only.ends_with("]\n# The end.\n"),
            "{only}"
        );
        let inline = "[versions.v1]\nbackends = [\"127.0.0.1:1\"] # a\n";
        let both = shifted(with_address, inline, "v1", None).unwrap();
        assert_eq!(both, inline.replace("1\"]", "1\", \"127.0.0.1:9\"]"));
    }

    #[test]
    fn a_version_that_is_no_table_is_refused() {
        for text in [
            "versions = { v1 = { backend = \"a:1\" } }",
            "[versions.v2]\nbackend = \"a:1\"",
        ] {
            let error = shifted(with_address, text, "v1", None).unwrap_err();
            assert!(error.to_string().contains("[versions.v1]"), "{error}");
        }
    }
}
