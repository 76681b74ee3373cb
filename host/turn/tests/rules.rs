//! What happens on a match: the cases of the stream-rule specification (`tests/corpus/rules/SPEC.md`) that need a whole turn,
//! at every chunking.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::{Arc, Mutex};

use flow::{Action, Callback, ErrorClass, Event, EventKind, ModelError, Role, StopReason, StreamKind, TurnStatus};
use rules::{ContextMode, OnBudget, RepeatMode, RuleSet};
use tidegate_kit::{CUTS, Plugin, Scene, Script, blocks, calls, rule_set, shown, text, tool};
use tidegate_turn as turn;

const WRONG: &str = "Say FORBIDDEN words.";
const WRITE: &str = r#"{"path":"src/a.ts","content":"a FORBIDDEN thing"}"#;

/// One rule against `FORBIDDEN`, with these lines more.
fn forbidden(lines: &str, change: impl FnOnce(&mut rules::RuleSettings)) -> Arc<RuleSet> {
    let rule = format!("+++\ncondition = \"FORBIDDEN\"\n{lines}\n+++\nNever say it.");
    rule_set(&[("no-forbidden", &rule)], change)
}

fn plain() -> Arc<RuleSet> {
    forbidden("", |_| {})
}

fn fired(events: &[Event]) -> Vec<Action> {
    events
        .iter()
        .filter_map(|e| if let EventKind::RuleFired { action, .. } = &e.kind { Some(*action) } else { None })
        .collect()
}

fn injections(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event.kind, EventKind::TtsrInjection { .. })).count()
}

fn teller(told: &Arc<Mutex<Vec<flow::ports::TtsrEvent>>>) -> Plugin {
    let told = Arc::clone(told);
    Plugin {
        id: "teller",
        callbacks: vec![(Callback::TtsrTriggered, 50)],
        ttsr: Some(Box::new(move |event| {
            told.lock().unwrap().push(event);
            Ok(())
        })),
        ..Plugin::default()
    }
}

#[tokio::test]
async fn reminders_after_answers_are_bounded_and_the_turn_says_so() {
    for cut in CUTS {
        let rules = forbidden("action = \"remind\"\nrepeat = \"always\"", |_| {});
        let mut scene = Scene::new((0..9).map(|_| text(WRONG, cut)), vec![], rules);
        let (report, events) = scene.turn("go").await;
        let actions = [Action::Remind, Action::Remind, Action::Remind, Action::Pass];
        assert_eq!((report.status, scene.model.asked(), fired(&events)), (TurnStatus::Completed, 4, actions.to_vec()));
        let notices = events
            .iter()
            .filter_map(|e| if let EventKind::Notice { message } = &e.kind { Some(message) } else { None });
        let [notice] = &notices.collect::<Vec<_>>()[..] else { panic!("one notice") };
        assert!(notice.starts_with("the rule `no-forbidden` has used up its budget of this turn"), "{notice}");
    }
}

#[tokio::test]
async fn blocked_calls_end_the_turn_when_nothing_else_is_tried() {
    let rules = forbidden("action = \"block\"\nrepeat = \"always\"", |_| {});
    let scripts = (0..50).map(|at| {
        let arguments = format!(r#"{{"path":"{at}.ts","content":"FORBIDDEN {at}"}}"#);
        calls(&[("c1", "write_file", &arguments)], usize::MAX)
    });
    let mut scene = Scene::new(scripts, vec![], rules);
    let (report, _) = scene.turn("go").await;
    let TurnStatus::NoProgress { message } = &report.status else { panic!("{:?}", report.status) };
    assert_eq!((message.as_str(), scene.model.asked()), ("rules blocked all calls of 9 answers in a row", 9));
    let told = scene.model.request(8).last().unwrap().1.clone();
    assert!(told.contains("Rules have blocked all calls of 8 answers in a row."), "{told}");
}

#[tokio::test]
async fn case_26_the_turn_resolves_after_the_retry() {
    for cut in CUTS {
        let mut scene = Scene::new([text(WRONG, cut), text("Fine.", cut)], vec![], plain());
        let (report, events) = scene.turn("go").await;
        assert_eq!((report.status, report.text.as_str(), report.interrupts), (TurnStatus::Completed, "Fine.", 1));
        assert_eq!((scene.model.asked(), shown(&events).as_str()), (2, "Say Fine."), "in pieces of {cut}");
        assert_eq!((fired(&events), injections(&events)), (vec![Action::Interrupt], 1));
        let request = scene.model.request(1);
        let (role, reminder) = request.last().unwrap();
        assert_eq!(*role, Role::User);
        for words in ["<system-interrupt reason=\"rule_violation\" rule=\"no-forbidden\"", "FORBIDDEN", "Never say it."]
        {
            assert!(reminder.contains(words), "{words} in {reminder}");
        }
        let partial = events.iter().find_map(|event| match &event.kind {
            EventKind::CognitionOut { text, partial: Some(partial), .. } => Some((text.clone(), partial.clone())),
            _ => None,
        });
        let (text, partial) = partial.expect("the stopped answer is in the transcript");
        assert!(text.starts_with("Say FORBIDDEN") && partial.error.contains("no-forbidden"));
        assert_eq!(partial.shown_bytes, 4);
        assert!(scene.session.history().iter().any(|message| message.hidden), "the reminder is hidden");
    }
}

#[tokio::test]
async fn case_26_the_retry_may_call_tools() {
    for cut in CUTS {
        let scripts = [text(WRONG, cut), calls(&[("1", "read", r#"{"path":"a"}"#)], cut), text("Done.", cut)];
        let mut scene = Scene::new(scripts, vec![], plain());
        let (report, _) = scene.turn("go").await;
        assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Done."));
        assert_eq!(scene.model.asked(), 3, "in pieces of {cut}");
    }
}

#[tokio::test]
async fn case_26_a_match_in_a_call_stops_it_before_it_runs() {
    for cut in CUTS {
        let both = calls(&[("1", "read", r#"{"path":"a"}"#), ("2", "write", WRITE)], cut);
        let mut scene = Scene::new([both, text("Fine.", cut)], vec![], plain());
        let (report, events) = scene.turn("go").await;
        assert_eq!((report.status, scene.model.asked()), (TurnStatus::Completed, 2));
        assert!(!events.iter().any(|event| matches!(event.kind, EventKind::ToolCallStart { .. })));
        let reminder = scene.model.request(1).pop().unwrap().1;
        assert!(reminder.contains("a call of write, argument content, file src/a.ts"), "{reminder}");
    }
}

#[tokio::test]
async fn case_27_a_follow_up_is_delivered_and_awaited() {
    for cut in CUTS {
        let mut scene =
            Scene::new([text(WRONG, cut), text(" Sorry.", cut)], vec![], forbidden("interrupt = \"never\"", |_| {}));
        let (report, events) = scene.turn("go").await;
        assert_eq!((report.status, report.interrupts, scene.model.asked()), (TurnStatus::Completed, 0, 2));
        assert_eq!(report.text, format!("{WRONG} Sorry."));
        assert_eq!((fired(&events), injections(&events)), (vec![Action::Remind], 1));
        let request = scene.model.request(1);
        assert_eq!(request[1], (Role::Assistant, WRONG.to_owned()));
        assert!(request[2].1.starts_with("<system-reminder") && request.len() == 3, "{request:?}");
    }
}

#[tokio::test]
async fn case_28_a_reminder_stands_before_the_tools_own_output() {
    for cut in CUTS {
        let scripts = [calls(&[("1", "write", WRITE)], cut), text("Done.", cut)];
        let mut scene = Scene::new(scripts, vec![], forbidden("interrupt = \"prose-only\"", |_| {}));
        let (report, events) = scene.turn("go").await;
        assert_eq!((report.status, scene.model.asked()), (TurnStatus::Completed, 2), "in pieces of {cut}");
        let prompts = scene.model.prompts.lock().unwrap();
        let flow::Part::ToolResult(result) = &prompts[1].messages.last().unwrap().parts[0] else { panic!("no result") };
        assert_eq!(result.content.len(), 2);
        assert!(result.content[0].starts_with("<system-reminder reason=\"rule_violation\" rule=\"no-forbidden\""));
        assert_eq!(result.content[1], format!("write done: {WRITE}"));
        assert_eq!(injections(&events), 1);
    }
}

#[tokio::test]
async fn case_29_siblings_that_break_one_rule_all_run_with_one_reminder() {
    for cut in CUTS {
        let scripts =
            [calls(&[("1", "write", WRITE), ("2", "write", WRITE), ("3", "write", WRITE)], cut), text("Done.", cut)];
        let mut scene = Scene::new(scripts, vec![], forbidden("interrupt = \"never\"", |_| {}));
        let (_, events) = scene.turn("go").await;
        let results = &scene.model.request(1)[2].1;
        assert_eq!((results.matches("write done").count(), results.matches("<system-reminder").count()), (3, 1));
        assert_eq!((scene.model.asked(), injections(&events)), (2, 1), "in pieces of {cut}");
    }
}

#[tokio::test]
async fn case_30_context_modes() {
    let words = "First line.\nSecond FORBIDDEN line.";
    for cut in CUTS {
        for mode in [ContextMode::Discard, ContextMode::Keep, ContextMode::Rewind] {
            let rules = forbidden("", |settings| settings.context_mode = mode);
            let mut scene = Scene::new([text(words, cut), text("Fine.", cut)], vec![], rules);
            let (_, events) = scene.turn("go").await;
            assert_eq!(shown(&events), "First line.\nSecond Fine.", "{mode:?} in pieces of {cut}");
            let request = scene.model.request(1);
            let partial: Vec<&str> =
                request.iter().filter(|(role, _)| *role == Role::Assistant).map(|(_, said)| said.as_str()).collect();
            match mode {
                ContextMode::Discard => assert!(partial.is_empty()),
                ContextMode::Keep => {
                    assert_eq!(partial, ["First line.\nSecond FORBIDDEN"], "in pieces of {cut}");
                }
                ContextMode::Rewind => assert_eq!(partial, ["First line.\n"]),
            }
            assert_eq!(request.last().unwrap().1.contains("has been kept. Continue"), mode == ContextMode::Rewind);
        }
    }
}

/// An answer that continues from a prefix that was not shown would be incomplete.
#[tokio::test]
async fn rewind_with_a_rewriter_starts_over() {
    let rewriter =
        Plugin { id: "r", callbacks: vec![(Callback::LlmOutput(flow::OutputMode::Rewrite), 50)], ..Plugin::default() };
    let rules = forbidden("context = \"rewind\"", |_| {});
    let mut scene = Scene::new([text("One.\nFORBIDDEN", 3), text("One.\nTwo.", 3)], vec![rewriter], rules);
    let (report, events) = scene.turn("go").await;
    assert_eq!((report.text.as_str(), shown(&events).as_str()), ("One.\nTwo.", "One.\nTwo."));
    assert!(scene.model.request(1).iter().all(|(role, _)| *role == Role::User));
}

#[tokio::test(start_paused = true)]
async fn case_31_a_cancel_before_the_retry_injects_nothing() {
    for cut in CUTS {
        let cancel = turn::CancellationToken::new();
        let (stop, once) = (cancel.clone(), Mutex::new(true));
        // The notice arrives between the abort and the retry.
        let plugin = Plugin {
            ttsr: Some(Box::new(move |_| {
                if std::mem::take(&mut *once.lock().unwrap()) {
                    stop.cancel();
                }
                Ok(())
            })),
            ..teller(&Arc::default())
        };
        let rules = forbidden("", |settings| settings.retry_delay_ms = 50);
        let mut scene = Scene::new([text(WRONG, cut), text(WRONG, cut), text("Fine.", cut)], vec![plugin], rules);
        let report = scene.session.run(vec![flow::Message::user("go")], &cancel).await;
        let events = tidegate_kit::drain(&mut scene.events);
        scene.past.extend(events.iter().cloned());
        assert_eq!((report.status, scene.model.asked(), injections(&events)), (TurnStatus::Cancelled, 1, 0));
        assert_eq!(scene.session.history().len(), 1, "the input alone stays");
        let (report, events) = scene.turn("again").await;
        assert_eq!(
            (report.status, fired(&events), injections(&events)),
            (TurnStatus::Completed, vec![Action::Interrupt], 1)
        );
    }
}

#[tokio::test]
async fn case_32_interrupts_stop_at_the_budget() {
    for cut in CUTS {
        for (on_budget, lines, asked) in
            [(OnBudget::Pass, "", 4), (OnBudget::Stop, "", 4), (OnBudget::Pass, "max_interrupts = 1", 2)]
        {
            let rules = forbidden(lines, |settings| {
                (settings.on_budget, settings.repeat_mode) = (on_budget, RepeatMode::Always);
            });
            let mut scene = Scene::new(vec![text(WRONG, cut); asked], vec![], rules);
            let (report, events) = scene.turn("go").await;
            assert_eq!(scene.model.asked(), asked, "{on_budget:?} {lines} in pieces of {cut}");
            let last = fired(&events).pop().unwrap();
            if on_budget == OnBudget::Pass {
                assert_eq!((report.status, last, report.text.as_str()), (TurnStatus::Completed, Action::Pass, WRONG));
            } else {
                let stopped = TurnStatus::StoppedByRule { rule: "no-forbidden".into() };
                assert_eq!((report.status, last, report.text.as_str()), (stopped, Action::Stop, ""));
                assert_eq!(shown(&events), "Say ".repeat(4));
            }
        }
    }
}

#[tokio::test]
async fn case_33_the_retrys_error_is_the_turns() {
    let gone = ModelError::new(ErrorClass::Permanent, "no such model");
    let mut scene = Scene::new([text(WRONG, 3), Script::Refuse(gone)], vec![], plain());
    let (report, events) = scene.turn("go").await;
    let message = "no such model".to_owned();
    assert_eq!(report.status, TurnStatus::Failed { class: ErrorClass::Permanent, message: message.clone() });
    let told = EventKind::TurnFinish { status: TurnStatus::failed(message) };
    assert_eq!(events.iter().filter(|event| event.kind == told).count(), 1);
}

#[tokio::test]
async fn reminders_are_told_to_extensions_once_per_stream_and_rule() {
    let told = Arc::default();
    let rules = forbidden("", |settings| settings.repeat_mode = RepeatMode::Always);
    let mut scene = Scene::new(
        [text(WRONG, 2), text(WRONG, 2), text("Fine.", 2), text(WRONG, 2), text("Fine.", 2)],
        vec![teller(&told)],
        rules,
    );
    let (_, events) = scene.turn("go").await;
    assert_eq!((told.lock().unwrap().len(), fired(&events).len()), (1, 2), "once in a turn");
    scene.turn("again").await;
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 2, "anew in the next");
    let evidence = &told[0].matches[0].evidence;
    assert_eq!(
        (told[0].action, told[0].place.attempt, evidence.text.as_str(), evidence.start),
        (Action::Interrupt, 1, "FORBIDDEN", 4)
    );
}

/// Neither the retry nor the end of the turn waits for an extension. The end of the session does, for a moment.
#[tokio::test(start_paused = true)]
async fn a_notice_that_hangs_delays_nothing() {
    let plugin = Plugin { hangs: Some(flow::CallbackKind::TtsrTriggered), ..teller(&Arc::default()) };
    let mut scene = Scene::new([text(WRONG, 3), text("Fine.", 3)], vec![plugin], plain());
    let began = tokio::time::Instant::now();
    let (report, events) = scene.turn("go").await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Fine."));
    assert!(began.elapsed().is_zero() && tidegate_kit::reports(&events).is_empty());
    assert!(matches!(events.last().unwrap().kind, EventKind::TurnFinish { .. }));
    scene.session.close().await;
    assert_eq!(began.elapsed().as_millis(), 500);
    let events = tidegate_kit::drain(&mut scene.events);
    let stopped = "teller ttsr_triggered ignored: it was stopped when the session ended, or its plugins changed";
    assert_eq!(tidegate_kit::reports(&events), [stopped]);
}

#[tokio::test]
async fn thinking_is_watched_by_its_own_rules_alone() {
    for (scope, interrupts) in [("scope = \"thinking\"", 1), ("scope = \"text\"", 0), ("", 0)] {
        for cut in CUTS {
            let deltas =
                blocks(&[(StreamKind::Thinking, WRONG), (StreamKind::Text, "Hello.")], cut, StopReason::EndTurn);
            let mut scene =
                Scene::new([Script::Say(deltas, Some(Ok(()))), text("Fine.", cut)], vec![], forbidden(scope, |_| {}));
            let (report, events) = scene.turn("go").await;
            assert_eq!(report.interrupts, interrupts, "{scope}");
            let reasoned: String = events
                .iter()
                .filter_map(|event| match &event.kind {
                    EventKind::CognitionReasoningDelta { text } => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            assert_eq!(reasoned, if interrupts == 1 { "Say " } else { WRONG });
            assert_eq!(shown(&events), if interrupts == 1 { "Fine." } else { "Hello." });
        }
    }
}

#[tokio::test]
async fn a_blocked_call_does_not_run_and_every_sibling_is_judged_by_itself() {
    for cut in CUTS {
        let scripts = [
            calls(&[("1", "write", WRITE), ("2", "write", WRITE), ("3", "write", r#"{"path":"b"}"#)], cut),
            text("Done.", cut),
        ];
        let mut scene = Scene::new(scripts, vec![], forbidden("action = \"block\"", |_| {}));
        let (report, events) = scene.turn("go").await;
        assert_eq!((report.status, report.interrupts, scene.model.asked()), (TurnStatus::Completed, 0, 2));
        let failed: Vec<(bool, bool)> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::ToolCallResult { is_error, output, .. } => {
                    Some((*is_error, output.contains("Never say it.")))
                }
                _ => None,
            })
            .collect();
        assert_eq!(failed, [(true, true), (true, true), (false, false)], "in pieces of {cut}");
    }
}

#[tokio::test]
async fn a_rule_may_end_the_turn() {
    for cut in CUTS {
        let mut scene =
            Scene::new([text(WRONG, cut), text("Fine.", cut)], vec![], forbidden("action = \"stop\"", |_| {}));
        let (report, events) = scene.turn("go").await;
        assert_eq!(report.status, TurnStatus::StoppedByRule { rule: "no-forbidden".into() });
        assert_eq!((scene.model.asked(), shown(&events).as_str(), injections(&events)), (1, "Say ", 0));
        assert_eq!(scene.turn("again").await.0.text, "Fine.");
    }
}

#[tokio::test(start_paused = true)]
async fn reminders_of_an_answer_that_broke_are_rolled_back() {
    let cut_off = |words: &str| {
        let mut deltas = blocks(&[(StreamKind::Text, words), (tool("1", "write"), WRITE)], 4, StopReason::EndTurn);
        deltas.pop();
        Script::Say(deltas, Some(Err(ModelError::new(ErrorClass::Transient, "cut off"))))
    };
    // Something was shown: the turn fails, and in the next one the rule fires again.
    let rules = forbidden("interrupt = \"never\"", |_| {});
    let mut scene = Scene::new([cut_off(WRONG), text(WRONG, 4), text("Sorry.", 4)], vec![], Arc::clone(&rules));
    let (report, events) = scene.turn("go").await;
    assert!(matches!(report.status, TurnStatus::Failed { .. }) && injections(&events) == 0);
    assert_eq!(injections(&scene.turn("again").await.1), 1);
    // Nothing was shown: it is tried again, and the second answer is judged again.
    let mut scene = Scene::new([cut_off(""), calls(&[("1", "write", WRITE)], 4), text("Done.", 4)], vec![], rules);
    let (report, events) = scene.turn("go").await;
    assert_eq!(
        (report.status, fired(&events), injections(&events)),
        (TurnStatus::Completed, vec![Action::Remind; 2], 1)
    );
}

/// A guard sees arguments up to their end. What is cut off or no object can be read by a lenient tool: it never gets the call.
#[tokio::test]
async fn a_call_whose_arguments_are_no_object_never_runs() {
    let guard = || forbidden("action = \"block\"\nrepeat = \"always\"", |_| {});
    for (arguments, runs) in [
        (r#"{"path":"a.ts","content":"a FORBID"#, false),
        (r#"{"path":"a.ts","content":"a FORBID""#, false),
        (r#"{"path":"a.ts","content":"a""#, false),
        (r#"{"path":"a.ts","content":"#, false),
        (r#"{"path":"a.ts","#, false),
        ("{", false),
        (r#"["FORBID","DEN"]"#, false),
        (r#""FORBIDDEN""#, false),
        ("FORBIDDEN", false),
        ("null", false),
        (r#"{"path":"a.ts"} {"content":"FORBIDDEN"}"#, false),
        (r#"{"path":"a.ts","content":"FORBIDDEN"}"#, false),
        (r#"{'path':'a.ts'}"#, false),
        (r#"{"path":"a.ts",}"#, false),
        (r#"{"path":"a.ts"}"#, true),
        ("", true),
    ] {
        for cut in CUTS {
            let scripts = [calls(&[("1", "write", arguments)], cut), text("Done.", cut)];
            let mut scene = Scene::new(scripts, vec![], guard());
            let (report, events) = scene.turn("go").await;
            let ran = events.iter().any(|event| matches!(event.kind, EventKind::ToolCallStart { .. }));
            assert_eq!((report.status, ran), (TurnStatus::Completed, runs), "{arguments} in pieces of {cut}");
            let result = scene.model.request(1).pop().unwrap().1;
            let why = ["are not valid: write one JSON object", "could not be checked", "broke a rule"];
            assert_eq!(why.iter().any(|why| result.contains(why)), !runs, "{arguments}: {result}");
        }
    }
}
