//! The guest's own words, run natively: what the host's tests rely on.

use tidegate_sdk::testing::Harness;
use tidegate_sdk::{RuleAction, RuleMatch, RuleStream};

use super::*;

fn input(script: &str) -> Result<InputAnswer> {
    Harness::<Conformance>::new().input_messages(vec![Message::user("first"), Message::user(script)])
}

#[test]
fn every_answer_of_every_callback_can_be_had() {
    let user = |text: &str| vec![Message::user(text)];
    assert_eq!(input("no script").unwrap(), InputAnswer::Pass);
    assert_eq!(input("!replace a b").unwrap(), InputAnswer::Replace(user("a b")));
    assert_eq!(input("!append +").unwrap(), InputAnswer::Replace(user("!append ++")));
    assert_eq!(input("!drop").unwrap(), InputAnswer::Replace(Vec::new()));
    assert_eq!(input("!echo").unwrap(), InputAnswer::Replace(vec![Message::user("first"), Message::user("!echo")]));
    assert_eq!(input("!finish a").unwrap(), InputAnswer::Finish(Some(user("a"))));
    assert_eq!(input("!finish").unwrap(), InputAnswer::Finish(None));
    assert_eq!(input("!reply a").unwrap(), InputAnswer::Reply("a".into()));
    assert_eq!(input("!reject a").unwrap(), InputAnswer::Reject("a".into()));

    let mut guest = Harness::<Conformance>::new();
    assert_eq!(guest.plain_text("plain\n").unwrap(), TextAnswer::Pass);
    assert_eq!(guest.plain_text("!replace a\n").unwrap(), TextAnswer::replace("a"));
    assert_eq!(guest.plain_text("!size 3").unwrap(), TextAnswer::replace("x".repeat(3072)));
    assert_eq!(guest.tag(&Tag::new("do", "plain")).unwrap(), TagAnswer::Keep);
    assert_eq!(guest.tag(&Tag::new("do", "!content a")).unwrap(), TagAnswer::content("a"));
    assert_eq!(guest.tag(&Tag::new("do", "!drop")).unwrap(), TagAnswer::replace(""));
    let answer = guest.llm_output(&LlmOutput::new("!annotate k {\"a\":1}\n!annotate bad {\n!replace a")).unwrap();
    assert_eq!(answer.replace.as_deref(), Some("a"));
    assert_eq!(answer.annotations, [("k".into(), "{\"a\":1}".into()), ("bad".into(), "{".into())]);
}

#[test]
fn every_answer_of_a_tool_can_be_had() {
    let mut guest = Harness::<Conformance>::new();
    let mut run = |script: &str| guest.call_tool("run", format_args!("{{\"script\": {script:?}}}")).unwrap();
    let ran = run("!progress one\n!state-must-set k v\n!replace done");
    assert_eq!((ran.answer, ran.progress), (ToolAnswer::text("done"), vec!["one".to_owned()]));
    assert_eq!(run("!state-must-set k w\n!reject why").answer, ToolAnswer::rejected("why"));
    assert_eq!(run("!state-get k").answer, ToolAnswer::text("Some(\"v\")"));
    assert!(matches!(guest.call_tool("run", "[]").unwrap().answer, ToolAnswer::Rejected(_)));
    let mut listing = Harness::<Conformance>::new().with_setting("tools", ["get|Reads.|{\"type\": \"object\"}"]);
    assert!(listing.tools()[0].read_only);
}

#[test]
fn a_mark_is_appended_where_no_script_answers_and_the_callback_runs_scripts() {
    let guest = || Harness::<Conformance>::new().with_setting("mark", "+");
    let marked = guest().input_messages(vec![Message::user("!state-must-set k v\na")]).unwrap();
    assert_eq!(marked, InputAnswer::Replace(vec![Message::user("!state-must-set k v\na+")]));
    assert_eq!(guest().plain_text("a").unwrap(), TextAnswer::replace("a+"));
    assert_eq!(guest().plain_text("!pass").unwrap(), TextAnswer::replace("!pass+"));
    assert_eq!(guest().plain_text("!drop").unwrap(), TextAnswer::replace(""));
    assert_eq!(guest().tag(&Tag::new("do", "a")).unwrap(), TagAnswer::content("a+"));
    assert_eq!(guest().llm_output(&LlmOutput::new("a")).unwrap().replace.as_deref(), Some("a+"));
    let mut other = guest().with_setting("only", ["on_tag"]);
    assert_eq!(other.plain_text("a").unwrap(), TextAnswer::Pass);
}

#[test]
fn failures_name_themselves() {
    assert_eq!(input("!error went wrong").unwrap_err().message(), "went wrong");
    assert!(input("!content x").unwrap_err().message().contains("no answer to on_input_messages"));
    assert!(input("!typo").unwrap_err().message().contains("`typo`"));
    let mut guest = Harness::<Conformance>::new().with_setting("start", "!error not today");
    assert_eq!(guest.plain_text("x").unwrap_err().message(), "not today");
}

#[test]
fn powers_say_what_they_gave() {
    let mut guest = Harness::<Conformance>::new();
    assert_eq!(guest.plain_text("!state-set k v\n!state-get k\n").unwrap(), TextAnswer::replace("()\nSome(\"v\")"));
    assert_eq!(guest.plain_text("!count").unwrap(), TextAnswer::replace("2"));
    guest.restart();
    assert_eq!(guest.plain_text("!count\n!state-keys").unwrap(), TextAnswer::replace("1\n[\"k\"]"));
    guest.plain_text("!state-must-set k2 v\n!error undone").unwrap_err();
    assert_eq!(guest.plain_text("!state-keys").unwrap(), TextAnswer::replace("[\"k\"]"));
    let TextAnswer::Replace(said) = guest.plain_text("!state-get-number k").unwrap() else { panic!("said nothing") };
    assert!(said.starts_with("refused: state `k` is not a `u64`"), "{said}");
}

#[test]
fn a_rule_that_fired_runs_its_matched_text() {
    let mut guest = Harness::<Conformance>::new();
    let found = RuleMatch::new("r", RuleStream::Text, "!log hello\n!subject");
    guest.ttsr_triggered(&TtsrEvent::new(vec![found], RuleAction::Interrupt)).unwrap();
    let log = guest.log();
    assert_eq!(log[0].message, "hello");
    assert!(log[1].message.contains("Interrupt"), "{log:?}");
}
