//! The harness does what the host does: transactions, instances that come and go, limits and time to live of state.

#![allow(clippy::unwrap_used, reason = "a call that has to succeed and does not is a failed test")]

use std::time::Duration;

use tidegate_sdk::prelude::*;
use tidegate_sdk::testing::Harness;
use tidegate_sdk::{Callback, Registered, Setting, StateError, ToolInfo, registration};

/// Does what a test hands it.
#[derive(Default)]
struct Empty;

/// Registers all five, by its settings.
struct Full {
    tags: Vec<String>,
    priority: u8,
}

impl Extension for Full {
    fn new(settings: &Settings) -> Result<Self> {
        Ok(Self {
            tags: settings.get_or("tags", Vec::new())?,
            priority: u8::try_from(settings.get_or("priority", 50u32)?)?,
        })
    }
}

impl OnInputMessages for Full {
    const ON_FAILURE: OnFailure = OnFailure::Reject;
    const PRIORITY: u8 = 80;

    fn on_input_messages(&mut self, _: Vec<Message>) -> Result<InputAnswer> {
        Ok(InputAnswer::Pass)
    }
}

impl OnPlainText for Full {
    const UNIT: TextUnit = TextUnit::Paragraph;

    fn on_plain_text(&mut self, _: &str, _: &TextPlace) -> Result<TextAnswer> {
        Ok(TextAnswer::Pass)
    }
}

impl OnTag for Full {
    const ON_FAILURE: OnFailure = OnFailure::Withhold;
    const TAGS: &'static [&'static str] = &["unused"];

    fn tags(&self) -> Vec<String> {
        self.tags.clone()
    }

    fn priority(&self) -> u8 {
        self.priority
    }

    fn on_tag(&mut self, _: &Tag, _: &TagPlace) -> Result<TagAnswer> {
        Ok(TagAnswer::Keep)
    }
}

impl OnLlmOutput for Full {
    const MODE: OutputMode = OutputMode::Rewrite;

    fn on_llm_output(&mut self, _: &LlmOutput) -> Result<OutputAnswer> {
        Ok(OutputAnswer::pass())
    }
}

impl TtsrTriggered for Full {
    fn ttsr_triggered(&mut self, _: &TtsrEvent) -> Result<()> {
        Ok(())
    }
}

tidegate_sdk::export!(Full: OnInputMessages, OnPlainText, OnTag, OnLlmOutput, TtsrTriggered);

fn given(key: &str, value: impl Into<Setting>) -> Settings {
    Settings::given([(key.to_owned(), value.into())])
}

#[test]
fn what_is_registered_is_what_was_named_with_consts_and_settings() {
    let registered = registration::<Full>(&Settings::given([
        ("tags".to_owned(), Setting::from(["note", "note-*"])),
        ("priority".to_owned(), Setting::Number(7.0)),
    ]));
    let entry = |callback, priority, on_failure| Registered { callback, priority, on_failure };
    let unsaid = OnFailure::Unspecified;
    let expected = [
        entry(Callback::InputMessages, 80, OnFailure::Reject),
        entry(Callback::PlainText(TextUnit::Paragraph), 50, unsaid),
        entry(Callback::Tag(vec!["note".into(), "note-*".into()]), 7, OnFailure::Withhold),
        entry(Callback::LlmOutput(OutputMode::Rewrite), 50, unsaid),
        entry(Callback::TtsrTriggered, 50, unsaid),
    ];
    assert_eq!(registered.unwrap(), expected);
}

#[test]
fn a_setting_of_another_kind_says_which_and_what_it_should_be() {
    let message = |settings: Settings| registration::<Full>(&settings).unwrap_err().message().to_owned();
    assert_eq!(message(given("tags", "note")), "setting `tags` must be a list of texts, and is a text");
    assert_eq!(message(given("priority", true)), "setting `priority` must be a number, and is a boolean");
    let fraction = message(given("priority", 1.5));
    assert_eq!(fraction, "setting `priority` must be a whole number from 0 to 4294967295, and is 1.5");
    for number in [-1.0, f64::NAN, f64::INFINITY, 4_294_967_296.0] {
        assert!(message(given("priority", number)).contains("whole number"), "{number}");
    }
}

#[test]
fn a_call_that_fails_leaves_no_trace_in_state() {
    let mut harness = Harness::<Empty>::new();
    harness.call(|_| Ok(state::set("a", &1)?)).unwrap();
    let failed = harness.call(|_| -> Result<()> {
        state::set("a", &2)?;
        state::set("b", &3)?;
        assert_eq!(state::get::<u32>("a")?, Some(2), "a call sees its own writes");
        bail!("no")
    });
    assert_eq!(failed.unwrap_err().message(), "no");
    assert_eq!(harness.state::<u32>("a"), Some(1));
    assert_eq!(harness.state_bytes().len(), 1);
}

#[test]
fn two_harnesses_never_see_each_other_nor_the_thread() {
    let (mut one, mut two) = (Harness::<Empty>::new(), Harness::<Empty>::new());
    one.call(|_| Ok(state::set("k", "one")?)).unwrap();
    state::set("k", "thread").unwrap();
    assert_eq!(two.call(|_| Ok(state::get::<String>("k")?)).unwrap(), None);
    assert_eq!(one.call(|_| Ok(state::get::<String>("k")?)).unwrap().as_deref(), Some("one"));
    assert_eq!(state::get::<String>("k").unwrap().as_deref(), Some("thread"));
}

#[test]
fn a_panic_gives_the_thread_its_host_back() {
    let mut harness = Harness::<Empty>::new();
    state::set("k", "thread").unwrap();
    let caught =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| harness.call(|_| -> Result<()> { panic!("x") })));
    assert!(caught.is_err());
    assert_eq!(state::get::<String>("k").unwrap().as_deref(), Some("thread"));
}

#[test]
fn state_refuses_in_words() {
    assert!(matches!(state::set("", &1), Err(StateError::BadKey(_))));
    assert!(matches!(state::get::<u32>(&"k".repeat(513)), Err(StateError::BadKey(_))));
    assert!(matches!(state::set_bytes("big", &vec![0; (1 << 20) + 1]), Err(StateError::Limit(_))));
    for part in 0..10 {
        state::set_bytes(&format!("part-{part}"), &vec![0; 1 << 20]).unwrap();
    }
    assert!(matches!(state::set_bytes("one-more", &[0]), Err(StateError::Limit(_))));
    state::set_bytes("part-0", &[0]).unwrap();
    assert_eq!(state::clear(), Ok(10));

    state::set("text", "words").unwrap();
    let error = state::get::<u64>("text").unwrap_err();
    assert!(error.to_string().starts_with("state `text` is not a `u64`: invalid type: string"), "{error}");
    assert_eq!(state::get::<String>("text").unwrap().as_deref(), Some("words"), "it is still there");
}

#[test]
fn a_value_lives_until_it_has_not_been_read_for_its_time() {
    let mut harness = Harness::<Empty>::new();
    harness.call(|_| Ok(state::set_with_ttl("k", &1, Duration::from_secs(1))?)).unwrap();
    harness.advance(Duration::from_millis(800));
    assert_eq!(harness.call(|_| Ok(state::get::<u32>("k")?)).unwrap(), Some(1));
    harness.advance(Duration::from_millis(999));
    assert_eq!(harness.state::<u32>("k"), Some(1), "looking from outside is no read");
    harness.advance(Duration::from_millis(1));
    assert_eq!(harness.call(|_| Ok(state::keys("")?)).unwrap(), Vec::<String>::new());
}

#[test]
fn session_history_and_tools_are_what_the_test_says() {
    let mut harness = Harness::<Empty>::new().with_tool(ToolInfo::new("grep", "searches", "{}"));
    harness.session().model = "small".into();
    harness.history().extend((0..300).map(|n| Message::user(n.to_string())));
    let seen = harness.call(|_| Ok((session::info().model, session::history(10, 1000), tools::list()))).unwrap();
    assert_eq!(seen.0, "small");
    assert_eq!((seen.1.len(), seen.1[0].text().as_str()), (256, "10"));
    assert_eq!(seen.2[0].name, "grep");
}

#[test]
fn errors_tell_their_causes_once() {
    #[derive(Debug)]
    struct Outer(std::num::ParseIntError);
    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the count is no number")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let parse = |text: &str| -> Result<u8> { Ok(text.parse::<u8>().map_err(Outer)?) };
    let error = parse("x").unwrap_err().while_doing("reading the notes");
    assert_eq!(error.message(), "reading the notes: the count is no number: invalid digit found in string");
}
