//! The conditions of event types: what they mean, and that the parser takes anything.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use tidegate_config::events::{Condition, VARIABLES, VariableKind, Variables};

fn variables() -> Variables {
    let mut variables = Variables::default();
    variables.stream_enabled = true;
    variables.reasoning_returned = false;
    variables.kind = "anthropic".to_owned();
    variables.model = "m".to_owned();
    variables.max_steps = 7;
    variables.max_retries = 3;
    variables
}

#[test]
fn conditions_mean_what_the_grammar_says() {
    let cases = [
        ("true", true),
        ("false", false),
        ("provider_config.stream.enabled", true),
        ("not provider_config.stream.enabled", false),
        ("not not provider_config.stream.enabled", true),
        ("provider_config.reasoning.returned", false),
        ("provider_config.kind == 'anthropic'", true),
        ("\"anthropic\" == provider_config.kind", true),
        ("provider_config.model == \"it's\"", false),
        ("turn.max_steps == 7", true),
        ("turn.max_steps == 7.0 and turn.max_retries == 3", true),
        ("turn.max_retries == -3", false),
        ("turn.max_steps == 7 == true", false),
        ("(turn.max_steps == 7) == true", true),
        // `and` binds stronger than `or`, and `not` weaker than `==`.
        ("true or true and false", true),
        ("(true or true) and false", false),
        ("not false == false", false),
        ("not (false) or true", true),
        ("  not\tfalse\n", true),
    ];
    for (text, meaning) in cases {
        match Condition::parse(text) {
            Ok(condition) => assert_eq!(condition.is_fulfilled(&variables()), meaning, "{text}"),
            // Comparisons do not chain.
            Err(error) => assert_eq!((text, &text[error.span]), ("turn.max_steps == 7 == true", "==")),
        }
    }
}

#[test]
fn errors_mark_what_is_wrong() {
    let cases = [
        ("", "", "a value is expected before the end"),
        ("stream", "stream", "unknown variable `stream`"),
        ("true and", "", "a value is expected before the end"),
        ("true & false", "&", "`&` is not a part of conditions"),
        ("!true", "!", "`!` is not a part of conditions"),
        ("turn.max_steps == 'x'", "turn.max_steps == 'x'", "a number is never equal to a string"),
        ("true and 'x'", "'x'", "a string alone is not a condition"),
        ("(true", "", "`)` is expected before the end"),
        ("true)", ")", "nothing is expected before `)`"),
        ("provider_config.model == 'm", "'m", "the string has no end"),
        ("turn.max_steps == 1.", "1.", "this is not a number"),
        ("turn.max_steps == 1e3", "1e3", "this is not a number"),
        ("and", "and", "a value is expected before `and`"),
    ];
    for (text, marked, message) in cases {
        let error = Condition::parse(text).unwrap_err();
        assert_eq!((&text[error.span.clone()], error.message.as_str()), (marked, message), "{text}");
        assert!(!error.help.is_empty());
    }
}

#[test]
fn depth_and_length_are_bounded() {
    for text in ["(".repeat(1000), "not ".repeat(200) + "true", "true or ".repeat(200) + "true"] {
        assert!(Condition::parse(&text).is_err(), "{text}");
    }
    assert!(Condition::parse(&("true or ".repeat(100) + "true")).is_ok());
}

/// Each variable has a value of its type, and its own.
#[test]
fn every_variable_is_read() {
    let own = ["true", "false", "'anthropic'", "'m'", "7", "3"];
    for (variable, value) in VARIABLES.iter().zip(own) {
        let condition = Condition::parse(&format!("{} == {value}", variable.name)).unwrap();
        assert!(condition.is_fulfilled(&variables()), "{}", variable.name);
        let is_bool = matches!(value, "true" | "false");
        assert_eq!(variable.kind == VariableKind::Bool, is_bool);
    }
}

/// A condition with its value, built from the inside.
fn statement() -> impl Strategy<Value = (String, bool)> {
    let leaf = prop_oneof![
        Just(("true".to_owned(), true)),
        Just(("provider_config.reasoning.returned".to_owned(), false)),
        (0..10u32).prop_map(|n| (format!("turn.max_steps == {n}"), n == 7)),
    ];
    leaf.prop_recursive(4, 24, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|(text, value)| (format!("not ({text})"), !value)),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| (format!("({}) and ({})", a.0, b.0), a.1 && b.1)),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| (format!("({}) or ({})", a.0, b.0), a.1 || b.1)),
            (inner.clone(), inner).prop_map(|(a, b)| (format!("({}) == ({})", a.0, b.0), a.1 == b.1)),
        ]
    })
}

proptest! {
    #[test]
    fn built_conditions_have_their_value((text, value) in statement()) {
        prop_assume!(text.len() <= 1024);
        prop_assert_eq!(Condition::parse(&text).unwrap().is_fulfilled(&variables()), value);
    }

    #[test]
    fn the_parser_takes_anything(text in "([a-z. ]{0,8}|and|or|not|==|\\(|\\)|'|\"|[0-9.-]{1,4}|turn\\.max_steps|\\PC|\n){0,24}") {
        match Condition::parse(&text) {
            Ok(condition) => { condition.is_fulfilled(&variables()); }
            // The place is one of the string: a caret can be shown.
            Err(error) => prop_assert!(text.get(error.span).is_some()),
        }
    }
}
