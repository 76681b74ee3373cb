//! The handle of a session: none of its methods waits for a running turn, and no end of a turn loses anything.

use tidegate::input::WhenBusy;
use tidegate::message::TurnRunning;
use tidegate::{EventKind, Turn, TurnStatus};
use tokio::sync::mpsc;

use super::support::{Answer, Scripted, session, texts};

/// Reads events until some text was shown.
async fn shown(turn: &mut Turn) -> String {
    while let Some(event) = turn.next().await {
        if let EventKind::CognitionOutDelta { text, .. } = event.kind {
            return text;
        }
    }
    panic!("the turn ended without text")
}

async fn rest(turn: &mut Turn) -> usize {
    let mut count = 0;
    while turn.next().await.is_some() {
        count += 1;
    }
    count
}

#[tokio::test]
async fn a_prompt_streams_while_it_runs_and_blocks_nothing() {
    let (say, live) = mpsc::unbounded_channel();
    let model = Scripted::new([Answer::Live(live), Answer::Text("second")]);
    let (session, _folder) = session(&model).await;
    let other = session.clone();
    let mut first = session.prompt("one");
    say.send("half").unwrap();
    assert_eq!(shown(&mut first).await, "half");

    assert!(other.is_running());
    assert_eq!(texts(&other.history()), ["one"]);
    assert_eq!(other.replace_history(Vec::<tidegate::Message>::new()), Err(TurnRunning));
    let mut second = other.prompt("two");
    assert!(second.try_next().is_none(), "prompts run one after the other");
    drop(say);
    assert!(rest(&mut first).await > 0);
    assert_eq!(first.report().await.text, "half");
    assert_eq!(shown(&mut second).await, "second");
    assert_eq!((second.report().await.status, other.is_running()), (TurnStatus::Completed, false));
    assert_eq!(texts(&session.history()), ["one", "half", "two", "second"]);
    assert_eq!(model.requests()[1], ["one", "half", "two"]);
}

#[tokio::test]
async fn a_turn_runs_whether_or_not_its_events_are_read_and_each_turn_has_its_own() {
    let model = Scripted::new([Answer::Text("a"), Answer::Text("b")]);
    let (session, _folder) = session(&model).await;
    let mut all = session.subscribe();
    assert_eq!(session.prompt("one").report().await.text, "a");
    let mut second = session.prompt("two");
    let mut turns = Vec::new();
    while let Some(event) = second.next().await {
        turns.push(event.place.turn);
    }
    assert!(!turns.is_empty() && turns.iter().all(|turn| *turn == 2), "{turns:?}");
    session.close();
    let mut kinds = Vec::new();
    while let Some(event) = all.next().await {
        kinds.push((event.place.turn, event.kind));
    }
    assert!(matches!(kinds.last(), Some((2, EventKind::ThreadCompleted { turns: 2, .. }))), "{kinds:?}");
    let finished = kinds.iter().filter(|(_, kind)| matches!(kind, EventKind::TurnFinish { .. })).count();
    assert_eq!(finished, 2);
}

#[tokio::test]
async fn dropping_a_turn_cancels_it_and_detaching_does_not() {
    let (say, live) = mpsc::unbounded_channel();
    let model = Scripted::new([Answer::Live(live), Answer::Text("kept")]);
    let (session, _folder) = session(&model).await;
    let mut events = session.subscribe();
    let mut endless = session.prompt("never ends");
    say.send("half").unwrap();
    shown(&mut endless).await;
    drop(endless);
    session.prompt("runs on").detach();
    let mut ends = Vec::new();
    while ends.len() < 2 {
        if let Some(EventKind::TurnFinish { status }) = events.next().await.map(|event| event.kind) {
            ends.push(status);
        }
    }
    assert_eq!(ends, [TurnStatus::Cancelled, TurnStatus::Completed]);
    assert_eq!(texts(&session.history()).last().unwrap(), "kept");
}

#[tokio::test]
async fn cancel_stops_the_running_turn_and_those_that_wait() {
    let (say, live) = mpsc::unbounded_channel();
    let model = Scripted::new([Answer::Live(live), Answer::Text("after")]);
    let (session, _folder) = session(&model).await;
    let (mut first, second) = (session.prompt("one"), session.prompt("two"));
    say.send("half").unwrap();
    shown(&mut first).await;
    session.cancel();
    assert_eq!(first.report().await.status, TurnStatus::Cancelled);
    assert_eq!(second.report().await.status, TurnStatus::Cancelled);
    assert_eq!(model.requests().len(), 1, "the second prompt never reached the model");
    assert_eq!(session.prompt("three").report().await.text, "after");
    let history = texts(&session.history());
    assert!(history[1].starts_with("half") && history[1].contains("interrupted"), "{history:?}");
}

#[tokio::test]
async fn steering_reaches_the_running_turn_or_starts_one() {
    let (say, live) = mpsc::unbounded_channel();
    let model = Scripted::new([Answer::Live(live), Answer::Text("steered"), Answer::Text("alone")]);
    let (session, _folder) = session(&model).await;
    let mut turn = session.prompt("go");
    say.send("half").unwrap();
    shown(&mut turn).await;
    session.send("only in this file", WhenBusy::Steer);
    drop(say);
    assert_eq!(turn.report().await.text, "halfsteered");
    assert_eq!(model.requests()[1], ["go", "half", "only in this file"]);

    let mut events = session.subscribe();
    session.send("and now", WhenBusy::Steer);
    while !matches!(events.next().await.unwrap().kind, EventKind::TurnFinish { .. }) {}
    assert_eq!(texts(&session.history())[4..], ["and now", "alone"]);
}

#[tokio::test]
async fn a_cancelled_turn_keeps_its_steering_messages_and_sends_none() {
    let (say, live) = mpsc::unbounded_channel();
    let model = Scripted::new([Answer::Live(live), Answer::Text("done")]);
    let (session, _folder) = session(&model).await;
    let mut turn = session.prompt("go");
    say.send("half").unwrap();
    shown(&mut turn).await;
    session.send("later", WhenBusy::Steer);
    session.cancel();
    assert_eq!(turn.report().await.status, TurnStatus::Cancelled);
    assert_eq!((session.is_running(), model.requests().len()), (false, 1));
    assert_eq!(session.prompt("again").report().await.status, TurnStatus::Completed);
    assert_eq!(model.requests()[1][2..], ["again", "later"]);
}

#[tokio::test]
async fn a_closed_session_ends_every_wait() {
    let (_say, live) = mpsc::unbounded_channel();
    let model = Scripted::new([Answer::Live(live)]);
    let (session, _folder) = session(&model).await;
    let mut events = session.subscribe();
    let (first, mut second) = (session.prompt("one"), session.prompt("two"));
    session.close();
    assert_eq!(first.report().await.status, TurnStatus::Cancelled);
    assert_eq!(second.next().await, None);
    for turn in [second, session.prompt("three")] {
        let TurnStatus::Failed { message, .. } = turn.report().await.status else { panic!("it ran") };
        assert!(message.contains("the session is closed"), "{message}");
    }
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event.kind);
    }
    assert!(matches!(last, Some(EventKind::ThreadCancelled { .. })), "its last turn was cancelled: {last:?}");
}

/// The runtime goes while a turn runs: who waits elsewhere must not wait for ever.
#[test]
fn a_runtime_that_shuts_down_ends_every_wait() {
    let (_say, live) = mpsc::unbounded_channel();
    let model = Scripted::new([Answer::Live(live)]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (session, _folder) = runtime.block_on(session(&model));
    let mut turn = session.prompt("never ends");
    runtime.block_on(async {
        while turn.try_next().is_none() {
            tokio::task::yield_now().await;
        }
    });
    runtime.shutdown_background();
    let waiting = session.prompt("two");
    let elsewhere = tokio::runtime::Runtime::new().unwrap();
    for turn in [turn, waiting, session.prompt("three")] {
        let report = elsewhere.block_on(turn.report());
        assert!(matches!(report.status, TurnStatus::Failed { .. }), "{report:?}");
    }
}
