//! A target under libFuzzer. `scripts/fuzz` builds and runs it, and names the target in `SIGNPOST_FUZZ_TARGET`.
#![no_main]

use std::{env, sync::LazyLock};

use fuzz::{TARGETS, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = env::var("SIGNPOST_FUZZ_TARGET").unwrap_or_default();
    let target = TARGETS.iter().find(|(target, _)| *target == name);
    target.expect("SIGNPOST_FUZZ_TARGET names a target").1
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    TARGET(input);
});
