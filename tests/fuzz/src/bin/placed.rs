//! Versions named by path or host under libFuzzer: `scripts/fuzz` builds and runs it.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzz::placed(input);
});
