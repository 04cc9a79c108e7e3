//! Holds the readers and the examples of a program together, for the tests of each program.

use super::{Explained, Key, explained, is_below, is_named};

/// Checks that the readers and the examples have the same keys and defaults.
///
/// # Panics
///
/// A key is missing on one side, has no meaning, or another default.
pub fn assert_explained(keys: &[Key], examples: &[&str]) {
    for key in keys {
        assert!(!key.meaning.is_empty(), "no example explains {}", key.key);
    }
    for example in examples.iter().flat_map(|text| explained(text)) {
        let Explained {
            key: name,
            value,
            meaning,
        } = example;
        if value.is_empty() {
            let is_known = keys.iter().any(|key| is_below(&key.key, &name));
            assert!(is_known, "no key is in [{name}]");
            continue;
        }
        let key = keys.iter().find(|key| is_named(&key.key, &name));
        let key = key.unwrap_or_else(|| panic!("no reader knows {name}"));
        let is_said = key
            .default
            .as_deref()
            .is_none_or(|default| default == value);
        // An example can show another value, if its comment has the default.
        assert!(is_said || meaning.contains("efault"), "{key:?}: {value}");
    }
}
