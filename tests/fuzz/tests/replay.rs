//! Runs every file of the seed corpus through its target. A corrected failure of `scripts/fuzz` gets a file here.

use std::{fs, panic, path::Path};

/// With fewer seeds, a folder was emptied by mistake.
const MIN_SEEDS: usize = 5;

#[test]
fn both_parsers_agree_on_every_seed() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, target) in fuzz::TARGETS {
        let folder = corpus.join(name);
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
        let (mut seeds, mut valid) = (0, 0);
        for entry in entries {
            let path = entry.unwrap().path();
            let input = fs::read(&path).unwrap();
            let is_valid = panic::catch_unwind(|| target(&input));
            let is_valid = is_valid.unwrap_or_else(|_| panic!("{} fails", path.display()));
            seeds += 1;
            valid += usize::from(is_valid);
        }
        assert!(seeds >= MIN_SEEDS, "{folder:?} has {seeds} seeds");
        assert!(
            (1..seeds).contains(&valid),
            "{valid} of {seeds} in {folder:?} are valid"
        );
    }
}

#[test]
fn every_folder_of_the_corpus_has_a_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for entry in fs::read_dir(corpus).unwrap() {
        let name = entry.unwrap().file_name();
        let has_target = fuzz::TARGETS.iter().any(|(target, _)| *target == name);
        assert!(has_target, "{name:?}");
    }
}
