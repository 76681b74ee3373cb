//! The target `json` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (tidegate_fuzz::target("json").run)(bytes));
