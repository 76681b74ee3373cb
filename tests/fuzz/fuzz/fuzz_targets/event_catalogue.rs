//! The target `event_catalogue` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (tidegate_fuzz::target("event_catalogue").run)(bytes));
