//! Chains of extensions in a turn: their order, who ends them and who is skipped for it, what a failure costs, and that
//! the text of a turn is the same with a rewriter and without, at every chunking.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::{Arc, Mutex};

use flow::{
    Annotation, Callback, CallbackKind, ErrorClass, Event, EventKind, InputAnswer, Message, OutputAnswer, OutputMode,
    Role, TagAnswer, TagPattern, TextAnswer, TextUnit, TurnStatus,
};
use tidegate_kit::{CUTS, Plugin, Scene, Script, calls, reports, rule_set, shown, text};

type Log = Arc<Mutex<Vec<String>>>;

/// An extension of `on_input_messages` that answers with what `answer` makes of the words.
fn input(id: &'static str, priority: u8, answer: fn(String) -> Result<InputAnswer, String>) -> Plugin {
    Plugin {
        id,
        callbacks: vec![(Callback::InputMessages, priority)],
        input: Some(Box::new(move |messages| answer(messages[0].plain_text()))),
        ..Plugin::default()
    }
}

fn replace(words: &str) -> Result<InputAnswer, String> {
    Ok(InputAnswer::Replace(vec![Message::user(words)]))
}

fn failing(id: &'static str, priority: u8) -> Plugin {
    input(id, priority, |words| Err(format!("it does not like {words:?}")))
}

fn output(id: &'static str, priority: u8, mode: OutputMode, answer: fn(&str) -> OutputAnswer) -> Plugin {
    Plugin {
        id,
        callbacks: vec![(Callback::LlmOutput(mode), priority)],
        output: Some(Box::new(move |output| Ok(answer(&output.text)))),
        ..Plugin::default()
    }
}

fn rewrite(text: String) -> OutputAnswer {
    OutputAnswer { replace: Some(text), ..OutputAnswer::default() }
}

fn note(key: &str) -> OutputAnswer {
    let annotations = vec![Annotation { key: key.into(), value: serde_json::json!({"seen": true}) }];
    OutputAnswer { annotations, ..OutputAnswer::default() }
}

fn scene(scripts: impl IntoIterator<Item = Script>, plugins: Vec<Plugin>) -> Scene {
    Scene::new(scripts, plugins, rule_set(&[], |_| {}))
}

#[tokio::test]
async fn case_3_a_failing_extension_is_skipped_with_what_it_was_given() {
    let plugins = vec![
        input("last", 10, |words| replace(&format!("last({words})"))),
        failing("middle", 50),
        input("first", 90, |words| replace(&format!("first({words})"))),
    ];
    let mut scene = scene([text("ok", 1)], plugins);
    let (report, events) = scene.turn("x").await;
    assert_eq!((report.status, scene.model.request(0)[0].1.as_str()), (TurnStatus::Completed, "last(first(x))"));
    assert_eq!(
        reports(&events),
        [
            "first on_input_messages changed",
            "middle on_input_messages failed: it does not like \"first(x)\"",
            "last on_input_messages changed",
        ]
    );
}

#[tokio::test]
async fn equal_priorities_run_in_order_of_registration() {
    let plugins = vec![
        input("a", 50, |words| replace(&(words + "a"))),
        input("b", 50, |words| replace(&(words + "b"))),
        input("c", 100, |words| replace(&(words + "c"))),
        input("d", 0, |_| Ok(InputAnswer::Ignored("no such role".into()))),
    ];
    let mut scene = scene([text("ok", 1)], plugins);
    let (_, events) = scene.turn("-").await;
    assert_eq!(scene.model.request(0)[0].1, "-cab");
    assert_eq!(reports(&events)[3], "d on_input_messages ignored: no such role");
}

/// Which extension ends the chain, how the turn continues, and which extensions are skipped.
#[tokio::test]
async fn short_circuits() {
    type Case = (fn(String) -> Result<InputAnswer, String>, &'static str, usize, TurnStatus, &'static str);
    let rejected = TurnStatus::Rejected { by: "cut".parse().unwrap(), reason: "not here".into() };
    let cases: [Case; 3] = [
        (
            |words| Ok(InputAnswer::Finish(Some(vec![Message::user(words + "!")]))),
            "finished the input",
            1,
            TurnStatus::Completed,
            "answer",
        ),
        (|_| Ok(InputAnswer::Reply("by hand".into())), "answered the input", 0, TurnStatus::Completed, "by hand"),
        (|_| Ok(InputAnswer::Reject("not here".into())), "rejected the input", 0, rejected, ""),
    ];
    for (answer, what, asked, status, words) in cases {
        let plugins =
            vec![input("late", 10, |_| panic!("it is skipped")), input("cut", 20, answer), failing("early", 30)];
        let mut scene = scene([text("answer", 2)], plugins);
        let (report, events) = scene.turn("x").await;
        assert_eq!((report.status, scene.model.asked(), report.text.as_str()), (status, asked, words), "{what}");
        assert_eq!(shown(&events), words);
        let told = [
            "early on_input_messages failed: it does not like \"x\"".to_owned(),
            "cut on_input_messages changed".to_owned(),
            format!("late on_input_messages skipped: cut {what}"),
        ];
        assert_eq!(reports(&events), told);
        assert_eq!(scene.session.history().is_empty(), what == "rejected the input");
    }
}

/// Who fails closed checks the input also where another extension has ended the chain: what stays in the conversation is sent now or later.
#[tokio::test]
async fn who_fails_closed_is_asked_after_the_end_of_the_chain() {
    type Cut = fn(String) -> Result<InputAnswer, String>;
    let cuts: [(Cut, &str, usize); 2] = [
        (|words| Ok(InputAnswer::Finish(Some(vec![Message::user(words + "!")]))), "secret!", 1),
        (|_| Ok(InputAnswer::Reply("by hand".into())), "secret", 0),
    ];
    for (cut, given, asked) in cuts {
        let mask = |answer| Plugin { closed: true, ..input("mask", 5, answer) };
        let plugins = |guard| vec![guard, input("late", 10, |_| panic!("it is skipped")), input("cut", 20, cut)];
        let mut scene = scene([text("ok", 1)], plugins(mask(|words| replace(&words.replace("secret", "MASK")))));
        let (report, events) = scene.turn("secret").await;
        assert_eq!((report.status, scene.model.asked()), (TurnStatus::Completed, asked));
        assert_eq!(scene.session.history()[0].plain_text(), given.replace("secret", "MASK"));
        let told = reports(&events);
        assert_eq!(told[0], "cut on_input_messages changed");
        assert!(told[1].starts_with("late on_input_messages skipped: cut "), "{told:?}");
        assert_eq!(told[2], "mask on_input_messages changed");

        let mut scene = self::scene([text("ok", 1)], plugins(mask(|_| Err("it trapped".into()))));
        let (report, _) = scene.turn("secret").await;
        assert!(matches!(&report.status, TurnStatus::Rejected { by, .. } if by.as_str() == "mask"), "{report:?}");
        assert_eq!((scene.model.asked(), scene.session.history().is_empty()), (0, true));
    }
}

#[tokio::test]
async fn a_reply_goes_through_output_and_segments_and_is_the_extensions() {
    let plugins = vec![
        input("helper", 50, |_| Ok(InputAnswer::Reply("a <b>bold</b> word".into()))),
        output("rewriter", 50, OutputMode::Rewrite, |text| rewrite(text.replace("word", "claim"))),
        Plugin {
            id: "tags",
            callbacks: vec![(Callback::Tag(vec![TagPattern::Exact("b".into())]), 50)],
            tag: Some(Box::new(|(tag, _)| Ok(TagAnswer::Replace(tag.content.to_uppercase())))),
            ..Plugin::default()
        },
    ];
    let mut scene = scene([], plugins);
    let (report, _) = scene.turn("x").await;
    assert_eq!(report.text, "a BOLD claim");
    let last = scene.session.history().pop().unwrap();
    assert_eq!((last.role, last.origin.clone()), (Role::Assistant, flow::Origin::Plugin("helper".parse().unwrap())));
}

#[tokio::test]
async fn an_empty_reply_leaves_no_empty_message() {
    let mut scene = scene([], vec![input("quiet", 50, |_| Ok(InputAnswer::Reply(String::new())))]);
    let (report, _) = scene.turn("x").await;
    assert_eq!((report.status, scene.session.history().len()), (TurnStatus::Completed, 1));
}

/// A required extension that fails, or that cannot be called, refuses the turn; in each callback.
#[tokio::test]
async fn a_required_extension_refuses_the_turn() {
    let fail = |_: &str| "broken".to_owned();
    let callbacks = [
        Callback::InputMessages,
        Callback::PlainText(TextUnit::Line.into()),
        Callback::Tag(vec![TagPattern::Exact("t".into())]),
        Callback::LlmOutput(OutputMode::Observe),
        Callback::LlmOutput(OutputMode::Rewrite),
    ];
    for callback in callbacks {
        for skipped in [None, Some("its breaker is open")] {
            let plugin = Plugin {
                id: "guard",
                callbacks: vec![(callback.clone(), 50)],
                required: true,
                skipped,
                input: Some(Box::new(move |_| Err(fail("")))),
                text: Some(Box::new(move |_| Err(fail("")))),
                tag: Some(Box::new(move |_| Err(fail("")))),
                output: Some(Box::new(move |_| Err(fail("")))),
                ..Plugin::default()
            };
            let mut scene = scene([text("one\n<t>x</t>", 3), text("never", 3)], vec![plugin]);
            let (report, _) = scene.turn("x").await;
            let TurnStatus::Failed { class: ErrorClass::Permanent, message } = report.status else {
                panic!("{callback:?}")
            };
            let why = skipped.unwrap_or("broken");
            assert!(
                message.contains("guard") && message.contains(why) && message.contains(callback.kind().as_str()),
                "{message}"
            );
            assert!(scene.model.asked() <= 1);
        }
    }
}

#[tokio::test]
async fn without_required_the_same_failures_cost_nothing() {
    let plugin = Plugin {
        id: "weak",
        callbacks: vec![
            (Callback::InputMessages, 50),
            (Callback::PlainText(TextUnit::Line.into()), 50),
            (Callback::Tag(vec![TagPattern::Exact("t".into())]), 50),
            (Callback::LlmOutput(OutputMode::Rewrite), 50),
        ],
        input: Some(Box::new(|_| Err("no".into()))),
        text: Some(Box::new(|_| Err("no".into()))),
        tag: Some(Box::new(|_| Err("no".into()))),
        output: Some(Box::new(|_| Err("no".into()))),
        ..Plugin::default()
    };
    let mut scene = scene([text("one\n<t>x</t>", 3)], vec![plugin]);
    let (report, events) = scene.turn("x").await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "one\n<t>x</t>"));
    assert!(reports(&events).iter().all(|report| report.ends_with("failed: no")) && reports(&events).len() >= 4);
}

/// Whether each chunk that was shown ends its answer.
fn deltas(events: &[Event]) -> Vec<bool> {
    let is_final = |event: &Event| {
        if let EventKind::CognitionOutDelta { is_final, .. } = event.kind { Some(is_final) } else { None }
    };
    events.iter().filter_map(is_final).collect()
}

#[tokio::test]
async fn a_rewriter_holds_the_answer_and_an_observer_does_not() {
    // The end of an answer that streams is known after its last chunk: an empty one says so.
    let streamed = [vec![false; 12], vec![true]].concat();
    for (mode, pieces) in [(OutputMode::Rewrite, vec![true]), (OutputMode::Observe, streamed)] {
        let seen = Log::default();
        let log = Arc::clone(&seen);
        let plugin = Plugin {
            id: "p",
            callbacks: vec![(Callback::LlmOutput(mode), 50)],
            output: Some(Box::new(move |output| {
                log.lock().unwrap().push(output.text);
                Ok(OutputAnswer::default())
            })),
            ..Plugin::default()
        };
        let mut scene = scene([text("twelve chars", 1)], vec![plugin]);
        let (_, events) = scene.turn("x").await;
        assert_eq!((deltas(&events), shown(&events).as_str()), (pieces, "twelve chars"), "{mode:?}");
        assert_eq!(*seen.lock().unwrap(), ["twelve chars"], "the whole, once");
    }
}

#[tokio::test]
async fn an_observer_replaces_nothing() {
    let mut scene = scene([text("shown", 1)], vec![output("o", 50, OutputMode::Observe, |_| rewrite("other".into()))]);
    let (report, events) = scene.turn("x").await;
    assert_eq!((report.text.as_str(), scene.session.history()[1].plain_text().as_str()), ("shown", "shown"));
    assert_eq!(reports(&events), ["o on_llm_output ignored: it is registered as an observer and replaced the output"]);
}

#[tokio::test]
async fn case_12_two_rewriters_compose_and_the_original_and_each_step_are_kept() {
    for cut in CUTS {
        let plugins = vec![
            output("late", 10, OutputMode::Rewrite, |text| rewrite(format!("late({text})"))),
            output("early", 90, OutputMode::Rewrite, |text| rewrite(format!("early({text})"))),
            output("noter", 50, OutputMode::Observe, |_| note("checked")),
            output("none", 40, OutputMode::Rewrite, |_| OutputAnswer::default()),
        ];
        let mut scene = scene([text("x", cut)], plugins);
        let (report, events) = scene.turn("go").await;
        assert_eq!((report.text.as_str(), shown(&events).as_str()), ("late(early(x))", "late(early(x))"));
        assert_eq!(scene.session.history()[1].plain_text(), "late(early(x))");
        let out = events.iter().find(|event| matches!(event.kind, EventKind::CognitionOut { .. })).unwrap();
        let record = record::json(out, "t");
        let payload = &record["payload"];
        assert_eq!(payload["text"], "x");
        let steps = serde_json::json!([
            {"extension_id": "early", "text": "early(x)"}, {"extension_id": "late", "text": "late(early(x))"},
        ]);
        assert_eq!(payload["rewrites"], steps);
        let notes = serde_json::json!([{"extension_id": "noter", "key": "checked", "value": {"seen": true}}]);
        assert_eq!(payload["annotations"], notes);
    }
}

/// The text of a turn does not depend on whether a rewriter is loaded, nor on how the answer was cut.
#[tokio::test]
async fn the_text_is_the_same_with_a_rewriter_and_without() {
    let words = "One <a>x\ny</a> two.\n\nThree `<a>` four é\n<b>never closed";
    for rewriter in [false, true] {
        for cut in CUTS {
            let mut plugins = vec![
                Plugin {
                    id: "tags",
                    callbacks: vec![(Callback::Tag(vec![TagPattern::Prefix(String::new())]), 50)],
                    tag: Some(Box::new(|(tag, _)| Ok(TagAnswer::Content(format!("({})", tag.content))))),
                    ..Plugin::default()
                },
                Plugin {
                    id: "lines",
                    callbacks: vec![(Callback::PlainText(TextUnit::Line.into()), 50)],
                    text: Some(Box::new(|(text, _)| Ok(TextAnswer::Replace(format!("[{text}]"))))),
                    ..Plugin::default()
                },
            ];
            if rewriter {
                plugins.push(output("same", 50, OutputMode::Rewrite, |_| OutputAnswer::default()));
            }
            let mut scene = scene([text(words, cut)], plugins);
            let (report, events) = scene.turn("x").await;
            let expected = "[One ]<a>([x\n][y])</a>[ two.\n][\n][Three `<a>` four é\n][<b>][never closed]";
            assert_eq!(
                (report.text.as_str(), shown(&events).as_str()),
                (expected, expected),
                "{rewriter} in pieces of {cut}"
            );
        }
    }
}

#[tokio::test]
async fn who_is_skipped_for_a_replaced_section_is_told() {
    let tag = |id, priority, answer: fn(String) -> TagAnswer| Plugin {
        id,
        callbacks: vec![(Callback::Tag(vec![TagPattern::Exact("t".into())]), priority)],
        tag: Some(Box::new(move |(tag, _)| Ok(answer(tag.content)))),
        ..Plugin::default()
    };
    let plugins = vec![
        tag("late", 10, |_| panic!("it is skipped")),
        tag("ends", 50, |content| TagAnswer::Replace(format!("={content}="))),
        tag("adds", 90, |content| TagAnswer::Content(content + "+")),
    ];
    let mut scene = scene([text("<t>x</t>", 1)], plugins);
    let (report, events) = scene.turn("x").await;
    assert_eq!(report.text, "=x+=");
    assert_eq!(
        reports(&events),
        ["adds on_tag changed", "ends on_tag changed", "late on_tag skipped: ends replaced the section"]
    );
}

/// No callback is ever silent: in each turn each has a report, whatever the turn does.
#[tokio::test]
async fn every_registered_callback_has_a_status_in_every_turn() {
    let all = || Plugin {
        id: "all",
        callbacks: vec![
            (Callback::InputMessages, 50),
            (Callback::PlainText(TextUnit::Whole.into()), 50),
            (Callback::Tag(vec![TagPattern::Exact("t".into())]), 50),
            (Callback::LlmOutput(OutputMode::Observe), 50),
            (Callback::TtsrTriggered, 50),
            (Callback::ToolCall, 50),
            (Callback::ToolResult, 50),
        ],
        ..Plugin::default()
    };
    let error = flow::ModelError::new(ErrorClass::Permanent, "gone");
    let turns: [(Script, usize); 3] =
        [(text("<t>x</t>", 1), 1), (calls(&[("1", "read", "{}")], 1), 2), (Script::Refuse(error), 1)];
    for (script, asked) in turns {
        for reject in [false, true] {
            let mut plugins = vec![all(), input("door", 60, |_| Ok(InputAnswer::Reject("shut".into())))];
            plugins.truncate(1 + usize::from(reject));
            let mut scene = scene([script.clone(), text("ok", 1)], plugins);
            let (_, events) = scene.turn("x").await;
            assert_eq!(scene.model.asked(), if reject { 0 } else { asked });
            for kind in CallbackKind::ALL {
                let told = reports(&events)
                    .iter()
                    .filter(|report| report.starts_with(&format!("all {}", kind.as_str())))
                    .count();
                assert!(told >= 1, "{kind:?}: {:?}", reports(&events));
            }
        }
    }
}

#[tokio::test]
async fn a_notice_says_what_of_an_answer_was_not_used_where_the_report_cannot() {
    type Answer = fn(&str) -> OutputAnswer;
    let answers: [(Answer, usize); 3] = [
        (|_| OutputAnswer { ignored: vec!["a bad note".into()], ..rewrite("new".into()) }, 1),
        (|_| rewrite("new".into()), 0),
        (|_| OutputAnswer { ignored: vec!["a bad note".into()], ..OutputAnswer::default() }, 0),
    ];
    for (answer, wanted) in answers {
        let mut scene = scene([text("words", 1)], vec![output("p", 50, OutputMode::Rewrite, answer)]);
        let (_, events) = scene.turn("go").await;
        let said = |event: &&Event| matches!(&event.kind, EventKind::Notice { message } if message.starts_with("p: part of its"));
        assert_eq!(events.iter().filter(said).count(), wanted);
        // The reason can quote what the extension has kept from being shown: it is in its log.
        let logged = |event: &&Event| matches!(&event.kind, EventKind::ExtensionLog { message, .. } if message.contains("a bad note"));
        assert_eq!(events.iter().filter(logged).count(), wanted);
        let shown =
            events.iter().filter_map(|event| record::Shown::of(event, "s")).map(|shown| shown.json().to_string());
        assert!(!shown.collect::<String>().contains("a bad note"));
    }
}

/// Fails closed: each way of giving no usable output leaves the marker, in the history too, and no later rewriter gets it.
#[tokio::test]
async fn an_output_that_was_not_checked_is_withheld() {
    let fails =
        Plugin { output: Some(Box::new(|_| Err("no".into()))), ..output("a", 90, OutputMode::Rewrite, note_none) };
    let odd = output("a", 90, OutputMode::Rewrite, |_| OutputAnswer {
        unusable: Some("odd".into()),
        ..OutputAnswer::default()
    });
    let skipped = Plugin { skipped: Some("asleep"), ..output("a", 90, OutputMode::Rewrite, note_none) };
    for guard in [fails, odd, skipped] {
        let later = output("b", 10, OutputMode::Rewrite, |text| rewrite(format!("changed {text}")));
        let mut scene = scene([text("secret", 1)], vec![Plugin { closed: true, ..guard }, later]);
        let (report, events) = scene.turn("go").await;
        assert_eq!(report.text, "[withheld: a did not check this]");
        assert!(reports(&events).contains(&"b on_llm_output skipped: a did not check the output".to_owned()));
        let last = scene.session.history().last().unwrap().plain_text();
        assert_eq!(last, "[withheld: a did not check this]", "the model reads what the user saw");
    }
}

fn note_none(_: &str) -> OutputAnswer {
    OutputAnswer::default()
}

#[tokio::test]
async fn an_input_that_was_not_checked_is_rejected_and_not_sent() {
    let guard = Plugin { closed: true, ..failing("guard", 50) };
    let mut scene = scene([text("fine", 1)], vec![guard, input("later", 10, |_| Ok(InputAnswer::Pass))]);
    let (report, events) = scene.turn("secret").await;
    let TurnStatus::Rejected { by, reason } = report.status else { panic!("{:?}", report.status) };
    assert_eq!(by.as_str(), "guard");
    assert!(
        reason.starts_with("guard did not check the input, so it was not sent: guard: on_input_messages"),
        "{reason}"
    );
    assert_eq!(scene.model.asked(), 0);
    let withheld = |event: &Event| matches!(&event.kind, EventKind::ExtensionWithheld { bytes: 6, .. });
    assert_eq!(events.iter().filter(|event| withheld(event)).count(), 1);
}

/// An invalid answer of a required plugin is a failure.
#[tokio::test]
async fn an_unusable_answer_of_a_required_extension_ends_the_turn() {
    let odd = Plugin { required: true, ..input("odd", 50, |_| Ok(InputAnswer::Ignored("shrug".into()))) };
    let (report, _) = scene([text("fine", 1)], vec![odd]).turn("go").await;
    let TurnStatus::Failed { message, .. } = report.status else { panic!("{:?}", report.status) };
    assert!(message.contains("odd: on_input_messages failed (malformed): its answer is not valid: shrug"), "{message}");
}
