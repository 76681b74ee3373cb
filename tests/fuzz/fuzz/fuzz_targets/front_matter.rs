//! The target `front_matter` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (tidegate_fuzz::target("front_matter").run)(bytes));
