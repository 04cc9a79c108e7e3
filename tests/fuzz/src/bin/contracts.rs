//! `OpenAPI` documents under libFuzzer: `scripts/fuzz` builds and runs it.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzz::contracts(input);
});
