//! Questions survive their process: on resume they are asked again, and what had begun is not run twice.

use std::sync::Arc;

use flow::{Answer, Event, EventKind, QuestionId, SuspendReason, TurnStatus};
use rules::RuleSet;
use tidegate_kit::{rule_set, say};

use record::Record;

use super::turn::CancellationToken;
use super::turn::rebuild::Rebuild;
use super::world::{Place, Setup, World, asked, decided, place, rebuilt, until, write, writes};

/// The events of a turn with three questions, of which the second is denied and the first approved, up to a kind of event.
async fn interrupted(is_last: impl Fn(&EventKind) -> bool) -> (Vec<Event>, Arc<World>) {
    let mut place = place(&[("a", "1"), ("b", "2"), ("c", "3")]).await;
    let (_, events) = place
        .turn(|desk| async move {
            let open = desk.open(3).await;
            desk.answer(&open[1], Answer::Deny { reason: "not that file".into() }).unwrap();
            desk.answer(&open[0], Answer::Approve).unwrap();
            let last = desk.open(1).await;
            desk.answer(&last[0], Answer::Approve).unwrap();
        })
        .await;
    (until(&events, is_last), place.world)
}

/// Another process continues from these events.
async fn next_process(events: &[Event], world: &Arc<World>, rules: Arc<RuleSet>) -> Place {
    let resumed = Some(rebuilt(events));
    world.written.lock().unwrap().clear();
    world.files.lock().unwrap().clear();
    Setup { resumed, rules, world: Arc::clone(world), ..Setup::new([say("done"), say("done")]) }.open().await
}

fn no_rules() -> Arc<RuleSet> {
    rule_set(&[], |_| {})
}

/// All events of a thread are what its conversation is rebuilt from.
fn assert_whole(before: &[Event], after: &[Event], place: &Place) {
    let all: Vec<Event> = before.iter().chain(after).cloned().collect();
    tidegate_kit::assert_rebuilt(&all, &place.session.history());
}

#[tokio::test]
async fn the_same_questions_are_asked_again_and_their_answers_complete_the_turn() {
    let (before, world) = interrupted(|kind| matches!(kind, EventKind::ToolConfirmationRequested { .. })).await;
    let mut place = next_process(&before, &world, no_rules()).await;
    let (report, after) = place
        .resume(|desk| async move {
            let open = desk.open(3).await;
            assert_eq!(open[1].call.arguments, write("b", "2"));
            for question in open {
                desk.answer(&question, Answer::Approve).unwrap();
            }
        })
        .await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "done"));
    assert_eq!(asked(&after), asked(&before));
    assert_eq!(place.written().len(), 3);
    assert_whole(&before, &after, &place);
}

#[tokio::test]
async fn what_was_denied_stays_denied_and_what_was_approved_is_asked_again() {
    let (before, world) = interrupted(|kind| matches!(kind, EventKind::ToolConfirmationResolved { .. })).await;
    // Without the last answer.
    let before = before[..before.len() - 1].to_vec();
    assert_eq!(decided(&before).len(), 2);
    let mut place = next_process(&before, &world, no_rules()).await;
    let (_, after) = place
        .resume(|desk| async move {
            for question in desk.open(2).await {
                desk.answer(&question, Answer::Approve).unwrap();
            }
        })
        .await;
    assert_eq!(asked(&after), ["question-1", "question-3"].map(QuestionId::new));
    assert_eq!(place.written().len(), 2);
    assert!(place.results(0).contains("not run: the user denied this call: not that file"), "{}", place.results(0));
    assert_whole(&before, &after, &place);
}

#[tokio::test]
async fn a_call_that_had_begun_is_not_run_again() {
    let (before, world) = interrupted(|kind| matches!(kind, EventKind::ToolCallStart { .. })).await;
    let end = before.iter().position(|event| matches!(event.kind, EventKind::ToolCallStart { .. })).unwrap();
    let before = before[..=end].to_vec();
    let mut place = next_process(&before, &world, no_rules()).await;
    let (_, after) = place
        .resume(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Approve).unwrap();
        })
        .await;
    assert_eq!(place.written(), [("c".to_owned(), "3".to_owned())]);
    assert!(place.results(0).contains("its outcome is not known"), "{}", place.results(0));
    assert_whole(&before, &after, &place);
}

#[tokio::test]
async fn another_input_settles_the_calls_as_not_run() {
    let (before, world) = interrupted(|kind| matches!(kind, EventKind::ToolConfirmationRequested { .. })).await;
    let mut place = next_process(&before, &world, no_rules()).await;
    let (report, after) = place.turn(|_| async {}).await;
    assert_eq!(report.status, TurnStatus::Completed);
    assert!(place.written().is_empty() && asked(&after).is_empty());
    let request = place.model.request(0);
    let results = &request[request.len() - 2].1;
    assert_eq!(results.matches("the user has continued with another message").count(), 3, "{results}");
    assert_whole(&before, &after, &place);
}

/// A process can end more than once.
#[tokio::test]
async fn questions_survive_a_second_process() {
    let (before, world) = interrupted(|kind| matches!(kind, EventKind::ToolConfirmationRequested { .. })).await;
    let mut second = next_process(&before, &world, no_rules()).await;
    let (_, after) = second
        .resume(|desk| async move {
            for question in desk.open(3).await {
                desk.answer(&question, Answer::Approve).unwrap();
            }
        })
        .await;
    let again = until(&after, |kind| matches!(kind, EventKind::ToolConfirmationRequested { .. }));
    let before: Vec<Event> = before.into_iter().chain(again).collect();
    let mut third = next_process(&before, &world, no_rules()).await;
    let (report, after) = third
        .resume(|desk| async move {
            for question in desk.open(3).await {
                desk.answer(&question, Answer::Approve).unwrap();
            }
        })
        .await;
    assert_eq!((report.status, third.written().len()), (TurnStatus::Completed, 3));
    assert_whole(&before, &after, &third);
}

/// The rules of the process that runs the call count, also for one that another process has accepted.
#[tokio::test]
async fn rules_watch_the_calls_again() {
    let (before, world) = interrupted(|kind| matches!(kind, EventKind::ToolConfirmationRequested { .. })).await;
    let rules = rule_set(&[("two", "+++\ncondition = \"2\"\nscope = \"tool\"\n+++\nNo two.")], |_| {});
    let mut place = next_process(&before, &world, rules).await;
    let (_, after) = place
        .resume(|desk| async move {
            for question in desk.open(2).await {
                desk.answer(&question, Answer::Approve).unwrap();
            }
        })
        .await;
    assert_eq!(place.written(), [("a".to_owned(), "1".to_owned()), ("c".to_owned(), "3".to_owned())]);
    assert!(place.results(0).contains("No two."), "{}", place.results(0));
    let fired = |event: &&Event| matches!(&event.kind, EventKind::RuleFired { found, .. } if found.rule == "two");
    assert_eq!((after.iter().filter(fired).count(), place.session.rule_metrics()["two"].fires), (1, 1));
    assert_whole(&before, &after, &place);
}

#[tokio::test]
async fn what_was_allowed_always_is_allowed_after_a_resume() {
    let scripts = [writes(&[("a", "1")]), say("done")];
    let mut first = Setup::new(scripts).open().await;
    let (_, before) = first
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Always).unwrap();
        })
        .await;
    let setup = Setup::new([writes(&[("a", "2"), ("b", "3")]), say("done")]);
    let mut second = Setup { resumed: Some(rebuilt(&before)), ..setup }.open().await;
    let (_, after) = second
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Deny { reason: String::new() }).unwrap();
        })
        .await;
    assert_eq!(asked(&after), [QuestionId::new("question-2")]);
    assert_eq!(second.written(), [("a".to_owned(), "2".to_owned())]);
    assert_eq!(second.questions.always(), ["write(a)"]);
}

/// The process ends while a call runs with arguments that a person has written.
#[tokio::test]
async fn the_model_learns_of_an_edit_where_the_process_ended() {
    let mut first = place(&[("a", "1")]).await;
    let (_, events) = first
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Edit { arguments: write("b", "2") }).unwrap();
        })
        .await;
    let before = until(&events, |kind| matches!(kind, EventKind::ToolCallStart { .. }));
    let mut place = next_process(&before, &first.world, no_rules()).await;
    let (_, after) = place.resume(|_| async {}).await;
    let result = place.results(0);
    assert!(result.contains("The user edited the arguments") && result.contains("not known"), "{result}");
    assert_whole(&before, &after, &place);
}

/// A fork is another session: what a person has allowed for the rest of one is asked about in the other.
#[tokio::test]
async fn a_fork_asks_about_what_was_allowed_always() {
    let mut first = Setup::new([writes(&[("a", "1")]), say("done")]).open().await;
    let (_, before) = first
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Always).unwrap();
        })
        .await;
    let mut rebuild = Rebuild::default();
    before.iter().for_each(|event| rebuild.take(&Record::of(event, "thread")).unwrap());
    rebuild.fork();
    let resumed = rebuild.finish();
    assert!(resumed.always.is_empty());
    let setup = Setup::new([writes(&[("a", "2")]), say("done")]);
    let mut fork = Setup { resumed: Some(resumed), ..setup }.open().await;
    let (_, after) = fork
        .turn(|desk| async move {
            let open = desk.open(1).await;
            desk.answer(&open[0], Answer::Deny { reason: String::new() }).unwrap();
        })
        .await;
    assert_eq!(asked(&after), [QuestionId::new("question-2")]);
}

/// The session is closed while persons are asked: that answers no question, and the next process asks.
#[tokio::test]
async fn the_questions_of_a_session_that_is_closed_stay_open() {
    for with_input in [false, true] {
        let mut first = place(&[("a", "1"), ("b", "2"), ("c", "3")]).await;
        let (questions, cancel, world) = (first.questions.clone(), first.cancel.clone(), Arc::clone(&first.world));
        let (report, before) = first
            .turn(|desk| async move {
                let open = desk.open(3).await;
                desk.answer(&open[0], Answer::Approve).unwrap();
                while world.written.lock().unwrap().is_empty() {
                    tokio::task::yield_now().await;
                }
                questions.keep_open();
                cancel.cancel();
            })
            .await;
        let TurnStatus::Suspended { reason: SuspendReason::Approval, message } = &report.status else {
            panic!("{report:?}")
        };
        assert!(message.contains("2 questions about tool calls were open"), "{message}");
        assert_eq!(decided(&before).len(), 1, "nobody has answered the others");
        let names: Vec<&str> = before[before.len() - 3..].iter().map(|event| event.kind.name()).collect();
        assert_eq!(names, ["step_finish", "turn_finish", "thread_suspended"]);

        let mut second = next_process(&before, &first.world, no_rules()).await;
        if with_input {
            let (_, after) = second.turn(|_| async {}).await;
            let request = second.model.request(0);
            let results = &request[request.len() - 2].1;
            assert_eq!(results.matches("the user has continued with another message").count(), 2, "{results}");
            assert_whole(&before, &after, &second);
            continue;
        }
        let (report, after) = second
            .resume(|desk| async move {
                for question in desk.open(2).await {
                    desk.answer(&question, Answer::Approve).unwrap();
                }
            })
            .await;
        assert_eq!(report.status, TurnStatus::Completed);
        assert_eq!(asked(&after), ["question-2", "question-3"].map(QuestionId::new));
        assert_eq!(second.written().len(), 2, "what had run is not run again");
        let resumed = after.iter().find_map(|event| match &event.kind {
            EventKind::ThreadResumed { suspended, .. } => Some(*suspended),
            _ => None,
        });
        assert_eq!(resumed, Some(Some(SuspendReason::Approval)));
        assert_whole(&before, &after, &second);
    }
}

/// A turn that ends before anything has become of the calls leaves them to the next one, in this process and in another.
#[tokio::test]
async fn a_turn_that_cannot_begin_leaves_the_questions_to_the_next() {
    let (before, world) = interrupted(|kind| matches!(kind, EventKind::ToolConfirmationRequested { .. })).await;
    for (with_input, restarts) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut place = next_process(&before, &world, no_rules()).await;
        place.cancel.cancel();
        let (report, after) =
            if with_input { place.turn(|_| async {}).await } else { place.resume(|_| async {}).await };
        assert_eq!(report.status, TurnStatus::Cancelled);
        assert_whole(&before, &after, &place);
        let mut before: Vec<Event> = before.iter().cloned().chain(after).collect();
        if restarts {
            place = next_process(&before, &world, no_rules()).await;
        }
        place.cancel = CancellationToken::new();
        let (report, after) = place
            .resume(|desk| async move {
                for question in desk.open(3).await {
                    desk.answer(&question, Answer::Approve).unwrap();
                }
            })
            .await;
        assert_eq!(report.status, TurnStatus::Completed);
        assert_eq!(asked(&after), asked(&before));
        assert_whole(&before, &after, &place);
        before.extend(after);
        assert_eq!(rebuilt(&before).open_calls, None);
    }
}

/// Wherever a turn that continues is dropped, another process gets the calls exactly where this one still has them.
#[tokio::test]
async fn what_becomes_of_open_calls_is_the_same_in_both_processes() {
    let mut outcomes = [0, 0];
    for kind in ["tool_confirmation_requested", "tool_call_start"] {
        let (events, world) = interrupted(|last| last.name() == kind).await;
        for polls in 0..12 {
            let mut place = next_process(&events, &world, no_rules()).await;
            {
                let mut turn = Box::pin(place.session.resume("continue", &place.cancel));
                for _ in 0..polls {
                    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(turn.as_mut().poll(cx))).await;
                    if polled.is_ready() {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            }
            let after = tidegate_kit::drain(&mut place.events);
            assert_whole(&events, &after, &place);
            let all: Vec<Event> = events.iter().cloned().chain(after).collect();
            let left = rebuilt(&all).open_calls.map_or(0, |open| open.questions.len());
            place.world.written.lock().unwrap().clear();
            let (_, settle) = place.turn(|_| async {}).await;
            let is_result = |event: &&Event| matches!(event.kind, EventKind::ToolCallResult { .. });
            assert_eq!(settle.iter().filter(is_result).count() > 0, left > 0, "{kind}, {polls} polls");
            outcomes[usize::from(left > 0)] += 1;
        }
    }
    assert!(outcomes.iter().all(|count| *count > 0), "calls are left, or not: {outcomes:?}");
}
