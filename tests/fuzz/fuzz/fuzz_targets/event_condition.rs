//! The target `event_condition` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (tidegate_fuzz::target("event_condition").run)(bytes));
