//! The harness does what the host does: transactions, instances that come and go, limits and time to live of state.

#![allow(clippy::unwrap_used, reason = "a call that has to succeed and does not is a failed test")]

use std::time::Duration;

use tidegate_sdk::prelude::*;
use tidegate_sdk::testing::Harness;
use tidegate_sdk::{Callback, Keep, Setting, StateError, ToolInfo, registration};

/// Runs what a test gives it.
#[derive(Default)]
struct Empty;

impl TtsrTriggered for Empty {
    fn ttsr_triggered(&mut self, _: &TtsrEvent) -> Result<()> {
        Ok(())
    }
}

tidegate_sdk::export!(Empty: TtsrTriggered);

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
    fn input_options(&self) -> InputOptions {
        InputOptions::default().priority(80).on_failure(OnFailure::Reject)
    }

    fn on_input_messages(&mut self, _: Vec<Message>) -> Result<InputAnswer> {
        Ok(InputAnswer::Pass)
    }
}

impl OnPlainText for Full {
    fn text_options(&self) -> TextOptions {
        TextOptions::new(TextUnit::Paragraph).streams([TextStream::Answer, TextStream::Thinking])
    }

    fn on_plain_text(&mut self, _: &str, _: &TextPlace) -> Result<TextAnswer> {
        Ok(TextAnswer::Pass)
    }
}

impl OnTag for Full {
    fn tag_options(&self) -> TagOptions {
        TagOptions::new(self.tags.clone()).priority(self.priority).on_failure(OnFailure::Withhold)
    }

    fn on_tag(&mut self, _: &Tag, _: &TagPlace) -> Result<TagAnswer> {
        Ok(TagAnswer::Keep)
    }
}

impl OnLlmOutput for Full {
    fn output_options(&self) -> OutputOptions {
        OutputOptions::new(OutputMode::Rewrite)
    }

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
fn what_is_registered_is_what_was_named_with_its_options() {
    let registered = registration::<Full>(&Settings::given([
        ("tags".to_owned(), Setting::from(["note", "note-*"])),
        ("priority".to_owned(), Setting::Number(7.0)),
    ]));
    let text = TextOptions::new(TextUnit::Paragraph).streams([TextStream::Answer, TextStream::Thinking]);
    let expected = [
        Callback::InputMessages(InputOptions::default().priority(80).on_failure(OnFailure::Reject)),
        Callback::PlainText(text),
        Callback::Tag(TagOptions::new(["note", "note-*"]).priority(7).on_failure(OnFailure::Withhold)),
        Callback::LlmOutput(OutputOptions::new(OutputMode::Rewrite)),
        Callback::TtsrTriggered(TtsrOptions::default()),
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
        // Keys count too.
        state::set_bytes(&format!("part-{part}"), &vec![0; (1 << 20) - 6]).unwrap();
    }
    assert!(state::get_bytes("part-0").unwrap().is_some());
    state::set_bytes("one-more", &[0]).unwrap();
    assert!(state::get_bytes("part-1").unwrap().is_none(), "the least recently used value is evicted");
    assert_eq!(state::clear(), Ok(10));

    state::set("text", "words").unwrap();
    let error = state::get::<u64>("text").unwrap_err();
    assert!(error.to_string().starts_with("state `text` is not a `u64`: invalid type: string"), "{error}");
    assert_eq!(state::get::<String>("text").unwrap().as_deref(), Some("words"), "it is still there");
}

#[test]
fn a_value_lives_until_it_has_not_been_read_for_its_time() {
    let mut harness = Harness::<Empty>::new();
    harness.call(|_| Ok(state::set_with("k", &1, Keep::For(Duration::from_secs(1)))?)).unwrap();
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
    let seen = harness.call(|_| Ok((session::info().model, history::messages(10, 1000), tools::list()))).unwrap();
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

/// Has `Default` and an own constructor.
#[derive(Default)]
struct Both {
    from_settings: bool,
}

impl Extension for Both {
    fn new(_: &Settings) -> Result<Self> {
        Ok(Self { from_settings: true })
    }
}

impl TtsrTriggered for Both {
    fn ttsr_triggered(&mut self, _: &TtsrEvent) -> Result<()> {
        Ok(())
    }
}

tidegate_sdk::export!(Both: TtsrTriggered);

#[test]
fn a_type_with_default_can_have_a_constructor_of_its_own() {
    assert!(Harness::<Both>::new().call(|both| Ok(both.from_settings)).unwrap());
}

#[test]
fn settings_are_read_into_a_type_and_errors_name_the_setting() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Fast,
        Slow,
    }
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Options {
        mode: Mode,
        max: u8,
        share: f32,
        names: Option<Vec<String>>,
        #[serde(default)]
        table: std::collections::BTreeMap<String, i64>,
    }
    let given = |change: &[(&str, Setting)]| {
        let mut all: Vec<(String, Setting)> = vec![
            ("mode".into(), "slow".into()),
            ("max".into(), 7.0.into()),
            ("share".into(), 0.5.into()),
            ("unused".into(), true.into()),
        ];
        all.retain(|(key, _)| change.iter().all(|(changed, _)| key != changed));
        all.extend(change.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        Settings::given(all).read::<Options>().map_err(|error| error.to_string())
    };
    let options = |names, table| Options { mode: Mode::Slow, max: 7, share: 0.5, names, table };
    assert_eq!(given(&[]), Ok(options(None, Default::default())));
    let table = ("table", Setting::Json("{\"a\": 1}".into()));
    let full = given(&[("names", ["x"].into()), table]);
    assert_eq!(full, Ok(options(Some(vec!["x".into()]), [("a".into(), 1)].into())));
    for (key, value, expected) in [
        ("max", 256.0.into(), "setting `max` is not valid: invalid value: integer `256`, expected u8"),
        ("max", 1.5.into(), "setting `max` is not valid: invalid type: floating point `1.5`, expected u8"),
        ("max", "x".into(), "setting `max` is not valid: invalid type: string \"x\", expected u8"),
        ("mode", "soon".into(), "setting `mode` is not valid: unknown variant `soon`, expected `fast` or `slow`"),
        ("names", true.into(), "setting `names` is not valid: invalid type: boolean `true`, expected a sequence"),
    ] {
        assert_eq!(given(&[(key, value)]).unwrap_err(), expected);
    }
    let none = Settings::given([]).read::<Options>().unwrap_err();
    assert_eq!(none.to_string(), "settings: missing field `mode`");
}

#[test]
fn update_changes_a_value_or_nothing() {
    let mut harness = Harness::<Empty>::new();
    let add = |old: Option<u32>| old.unwrap_or(10) + 1;
    assert_eq!(harness.call(|_| Ok((state::update("n", add)?, state::update("n", add)?))).unwrap(), (11, 12));
    harness.call(|_| Ok(state::set("n", "words")?)).unwrap();
    let refused = harness.call(|_| Ok(state::update("n", add)?)).unwrap_err();
    assert!(refused.message().starts_with("state `n` is not a `u32`"), "{refused}");
    assert_eq!(harness.state::<String>("n").as_deref(), Some("words"));
}

#[test]
fn the_clock_follows_the_test_and_random_numbers_repeat() {
    let draw = |harness: &mut Harness<Empty>| harness.call(|_| Ok((clock::now_ms(), random::number()))).unwrap();
    let mut harness = Harness::new();
    let first = draw(&mut harness);
    harness.advance(Duration::from_secs(5));
    let second = draw(&mut harness);
    assert_eq!(second.0 - first.0, 5000);
    assert_ne!(second.1, first.1);
    assert_eq!(draw(&mut Harness::new()), first);
}
