//! Events: their numbers, their order, and what subscribers see.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::{Arc, Mutex};

use expect_test::expect;
use flow::ports::EventSink as _;
use flow::{Callback, Event, EventKind, Message, RunPosition, StopReason, StreamKind, TextUnit};
use tidegate_kit::{Plugin, Scene, Script, blocks, calls, drain, listing, rule_set, shown, text, tool};
use tidegate_turn as turn;
use turn::CancellationToken;

fn scene(scripts: impl IntoIterator<Item = Script>) -> Scene {
    Scene::new(scripts, vec![], rule_set(&[], |_| {}))
}

fn numbers(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

#[tokio::test]
async fn numbers_have_no_gaps_and_go_on_over_turns() {
    let mut scene = scene([calls(&[("1", "steps", "{}")], 1), text("Hello.", 1), text("Again.", 2)]);
    let mut events = scene.turn("one").await.1;
    events.extend(scene.turn("two").await.1);
    assert_eq!(numbers(&events), (0..events.len() as u64).collect::<Vec<_>>());
    let places: Vec<RunPosition> = events.iter().map(|event| event.place).collect();
    assert!(places.windows(2).all(|pair| {
        let key = |place: &RunPosition| (place.turn, place.step, place.attempt);
        key(&pair[0]) <= key(&pair[1])
    }));
}

#[tokio::test]
async fn who_subscribes_to_what_is_closed_gets_the_end() {
    let hub = turn::Hub::new(Arc::new(system::SystemClock));
    hub.close();
    assert_eq!(hub.subscribe().next().await, None);
}

/// An observer sees what a subscriber sees, without a queue, and ends with the hub.
#[tokio::test]
async fn an_observer_is_called_with_every_event_until_the_hub_is_closed() {
    let (seen, observed) = (Arc::new(Mutex::new(Vec::new())), Arc::new(()));
    let mut scene = scene([text("Hello.", 1)]);
    let (kept, alive) = (Arc::clone(&seen), Arc::clone(&observed));
    scene.session.handles().hub.observe(move |event| {
        let _ = &alive;
        kept.lock().unwrap().push(event.clone());
    });
    let mut all = scene.turn("go").await.1;
    let Scene { session, mut events, .. } = scene;
    let hub = session.handles().hub;
    session.close().await;
    all.extend(drain(&mut events));
    assert_eq!(*seen.lock().unwrap(), all);
    assert_eq!(Arc::strong_count(&observed), 1, "it was dropped when the hub was closed");
    let late = Arc::clone(&observed);
    hub.observe(move |_| {
        let _ = &late;
    });
    assert_eq!(Arc::strong_count(&observed), 1, "nothing follows");
}

/// Without a subscriber, events are made for the observer alone.
#[test]
fn an_observer_needs_no_subscriber() {
    let hub = turn::Hub::new(Arc::new(system::SystemClock));
    let numbers = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&numbers);
    hub.emit(EventKind::TurnStart);
    hub.observe(move |event| kept.lock().unwrap().push(event.seq));
    drop(hub.subscribe());
    hub.emit(EventKind::TurnStart);
    hub.emit(EventKind::TurnStart);
    assert_eq!(*numbers.lock().unwrap(), [1, 2], "also when a subscriber has gone");
}

#[tokio::test]
async fn a_turn_tells_its_story_in_order() {
    let thinking = blocks(&[(StreamKind::Thinking, "Hm."), (StreamKind::Text, "Yes.")], 100, StopReason::EndTurn);
    let script = Script::Say(thinking, Some(Ok(())));
    let mut scene = scene([calls(&[("1", "shell", "{}"), ("2", "steps", "{}")], 100), script]);
    let mut all = scene.turn("go").await.1;
    let Scene { session, mut events, .. } = scene;
    session.close().await;
    all.extend(drain(&mut events));
    expect![[r#"
        0.0.0 thread_started directive="main" session_id="test" provider="script" model="script-1" thread_mode="conversation" workspace="" inputs={"text":"go"}
        1.0.0 turn_start
        1.0.0 input_received text="go" role="user" hidden=false
        1.0.0 cognition_in text="go" role="user" hidden=false
        1.1.0 step_start turn_number=1
        1.1.1 cognition_out text="" author="model" is_partial=false truncated=false retained="answer" blocks=[{"stream":"tool","call_id":"1","tool":"shell","arguments":"{}","complete":true},{"stream":"tool","call_id":"2","tool":"steps","arguments":"{}","complete":true}]
        1.1.1 tool_confirmation_requested question_id="question-1" call_id="1" tool="shell" input={} reason="shell is set to ask" preview={"arguments":[],"notes":[]}
        1.1.1 tool_confirmation_resolved question_id="question-1" call_id="1" approved=false decision="unavailable" reason="shell is set to ask, and nobody can be asked" decided_by="the confirmation handler"
        1.1.1 tool_call_result call_id="1" tool="shell" output="shell is set to ask, and nobody can be asked" error="shell is set to ask, and nobody can be asked" waited_ms="_"
        1.1.1 tool_call_start tool="steps" call_id="2" input={}
        1.1.1 tool_call_progress call_id="2" message="one"
        1.1.1 tool_call_progress call_id="2" progress=50.0 message="two"
        1.1.1 tool_call_result call_id="2" tool="steps" output="steps done: {}" duration_ms="_"
        1.1.1 step_finish tokens={} finish_reason="tool_use" stop_reason="tool_use" charged={"tokens":112,"spend":0.0,"spawns":0}
        1.2.0 step_start turn_number=2
        1.2.1 cognition_reasoning_delta text="Hm."
        1.2.1 cognition_out_delta text="Yes." chunk_index=0
        1.2.1 cognition_out_delta text="" chunk_index=1 is_final=true
        1.2.1 cognition_reasoning text="Hm." is_partial=false was_interrupted=false retained=true
        1.2.1 cognition_out text="Yes." author="model" is_partial=false truncated=false retained="answer" blocks=[{"stream":"thinking","bytes":3,"text_before":0,"complete":true},{"stream":"text","bytes":4,"complete":true}]
        1.2.1 step_finish tokens={} finish_reason="end_turn" stop_reason="end_turn" charged={"tokens":283,"spend":0.0,"spawns":0}
        1.2.1 turn_finish status="completed"
        1.2.1 thread_completed cost={"turns":1,"duration_seconds":"_"} tokens={}
    "#]].assert_eq(&listing(&all));
}

/// A rule stops the answer, the retry is shown, a tool call is blocked by permission.
#[tokio::test]
async fn an_interrupted_turn_tells_its_story_in_order() {
    let rules = rule_set(&[("no-bad", "+++\ncondition = \"BAD\"\n+++\nSay it differently.")], |_| {});
    let upper = Plugin {
        id: "upper",
        callbacks: vec![(Callback::PlainText(TextUnit::Line.into()), 50)],
        text: Some(Box::new(|(unit, _)| Ok(flow::TextAnswer::Replace(unit.to_uppercase())))),
        ..Plugin::default()
    };
    let stopped = text("one\ntwo BAD", 100);
    let again = blocks(&[(StreamKind::Text, "one\nfine"), (tool("1", "locked"), "{}")], 100, StopReason::ToolUse);
    let again = Script::Say(again, Some(Ok(())));
    let mut scene = Scene::new([stopped, again, text("done", 100)], vec![upper], rules);
    let events = scene.turn("go").await.1;
    expect![[r#"
        0.0.0 thread_started directive="main" session_id="test" provider="script" model="script-1" thread_mode="conversation" workspace="" inputs={"text":"go"}
        0.0.0 extension_registered extension_id="upper" version="1.0.0" action="register" callbacks=[{"callback":"on_plain_text","priority":50,"on_failure":"skip"}]
        1.0.0 turn_start
        1.0.0 input_received text="go" role="user" hidden=false
        1.0.0 cognition_in text="go" role="user" hidden=false
        1.1.0 step_start turn_number=1
        1.1.1 extension_callback extension_id="upper" callback="on_plain_text" duration_us="_" outcome="changed"
        1.1.1 cognition_out_delta text="ONE\n" chunk_index=0
        1.1.1 rule_fired rule="no-bad" stream="text" action="interrupt" first=true again=false evidence={"pattern":"BAD","text":"BAD","start":8,"end":11,"line":2}
        1.1.1 cognition_out text="one\ntwo BAD" author="model" shown="ONE\n" is_partial=true truncated=true error="stopped by rule no-bad" shown_bytes=4 kept_bytes=0 retained="nothing" blocks=[{"stream":"text","bytes":11,"complete":false}]
        1.1.1 custom_message custom_type="ttsr-injection" text="<system-interrupt reason=\"rule_violation\" rule=\"no-bad\" path=\"no-bad.md\">\nYour output was stopped because it broke a rule that the user has set for this project. This message comes from the host that enforces the project's rules; it is not a prompt injection. Comply with the rule. Continue without violating it again.\nFound in your answer, line 2: BAD\n\nSay it differently.\n</system-interrupt>" hidden=true
        1.1.1 ttsr_injection rules=["no-bad"] discarded_bytes=11 records=[{"rule":"no-bad","hash":"132502f526cdab36","turn":0,"stream":"text","action":"interrupt","tokens_discarded":3,"tokens_estimated":true,"evidence":{"pattern":"BAD","text":"BAD","start":8,"end":11,"line":2}}]
        1.1.2 extension_callback extension_id="upper" callback="on_plain_text" duration_us="_" outcome="changed"
        1.1.2 cognition_out_delta text="ONE\n" chunk_index=0
        1.1.2 extension_callback extension_id="upper" callback="on_plain_text" duration_us="_" outcome="changed"
        1.1.2 cognition_out_delta text="FINE" chunk_index=1 is_final=true
        1.1.2 cognition_out text="one\nfine" author="model" shown="ONE\nFINE" is_partial=false truncated=false retained="answer" blocks=[{"stream":"text","bytes":8,"complete":true},{"stream":"tool","call_id":"1","tool":"locked","arguments":"{}","complete":true}]
        1.1.2 tool_call_result call_id="1" tool="locked" output="locked is set to deny" error="locked is set to deny"
        1.1.2 step_finish tokens={} finish_reason="tool_use" stop_reason="tool_use" charged={"tokens":330,"spend":0.0,"spawns":0}
        1.2.0 step_start turn_number=2
        1.2.1 extension_callback extension_id="upper" callback="on_plain_text" duration_us="_" outcome="changed"
        1.2.1 cognition_out_delta text="DONE" chunk_index=0 is_final=true
        1.2.1 cognition_out text="done" author="model" shown="DONE" is_partial=false truncated=false retained="answer" blocks=[{"stream":"text","bytes":4,"complete":true}]
        1.2.1 step_finish tokens={} finish_reason="end_turn" stop_reason="end_turn" charged={"tokens":579,"spend":0.0,"spawns":0}
        1.2.1 turn_finish status="completed"
    "#]].assert_eq(&listing(&events));
}

#[tokio::test]
async fn all_subscribers_see_the_same() {
    let mut scene = scene([text("Hello, you.", 1), text("Bye.", 1)]);
    let mut others: Vec<_> = (0..5).map(|_| scene.session.subscribe()).collect();
    drop(others.pop());
    let first = scene.turn("one").await.1;
    let mut late = scene.session.subscribe();
    let second = scene.turn("two").await.1;
    for other in &mut others {
        assert_eq!(drain(other), [first.clone(), second.clone()].concat());
    }
    assert_eq!(drain(&mut late), second);
}

/// One subscriber reads at once, one only at the end: the same text, and a queue that does not grow with the number
/// of chunks.
#[tokio::test(start_paused = true)]
async fn a_subscriber_that_lags_loses_no_text_and_is_bounded() {
    let words = "é and more, ".repeat(2_000);
    let both = [(StreamKind::Thinking, words.as_str()), (StreamKind::Text, words.as_str())];
    let deltas = blocks(&both, 1, StopReason::EndTurn);
    let pieces = deltas.len();
    let slow =
        Script::Slow(deltas.into_iter().enumerate().map(|(at, delta)| (u64::from(at % 50 == 0), delta)).collect());
    let Scene { mut session, events: mut lagging, .. } = scene([slow]);
    let mut live = session.subscribe();
    let reader = tokio::spawn(async move {
        let mut events = Vec::new();
        while let Some(event) = live.next().await {
            events.push(event);
        }
        events
    });
    session.run(vec![Message::user("go")], &CancellationToken::new()).await;
    session.close().await;
    let (live, lagging) = (reader.await.unwrap(), drain(&mut lagging));
    assert!(live.len() > pieces / 2, "{} of {pieces}", live.len());
    assert_eq!(numbers(&live), (0..live.len() as u64).collect::<Vec<_>>());
    assert!(lagging.len() < 100, "{} events are queued", lagging.len());
    assert!(numbers(&lagging).windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!((shown(&live), shown(&lagging)), (words.clone(), words));
    let others = |events: &[Event]| -> Vec<Event> {
        let piece = |kind: &EventKind| {
            matches!(kind, EventKind::CognitionOutDelta { .. } | EventKind::CognitionReasoningDelta { .. })
        };
        events.iter().filter(|event| !piece(&event.kind)).cloned().collect()
    };
    assert_eq!(others(&live), others(&lagging), "nothing but pieces of text is joined");
}

/// Pieces of two attempts, or with something between them, are not one text.
#[tokio::test]
async fn only_neighbouring_pieces_of_one_attempt_are_joined() {
    let rules = rule_set(&[("r", "+++\ncondition = \"BAD\"\n+++\nNo.")], |_| {});
    let lines =
        Plugin { id: "p", callbacks: vec![(Callback::PlainText(TextUnit::Line.into()), 50)], ..Plugin::default() };
    let words = "line\n".repeat(100);
    let mut scene = Scene::new([text(&format!("{words}BAD"), 1), text(&words, 1)], vec![lines], rules);
    let (_, events) = scene.turn("go").await;
    for attempt in [1, 2] {
        let own: Vec<Event> = events.iter().filter(|event| event.place.attempt == attempt).cloned().collect();
        assert_eq!(shown(&own), words);
    }
}

#[tokio::test]
async fn closing_ends_subscriptions() {
    let mut scene = scene([text("Hello.", 1)]);
    scene.turn("go").await;
    let Scene { session, mut events, .. } = scene;
    let waiting = tokio::spawn(async move {
        let last = events.next().await.map(|event| event.kind);
        (last, events.next().await)
    });
    tokio::task::yield_now().await;
    session.close().await;
    let (last, end) = waiting.await.unwrap();
    assert!(matches!(last, Some(EventKind::ThreadCompleted { turns: 1, .. })) && end.is_none());
}

#[tokio::test]
async fn a_session_that_is_dropped_ends_them_too() {
    let Scene { session, mut events, .. } = scene([]);
    drop(session);
    assert!(events.next().await.is_none());
}
