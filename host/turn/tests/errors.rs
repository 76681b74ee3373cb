//! Broken streams, refused requests and refused tools: what is tried again, what the transcript gets, and that a provider
//! always accepts the conversation that is left.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;
use std::time::Duration;

use flow::{
    Callback, Delta, ErrorClass, ErrorPattern, Event, EventKind, FailureKind, ModelError, OutputMode, RetryPolicy,
    RetryTable, RetryWait, Role, StopReason, StreamKind, TurnStatus,
};
use serde_json::{Value, json};
use tidegate_kit::{
    CUTS, Plugin, Scene, Script, ScriptedModel, blocks, calls, ready, rule_set, said, shown, text, tool,
};
use tidegate_turn as turn;
use turn::{Session, SessionParts, SessionSettings};

fn scene(scripts: impl IntoIterator<Item = Script>) -> Scene {
    Scene::new(scripts, vec![], rule_set(&[], |_| {}))
}

fn transient(message: &str) -> ModelError {
    ModelError::new(ErrorClass::Transient, message)
}

/// The first `count` deltas of an answer, then an error.
fn cut_off(deltas: &[Delta], count: usize, error: ModelError) -> Script {
    Script::Say(deltas[..count].to_vec(), Some(Err(error)))
}

fn find<T>(events: &[Event], wanted: impl Fn(&EventKind) -> Option<T>) -> Vec<T> {
    events.iter().filter_map(|event| wanted(&event.kind)).collect()
}

fn retries(events: &[Event]) -> Vec<(String, u32, u64)> {
    find(events, |kind| match kind {
        EventKind::RetrySucceeded { original_error, retry_count, total_delay_ms } => {
            Some((original_error.clone(), *retry_count, *total_delay_ms))
        }
        _ => None,
    })
}

fn partials(events: &[Event]) -> Vec<(String, u64)> {
    find(events, |kind| match kind {
        EventKind::CognitionOut { text, partial: Some(partial), .. } => Some((text.clone(), partial.shown_bytes)),
        _ => None,
    })
}

#[tokio::test]
async fn what_a_provider_has_left_out_is_said_before_the_answer() {
    let mut scene = scene([text("Hello.", 2), text("Again.", 2)]);
    *scene.model.note.lock().unwrap() = Some("an image is left out".to_owned());
    for expected in [&["an image is left out", "Hello."][..], &["Again."]] {
        let (report, events) = scene.turn("go").await;
        assert_eq!(report.status, TurnStatus::Completed);
        let said = find(&events, |kind| match kind {
            EventKind::Notice { message } => Some(message.clone()),
            EventKind::CognitionOut { text, .. } => Some(text.clone()),
            _ => None,
        });
        assert_eq!(said, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_sent_again_before_anything_was_shown() {
    let overloaded = ModelError { status: Some(529), code: Some("overloaded_error".into()), ..transient("busy") };
    let asked = ModelError { retry_after_ms: Some(7000), ..ModelError::new(ErrorClass::RateLimited, "slow down") };
    let mut scene = scene([Script::Refuse(overloaded), Script::Refuse(asked), text("Hello.", 2)]);
    let began = tokio::time::Instant::now();
    let (report, events) = scene.turn("go").await;
    assert_eq!((report.status, report.text.as_str(), scene.model.asked()), (TurnStatus::Completed, "Hello.", 3));
    assert_eq!((shown(&events).as_str(), began.elapsed().as_millis()), ("Hello.", 8000));
    assert_eq!(retries(&events), [("busy".to_owned(), 2, 8000)]);
    let classified = find(&events, |kind| match kind {
        EventKind::ErrorClassified { class, code, .. } => Some((*class, code.clone())),
        _ => None,
    });
    assert_eq!(
        classified,
        [(ErrorClass::Transient, "overloaded_error".into()), (ErrorClass::RateLimited, "unknown".into())]
    );
}

/// A provider reports facts; the table of the session says what they mean, and the event says which entry did.
#[tokio::test(start_paused = true)]
async fn an_error_without_a_class_gets_it_from_the_table() {
    let mut busy = ModelError::of_kind(FailureKind::Http, "the provider answered HTTP 529: busy");
    busy.status = Some(529);
    busy.facts.error_type = Some("overloaded_error".into());
    let mut pattern = ErrorPattern::new("busy", ErrorClass::Budget);
    pattern.statuses = vec![500..=599];
    pattern.providers = vec!["script".into()];
    let mut policy = RetryPolicy::default();
    (policy.wait, policy.base, policy.max_retries) = (RetryWait::Fixed, Duration::from_secs(5), 2);
    let table = RetryTable::new(vec![pattern], [(ErrorClass::Budget, policy)].into());

    for (table, asked, class, pattern) in
        [(table, 3, ErrorClass::Budget, json!("busy")), (RetryTable::default(), 1, ErrorClass::Permanent, Value::Null)]
    {
        let model = ScriptedModel::new(vec![Script::Refuse(busy.clone()); asked]);
        let settings = SessionSettings { retries: Arc::new(table), ..SessionSettings::default() };
        let parts = SessionParts { settings, ..tidegate_kit::parts(&model, vec![], rule_set(&[], |_| {})) };
        let session = ready(Session::open(parts)).unwrap();
        let mut scene = Scene { events: session.subscribe(), model, session, past: Vec::new() };
        let began = tokio::time::Instant::now();
        let (report, events) = scene.turn("go").await;
        let TurnStatus::Failed { class: failed, .. } = report.status else { panic!("{report:?}") };
        assert_eq!((failed, scene.model.asked()), (class, asked));
        assert_eq!(began.elapsed().as_secs(), if asked == 3 { 10 } else { 0 });
        let record = events.iter().find(|event| matches!(event.kind, EventKind::ErrorClassified { .. })).unwrap();
        let payload = &record::json(record, "thread-1")["payload"];
        assert_eq!(payload["category"], class.as_str());
        assert_eq!(payload["retryable"], asked == 3);
        assert_eq!(payload["error_code"], "529");
        let metadata = &payload["metadata"];
        assert_eq!((&metadata["provider"], &metadata["status"]), (&json!("script"), &json!(529)));
        assert_eq!((&metadata["kind"], &metadata["type"]), (&json!("http"), &json!("overloaded_error")));
        assert_eq!((&metadata["message"], &metadata["pattern"]), (&json!(busy.message), &pattern));
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_last_retry_the_error_is_the_turns() {
    for (class, asked) in [(ErrorClass::Transient, 4), (ErrorClass::Permanent, 1), (ErrorClass::Quota, 1)] {
        let error = ModelError::new(class, "no");
        let mut scene = scene(vec![Script::Refuse(error); asked]);
        let (report, events) = scene.turn("go").await;
        let retried = if asked > 1 { " (retried 3 times within 7 s)" } else { "" };
        assert_eq!(report.status, TurnStatus::Failed { class, message: format!("no{retried}") });
        assert_eq!((scene.model.asked(), retries(&events).len()), (asked, 0));
        let scheduled = find(&events, |kind| match kind {
            EventKind::RetryScheduled { retry, max_retries: 3, delay_ms, asked: false } => Some((*retry, *delay_ms)),
            _ => None,
        });
        assert_eq!(scheduled, [(1, 1000), (2, 2000), (3, 4000)][..asked - 1]);
        assert_eq!(
            find(&events, |kind| matches!(kind, EventKind::TurnFinish { status: TurnStatus::Failed { .. } })
                .then_some(()))
            .len(),
            1
        );
    }
}

/// A wait that is too long prevents a retry, and the error states that.
#[tokio::test(start_paused = true)]
async fn a_wait_without_end_is_told() {
    let asked = ModelError { retry_after_ms: Some(86_400_000), ..ModelError::new(ErrorClass::RateLimited, "slow") };
    let mut scene = scene([Script::Refuse(asked)]);
    let (report, events) = scene.turn("go").await;
    let TurnStatus::Failed { message, .. } = report.status else { panic!("{report:?}") };
    assert_eq!(message, "slow (the provider asks to wait 24 h before the next request; no wait is longer than 2 min)");
    assert!(find(&events, |kind| matches!(kind, EventKind::RetryScheduled { .. }).then_some(())).is_empty());
}

/// Retries are counted by error: an answer in between, even one that a rule stopped, restarts the count.
#[tokio::test(start_paused = true)]
async fn an_answer_starts_the_count_anew() {
    let rules = rule_set(&[("r", "+++\ncondition = \"BAD\"\n+++\nNo.")], |_| {});
    let mut scripts = vec![Script::Refuse(transient("away")); 3];
    scripts.push(text("BAD", 1));
    scripts.extend(vec![Script::Refuse(transient("again")); 3]);
    scripts.push(text("ok", 1));
    let mut scene = Scene::new(scripts, vec![], rules);
    let (report, events) = scene.turn("go").await;
    assert_eq!((report.status, scene.model.asked()), (TurnStatus::Completed, 8));
    assert_eq!(retries(&events), [("away".to_owned(), 3, 7000), ("again".to_owned(), 3, 7000)]);
}

/// Cut after every delta: nothing shown is ever repeated, and the transcript has exactly the received text.
#[tokio::test(start_paused = true)]
async fn a_stream_may_break_after_every_delta() {
    let answer = blocks(
        &[(StreamKind::Thinking, "Let me see."), (StreamKind::Text, "I will."), (tool("1", "read"), r#"{"path":"a"}"#)],
        2,
        StopReason::ToolUse,
    );
    for count in 0..answer.len() {
        let mut scene = scene([cut_off(&answer, count, transient("connection reset")), text("ok", 1)]);
        let (report, events) = scene.turn("go").await;
        let (mut thought, mut said_so_far) = (String::new(), String::new());
        for delta in &answer[..count] {
            match delta {
                Delta::Piece { block: 0, text } => thought.push_str(text),
                Delta::Piece { block: 1, text } => said_so_far.push_str(text),
                _ => {}
            }
        }
        if thought.is_empty() && said_so_far.is_empty() {
            assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "ok"), "after {count}");
            continue;
        }
        assert!(matches!(report.status, TurnStatus::Failed { .. }), "after {count}: something was shown");
        assert_eq!((scene.model.asked(), shown(&events)), (1, said_so_far.clone()));
        assert_eq!(partials(&events), [(said_so_far.clone(), said_so_far.len() as u64)]);
        let reasoning = EventKind::CognitionReasoning {
            text: thought,
            keep: flow::KeptText::Original,
            interrupted: true,
            retained: false,
        };
        assert_eq!(find(&events, |kind| (*kind == reasoning).then_some(())).len(), 1);
        let left: Vec<String> = scene.session.history().iter().skip(1).map(|message| said(message)).collect();
        let marked = format!("{said_so_far}\n\n[Stream interrupted: connection reset]");
        assert_eq!(left, if said_so_far.is_empty() { vec![] } else { vec![marked] }, "after {count}");
        assert_eq!(scene.turn("again").await.0.text, "ok");
    }
}

/// How much of an answer there was is estimated by the limit of its tokens, for the record and for the model.
#[tokio::test(start_paused = true)]
async fn a_partial_answer_has_an_estimate_of_its_completion() {
    let answer = blocks(&[(StreamKind::Text, &"word ".repeat(40))], 10, StopReason::EndTurn);
    for (max_tokens, percent) in [(None, None), (Some(100), Some(50.0)), (Some(10), Some(99.0))] {
        let error = transient("connection reset");
        let model = ScriptedModel::new([cut_off(&answer, answer.len() - 2, error), text("ok", 1)]);
        let settings = SessionSettings { max_tokens, ..SessionSettings::default() };
        let parts = SessionParts { settings, ..tidegate_kit::parts(&model, vec![], rule_set(&[], |_| {})) };
        let session = ready(Session::open(parts)).unwrap();
        let mut scene = Scene { events: session.subscribe(), model, session, past: Vec::new() };
        let (_, events) = scene.turn("go").await;
        let record = events.iter().find(|event| matches!(event.kind, EventKind::CognitionOut { .. })).unwrap();
        let payload = &record::json(record, "thread-1")["payload"];
        assert_eq!(payload.get("completion_percentage").and_then(Value::as_f64), percent);
        assert_eq!(payload.get("completion_estimated"), percent.map(|_| Value::Bool(true)).as_ref());
        let note = percent.map(|percent| format!(" - about {percent}% complete")).unwrap_or_default();
        let last = said(scene.session.history().last().unwrap());
        assert!(last.ends_with(&format!("\n\n[Stream interrupted: connection reset{note}]")), "{last}");
    }
}

/// A provider that signs its reasoning takes none back that is a part; another reads it again as text.
#[tokio::test(start_paused = true)]
async fn reasoning_that_was_interrupted_is_kept_where_it_is_not_signed() {
    let answer = blocks(&[(StreamKind::Thinking, "Hm, so"), (StreamKind::Text, "Half of it")], 3, StopReason::EndTurn);
    for (signs, count) in [(true, 8), (false, 8), (true, 4), (false, 4)] {
        let cut = cut_off(&answer, count, transient("reset"));
        let scripts = vec![cut, text("ok", 1)];
        let model = Arc::new(ScriptedModel { scripts: scripts.into(), unsigned: !signs, ..ScriptedModel::default() });
        let mut scene = Scene::of(model, vec![], rule_set(&[], |_| {}));
        let (_, events) = scene.turn("go").await;
        let retained = find(&events, |kind| match kind {
            EventKind::CognitionReasoning { retained, .. } => Some(*retained),
            _ => None,
        });
        assert_eq!(retained, [!signs]);
        scene.turn("again").await;
        let sent = scene.model.texts().pop().unwrap();
        let thought = "[Your reasoning before the stream was interrupted:]\nHm, so\n[End of your reasoning.]\n\n";
        let (thought, said) = match (signs, count) {
            (true, 8) => ("", "Half o"),
            (false, 8) => (thought, "Half o"),
            (true, _) => ("", ""),
            (false, _) => (thought.trim_end(), ""),
        };
        let marked = format!("{thought}{said}\n\n[Stream interrupted: reset]");
        let expected: &[&str] =
            if thought.is_empty() && said.is_empty() { &["go", "again"] } else { &["go", &marked, "again"] };
        assert_eq!(sent, expected, "signs: {signs}, {count}");
    }
}

/// A rewriter's answer is not shown before it is complete, so it can be asked for again.
#[tokio::test(start_paused = true)]
async fn what_is_held_for_a_rewriter_may_be_asked_for_again() {
    let rewriter =
        Plugin { id: "r", callbacks: vec![(Callback::LlmOutput(OutputMode::Rewrite), 50)], ..Plugin::default() };
    let answer = blocks(&[(StreamKind::Text, "Half of it")], 3, StopReason::EndTurn);
    let scripts = [cut_off(&answer, 4, transient("reset")), text("All of it", 3)];
    let mut scene = Scene::new(scripts, vec![rewriter], rule_set(&[], |_| {}));
    let (report, events) = scene.turn("go").await;
    assert_eq!((report.text.as_str(), shown(&events).as_str()), ("All of it", "All of it"));
    assert_eq!(partials(&events), [("Half o".to_owned(), 0)]);
}

/// If answers are shown only when accepted, emitted events do not prevent a retry.
#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_saw_may_be_asked_for_again() {
    let answer = blocks(&[(StreamKind::Thinking, "Hm."), (StreamKind::Text, "Half of it")], 3, StopReason::EndTurn);
    let mut scene = scene([cut_off(&answer, 7, transient("reset")), text("All of it", 3)]);
    scene.session = scene.session.accepted_only();
    let (report, events) = scene.turn("go").await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "All of it"));
    assert_eq!(partials(&events), [("Half o".to_owned(), 6)]);
    assert_eq!(said(scene.session.history().last().unwrap()), "All of it");
    let scheduled = events.iter().position(|event| matches!(event.kind, EventKind::RetryScheduled { .. }));
    let partial = events.iter().position(|event| matches!(event.kind, EventKind::CognitionOut { .. }));
    assert!(scheduled.unwrap() < partial.unwrap(), "a subscriber learns first that the answer is repeated");
}

/// Providers that sign reasoning want it back where it was: text keeps its places between it, unless it was rewritten.
#[tokio::test]
async fn text_between_reasoning_keeps_its_place() {
    let answer = blocks(
        &[
            (StreamKind::Text, "One."),
            (StreamKind::Thinking, "hm"),
            (StreamKind::Text, "\n"),
            (StreamKind::Thinking, "so"),
            (StreamKind::Text, "Two."),
            (tool("1", "read"), "{}"),
            (StreamKind::Text, "Three."),
        ],
        3,
        StopReason::ToolUse,
    );
    let rewriter = || Plugin {
        id: "r",
        callbacks: vec![(Callback::LlmOutput(OutputMode::Rewrite), 50)],
        output: Some(Box::new(|output| {
            Ok(flow::OutputAnswer { replace: Some(format!("{}!", output.text)), ..flow::OutputAnswer::default() })
        })),
        ..Plugin::default()
    };
    for (plugins, expected) in [
        (vec![], "text One.|thinking hm|thinking so|text \nTwo.Three.|call read"),
        (vec![rewriter()], "text One.\nTwo.Three.!|thinking hm|thinking so|call read"),
    ] {
        let scripts = [Script::Say(answer.clone(), Some(Ok(()))), text("ok", 1)];
        let mut scene = Scene::new(scripts, plugins, rule_set(&[], |_| {}));
        scene.turn("go").await;
        let parts = scene.session.history()[1].parts.clone();
        let parts = parts.iter().map(|part| match part {
            flow::Part::Text(text) => format!("text {text}"),
            flow::Part::Thinking { text, .. } => format!("thinking {text}"),
            flow::Part::ToolCall(call) => format!("call {}", call.name),
            flow::Part::ToolResult(_) => "result".to_owned(),
            flow::Part::Image(image) => format!("image {image}"),
        });
        assert_eq!(parts.collect::<Vec<_>>().join("|"), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_its_stop_is_broken() {
    let answer = blocks(&[(StreamKind::Text, "Hello")], 5, StopReason::EndTurn);
    let unfinished = Script::Say(answer[..answer.len() - 1].to_vec(), Some(Ok(())));
    let (report, _) = scene([unfinished]).turn("go").await;
    assert!(matches!(report.status, TurnStatus::Failed { class: ErrorClass::Transient, .. }), "{report:?}");
}

/// A provider that restarts its answer: the received part is void for the conversation, the extensions and the rules.
#[tokio::test]
async fn an_answer_may_begin_anew() {
    let rules = rule_set(&[("r", "+++\ncondition = \"BAD\"\ninterrupt = \"never\"\n+++\nNo.")], |_| {});
    let lines = || Plugin {
        id: "lines",
        callbacks: vec![(Callback::PlainText(flow::TextUnit::Line.into()), 50)],
        text: Some(Box::new(|(text, _)| Ok(flow::TextAnswer::Replace(format!("[{text}]"))))),
        ..Plugin::default()
    };
    for cut in CUTS {
        let mut deltas = blocks(&[(StreamKind::Text, "one\nBAD half")], cut, StopReason::EndTurn);
        deltas.truncate(deltas.len() - 2);
        deltas.extend(blocks(&[(StreamKind::Text, "two")], cut, StopReason::EndTurn));
        let mut scene = Scene::new([Script::Say(deltas, Some(Ok(())))], vec![lines()], Arc::clone(&rules));
        let (report, events) = scene.turn("go").await;
        assert_eq!(
            (report.status, report.text.as_str(), shown(&events).as_str()),
            (TurnStatus::Completed, "[two]", "[one\n][two]")
        );
        assert_eq!(scene.session.history()[1].plain_text(), "two");
        assert_eq!(partials(&events).len(), 1);
        assert_eq!(find(&events, |kind| matches!(kind, EventKind::TtsrInjection { .. }).then_some(())).len(), 0);
    }
}

#[tokio::test]
async fn refused_tools_say_why_to_the_model() {
    for cut in CUTS {
        let wanted = [("1", "locked", "{}"), ("2", "shell", r#"{"command":"ls"}"#), ("3", "read", "")];
        let mut scene = scene([calls(&wanted, cut), text("ok", cut)]);
        let (report, events) = scene.turn("go").await;
        assert_eq!((report.status, scene.model.asked()), (TurnStatus::Completed, 2));
        let request = scene.model.request(1);
        assert_eq!(request[2].0, Role::Tool);
        for words in ["locked is set to deny", "shell is set to ask, and nobody can be asked", "read done: {}"] {
            assert!(request[2].1.contains(words), "{words}: {}", request[2].1);
        }
        let errors = find(&events, |kind| match kind {
            EventKind::ToolCallResult { is_error, .. } => Some(*is_error),
            _ => None,
        });
        assert_eq!(errors, [true, true, false]);
        let asked = find(&events, |kind| matches!(kind, EventKind::ToolConfirmationRequested { .. }).then_some(()));
        assert_eq!(asked.len(), 1, "only the tool that asks is asked for");
    }
}

#[tokio::test]
async fn a_turn_has_so_many_steps() {
    let model = ScriptedModel::new(vec![calls(&[("1", "read", "{}")], 1); 2]);
    let mut parts = tidegate_kit::parts(&model, vec![], rule_set(&[], |_| {}));
    parts.settings.max_steps = 2;
    let mut session = Session::open(parts).await.unwrap();
    let report = session.run(vec![flow::Message::user("go")], &turn::CancellationToken::new()).await;
    assert_eq!((report.status, model.asked()), (TurnStatus::StepLimit { steps: 2 }, 2));
    tidegate_kit::assert_valid(&session.history());
}

#[tokio::test]
async fn a_pause_asks_again_with_the_same_conversation() {
    let pause = Script::Say(blocks(&[(StreamKind::Text, "Wait")], 2, StopReason::Pause), Some(Ok(())));
    let mut scene = scene([pause, text(" for it.", 2)]);
    let (report, _) = scene.turn("go").await;
    assert_eq!((report.status, report.text.as_str(), report.place.step), (TurnStatus::Completed, "Wait for it.", 2));
    assert_eq!(scene.model.request(1), [(Role::User, "go".into()), (Role::Assistant, "Wait".into())]);
}

/// Answers with nothing a provider would take back leave nothing behind.
#[tokio::test]
async fn empty_answers_leave_no_message() {
    let thought = (StreamKind::Thinking, "Hm.");
    let answers: [&[(StreamKind, &str)]; 4] =
        [&[], &[(StreamKind::Text, "")], std::slice::from_ref(&thought), &[thought.clone(), (StreamKind::Text, " \n")]];
    for answer in answers {
        let deltas = blocks(answer, 1, StopReason::EndTurn);
        let mut scene = scene([Script::Say(deltas, Some(Ok(())))]);
        let (report, _) = scene.turn("go").await;
        assert_eq!((report.status, scene.session.history().len()), (TurnStatus::Completed, 1));
    }
}

#[tokio::test]
async fn tokens_of_every_attempt_are_counted() {
    let usage = |output| Delta::Usage(flow::Usage { output: Some(output), ..flow::Usage::default() });
    let with = |words, output| {
        let mut deltas = blocks(&[(StreamKind::Text, words)], 100, StopReason::EndTurn);
        deltas.insert(1, usage(output));
        Script::Say(deltas, Some(Ok(())))
    };
    let rules = rule_set(&[("r", "+++\ncondition = \"BAD\"\n+++\nNo.")], |_| {});
    let mut scene = Scene::new([with("BAD", 5), with("ok", 7)], vec![], rules);
    let (report, events) = scene.turn("go").await;
    assert_eq!(report.usage.output, Some(12));
    let step = find(&events, |kind| if let EventKind::StepFinish { usage, .. } = kind { usage.output } else { None });
    assert_eq!(step, [12]);
}
