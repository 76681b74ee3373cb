//! Whole answers: the harness shows what the host shows (the corpus of `tests/corpus/segments`), and notices an extension whose
//! results depend on the chunking or on a discarded attempt.

#![allow(clippy::unwrap_used, reason = "a call that has to succeed and does not is a failed test")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Deserialize;
use tidegate_sdk::prelude::*;
use tidegate_sdk::testing::{Answer, Harness, LogLine, Shown};
use tidegate_sdk::{Exported, ToolCall};

use crate::scripted::{ScriptedTag, ScriptedText};

#[derive(Deserialize)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    plugins: Vec<String>,
    text: String,
    shown: String,
    calls: Option<Vec<String>>,
    #[serde(default)]
    withheld: Vec<String>,
}

fn run<E: Exported>(case: &Case, options: crate::scripted::Line<'_>) {
    let crate::scripted::Line { id, closed, on, how, template } = options;
    let mut harness = Harness::<E>::of_plugin(&format!("id = \"{id}\"\n{}", crate::scripted::MANIFEST))
        .with_setting("id", id)
        .with_setting("closed", closed)
        .with_setting("on", on)
        .with_setting("how", how)
        .with_setting("template", template);
    let shown = harness.answer(case.text.as_str());
    assert_eq!(shown.text, case.shown, "{}", case.name);
    let withheld = shown.failures.iter().filter_map(|line| line.strip_prefix("withheld "));
    let bytes: Vec<String> = withheld.map(|line| line.split_once(" bytes").unwrap().0.to_owned()).collect();
    let expected = case.withheld.iter().map(|line| line.split([' ', ':']).nth(2).unwrap().to_owned());
    assert_eq!(bytes, expected.collect::<Vec<_>>(), "{}", case.name);
    if let Some(calls) = &case.calls {
        let found: Vec<&str> = harness.log().iter().map(|line| line.message.as_str()).collect();
        assert_eq!(found, *calls, "{}", case.name);
    }
}

#[test]
fn one_extension_of_the_hosts_corpus_shows_the_same_here() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/segments/cases.toml");
    let file: File = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut cases = 0;
    for case in &file.case {
        let [line] = case.plugins.as_slice() else { continue };
        cases += 1;
        match crate::scripted::parse(line) {
            (true, line) => run::<ScriptedTag>(case, line),
            (false, line) => run::<ScriptedText>(case, line),
        }
    }
    assert!(cases >= 15, "only {cases} cases have one extension");
}

/// Every kind of callback, with writes to state in each.
struct Full {
    mode: OutputMode,
}

impl Extension for Full {
    fn new(settings: &Settings) -> Result<Self> {
        let rewrites = settings.get_or("rewrites", false)?;
        Ok(Self { mode: if rewrites { OutputMode::Rewrite } else { OutputMode::Observe } })
    }
}

fn count(what: &str) -> Result<u32> {
    Ok(state::update(what, |count: Option<u32>| count.unwrap_or(0) + 1)?)
}

impl OnPlainText for Full {
    fn text_options(&self) -> TextOptions {
        TextOptions::new(TextUnit::Line).streams([TextStream::Answer, TextStream::Thinking])
    }

    fn on_plain_text(&mut self, text: &str, place: &TextPlace) -> Result<TextAnswer> {
        count("units")?;
        if text.contains("break") {
            bail!("it breaks");
        }
        Ok(TextAnswer::replace(format!("[{}.{} {text}]", place.at.attempt, place.unit)))
    }
}

impl OnTag for Full {
    fn tag_options(&self) -> TagOptions {
        TagOptions::new(["note"]).on_failure(OnFailure::Withhold)
    }

    fn on_tag(&mut self, tag: &Tag, _: &TagPlace) -> Result<TagAnswer> {
        count("tags")?;
        if tag.content.contains("withhold") {
            bail!("it does not like that");
        }
        Ok(TagAnswer::content(tag.content.to_uppercase()))
    }
}

impl OnLlmOutput for Full {
    fn output_options(&self) -> OutputOptions {
        OutputOptions::new(self.mode)
    }

    fn on_llm_output(&mut self, output: &LlmOutput) -> Result<OutputAnswer> {
        count("outputs")?;
        let answer = match self.mode {
            OutputMode::Rewrite => OutputAnswer::replace(output.text.replace("old", "new")),
            _ => OutputAnswer::pass(),
        };
        answer.annotate("calls", output.tool_calls.len())
    }
}

tidegate_sdk::export!(Full: OnPlainText, OnTag, OnLlmOutput);

#[test]
fn an_answer_goes_through_all_callbacks_as_in_a_turn() {
    let mut harness = Harness::<Full>::new();
    let answer = Answer::new().thinking("why").thinking("so").text("a\n<no").text("te>b</note>c");
    let shown = harness.answer(answer.tool_call(ToolCall::new("1", "read_file", "{}")));
    assert_eq!(shown.text, "[1.0 a\n]<note>[1.1 B]</note>[1.2 c]");
    assert_eq!(shown.thinking, "[1.0 why][1.1 so]");
    assert_eq!(shown.output.annotations, [("calls".to_owned(), "1".to_owned())]);
    let calls = [
        "on_plain_text thinking 0: \"why\"",
        "on_plain_text thinking 1: \"so\"",
        "on_plain_text answer 0: \"a\\n\"",
        "on_plain_text answer 1: \"b\"",
        "on_tag <note>: \"[1.1 b]\"",
        "on_plain_text answer 2: \"c\"",
        "on_llm_output: \"a\\n<note>b</note>c\"",
    ];
    assert_eq!(shown.calls, calls);
    assert_eq!(harness.session().at.step, 2, "the next answer is the next step");
}

#[test]
fn a_rewriter_gets_the_answer_before_it_is_split() {
    let mut harness = Harness::<Full>::new().with_setting("rewrites", true);
    let shown = harness.answer("old <note>old</note>");
    assert_eq!(shown.text, "[1.0 new ]<note>[1.1 NEW]</note>");
    assert_eq!(shown.calls[0], "on_llm_output: \"old <note>old</note>\"");
}

#[test]
fn failures_skip_or_withhold_and_undo_their_writes() {
    let mut harness = Harness::<Full>::of_plugin("id = \"full\"\ncapabilities.state = \"counts\"");
    let shown = harness.answer("a\nbreak\n<note>withhold</note>");
    assert_eq!(shown.text, "[1.0 a\n]break\n[withheld: full did not check this]");
    assert_eq!(shown.failures[0], "on_plain_text failed: it breaks");
    assert_eq!(shown.failures[1], "on_tag failed: it does not like that");
    assert_eq!(shown.failures[2], "withheld 27 bytes: on_tag did not check it");
    assert_eq!((harness.state::<u32>("units"), harness.state::<u32>("tags")), (Some(2), None));

    let mut closed = Harness::<Full>::of_plugin(
        "id = \"full\"\non_failure = \"withhold\"\ncapabilities.state = \"\"\nlimits.output_kib = 1",
    );
    assert_eq!(closed.answer("break").text, "[withheld: full did not check this]");
    let large = closed.answer("x".repeat(1020));
    assert_eq!(large.failures[0], "on_plain_text failed: its answer has 1026 bytes, an answer may have 1024");
}

#[test]
fn the_writes_of_a_discarded_attempt_are_undone_and_it_is_never_finished() {
    let mut harness = Harness::<Full>::new();
    let answer = Answer::from("x\ny").after_discarding(Answer::new().thinking("t").text("x\n<note>open"));
    let shown = harness.answer(answer);
    assert_eq!(shown.discarded, ["[1.0 x\n]"]);
    assert_eq!(shown.text, "[2.0 x\n][2.1 y]", "the second attempt");
    assert_eq!(harness.state::<u32>("units"), Some(2), "those of the first attempt are undone");
    assert_eq!(harness.state::<u32>("outputs"), Some(1));
}

/// Returns what a failing assertion prints.
fn failure(run: impl FnOnce() -> Shown) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    panic.downcast_ref::<String>().unwrap().clone()
}

/// What an author must not do: it counts, in memory that a new attempt does not reset.
#[derive(Default)]
struct Numbers {
    lines: u32,
}

impl OnPlainText for Numbers {
    fn on_plain_text(&mut self, text: &str, _: &TextPlace) -> Result<TextAnswer> {
        self.lines += 1;
        Ok(TextAnswer::replace(format!("{} {text}", self.lines)))
    }
}

tidegate_sdk::export!(Numbers: OnPlainText);

#[test]
fn an_answer_that_depends_on_a_discarded_attempt_is_a_failure() {
    assert_eq!(Harness::<Numbers>::new().answer("a\nb\n").text, "1 a\n2 b\n");
    let message = failure(|| Harness::<Numbers>::new().retried("a\nb\n"));
    let expected = "the text depends on a discarded attempt\n  without one: \"1 a\\n2 b\\n\"\n  after one stopped at byte 2, \
                    \"a\\n\" | \"b\\n\": \"2 a\\n3 b\\n\"";
    assert_eq!(message, expected);
}

/// What depends on the chunking: with the contract's callbacks only what the author's own clock or counter adds, so here the
/// number of times that any instance in this thread was called.
#[derive(Default)]
struct Leaky;

thread_local! {
    static CALLS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

impl OnPlainText for Leaky {
    fn on_plain_text(&mut self, _: &str, _: &TextPlace) -> Result<TextAnswer> {
        CALLS.set(CALLS.get() + 1);
        log::info(format_args!("call {}", CALLS.get()));
        Ok(TextAnswer::Pass)
    }
}

tidegate_sdk::export!(Leaky: OnPlainText);

#[test]
fn effects_that_differ_between_chunkings_are_a_failure_with_both() {
    let message = failure(|| Harness::<Leaky>::new().answer("ab"));
    let expected = "what callbacks do depends on how the answer is cut\n  in one chunk: \n  state:\n  log:\n    Info: call 1 []\n  \
                    cut at byte 1, \"a\" | \"b\": \n  state:\n  log:\n    Info: call 2 []";
    assert_eq!(message, expected);
}

#[test]
fn the_manifest_is_enforced() {
    let counts = "capabilities.state = \"counts\"";
    let without = failure(|| Harness::<Full>::of_plugin("id = \"full\"").answer("a"));
    assert!(without.contains("plugin.toml does not request the power `state`"), "{without}");
    let missing = failure(|| {
        let manifest = format!("id = \"full\"\n{counts}\n[settings.rewrites]\ntype = \"boolean\"\ndescription = \"x\"");
        Harness::<Full>::of_plugin(&manifest).answer("a")
    });
    assert_eq!(missing, "plugin.toml declares no default for setting `rewrites`: give it with `with_setting`");
    let unknown = failure(|| Harness::<Full>::of_plugin("id = \"full\"").with_setting("x", 1.0).answer("a"));
    assert_eq!(unknown, "plugin.toml declares no setting `x`; it declares: ");
    let id = failure(|| Harness::<Full>::of_plugin("id = \"a b\"").answer("a"));
    assert!(id.contains("is not 1 to 64 letters"), "{id}");
    let lines: &[LogLine] = &[];
    assert_eq!(Harness::<Full>::of_plugin("id = \"full\"").log(), lines);
}

/// Takes a word out, and notes what it gets as an observer of the output.
struct Hides(KeptText);

impl Extension for Hides {
    fn new(settings: &Settings) -> Result<Self> {
        let keeps = settings.get_or("keeps", false)?;
        Ok(Self(if keeps { KeptText::Shown } else { KeptText::Unspecified }))
    }
}

impl OnPlainText for Hides {
    fn text_options(&self) -> TextOptions {
        TextOptions::default().keep(self.0)
    }

    fn on_plain_text(&mut self, text: &str, _: &TextPlace) -> Result<TextAnswer> {
        Ok(TextAnswer::replace(text.replace("secret", "[…]")))
    }
}

impl OnLlmOutput for Hides {
    fn on_llm_output(&mut self, output: &LlmOutput) -> Result<OutputAnswer> {
        OutputAnswer::pass().annotate("got", &output.text)
    }
}

tidegate_sdk::export!(Hides: OnPlainText, OnLlmOutput);

#[test]
fn an_observer_gets_what_was_shown_where_that_is_kept() {
    const MANIFEST: &str =
        "id = \"shown\"\nsettings.keeps = { type = \"boolean\", default = false, description = \"keeps\" }\n";
    let got = |manifest: &str, keeps: bool| {
        let mut harness = Harness::<Hides>::of_plugin(manifest).with_setting("keeps", keeps);
        let shown = harness.answer("a secret\n");
        assert_eq!(shown.text, "a […]\n");
        shown.output.annotations[0].1.clone()
    };
    assert_eq!(got(MANIFEST, false), "\"a secret\\n\"");
    assert_eq!(got(MANIFEST, true), "\"a […]\\n\"");
    assert_eq!(got(&format!("keep = \"shown\"\n{MANIFEST}"), false), "\"a […]\\n\"");
}
