//! Cells by name, which keep their counts over reloads.

use std::{collections::BTreeSet, sync::Arc};

/// Limit of names that no configuration has any more. Their counts stay, so that a version or backend that returns
/// continues; beyond the limit, those that were removed first are dropped.
const MAX_REMOVED: usize = 16;

/// The cells of each name: first the removed names, the oldest first, then the configuration's.
#[derive(Debug)]
pub(super) struct Registry<C>(Vec<(Box<str>, Arc<C>)>);

impl<C> Default for Registry<C> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<C: Default> Registry<C> {
    /// Sets the names of the configuration.
    pub(super) fn configure(&mut self, names: impl Iterator<Item = String>) {
        let mut names: BTreeSet<_> = names.map(String::into_boxed_str).collect();
        let all = std::mem::take(&mut self.0).into_iter();
        let (configured, mut removed): (Vec<_>, Vec<_>) =
            all.partition(|(name, _)| names.remove(name));
        removed.drain(..removed.len().saturating_sub(MAX_REMOVED));
        // `partition` has removed the names that have cells: what is left is new.
        let new = names.into_iter().map(|name| (name, Arc::default()));
        self.0 = removed.into_iter().chain(configured).chain(new).collect();
    }

    /// The cells of a name. One that the configuration does not have gets cells that nothing shows.
    pub(super) fn cells(&self, name: &str) -> Arc<C> {
        let known = self.0.iter().find(|(known, _)| **known == *name);
        known.map_or_else(Arc::default, |(_, cells)| Arc::clone(cells))
    }

    /// All names and their cells, ordered by name.
    pub(super) fn all(&self) -> Vec<(Box<str>, Arc<C>)> {
        let mut all = self.0.clone();
        all.sort_by(|(name, _), (other, _)| name.cmp(other));
        all
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn configure(registry: &mut Registry<AtomicU64>, names: &[&str]) {
        registry.configure(names.iter().map(|name| (*name).to_owned()));
    }

    fn names(registry: &Registry<AtomicU64>) -> Vec<Box<str>> {
        registry.all().into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_name_keeps_its_cells_even_while_it_is_removed() {
        let mut registry = Registry::default();
        configure(&mut registry, &["v2", "v1", "v1"]);
        assert_eq!(names(&registry), ["v1".into(), "v2".into()]);
        registry.cells("v1").store(7, Ordering::Relaxed);
        for further in [&["v2"][..], &["v1", "v3"]] {
            configure(&mut registry, further);
            assert_eq!(registry.cells("v1").load(Ordering::Relaxed), 7);
        }
        assert_eq!(names(&registry).len(), 3);
    }

    #[test]
    fn removed_names_are_limited() {
        let mut registry = Registry::default();
        let name = |number: usize| format!("v{number}");
        for number in 0..100 {
            registry.configure([name(number), "stays".to_owned()].into_iter());
        }
        let kept = names(&registry);
        // The last one, and the one that stays, are configured.
        assert_eq!(kept.len(), MAX_REMOVED + 2);
        for number in 99 - MAX_REMOVED..100 {
            assert!(kept.contains(&name(number).into_boxed_str()), "{kept:?}");
        }
    }
}
