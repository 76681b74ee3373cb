//! Inputs that wait: queued, steered, edited, removed and taken back, by any number of front ends, over cancels and processes.

use std::sync::Arc;

use tempfile::TempDir;
use tidegate::chat::ChatSession;
use tidegate::event::Backlog;
use tidegate::input::{FlushMode, InputEditError, InputId, InputWay, NewInput, Receipt, WhenBusy};
use tidegate::message::{Image, Part};
use tidegate::model::Model;
use tidegate::{EventKind, Message, Session, SessionId, SessionOptions, Subscription, Turn, TurnStatus};
use tokio::sync::mpsc;

use super::support::{Answer, Scripted, builder, session, texts};
use super::transcripts::{host, options};

/// The start of a PNG.
const DOT: &str = "iVBORw0KGgo=";

/// A session whose model is writing, and what it writes with.
async fn busy(answers: Vec<Answer>) -> (Session, Arc<Scripted>, mpsc::UnboundedSender<&'static str>, Turn, TempDir) {
    let (say, live) = mpsc::unbounded_channel();
    let model = Scripted::new([Answer::Live(live)].into_iter().chain(answers));
    let (session, folder) = session(&model).await;
    let turn = running(&session, &say).await;
    (session, model, say, turn, folder)
}

/// Starts a turn whose model has written `half`.
async fn running(session: &Session, say: &mpsc::UnboundedSender<&'static str>) -> Turn {
    let mut turn = session.prompt("go");
    say.send("half").unwrap();
    while !matches!(turn.next().await.unwrap().kind, EventKind::CognitionOutDelta { .. }) {}
    turn
}

/// Waits for the end of so many turns.
async fn turns(events: &mut Subscription, count: usize) -> Vec<TurnStatus> {
    let mut ends = Vec::new();
    while ends.len() < count {
        if let EventKind::TurnFinish { status } = events.next().await.unwrap().kind {
            ends.push(status);
        }
    }
    ends
}

fn waiting(session: &Session) -> Vec<String> {
    session.inbox().waiting().iter().map(|input| input.message.plain_text()).collect()
}

fn is_delivered(session: &Session, id: &InputId) -> bool {
    matches!(session.inbox().receipt(id), Some(Receipt::Delivered { .. }))
}

/// Case 6 of the specification.
#[tokio::test]
async fn a_cancel_sends_nothing_of_the_queue_and_loses_nothing_of_it() {
    let (session, model, _say, turn, _folder) = busy(vec![Answer::Text("five"), Answer::Text("more")]).await;
    let ids = ["one", "two", "three", "four"].map(|text| session.inbox().queue(text));
    session.cancel();
    assert_eq!(turn.report().await.status, TurnStatus::Cancelled);
    assert_eq!(
        (session.is_running(), waiting(&session)),
        (false, ["one", "two", "three", "four"].map(str::to_owned).into())
    );
    assert!(ids.iter().all(|id| session.inbox().receipt(id) == Some(Receipt::Queued)));
    assert_eq!(model.requests().len(), 1);
    // A message that is queued now waits behind them.
    session.inbox().queue("five");
    assert_eq!((session.is_running(), waiting(&session).len()), (false, 5));

    assert_eq!(session.inbox().take_back(&ids[1]).unwrap().plain_text(), "two");
    assert_eq!(session.inbox().receipt(&ids[1]), Some(Receipt::Returned));
    let error = session.inbox().remove(&ids[1]).unwrap_err();
    assert_eq!(error.to_string(), "the input `input-3` does not wait: it was given back");
    session.inbox().remove(&ids[2]).unwrap();
    let mut events = session.subscribe();
    assert_eq!(session.inbox().flush(), [ids[0].clone()]);
    assert_eq!(turns(&mut events, 3).await, [TurnStatus::Completed, TurnStatus::Completed, TurnStatus::Completed]);
    assert_eq!(model.requests().last().unwrap()[2..], ["one", "five", "four", "more", "five"]);
    assert_eq!((waiting(&session).len(), session.inbox().flush()), (0, vec![]));
}

#[tokio::test]
async fn a_completed_turn_sends_the_next_in_the_order_in_which_they_came() {
    let (session, model, say, turn, _folder) = busy(vec![]).await;
    let mut events = session.subscribe();
    let first = session.inbox().queue("first");
    let second = session.prompt("second");
    let third = session.inbox().queue("third");
    let ways: Vec<InputWay> = session.inbox().waiting().iter().map(|input| input.way).collect();
    assert_eq!(ways, [InputWay::Queue, InputWay::Prompt, InputWay::Queue]);
    assert_eq!(session.inbox().receipt(&second.inputs()[0]), Some(Receipt::Queued));
    let late = session.send("late", WhenBusy::Steer).id;
    drop(say);
    assert_eq!(turn.report().await.status, TurnStatus::Completed);
    assert_eq!(second.report().await.status, TurnStatus::Completed);
    turns(&mut events, 4).await;
    let last = model.requests().pop().unwrap();
    let own: Vec<_> = last.iter().filter(|text| *text != "nothing more").collect();
    assert_eq!(own, ["go", "half", "late", "first", "second", "third"]);
    assert!([first, late, third].iter().all(|id| is_delivered(&session, id)));
}

#[tokio::test]
async fn a_batched_queue_is_one_input() {
    let (say, live) = mpsc::unbounded_channel();
    let model = Scripted::new([Answer::Live(live)]);
    let folder = TempDir::new().unwrap();
    let host = builder("").open().await.unwrap();
    let options = SessionOptions::new(folder.path()).model(Arc::clone(&model) as Arc<dyn Model>);
    let session = host.session(options.flush_mode(FlushMode::Batched)).await.unwrap();
    let mut events = session.subscribe();
    let _turn = running(&session, &say).await;
    session.inbox().queue("one");
    session.send("two", WhenBusy::Queue);
    drop(say);
    turns(&mut events, 2).await;
    assert_eq!(model.requests()[1], ["go", "half", "one", "two"]);
}

#[tokio::test]
async fn what_is_flushed_while_a_turn_runs_joins_it() {
    let (session, model, say, turn, _folder) = busy(vec![]).await;
    session.inbox().queue("one");
    let second = session.inbox().queue("two");
    assert_eq!(session.inbox().flush().len(), 1);
    assert_eq!(session.inbox().waiting()[0].way, InputWay::Steer);
    drop(say);
    turn.report().await;
    assert_eq!(model.requests()[1], ["go", "half", "one"]);
    while !is_delivered(&session, &second) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_interrupt_stops_the_answer_and_the_turn_continues() {
    let (session, model, _say, turn, _folder) = busy(vec![Answer::Text("done")]).await;
    let id = session.send("stop", WhenBusy::Interrupt).id;
    let report = turn.report().await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "done"));
    assert_eq!(model.requests()[1], ["go", "half\n\n[Stream interrupted: the user interrupted it]", "stop"]);
    let Some(Receipt::Delivered { place, .. }) = session.inbox().receipt(&id) else {
        panic!("{:?}", session.inbox().receipt(&id))
    };
    assert_eq!((place.turn, place.step), (1, 1));
    // Where nothing runs, it starts a turn.
    let mut events = session.subscribe();
    session.send("and now", WhenBusy::Interrupt);
    turns(&mut events, 1).await;
    assert_eq!(texts(&session.history())[4..], ["and now", "nothing more"]);
}

#[tokio::test]
async fn a_cancel_gives_the_prompts_back_that_wait() {
    let (session, model, _say, turn, _folder) = busy(vec![]).await;
    let (second, third) = (session.prompt("two"), session.prompt("three"));
    let id = second.inputs()[0].clone();
    session.inbox().remove(&third.inputs()[0]).unwrap();
    session.cancel();
    assert_eq!(turn.report().await.status, TurnStatus::Cancelled);
    assert_eq!(second.report().await.status, TurnStatus::Cancelled);
    assert_eq!(third.report().await.status, TurnStatus::Cancelled);
    assert_eq!((session.inbox().receipt(&id), session.inbox().waiting()), (Some(Receipt::Returned), vec![]));
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn a_prompt_that_was_removed_or_dropped_does_not_run() {
    let (session, model, say, turn, _folder) = busy(vec![]).await;
    let (second, third, fourth) = (session.prompt("two"), session.prompt("three"), session.prompt("four"));
    let dropped = third.inputs()[0].clone();
    session.inbox().remove(&second.inputs()[0]).unwrap();
    session.inbox().edit(&fourth.inputs()[0], "4").unwrap();
    drop(third);
    drop(say);
    assert_eq!(turn.report().await.status, TurnStatus::Completed);
    assert_eq!(second.report().await.status, TurnStatus::Cancelled);
    assert_eq!(fourth.report().await.status, TurnStatus::Completed);
    assert_eq!(session.inbox().receipt(&dropped), Some(Receipt::Returned));
    assert_eq!(model.requests()[1..], [["go", "half", "4"]]);
}

#[tokio::test]
async fn a_prompt_that_is_blank_fails_and_one_with_a_blank_message_among_others_does_not() {
    let (session, model, say, turn, _folder) = busy(vec![]).await;
    drop(say);
    assert_eq!(turn.report().await.status, TurnStatus::Completed);
    for blank in [vec![""], vec![" \n"], vec!["", "\t"]] {
        let messages: Vec<Message> = blank.iter().map(|text| Message::user(*text)).collect();
        let status = session.prompt(messages).report().await.status;
        assert!(
            matches!(&status, TurnStatus::Failed { message, .. } if message.contains("is blank")),
            "{blank:?}: {status:?}"
        );
    }
    assert_eq!(model.requests().len(), 1);
    let some = vec![Message::user(""), Message::user("two")];
    assert_eq!(session.prompt(some).report().await.status, TurnStatus::Completed);
}

/// However a blank message is handed over, it is given back: no turn begins with it, and it joins none.
#[tokio::test]
async fn a_blank_message_is_not_taken() {
    let (session, model, say, turn, _folder) = busy(vec![]).await;
    let own = InputId::new("mine");
    session.send(NewInput::from("later").id(own.clone()), WhenBusy::Queue);
    let hand_over = |receipt_of_own: Receipt| {
        for blank in ["", " \n\t", "\u{200b}\u{feff}"] {
            for busy in [WhenBusy::Steer, WhenBusy::Queue, WhenBusy::Interrupt] {
                let sent = session.send(blank, busy);
                assert!(!sent.started, "{blank:?}, {busy:?}");
                assert_eq!(session.inbox().receipt(&sent.id), Some(Receipt::Returned), "{blank:?}, {busy:?}");
                let other = session.send(NewInput::from(blank).id(own.clone()), busy);
                assert_eq!(session.inbox().receipt(&other.id), Some(receipt_of_own), "that of the message before");
            }
            let id = session.inbox().queue(blank);
            assert_eq!(session.inbox().receipt(&id), Some(Receipt::Returned), "{blank:?}");
            assert!(session.inbox().join_turn(blank).is_err(), "{blank:?}");
        }
    };
    hand_over(Receipt::Queued);
    for blank in ["", " \n\t", "\u{200b}"] {
        let error = session.inbox().edit(&own, blank).unwrap_err();
        assert_eq!(error, InputEditError::Blank { id: own.clone() }, "{blank:?}");
    }
    assert_eq!(waiting(&session), ["later"]);
    let parts = vec![Part::Text("Look".to_owned()), Part::Image(Image::new("image/png", DOT).unwrap())];
    let image = session.inbox().queue(Message { parts, ..Message::user("") });
    session.inbox().edit(&image, " ").unwrap();
    assert_eq!(waiting(&session), ["later", " "]);
    session.inbox().remove(&image).unwrap();
    let gone = session.inbox().edit(&image, "").unwrap_err();
    assert!(matches!(gone, InputEditError::NotWaiting(_)), "{gone:?}");
    session.inbox().remove(&own).unwrap();
    drop(say);
    assert_eq!(turn.report().await.status, TurnStatus::Completed);
    hand_over(Receipt::Removed);
    assert!(!session.is_running() && waiting(&session).is_empty());
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn two_front_ends_edit_one_message_and_see_the_same() {
    let (session, model, say, turn, _folder) = busy(vec![]).await;
    let (one, two) = (session.clone(), session.clone());
    let mut events = [one.subscribe(), two.subscribe()];
    let id = one.inbox().queue("draft");
    let texts: Vec<String> = (0..20).map(|number| format!("text {number}")).collect();
    std::thread::scope(|scope| {
        for front_end in [&one, &two] {
            let (id, texts) = (id.clone(), &texts);
            scope.spawn(move || texts.iter().for_each(|text| front_end.inbox().edit(&id, text).unwrap()));
        }
    });
    let last = session.inbox().waiting()[0].message.plain_text();
    drop(say);
    turn.report().await;
    let mut seen = Vec::new();
    for events in &mut events {
        let mut edits = Vec::new();
        loop {
            match events.next().await.unwrap().kind {
                EventKind::InputEdited { text, .. } => edits.push(text),
                EventKind::InputReceived { id: Some(of), message } if of == id => {
                    assert_eq!(edits.last(), Some(&message.plain_text()), "what was edited last is what is delivered");
                    break;
                }
                _ => {}
            }
        }
        seen.push(edits);
    }
    assert_eq!((seen[0].len(), &seen[0], seen[0].last()), (40, &seen[1], Some(&last)));
    while session.is_running() {
        tokio::task::yield_now().await;
    }
    assert_eq!(model.requests()[1][2], last);
}

/// Case 7 of the specification, over many interleavings: a front end on a thread of its own removes a message while the turn takes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_removed_while_it_is_delivered_is_one_or_the_other() {
    let (mut removed, mut delivered) = (0, 0);
    for round in 0..200_u32 {
        let (session, model, say, turn, _folder) = busy(vec![]).await;
        let id = if round % 2 == 0 { session.send("now", WhenBusy::Steer).id } else { session.inbox().queue("now") };
        let front_end = session.clone();
        let of = id.clone();
        let remover = std::thread::spawn(move || {
            for _ in 0..round * 40 {
                std::hint::spin_loop();
            }
            front_end.inbox().remove(&of)
        });
        drop(say);
        turn.report().await;
        let result = remover.join().unwrap();
        while session.is_running() || session.inbox().receipt(&id) == Some(Receipt::Queued) {
            tokio::task::yield_now().await;
        }
        let times = texts(&session.history()).iter().filter(|text| *text == "now").count();
        match (&result, session.inbox().receipt(&id)) {
            (Ok(()), Some(Receipt::Removed)) => {
                assert_eq!((times, model.requests().len()), (0, 1));
                removed += 1;
            }
            (Err(error), Some(Receipt::Delivered { .. })) => {
                assert_eq!(times, 1, "{error}");
                delivered += 1;
            }
            other => panic!("round {round}: {other:?}"),
        }
    }
    assert_eq!(removed + delivered, 200);
}

#[tokio::test]
async fn an_input_with_an_id_is_taken_once() {
    let (session, model, say, turn, _folder) = busy(vec![]).await;
    let input = || NewInput::from("once").id(InputId::new("ui-1"));
    assert_eq!(session.send(input(), WhenBusy::Steer).id, session.inbox().queue(input()));
    assert_eq!(session.inbox().waiting().len(), 1);
    drop(say);
    turn.report().await;
    assert!(is_delivered(&session, &InputId::new("ui-1")));
    session.send(input(), WhenBusy::Steer);
    let again = session.prompt(input()).report().await;
    let TurnStatus::Failed { message, .. } = again.status else { panic!("{again:?}") };
    assert_eq!(message, "the session has taken an input with this id before");
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn a_closed_session_takes_nothing() {
    let (session, _model, _say, turn, _folder) = busy(vec![]).await;
    let (queued, prompt) = (session.inbox().queue("later"), session.prompt("too"));
    session.close();
    assert_eq!(turn.report().await.status, TurnStatus::Cancelled);
    session.closed().await;
    let refused = session.send("more", WhenBusy::Steer).id;
    assert_eq!(session.inbox().receipt(&refused), Some(Receipt::Returned));
    assert_eq!(session.inbox().receipt(&prompt.inputs()[0]), Some(Receipt::Returned));
    assert_eq!(session.inbox().receipt(&queued), Some(Receipt::Queued), "another process continues with it");
    assert!(session.inbox().edit(&queued, "x").is_err() && session.inbox().flush().is_empty());
}

#[tokio::test]
async fn what_waits_outlives_the_process_and_is_not_a_forks() {
    let folder = TempDir::new().unwrap();
    let (say, live) = mpsc::unbounded_channel();
    let model = Scripted::new([Answer::Live(live), Answer::Text("two"), Answer::Text("three"), Answer::Text("forked")]);
    let first = host(&folder).await;
    let session = first.session(options(&folder, &model)).await.unwrap();
    let turn = running(&session, &say).await;
    let (queued, removed) = (session.inbox().queue("later"), session.inbox().queue("never"));
    let steered = session.send(NewInput::from("now").id(InputId::new("ui-1")), WhenBusy::Steer).id;
    session.inbox().edit(&queued, "later!").unwrap();
    session.inbox().remove(&removed).unwrap();
    session.close();
    turn.report().await;
    session.closed().await;
    drop((session, first));

    let second = host(&folder).await;
    let session = second.session(options(&folder, &model)).await.unwrap();
    let all: Vec<_> = session.inbox().waiting().into_iter().map(|input| (input.id, input.way)).collect();
    assert_eq!(all, [(queued.clone(), InputWay::Queue), (steered.clone(), InputWay::Steer)]);
    assert_eq!(waiting(&session), ["later!", "now"]);
    assert_eq!(session.inbox().receipt(&removed), Some(Receipt::Removed));
    assert!(!session.is_running() && model.requests().len() == 1, "nothing is sent on its own");
    let mut events = session.subscribe();
    let next = session.prompt("again");
    assert!(![&queued, &removed, &steered].contains(&&next.inputs()[0]), "ids do not repeat");
    next.detach();
    turns(&mut events, 2).await;
    assert_eq!(model.requests()[1][2..], ["again", "now"]);
    assert_eq!(model.requests()[2][4..], ["two", "later!"]);
    assert!(is_delivered(&session, &queued) && is_delivered(&session, &steered));
    session.inbox().queue("one more");
    turns(&mut events, 1).await;
    session.close();
    session.closed().await;

    let child = SessionId::new("fork");
    second.fork(&SessionId::new("chat"), 1, &child).await.unwrap();
    let fork = second.session(options(&folder, &model).id(child)).await.unwrap();
    assert_eq!(waiting(&fork), Vec::<String>::new(), "what waited at the end of turn 1 is the parent's");
}

/// The number of the first event after a cut is that of the event which reports the input.
#[tokio::test]
async fn a_snapshot_has_an_input_that_waits_again_as_soon_as_that_is_reported() {
    let folder = TempDir::new().unwrap();
    let (say, live) = mpsc::unbounded_channel();
    let model = Scripted::new([Answer::Live(live)]);
    let first = host(&folder).await;
    let session = first.session(options(&folder, &model)).await.unwrap();
    let turn = running(&session, &say).await;
    session.close();
    turn.report().await;
    session.closed().await;
    drop((session, first));
    let path = folder.path().join("sessions/chat/transcript.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let end = text.find("\"input_received\"").and_then(|at| Some(at + text[at..].find('\n')? + 1)).unwrap();
    std::fs::write(&path, &text[..end]).unwrap();

    let second = host(&folder).await;
    let session = second.session(options(&folder, &model).backlog(Backlog::default())).await.unwrap();
    assert_eq!(waiting(&session), ["go"]);
    let reported = |text: String| text[end..].contains("\"input_queued\"");
    while !reported(std::fs::read_to_string(&path).unwrap()) {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let mut events = session.subscribe_from(0).unwrap();
    let mut chat = ChatSession::default();
    let _changed = chat.restore(events.snapshot.take().unwrap().chat);
    session.inbox().queue("later");
    let shown = |chat: &ChatSession| -> Vec<String> {
        chat.snapshot().steering.waiting().iter().map(|input| input.text.to_string()).collect()
    };
    while !shown(&chat).contains(&"later".to_owned()) {
        let _changed = chat.process(&events.events.next().await.unwrap());
    }
    assert_eq!(shown(&chat), ["go", "later"]);
}

/// Case 4 of the specification: at the last instant of a turn, the message is delivered once, by that turn or as the next one; and what is
/// returned says whether it has started a turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_at_the_last_instant_of_a_turn_is_delivered_once() {
    let host = builder("").open().await.unwrap();
    let folder = TempDir::new().unwrap();
    for round in 0..200_u64 {
        let (say, live) = mpsc::unbounded_channel();
        let model = Scripted::new([Answer::Live(live), Answer::Text("next")]);
        let options = SessionOptions::new(folder.path()).model(Arc::clone(&model) as Arc<dyn Model>);
        let session = host.session(options).await.unwrap();
        let mut events = session.subscribe();
        let turn = running(&session, &say).await;
        let steering = session.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_micros(round * 5));
            let send = |input: NewInput| {
                let sent = steering.send(input, WhenBusy::Steer);
                (sent.id, sent.started)
            };
            match round % 2 {
                0 => send("late".into()),
                _ => steering.inbox().join_turn("late").map_or_else(send, |id| (id, false)),
            }
        });
        drop(say);
        let (id, has_started) = thread.join().unwrap();
        assert_eq!(turn.report().await.status, TurnStatus::Completed, "{round}");
        while session.is_running() || !is_delivered(&session, &id) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let delivered: Vec<(u64, bool)> = std::iter::from_fn(|| events.try_next())
            .filter_map(|event| match &event.kind {
                EventKind::SteeringMessage { id: Some(own), .. } if *own == id => Some((event.seq, false)),
                EventKind::InputReceived { id: Some(own), .. } if *own == id => Some((event.seq, true)),
                _ => None,
            })
            .collect();
        let Some(Receipt::Delivered { place, seq }) = session.inbox().receipt(&id) else { panic!("{round}") };
        let [(own, starts)] = delivered[..] else { panic!("{round}: {delivered:?}") };
        assert_eq!((own, place.turn), (seq, if starts { 2 } else { 1 }), "{round}");
        assert!(!has_started || starts, "{round}");
        let requests = model.requests();
        assert_eq!((requests.len(), requests[1].iter().filter(|text| *text == "late").count()), (2, 1), "{round}");
        session.close();
    }
}
