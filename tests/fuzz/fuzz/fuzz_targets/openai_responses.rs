//! The target `openai_responses` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (tidegate_fuzz::target("openai_responses").run)(bytes));
